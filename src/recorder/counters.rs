//! Counters of recordings.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sidetone_model::metrics::Family;

/// Counts since the start of the engine.
#[derive(Debug, Default)]
pub struct RecorderCounters {
    pub(super) live: AtomicU64,
    pub(super) complete: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) frames_lost: AtomicU64,
}

impl RecorderCounters {
    /// Recordings in progress.
    pub fn live(&self) -> u64 {
        self.live.load(Relaxed)
    }

    /// Recordings that ended early because of an error.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Frames of 20 ms that were lost because the disk was too slow.
    pub fn frames_lost(&self) -> u64 {
        self.frames_lost.load(Relaxed)
    }

    /// The counters as metrics for `/metrics`.
    pub fn families(&self) -> Vec<Family> {
        vec![
            Family::gauge("sidetone_recordings_live", "Recordings of rooms under way.").is(self.live()),
            Family::counter("sidetone_recordings_total", "Recordings that ended, as they should or before.")
                .with([("result", "complete")], self.complete.load(Relaxed))
                .with([("result", "failed")], self.failed()),
            Family::counter("sidetone_recording_bytes_total", "Bytes written to recordings.")
                .is(self.bytes.load(Relaxed)),
            Family::counter(
                "sidetone_recording_frames_lost_total",
                "Frames of 20 ms that recordings lost to a slow disk; they are silent.",
            )
            .is(self.frames_lost()),
        ]
    }
}
