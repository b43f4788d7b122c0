//! The round trip, measured from reports that answer reports (RFC 3550 §6.4.1, figure 2; RFC 3611 §4.5).
//!
//! Passive: it uses the times at which a report to the party and the party's answer passed this relay or capture point.
//! So it works for our own reports, for relayed ones, and in a capture.

use super::bounds::ROUND_TRIP_US_MAX;
use super::view::RoundTrip;
use crate::stats::Hundredths;
use crate::time::Micros;

/// Reports that may be answered, and the samples so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTripFold {
    /// A ring of the middle 32 bits of each report's NTP time and the time it was sent.
    sent: [Option<(u32, Micros)>; KEPT],
    next: usize,
    samples: u64,
    sum_us: i64,
    min_us: i64,
    max_us: i64,
    last_us: i64,
}

/// The result for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Sampled,
    /// It answers no report that was sent recently.
    Unknown,
    /// The round trip would be negative or too large.
    Implausible,
}

impl RoundTripFold {
    /// Records a report sent to the party; `middle` are the middle bits of its NTP time.
    pub(super) fn sent(&mut self, now: Micros, middle: u32) {
        // A relay may see the same report twice; the answer refers to the first one.
        let known = self.sent.iter().flatten().any(|(sent, _)| *sent == middle);
        if middle == 0 || known {
            return;
        }
        if let Some(place) = self.sent.get_mut(self.next) {
            *place = Some((middle, now));
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// Processes the party's answer to the report with `middle`, sent `delay` 65,536ths of a second after
    /// that arrived.
    pub(super) fn answered(&mut self, now: Micros, middle: u32, delay: u32) -> Answer {
        let Some((_, sent)) = self.sent.iter().flatten().find(|(sent, _)| *sent == middle) else {
            return Answer::Unknown;
        };
        let delay_us = (i64::from(delay) * 1_000_000) >> 16;
        let trip_us = now.since(*sent).saturating_sub(delay_us);
        if !(0..=ROUND_TRIP_US_MAX).contains(&trip_us) {
            return Answer::Implausible;
        }
        self.min_us = if self.samples == 0 { trip_us } else { self.min_us.min(trip_us) };
        self.max_us = self.max_us.max(trip_us);
        self.last_us = trip_us;
        self.sum_us = self.sum_us.saturating_add(trip_us);
        self.samples += 1;
        Answer::Sampled
    }

    pub(super) fn view(&self) -> Option<RoundTrip> {
        let mean_ms = Hundredths::ratio(i128::from(self.sum_us), i128::from(self.samples) * 1000)?;
        Some(RoundTrip {
            samples: self.samples,
            last_ms: Hundredths::millis_from_us(self.last_us),
            min_ms: Hundredths::millis_from_us(self.min_us),
            max_ms: Hundredths::millis_from_us(self.max_us),
            mean_ms,
        })
    }
}

/// Reports that may be answered: enough for two sources at the shortest interval and the longest round trip.
const KEPT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_sampled_or_refused() {
        let mut fold = RoundTripFold::default();
        assert_eq!(fold.view(), None);
        fold.sent(Micros(1_000_000), 0x1111);
        fold.sent(Micros(1_500_000), 0x1111);
        fold.sent(Micros(6_000_000), 0x2222);
        let cases = [
            ("no report was heard", 0, 0, Answer::Unknown),
            ("a report that did not go out", 0x3333, 0, Answer::Unknown),
            ("half a second held, 100 ms on the way", 0x1111, 32_768, Answer::Sampled),
            ("held for longer than it is gone", 0x1111, 2 * 65_536, Answer::Implausible),
            ("nonsense", 0x1111, u32::MAX, Answer::Implausible),
        ];
        for (name, middle, delay, expected) in cases {
            assert_eq!(fold.answered(Micros(1_600_000), middle, delay), expected, "{name}");
        }
        assert_eq!(fold.answered(Micros(6_300_000), 0x2222, 0), Answer::Sampled);
        assert_eq!(fold.answered(Micros(17_000_000), 0x2222, 0), Answer::Implausible, "eleven seconds");
        let ms = |ms: i64| Hundredths::from_integer(ms);
        let expected =
            RoundTrip { samples: 2, last_ms: ms(300), min_ms: ms(100), max_ms: ms(300), mean_ms: ms(200) };
        assert_eq!(fold.view(), Some(expected));
    }

    #[test]
    fn old_reports_are_forgotten() {
        let mut fold = RoundTripFold::default();
        for n in 1..=9 {
            fold.sent(Micros(i64::from(n)), n);
        }
        assert_eq!(fold.answered(Micros(100), 1, 0), Answer::Unknown);
        assert_eq!(fold.answered(Micros(100), 2, 0), Answer::Sampled);
    }
}
