//! The result of reading a capture, and why it may stop before the end.

use std::io;

use sidetone_media::pcap::Damage;
use sidetone_media::trace::TraceDamage;
use thiserror::Error;

use super::analysis::Analysis;
use super::gzip::GzipDamage;
use super::parts::Parts;

/// The result of reading a capture.
#[derive(Debug)]
pub struct Outcome {
    /// The result up to where reading stopped.
    pub analysis: Analysis,
    /// Why reading stopped; `None` when the end was reached.
    pub broken: Option<Broken>,
}

/// As [`Outcome`], before the calls and streams are judged.
#[derive(Debug)]
pub struct PartsOutcome {
    /// The result up to where reading stopped.
    pub parts: Parts,
    /// Why reading stopped; `None` when the end was reached.
    pub broken: Option<Broken>,
}

/// Why a capture could not be read to its end.
#[derive(Debug, Error)]
pub enum Broken {
    /// The bytes after this position are not a capture.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The bytes after this position are not gzip.
    #[error(transparent)]
    Gzip(#[from] GzipDamage),
    /// The bytes could not be read.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// The bytes after this position are not a trace.
    #[error(transparent)]
    Trace(TraceDamage),
    /// A trace from which its own writer had to omit inputs.
    #[error("the trace does not hold the last {missing} things that happened: its disk was full or slow")]
    TraceWithGap {
        /// Number of inputs that were not written.
        missing: u64,
    },
    /// A trace without an end record.
    #[error("the trace has no end, as when the leg goes on or its node was stopped at once")]
    TraceWithoutEnd,
}

/// The end of a capture, or of its readable part.
pub(super) type End = Result<(), Broken>;

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        error.downcast::<GzipDamage>().map_or_else(Broken::Io, Broken::Gzip)
    }
}
