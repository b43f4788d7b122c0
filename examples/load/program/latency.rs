//! Percentiles of durations.

use hdrhistogram::Histogram;

use crate::program::clock::Nanos;
use crate::program::report::Report;

/// Durations of one kind, from one microsecond to a minute.
pub(crate) struct Latency {
    micros: Histogram<u64>,
}

impl Latency {
    /// Holds no duration yet.
    #[expect(clippy::expect_used, reason = "the bounds are constants that a histogram accepts")]
    pub(crate) fn new() -> Self {
        Latency { micros: Histogram::new_with_bounds(1, MICROS_MAX, 3).expect("the bounds are in range") }
    }

    /// Adds a duration.
    pub(crate) fn add(&mut self, nanos: Nanos) {
        self.micros.saturating_record(nanos / 1_000);
    }

    /// Writes the percentiles into a report, in milliseconds.
    pub(crate) fn report(&self, report: &mut Report, name: &str) {
        if self.micros.is_empty() {
            return;
        }
        for (label, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
            report.ms(&format!("{name} {label}"), self.ms_at(quantile));
        }
        report.ms(&format!("{name} max"), millis(self.micros.max()));
    }

    fn ms_at(&self, quantile: f64) -> f64 {
        millis(self.micros.value_at_quantile(quantile))
    }
}

fn millis(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

const MICROS_MAX: u64 = 60_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::clock::{MILLISECOND, SECOND};

    #[test]
    fn percentiles_of_known_durations() {
        let mut latency = Latency::new();
        for ms in 1..=1_000 {
            latency.add(ms * MILLISECOND);
        }
        for (quantile, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (0.999, 999.0)] {
            let found = latency.ms_at(quantile);
            assert!((found - expected).abs() <= expected * 0.001, "{quantile}: {found}");
        }
        // A duration beyond the range counts as the largest one.
        latency.add(3_600 * SECOND);
        assert!((latency.ms_at(1.0) - 60_000.0).abs() < 60.0);
    }

    #[test]
    fn nothing_is_reported_of_nothing() {
        let mut report = Report::new("empty");
        Latency::new().report(&mut report, "INVITE → 200");
        assert_eq!(report.json().as_object().map(serde_json::Map::len), Some(1));
    }
}
