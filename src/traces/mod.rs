//! Header-only traces of legs on disk: sinks that never wait, one thread that writes, days that pass.
//!
//! What is in a trace is the media crate's (`docs/trace.md`); here are files. A worker of the relay hands full blocks to a
//! [`Traces`]' sink and gets empty ones back; the thread appends them, one open file at a time, and deletes the
//! days that were kept long enough. A disk that is slow, full or gone costs traces, which then say so, and nothing else.

mod counters;
mod days;
mod sink;
mod thread;

pub use counters::TraceCounters;
pub use thread::{TraceSettings, Traces};

#[cfg(test)]
mod tests;
