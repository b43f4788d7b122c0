//! The call-info request: for every answered call, the organisation's own server is asked for a note to show on the
//! phone.
//!
//! [`CallInfo::answered`] accepts a call and returns immediately. A task then looks up the organisation's URL, posts
//! the signed payload once through the guarded client, and passes the result to a [`NoteSink`]: a note, or the reason
//! why there is none. It ends at most five seconds after the call was answered.

mod answer;
mod asking;
mod payload;
mod sink;

pub use asking::{CallInfo, Counts};
pub use payload::{AnsweredCall, signature};
pub use sink::NoteSink;
