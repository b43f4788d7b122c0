//! Live events: one reader per process passes what becomes visible in the log to every stream.
//!
//! `bus` reads the log after one position and passes each event to the live streams; `queue` contains what
//! one stream has not taken yet, bounded; `stream` is one stream, which reads the log itself until it has
//! caught up. No HTTP: the API uses `model::event::EventStreams`.

mod bus;
pub mod call_events;
mod queue;
mod stream;

pub use bus::Bus;
