//! Captures to call records: SIP dialogs and RTP streams of a capture file, judged like live calls.
//!
//! [`read`] drives a file through [`Engine`]; the engine takes one frame at a time and keeps only what calls
//! and streams need, so a capture of any length takes bounded memory. Every stream and every caller's leg is
//! judged by the same `media::session::Session` that carries a live call.

mod calls;
mod compose;
mod dialog;
mod engine;
mod flows;
mod payloads;
mod probation;
mod report;
mod sentence;
mod source;
mod stream;
mod table;

pub use compose::compose;
pub use engine::Engine;
pub use report::{Analysis, CallReport, EvidenceReport, Skipped, StreamReport};
pub use sentence::sentence;
pub use source::{Broken, Outcome, read};
pub use table::table;

#[cfg(test)]
mod tests;
