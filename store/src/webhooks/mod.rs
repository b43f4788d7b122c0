//! Webhooks, the deliveries that wait for them, and what became of each.
//!
//! Whoever changes what is delivered to a webhook first writes the webhook's own row: on PostgreSQL that keeps the
//! others out until the transaction ends, several webhooks in the order of their ids.

mod deliveries;
mod manage;
mod queue;
mod rows;
mod work;

pub use queue::HandedOut;
pub use work::{ClaimedDelivery, SettledAttempt, Settlement};
