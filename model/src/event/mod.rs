//! Events, in the one JSON structure that the stream, webhooks and the outbox share.
//!
//! [`Event::new`] makes one, in the transaction of the change that it reports (`store::events`).
//! [`EventPattern`] selects kinds of event.

mod envelope;
mod kind;
mod log;
mod pattern;
mod stream;
mod viewers;

pub use envelope::{Event, PlacedEvent, Position};
pub use kind::EventKind;
pub use log::{EventBatch, EventLog, RecentEvents};
pub use pattern::{EventPattern, EventPatternError, EventPatterns};
pub use stream::{EventFilter, EventStream, EventStreams, Gap, REPLAY_US, Start, StreamItem, StreamedEvent};
pub use viewers::{EventReader, EventViewers, EventViewersError};
