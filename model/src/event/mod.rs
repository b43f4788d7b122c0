//! Events: what happened, in the one JSON shape that the stream, webhooks and the outbox share.
//!
//! [`Event::new`] makes one, in the transaction of what it tells (`store::events`). [`EventPattern`] is how an
//! integrator names the kinds they want.

mod event;
mod kind;
mod log;
mod pattern;

pub use event::{Event, PlacedEvent};
pub use kind::EventKind;
pub use log::{EventBatch, EventLog, Position};
pub use pattern::{EventPattern, EventPatternError, EventPatterns};
