//! Counts packets by lateness, in steps that grow with the lateness: a few hundred bytes for any leg.

use hdrhistogram::Histogram;

use crate::stats::Hundredths;

/// Audio packets by lateness relative to the fastest packet of the last seconds.
///
/// Steps of 0.625 ms up to 5 ms, then eight steps for each doubling up to 1.28 s; the last step counts
/// everything later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    counts: [u32; STEPS],
    /// Packets that were 500 ms late or more; 500 ms is not a border between steps.
    over_half_second: u32,
    max_us: u32,
}

/// The lateness below which 50, 95 and 99 percent of the packets are, accurate to one eighth; and the exact
/// maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// The median in milliseconds.
    pub p50_ms: Hundredths,
    /// The 95th percentile in milliseconds.
    pub p95_ms: Hundredths,
    /// The 99th percentile in milliseconds.
    pub p99_ms: Hundredths,
    /// The largest lateness, in milliseconds.
    pub max_ms: Hundredths,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { counts: [0; STEPS], over_half_second: 0, max_us: 0 }
    }
}

impl Lateness {
    /// Counts one packet in its step.
    #[inline]
    pub(crate) fn count(&mut self, step: usize, late_us: u32) {
        if let Some(count) = self.counts.get_mut(step) {
            *count = count.wrapping_add(1);
        }
        if late_us >= HALF_SECOND_US {
            self.over_half_second = self.over_half_second.wrapping_add(1);
        }
    }

    /// Adds counts of the first eight steps, each under 5 ms.
    pub(crate) fn add_least(&mut self, counts: [u8; 8]) {
        for (count, more) in self.counts.iter_mut().zip(counts) {
            *count = count.wrapping_add(more.into());
        }
    }

    /// The step that counts `late_us`.
    #[inline]
    pub(crate) fn step(late_us: u32) -> usize {
        let units = (late_us / UNIT_US).min(UNITS_MAX);
        // How often the unit must be doubled until eight steps cover the rest.
        let doublings = (28 - (units | 8).leading_zeros()) as usize;
        (units >> doublings) as usize + 8 * doublings
    }

    /// The largest lateness that the first eight steps count.
    pub(crate) const LEAST_US_MAX: u32 = 8 * UNIT_US - 1;

    /// The step of a lateness of at most [`Lateness::LEAST_US_MAX`].
    #[inline]
    pub(crate) fn step_of_least(late_us: u32) -> u32 {
        late_us / UNIT_US
    }

    /// Updates the maximum with the largest lateness of an interval.
    pub(crate) fn note_max(&mut self, late_us: u32) {
        self.max_us = self.max_us.max(late_us);
    }

    /// Adds the counts of another stream, for figures of several streams.
    pub fn add(&mut self, other: &Lateness) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.over_half_second = self.over_half_second.saturating_add(other.over_half_second);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The counts as a histogram in microseconds; each step is recorded at its upper end, the last step at
    /// the maximum.
    ///
    /// `None` without packets.
    pub fn histogram(&self) -> Option<Histogram<u64>> {
        // Two digits are finer than the steps.
        let mut histogram = Histogram::new_with_bounds(1, u64::from(self.max_us).max(2), 2).ok()?;
        for (step, count) in self.counts.iter().enumerate() {
            histogram.saturating_record_n(self.recorded_at(step).into(), (*count).into());
        }
        (!histogram.is_empty()).then_some(histogram)
    }

    /// Percentiles of the lateness; `None` without packets.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let packets = self.packets();
        if packets == 0 {
            return None;
        }
        let at = |quantile: f64| Hundredths::millis_from_us(self.under(quantile, packets).into());
        Some(Percentiles {
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: Hundredths::millis_from_us(self.max_us.into()),
        })
    }

    /// The quantile in microseconds. The result is that of [`Lateness::histogram`], computed without a
    /// histogram because every leg and every stream needs three.
    fn under(&self, quantile: f64, packets: u64) -> u32 {
        let wanted = ((quantile * packets as f64).ceil() as u64).max(1);
        let mut passed = 0;
        let reaches = |count: &u32| {
            passed += u64::from(*count);
            passed >= wanted
        };
        let step = self.counts.iter().position(reaches).unwrap_or(STEPS - 1);
        let us = self.recorded_at(step);
        // The histogram stores eight binary digits and returns the highest number that begins with them.
        let dropped = (u32::BITS - (us | 0xff).leading_zeros()) - 8;
        (us | ((1 << dropped) - 1)).min(self.max_us)
    }

    /// The value at which a step is recorded in the histogram, in microseconds.
    fn recorded_at(&self, step: usize) -> u32 {
        let us = if step == STEPS - 1 { self.max_us } else { end_us(step).min(self.max_us) };
        us.max(1)
    }

    /// Packets under 10, 20, 40, 60, 100, 200 and 500 milliseconds late, and later.
    pub(crate) fn coarse(&self) -> [u32; 8] {
        let under = |ms: u32| -> u32 {
            let steps = self.counts.get(..Lateness::step(ms * 1000)).unwrap_or_default();
            steps.iter().fold(0, |sum, count| sum.wrapping_add(*count))
        };
        let all = self.counts.iter().fold(0_u32, |sum, count| sum.wrapping_add(*count));
        let ends = [
            0,
            under(10),
            under(20),
            under(40),
            under(60),
            under(100),
            under(200),
            all.wrapping_sub(self.over_half_second),
            all,
        ];
        let mut coarse = [0; 8];
        for (slot, pair) in coarse.iter_mut().zip(ends.windows(2)) {
            if let [from, to] = pair {
                *slot = to.wrapping_sub(*from);
            }
        }
        coarse
    }
}

/// The upper end of a step, in microseconds.
fn end_us(step: usize) -> u32 {
    let step = u32::try_from(step).unwrap_or(0);
    let doublings = (step / 8).saturating_sub(1);
    ((step - 8 * doublings + 1) << doublings) * UNIT_US
}

/// The finest step; 10, 20, 40, 60, 100 and 200 ms are borders of steps.
const UNIT_US: u32 = 625;
/// All packets later than this, 1.28 s, are in one step.
const UNITS_MAX: u32 = 2_048;
/// Eight steps, eight for each of the eight doublings, and one for later packets.
const STEPS: usize = 8 + 8 * 8 + 1;
const HALF_SECOND_US: u32 = 500_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_histogram(
            packets in prop::collection::vec((0_u32..24, any::<u32>(), 1_u32..400), 0..60),
        ) {
            let mut lateness = Lateness::default();
            for (digits, late_us, count) in packets {
                let late_us = late_us & ((1 << digits) - 1);
                lateness.note_max(late_us);
                (0..count).for_each(|_| lateness.count(Lateness::step(late_us), late_us));
            }
            let expected = lateness.histogram().map(|histogram| {
                [0.5, 0.95, 0.99].map(|quantile| {
                    let us = histogram.value_at_quantile(quantile).min(lateness.max_us.into());
                    Hundredths::millis_from_us(us as i64)
                })
            });
            let found = lateness.percentiles().map(|found| [found.p50_ms, found.p95_ms, found.p99_ms]);
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn steps_are_without_gap_and_borders_lie_between_them() {
        let mut before = 0;
        for us in (0..1_400_000).step_by(25) {
            let step = Lateness::step(us);
            assert!(step == before || step == before + 1, "{us} µs");
            assert!(us < end_us(step) || step == STEPS - 1, "{us} µs is beyond the end of {step}");
            before = step;
        }
        assert_eq!(before, STEPS - 1);
        for us in 0..=Lateness::LEAST_US_MAX {
            assert_eq!(Lateness::step_of_least(us) as usize, Lateness::step(us), "{us} µs");
        }
        assert_eq!(Lateness::step(Lateness::LEAST_US_MAX + 1), 8);
        for ms in [10, 20, 40, 60, 100, 200] {
            assert_ne!(Lateness::step(ms * 1000), Lateness::step(ms * 1000 - 1), "{ms} ms");
        }
        assert_eq!(Lateness::step(u32::MAX), STEPS - 1);
    }

    #[test]
    fn percentiles_are_near_and_the_latest_exact() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentiles(), None);
        for late_us in (0..100_000).step_by(10) {
            lateness.count(Lateness::step(late_us), late_us);
            lateness.note_max(late_us);
        }
        let found = lateness.percentiles().unwrap();
        for (found, exact) in [(found.p50_ms, 5_000), (found.p95_ms, 9_500), (found.p99_ms, 9_900)] {
            assert!((exact..=exact + exact / 8).contains(&found.0), "{found} for {exact}");
        }
        assert_eq!(found.max_ms, Hundredths(9_999));
        assert_eq!(lateness.coarse(), [1_000, 1_000, 2_000, 2_000, 4_000, 0, 0, 0]);
        let twice = {
            let mut twice = lateness;
            twice.add(&lateness);
            twice
        };
        assert_eq!((twice.packets(), twice.percentiles()), (20_000, lateness.percentiles()));
    }

    #[test]
    fn what_is_half_a_second_late_is_told_apart() {
        let mut lateness = Lateness::default();
        for late_us in [0, 199_999, 200_000, 499_999, 500_000, 3_000_000] {
            lateness.count(Lateness::step(late_us), late_us);
            lateness.note_max(late_us);
        }
        assert_eq!(lateness.coarse(), [1, 0, 0, 0, 0, 1, 2, 2]);
        assert_eq!(lateness.percentiles().unwrap().max_ms, Hundredths(300_000));
    }
}
