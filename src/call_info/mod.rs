//! The call-info callback: on every answered call the organisation's own machine is asked what to show on the phone.
//!
//! [`CallInfo::answered`] takes a call and returns at once. Behind it a task looks up the organisation's URL, posts the
//! signed payload through the guarded client, once, and hands what was answered to a [`NoteSink`]: a note, or why there
//! is none. Five seconds after the call was answered it is over, whatever happened.

mod answer;
mod asking;
mod payload;
mod sink;

pub use asking::{CallInfo, Clock, Counts};
pub use payload::{AnsweredCall, signature};
pub use sink::NoteSink;
