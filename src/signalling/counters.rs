//! The counters of kept SIP messages.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sidetone_model::metrics::Family;

/// Counts since the start of the engine.
#[derive(Debug, Default)]
pub struct SignallingCounters {
    kept: AtomicU64,
    dropped: AtomicU64,
    stored: AtomicU64,
    lost: AtomicU64,
}

impl SignallingCounters {
    pub(super) fn note_kept(&self) {
        self.kept.fetch_add(1, Relaxed);
    }

    pub(super) fn note_dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(super) fn note_stored(&self, calls: u64) {
        self.stored.fetch_add(calls, Relaxed);
    }

    pub(super) fn note_lost(&self, calls: u64) {
        self.lost.fetch_add(calls, Relaxed);
    }

    /// Messages that were not kept because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Calls whose messages were lost because the database was slow, full or unavailable.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The counters as metrics for `/metrics`.
    pub fn families(&self) -> Vec<Family> {
        vec![
            Family::counter("sidetone_signalling_messages_total", "SIP messages kept with their calls.")
                .is(self.kept.load(Relaxed)),
            Family::counter(
                "sidetone_signalling_messages_dropped_total",
                "SIP messages of calls that were not kept because too many waited or memory was used up.",
            )
            .is(self.dropped()),
            Family::counter(
                "sidetone_signalling_calls_stored_total",
                "Calls whose SIP messages were stored.",
            )
            .is(self.stored.load(Relaxed)),
            Family::counter(
                "sidetone_signalling_calls_lost_total",
                "Calls whose SIP messages were lost because the database was slow, full or away.",
            )
            .is(self.lost()),
        ]
    }
}
