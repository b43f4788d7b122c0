//! The built-in phone of the demo and the tests: registers, calls, answers, and talks as a scenario says.
//!
//! A driver around the same user agent that the switch uses, on real sockets. Loopback tools, not a softphone.

mod actor;
mod handset;
mod media;
mod tap;

pub use handset::{Answering, CallOutcome, CallPlan, Calls, Phone, PhoneConfig, PhoneError};
pub use tap::Tap;
