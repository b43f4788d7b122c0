//! The laws of the playout, on traces of what networks do: the wait is bounded and returns, nothing is played twice,
//! the order is kept, and what is lost or late is counted.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

mod network;
mod traces;
mod turns;
