//! Analyses captures: turns the SIP dialogs and RTP streams of a capture file into call records, judged like
//! live calls.
//!
//! [`read`] feeds a file to [`Engine`]. The engine takes one frame at a time and keeps only what calls and
//! streams need, so a capture of any length takes bounded memory. Every stream and every caller's leg is
//! judged by the `media::session::Session` that live calls use.

mod accumulator;
mod analysis;
mod announcements;
mod attempt;
mod call_leg;
mod calls;
mod clock_inference;
mod compose;
mod dialog;
mod direction_pairs;
mod embedded_sdp;
mod endpoints;
mod engine;
mod eviction;
mod excerpt;
mod explained;
mod feed;
mod flow_key;
mod flows;
mod frames;
pub mod golden;
mod grid;
mod groups;
mod gzip;
mod ladder;
mod leg;
mod lenient_sip;
mod outcome;
mod parts;
mod payload_kind;
mod payloads;
mod playback;
mod probation;
mod read_ahead;
mod read_schedule;
mod reassembly;
mod registrations;
pub mod report;
mod router;
mod rtcp;
mod segment_owners;
mod signal;
mod source;
mod stream;
mod survey;
mod table;
mod tcp_framing;
mod time_order;
mod times;
mod trace_replay;
mod turn_protocol;

pub use analysis::{
    Analysis, CallDirection, CallReport, EvidenceReport, Head, Skipped, StreamReport, StreamRtcp,
};
pub use call_leg::CallLeg;
pub use compose::{CALLS_MAX, STAGGER_MS, compose, compose_calls, scenario_of_call};
pub use engine::{Engine, EngineOptions, FinishedCall};
pub use excerpt::{Excerpt, ExcerptStream, Splitter, each_frame};
pub use grid::Look;
pub use groups::{Elsewhere, Group, Groups, analysis_of};
pub use gzip::{GzipDamage, Plain};
pub use ladder::{Ladder, LadderMessage};
pub use outcome::{Broken, Outcome, PartsOutcome};
pub use parts::{Part, Parts};
pub use playback::Playback;
pub use registrations::RegistrationReport;
pub use source::{Source, read, read_parts, read_with};
pub use survey::Survey;
pub(crate) use table::counted;
pub use table::{Table, table};
pub use times::Times;

#[cfg(test)]
mod kept_file;
#[cfg(test)]
mod tests;
