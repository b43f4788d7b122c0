//! Analyses captures: turns the SIP dialogs and RTP streams of a capture file into call records, judged like
//! live calls.
//!
//! [`read`] feeds a file to [`Engine`]. The engine takes one frame at a time and keeps only what calls and
//! streams need, so a capture of any length takes bounded memory. Every stream and every caller's leg is
//! judged by the `media::session::Session` that live calls use.

mod ahead;
mod analysis;
mod attempt;
mod calls;
mod carrier;
mod clock;
mod compose;
mod dialog;
mod engine;
mod excerpt;
mod explained;
mod feed;
mod flows;
mod folder;
mod frames;
pub mod golden;
mod grid;
mod groups;
mod gzip;
mod key;
mod ladder;
mod leg;
mod lenient;
mod mirror;
mod parts;
mod payloads;
mod playback;
mod probation;
mod registrations;
pub mod report;
mod retrace;
mod router;
mod rtcp;
mod signal;
mod source;
mod stream;
mod survey;
mod table;
mod taking;
mod text;
mod track;
mod turn;
mod turns;
mod wire;

pub use analysis::{
    Analysis, CallDirection, CallLeg, CallReport, EvidenceReport, Head, Skipped, StreamReport, StreamRtcp,
};
pub use compose::{CALLS_MAX, STAGGER_MS, compose, compose_calls, scenario_of_call};
pub use engine::{Engine, EngineOptions, FinishedCall};
pub use excerpt::{Excerpt, ExcerptStream, Splitter, each_frame};
pub use groups::{Elsewhere, Group, Groups, analysis_of};
pub use gzip::{GzipDamage, Plain};
pub use ladder::{Ladder, LadderMessage};
pub use parts::{Part, Parts};
pub use playback::Playback;
pub use registrations::RegistrationReport;
pub use source::{Broken, Outcome, PartsOutcome, Source, read, read_parts, read_with};
pub use survey::Survey;
pub use table::{Look, Table, table};
pub(crate) use table::{counted, grouped};

#[cfg(test)]
mod tests;
