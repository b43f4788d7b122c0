//! The laws of the playout, on traces of networks: the delay is bounded and falls again, nothing is played
//! twice, the order is kept, and lost or late packets are counted.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

mod network;
mod traces;
mod turns;
