//! The live side of the log of events: one reader per process that shows what becomes visible to every stream.
//!
//! `bus` reads the log behind one position and hands each event to the streams that are live; `queue` is what one of
//! them has not taken yet, bounded; `stream` is one stream, which reads the log itself until it has caught up. No HTTP:
//! the face asks through `model::event::EventStreams`.

mod bus;
mod queue;
mod stream;

pub use bus::Bus;
