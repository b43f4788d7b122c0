//! The driver of the switch, with sockets, a clock and a task: it passes inputs to the state machine and executes its
//! outputs.
//!
//! [`task`] is the loop, [`handle`] the interface for other tasks, `media` the relay as the switch uses it.

mod edge;
pub mod handle;
mod intake;
mod media;
mod notices;
mod ports;
mod quality;
mod refusals;
mod signalling;
mod star_codes;
pub mod task;

pub use edge::EdgeTraffic;
pub use handle::{AskError, Handle, Request};
pub use media::{ConferenceAudio, Tracing};
pub use task::Driver;
