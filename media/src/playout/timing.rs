//! Measures the lateness of packets relative to the fastest, and computes the delay that this requires.

use crate::time::Micros;

/// Transit times of one source, relative to their minimum of the last 5 to 10 s.
#[derive(Debug)]
pub(super) struct Timing {
    /// The smallest transit of the current bucket and of the one before; the first packet of a source sets
    /// both.
    least_us: i64,
    least_before_us: i64,
    bucket_begin: Option<Micros>,
    /// The lateness of the last packets in steps, and the number of packets per step.
    recent: Box<[u8; RECENT]>,
    counts: Box<[u16; STEPS]>,
    seen: usize,
    target_us: i64,
    /// Additional delay for packets that do not end at a tick.
    uneven_us: i64,
}

impl Timing {
    pub(super) fn new() -> Self {
        Timing {
            least_us: 0,
            least_before_us: 0,
            bucket_begin: None,
            recent: Box::new([0; RECENT]),
            counts: Box::new([0; STEPS]),
            seen: 0,
            target_us: MARGIN_US,
            uneven_us: 0,
        }
    }

    /// Makes the next packet the new reference.
    pub(super) fn rebase(&mut self) {
        self.bucket_begin = None;
    }

    /// Lateness of a packet with media time `media_us` that arrives now; `None` for the first packet.
    pub(super) fn lateness_us(&self, now: Micros, media_us: i64) -> Option<i64> {
        self.bucket_begin.map(|_| now.0 - media_us - self.base_us())
    }

    /// The transit of the fastest packets: the media time that would arrive now is `now - base`.
    pub(super) fn base_us(&self) -> i64 {
        self.least_us.min(self.least_before_us)
    }

    /// The delay between the arrival of a packet without lateness and its playout.
    pub(super) fn target_us(&self) -> i64 {
        (self.target_us + self.uneven_us).min(TARGET_MAX_US)
    }

    /// The part of the delay that lateness requires: how long before its use a packet should arrive.
    pub(super) fn lateness_target_us(&self) -> i64 {
        self.target_us.min(TARGET_MAX_US)
    }

    /// Records the arrival of a packet with this duration.
    pub(super) fn observe(&mut self, now: Micros, media_us: i64, duration_us: i64) {
        let transit_us = now.0 - media_us;
        let base_before_us = self.base_us();
        match self.bucket_begin {
            None => {
                self.least_us = transit_us;
                self.least_before_us = transit_us;
                self.bucket_begin = Some(now);
            }
            Some(begin) if now.since(begin) > BUCKET_US => {
                let idle = now.since(begin) > 2 * BUCKET_US;
                self.least_before_us = if idle { transit_us } else { self.least_us };
                self.least_us = transit_us;
                self.bucket_begin = Some(now);
                self.forgive(self.base_us() - base_before_us);
            }
            Some(_) => self.least_us = self.least_us.min(transit_us),
        }
        self.count(transit_us - self.base_us());
        self.target_us = self.percentile_us() + MARGIN_US;
        self.uneven_us = TICK_US - common_us(TICK_US, duration_us);
    }

    fn count(&mut self, lateness_us: i64) {
        let step = usize::try_from(lateness_us / STEP_US).unwrap_or(0).min(STEPS - 1) as u8;
        if let Some(oldest) = self.recent.get_mut(self.seen % RECENT) {
            if self.seen >= RECENT {
                self.counts.get_mut(usize::from(*oldest)).into_iter().for_each(|count| *count -= 1);
            }
            *oldest = step;
        }
        self.counts.get_mut(usize::from(step)).into_iter().for_each(|count| *count += 1);
        self.seen += 1;
    }

    /// The fastest packets became slower permanently: subtracts the increase from the lateness counted so
    /// far.
    #[cold]
    fn forgive(&mut self, rise_us: i64) {
        let steps = u8::try_from((rise_us / STEP_US).clamp(0, 255)).unwrap_or(0);
        self.counts.fill(0);
        for step in self.recent.iter_mut().take(self.seen) {
            *step = step.saturating_sub(steps);
            self.counts.get_mut(usize::from(*step)).into_iter().for_each(|count| *count += 1);
        }
    }

    /// The lateness that 97 % of the last packets do not exceed; for the first few packets, the maximum.
    fn percentile_us(&self) -> i64 {
        let beyond = self.seen.min(RECENT) * 3 / 100;
        let mut above = 0;
        for (step, count) in self.counts.iter().enumerate().rev() {
            above += usize::from(*count);
            if above > beyond {
                return (step as i64 + 1) * STEP_US;
            }
        }
        STEP_US
    }
}

/// The greatest common divisor of two durations.
fn common_us(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.max(1), b.max(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Duration of a tick.
pub(super) const TICK_US: i64 = 20_000;
/// The longest delay that lateness can require.
const TARGET_MAX_US: i64 = 220_000;
/// Possible lateness of a tick itself.
const MARGIN_US: i64 = 7_500;
/// Length of a bucket; the smallest transit covers one to two buckets.
const BUCKET_US: i64 = 5_000_000;
/// Lateness is counted in steps of 2.5 ms, up to 320 ms.
const STEP_US: i64 = 2_500;
const STEPS: usize = 128;
/// The packets of the percentile: 10 s with 20 ms each.
const RECENT: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn play(timing: &mut Timing, packets: std::ops::Range<i64>, late_us: impl Fn(i64) -> i64) {
        for n in packets {
            timing.observe(Micros(n * 20_000 + late_us(n)), n * 20_000, 20_000);
        }
    }

    #[test]
    fn the_wait_is_what_97_of_100_packets_need() {
        let mut timing = Timing::new();
        play(&mut timing, 0..600, |_| 0);
        assert_eq!(timing.target_us(), 10_000);
        play(&mut timing, 600..1_200, |n| if n % 50 == 0 { 90_000 } else { 0 });
        assert_eq!(timing.target_us(), 10_000);
        play(&mut timing, 1_200..1_800, |n| if n % 10 == 0 { 60_000 } else { 0 });
        assert_eq!(timing.target_us(), 70_000);
        play(&mut timing, 1_800..2_400, |_| 0);
        assert_eq!(timing.target_us(), 10_000);
    }

    #[test]
    fn a_step_of_the_delay_is_forgiven_after_ten_seconds() {
        let mut timing = Timing::new();
        play(&mut timing, 0..500, |_| 0);
        play(&mut timing, 500..600, |_| 80_000);
        assert_eq!(timing.target_us(), 90_000);
        play(&mut timing, 600..1_010, |_| 80_000);
        assert_eq!((timing.target_us(), timing.base_us()), (10_000, 80_000));
    }

    #[test]
    fn packets_that_end_between_ticks_need_more() {
        for (duration_us, uneven_us) in
            [(10_000, 10_000), (20_000, 0), (30_000, 10_000), (60_000, 0), (2_500, 17_500)]
        {
            let mut timing = Timing::new();
            timing.observe(Micros(5), 0, duration_us);
            assert_eq!(timing.target_us(), 10_000 + uneven_us, "{duration_us}");
        }
    }

    #[test]
    fn wild_times_are_no_danger() {
        let mut timing = Timing::new();
        for n in [0, i64::MAX / 4, i64::MIN / 4, 1, 1 << 40] {
            timing.observe(Micros(n), -n / 2, n);
        }
        assert!(timing.target_us() <= TARGET_MAX_US);
    }
}
