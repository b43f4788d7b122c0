//! Estimates the drift of the sender's clock against ours.
//!
//! The fastest packet of every five seconds gives a transit time almost without jitter. The slope of these
//! points by least squares is the skew. A point that is further from the line than any clock could explain is
//! a step of the route or of the timestamps; later points are shifted back onto the line.

use crate::time::Micros;

/// The points so far, as the sums that a least-squares line needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skew {
    /// Time of the first point, the origin of the time axis.
    origin: Option<Micros>,
    /// Added to each transit to compensate for steps.
    shift_us: i64,
    before: Option<Point>,
    /// Start of the current span of five seconds, and the smallest transit in it.
    since: Option<Micros>,
    least_us: i64,
    is_broken: bool,
    points: i64,
    steps: i64,
    /// Sums over all points; time in tenths of a second, transit in microseconds.
    time: i64,
    transit: i64,
    time_square: i64,
    product: i64,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    time: i64,
    transit_us: i64,
}

impl Skew {
    /// Adds a moment: up to `now` the smallest transit was `transit_us`, relative to a constant origin.
    pub(crate) fn fold(&mut self, now: Micros, transit_us: i64) {
        let Some(since) = self.since else {
            self.since = Some(now);
            self.least_us = transit_us;
            return;
        };
        self.least_us = self.least_us.min(transit_us);
        if now.since(since) >= SPAN_US {
            self.add(now, self.least_us);
            self.since = None;
        }
    }

    /// Timestamps restarted: transits have another origin now.
    pub(crate) fn restart(&mut self) {
        self.since = None;
        self.is_broken = true;
    }

    /// Parts per million by which the sender's clock is fast; `None` under thirty seconds, or when more than
    /// a quarter of the points are steps.
    pub(crate) fn ppm(&self) -> Option<i64> {
        let span = self.before.map_or(0, |point| point.time);
        if span < SPAN_MIN || self.steps * 4 > self.points {
            return None;
        }
        // Decreasing transit means a fast sender; 100 ns in a tenth of a second are 1 ppm.
        self.slope_nano().map(|slope| (50 * -slope.signum() - slope) / 100)
    }

    fn add(&mut self, now: Micros, transit_us: i64) {
        let origin = *self.origin.get_or_insert(now);
        let time = now.since(origin) / 100_000;
        if self.points >= POINTS_MAX || !(0..TIME_MAX).contains(&time) {
            return;
        }
        let mut transit_us = transit_us.saturating_add(self.shift_us);
        match self.before {
            None => {
                self.shift_us = self.shift_us.saturating_sub(transit_us);
                transit_us = 0;
            }
            Some(before) => {
                let elapsed = time - before.time;
                let slope_nano = if self.points < 3 { 0 } else { self.slope_nano().unwrap_or(0) };
                let due_us = before.transit_us + elapsed.saturating_mul(slope_nano) / 1000;
                let off_us = transit_us.saturating_sub(before.transit_us);
                let most_us = STEP_US + elapsed * PPM_MAX / 10;
                if self.is_broken || off_us.saturating_abs() > most_us {
                    self.steps += i64::from(!self.is_broken);
                    self.shift_us = self.shift_us.saturating_add(due_us.saturating_sub(transit_us));
                    transit_us = due_us;
                }
            }
        }
        self.is_broken = false;
        self.before = Some(Point { time, transit_us });
        self.points += 1;
        self.time += time;
        self.transit = self.transit.saturating_add(transit_us);
        self.time_square += time * time;
        self.product = self.product.saturating_add(time.saturating_mul(transit_us));
    }

    /// The slope in nanoseconds per tenth of a second.
    fn slope_nano(&self) -> Option<i64> {
        let (points, time, transit) =
            (i128::from(self.points), i128::from(self.time), i128::from(self.transit));
        let over = points * i128::from(self.product) - time * transit;
        let under = points * i128::from(self.time_square) - time * time;
        i64::try_from((over * 1000).checked_div(under)?).ok()
    }
}

/// Microseconds per point.
const SPAN_US: i64 = 5_000_000;
/// The points must cover thirty seconds including the span before the first one; in tenths of a second.
const SPAN_MIN: i64 = 250;
/// Larger differences are not clock drift, in parts per million.
const PPM_MAX: i64 = 500;
/// Jitter that may remain in the fastest packet of five seconds.
const STEP_US: i64 = 2_000;
/// After a day the slope no longer changes.
const POINTS_MAX: i64 = 17_280;
const TIME_MAX: i64 = 10 * 86_400 * 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a transit for every second; returns the skew after `seconds` seconds.
    fn ppm(seconds: i64, transit_us: impl Fn(i64) -> i64) -> Option<i64> {
        let mut skew = Skew::default();
        (0..seconds).for_each(|second| skew.fold(Micros(second * 1_000_000), transit_us(second)));
        skew.ppm()
    }

    #[test]
    fn the_slope_is_found_through_steps() {
        let noise = |second: i64| (second * 7_919 % 13) * 20;
        assert_eq!(ppm(600, |_| 5_000), Some(0));
        assert_eq!(ppm(600, |second| second * 300), Some(-300));
        assert_eq!(ppm(600, |second| -second * 42), Some(42));
        assert_eq!(ppm(600, |second| second * 300 + if second > 200 { 150_000 } else { 0 }), Some(-300));
        assert_eq!(ppm(25, |second| second * 300), None, "under thirty seconds");
        let noisy = ppm(600, |second| second * 50 + noise(second)).unwrap();
        assert!((noisy + 50).abs() <= 2, "{noisy}");
        assert_eq!(ppm(600, |second| (second / 6 % 2) * 40_000), None, "nothing but steps");
    }

    #[test]
    fn timestamps_that_begin_anew_are_no_skew() {
        let mut skew = Skew::default();
        for second in 0..120 {
            let moved = if second >= 60 { 1_000_000_000 } else { 0 };
            if second == 60 {
                skew.restart();
            }
            skew.fold(Micros(second * 1_000_000), moved - second * 20);
        }
        assert_eq!(skew.ppm(), Some(20));
    }
}
