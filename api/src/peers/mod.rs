//! Requests about live calls and rooms in a cluster: lists are gathered from all nodes, and a request about one call
//! or room is answered by the node that owns it.

mod concern;
mod layer;
mod merge;
mod message;

pub(crate) use layer::route;
pub(crate) use message::{PASSED_ON, to_answer};
