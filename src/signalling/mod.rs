//! SIP messages kept with their calls (`[signalling] keep_days`).
//!
//! The driver passes every message to a [`SignallingTap`], which finds its call and never waits. A task removes
//! credentials and keys, and collects at most 64 KiB for each call; another stores ended calls. A slow or absent
//! database costs these messages alone. The row of a call is deleted after its days by `src/sweep.rs`.

mod collector;
mod counters;
mod ladder;
mod ladders;
mod peek;
mod redact;
mod report;
mod shares;
mod strangers;
mod tap;

pub use collector::{KeptSignalling, SignallingNode, SignallingSettings};
pub use counters::SignallingCounters;
pub use report::OwnedCall;
pub use tap::SignallingTap;
