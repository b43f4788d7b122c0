//! SIP messages kept with their calls (`[signalling] keep_days`).
//!
//! The driver passes every message to a [`SignallingTap`], which finds its call and never blocks. One task removes
//! credentials and keys, and collects at most 64 KiB for each call; another stores ended calls. A slow or absent
//! database costs only these messages. `src/sweep.rs` deletes the row of a call after its retention time.

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
