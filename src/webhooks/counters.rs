//! The counters of webhooks for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::metrics::Family;

/// Counters of this process since its start.
#[derive(Debug, Default)]
pub struct WebhookCounters {
    pub(super) queued: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) attempts_failed: AtomicU64,
    pub(super) switched_off: AtomicU64,
    /// Attempts that panicked; anything but 0 is a bug.
    pub panics: AtomicU64,
    /// Attempts in progress.
    pub(super) running: AtomicU64,
}

impl WebhookCounters {
    /// The metrics, with how many deliveries wait in the database.
    pub fn families(&self, waiting: Option<u64>) -> Vec<Family> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut families = vec![
            Family::counter(
                "sidetone_webhook_deliveries_total",
                "Deliveries to webhooks by this node, by what became of them.",
            )
            .with([("status", "delivered")], read(&self.delivered))
            .with([("status", "failed")], read(&self.failed))
            .with([("status", "queued")], read(&self.queued)),
            Family::counter(
                "sidetone_webhook_attempts_failed_total",
                "Attempts that failed; most are tried again.",
            )
            .is(read(&self.attempts_failed)),
            Family::counter(
                "sidetone_webhooks_switched_off_total",
                "Webhooks that were switched off after three days of failures.",
            )
            .is(read(&self.switched_off)),
            Family::gauge("sidetone_webhook_attempts_running", "Attempts that run now on this node.")
                .is(read(&self.running)),
        ];
        if let Some(waiting) = waiting {
            families.push(
                Family::gauge(
                    "sidetone_webhook_queue_length",
                    "Deliveries of all nodes that wait or are on their way.",
                )
                .is(waiting),
            );
        }
        families
    }
}
