//! `sidetone analyze FILE…`: calls and RTP streams of captures, with the figures and verdicts of a live call.

mod args;
mod browse;
mod choice;
mod excerpts;
mod reading;
mod report;
mod run;

pub use args::AnalyzeArgs;
pub use run::run;
