//! Answers that do not end: server-sent events, for as long as the caller may see them.
//!
//! `frame` writes the items, `body` is the answer's body, `places` limits the streams of one caller.

mod body;
mod frame;
mod places;

pub(crate) use body::EventBody;
pub(crate) use places::{Places, STREAMS_PER_CALLER_MAX};
