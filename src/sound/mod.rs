//! What callers are played: the sounds that are built in and those that organisations have of their own.
//!
//! Every clip is in memory, decoded, before anybody asks for it: playing one waits for nothing. What is uploaded is
//! stored for every node ([`Desk`]); each node reads it from there ([`follow`]). No call and no mix is known here.

mod builtin;
mod desk;
mod follow;
mod library;

pub use desk::Desk;
pub use follow::{Followed, follow};
pub use library::Library;
