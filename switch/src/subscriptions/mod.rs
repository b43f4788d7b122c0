//! Subscriptions of phones to the state of extensions of their organisation (RFC 6665): their calls, for the lamps of
//! busy lamp fields (RFC 4235), whether they are registered (RFC 3856, basic), and the messages in their mailboxes
//! (RFC 3842).
//!
//! Parts of the switch touch an extension when its state may have changed. The state is read when a NOTIFY may be sent;
//! a state equal to the last one is not sent. Each subscription has at most one NOTIFY in progress.

mod documents;
mod machine;
mod message_waiting;
mod package;
mod subscribing;

pub(super) use machine::Subscriptions;
pub(super) use message_waiting::{mailboxes_changed, notify_phone};
pub(super) use subscribing::{SubscribeContext, event, notify};
