//! Live events: one reader per process passes events that become visible in the log to every stream.
//!
//! `bus` reads the log from one position on and passes each event to the live streams; `queue` contains the events
//! that one stream has not taken yet, bounded; `stream` is one stream, which reads the log itself until it has caught
//! up. There is no HTTP here: the API uses `model::event::EventStreams`.

mod bus;
pub mod call_events;
mod queue;
mod stream;

pub use bus::Bus;
