//! Header-only traces of legs on disk: sinks that never block, one thread that writes, directories by day.
//!
//! The content of a trace is defined in the media crate (`docs/trace.md`); this module handles files. A
//! worker of the relay passes full blocks to a [`Traces`]' sink and gets empty ones back; the thread appends
//! them, one open file at a time, and deletes days after the retention time. A slow, full or missing disk
//! costs only traces, which then contain a gap mark.

mod counters;
mod days;
mod sink;
mod thread;

pub use counters::TraceCounters;
pub use thread::{TraceSettings, Traces};

#[cfg(test)]
mod tests;
