//! The counters of a tap, for its status line and for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sidetone_model::metrics::Family;

/// Counters that the reading thread updates and any thread may read.
#[derive(Debug, Default)]
pub struct TapCounters {
    /// Frames that were read.
    pub packets: AtomicU64,
    /// Their length on the wire in bytes.
    pub bytes: AtomicU64,
    /// Frames that the kernel dropped because the ring was full.
    pub dropped: AtomicU64,
    /// Calls in progress.
    pub live_calls: AtomicU64,
    /// Finished calls.
    pub calls: AtomicU64,
    /// Of these, calls with a verdict other than `ok`.
    pub faulty_calls: AtomicU64,
    /// Interfaces that currently cannot be read, each as a sentence.
    pub faults: Mutex<Vec<String>>,
}

impl TapCounters {
    /// Adds to one of the counts.
    pub fn add(count: &AtomicU64, number: u64) {
        count.fetch_add(number, Ordering::Relaxed);
    }

    /// Reads one of the counts.
    pub fn read(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }

    /// The counters as metrics for `/metrics`.
    pub fn families(&self) -> Vec<Family> {
        let counter = |name, help, count| Family::counter(name, help).is(Self::read(count));
        vec![
            counter("sidetone_tap_packets_total", "Frames read from the tapped interfaces.", &self.packets),
            counter("sidetone_tap_bytes_total", "Octets on the wire of these frames.", &self.bytes),
            counter(
                "sidetone_tap_dropped_total",
                "Frames that the kernel dropped because the tap did not read them in time.",
                &self.dropped,
            ),
            counter("sidetone_tap_calls_total", "Finished calls of the tap.", &self.calls),
            Family::gauge("sidetone_tap_calls_live", "Calls that the tap follows now.")
                .is(Self::read(&self.live_calls)),
        ]
    }
}
