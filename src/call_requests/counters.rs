//! The counters of callbacks for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::metrics::Family;

/// Counters of the callback sender since this process started.
#[derive(Debug, Default)]
pub struct CallbackCounters {
    delivered: AtomicU64,
    /// Callbacks that are not retried.
    failed: AtomicU64,
    attempts_failed: AtomicU64,
    /// Attempts in progress.
    pub(super) running: AtomicU64,
    /// Attempts that panicked; anything but 0 is a bug.
    pub panics: AtomicU64,
}

impl CallbackCounters {
    /// Counts an attempt that has ended.
    pub(super) fn note(&self, has_failed: bool, is_tried_again: bool) {
        let add = |counter: &AtomicU64, more: bool| counter.fetch_add(more.into(), Ordering::Relaxed);
        add(&self.delivered, !has_failed);
        add(&self.attempts_failed, has_failed);
        add(&self.failed, has_failed && !is_tried_again);
    }

    /// The metrics.
    pub fn families(&self) -> [Family; 3] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            Family::counter(
                "sidetone_call_callbacks_total",
                "Callbacks of requested calls by this node, by their result.",
            )
            .with([("status", "delivered")], read(&self.delivered))
            .with([("status", "failed")], read(&self.failed)),
            Family::counter(
                "sidetone_call_callback_attempts_failed_total",
                "Attempts of callbacks that failed; most are tried again.",
            )
            .is(read(&self.attempts_failed)),
            Family::gauge(
                "sidetone_call_callback_attempts_running",
                "Attempts of callbacks that run now on this node.",
            )
            .is(read(&self.running)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use sidetone_model::metrics::Value;

    use super::*;

    #[test]
    fn each_attempt_counts_by_its_result() {
        let counters = CallbackCounters::default();
        for (has_failed, is_tried_again) in [(true, true), (true, true), (false, false), (true, false)] {
            counters.note(has_failed, is_tried_again);
        }
        let [callbacks, failed_attempts, _] = counters.families();
        let values = |family: Family| family.samples.into_iter().map(|sample| sample.value);
        assert!(values(callbacks).eq([1, 1].map(Value::Number)), "delivered, failed");
        assert!(values(failed_attempts).eq([3].map(Value::Number)));
    }
}
