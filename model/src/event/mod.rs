//! Events: what happened, in the one JSON shape that the stream, webhooks and the outbox share.
//!
//! [`Event::new`] makes one, in the transaction of what it tells (`store::events`). [`EventPattern`] is how an
//! integrator names the kinds they want.

mod envelope;
mod kind;
mod log;
mod pattern;
mod stream;

pub use envelope::{Event, PlacedEvent, Position};
pub use kind::EventKind;
pub use log::{EventBatch, EventLog};
pub use pattern::{EventPattern, EventPatternError, EventPatterns};
pub use stream::{EventFilter, EventStream, EventStreams, Gap, REPLAY_US, Start, StreamItem, StreamedEvent};
