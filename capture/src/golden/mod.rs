//! The golden corpus: one small capture per verdict, and one for each way in which tools are known to misread
//! a call. Each states the right answer, so that any analyser can be compared with it.
//!
//! The same build gives the same bytes. `docs/golden.md` describes what each file shows.

mod callee;
mod capture_builder;
mod entry;
mod index;
mod miscounted;
mod misread;
mod rtcp;
mod rtp;
mod signalling;
mod sip;
mod verdicts;

pub use entry::{Expected, Golden, Is};
pub use index::{INDEX, all, write};
