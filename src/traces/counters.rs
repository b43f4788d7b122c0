//! The counters of traces.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sidetone_model::metrics::Family;

/// Counts since the start of the engine.
#[derive(Debug, Default)]
pub struct TraceCounters {
    pub(super) begun: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) deleted: AtomicU64,
}

impl TraceCounters {
    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Blocks that were lost because the disk was slow, full or missing.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Traces that were started.
    pub fn begun(&self) -> u64 {
        self.begun.load(Relaxed)
    }

    /// The counters as metrics for `/metrics`.
    pub fn families(&self) -> Vec<Family> {
        vec![
            Family::counter("sidetone_traces_total", "Header-only traces of legs that were begun.")
                .is(self.begun()),
            Family::counter("sidetone_trace_bytes_total", "Bytes written to traces.").is(self.bytes()),
            Family::counter(
                "sidetone_trace_blocks_dropped_total",
                "Blocks that traces lost to a disk that was slow, full or gone; their traces end there.",
            )
            .is(self.dropped()),
            Family::counter("sidetone_trace_failures_total", "Writes to traces that the disk refused.")
                .is(self.failed.load(Relaxed)),
            Family::counter("sidetone_traces_deleted_total", "Traces deleted after their days.")
                .is(self.deleted.load(Relaxed)),
        ]
    }
}
