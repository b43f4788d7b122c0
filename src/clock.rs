//! The wall clock: reading it, and detecting its jumps.
//!
//! Durations, timers, registrations and nonces follow the monotonic clock. Stored timestamps are wall time.
//! When the wall clock jumps, [`watch()`] reports it in one log line and one metric.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sidetone_model::metrics::Family;
use sidetone_model::time::Timestamp;
use tokio::sync::watch;

use crate::cdr::journal::SteadyClock;

/// A source of the current wall time; tests pass their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the edge where the engine reads the wall clock")]
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the edge where the engine reads the monotonic clock")]
pub fn instant() -> Instant {
    Instant::now()
}

/// A clock that starts at the wall clock's current time and follows the monotonic clock from then on.
pub fn steady_clock() -> SteadyClock {
    let (wall, began) = (wall_clock(), instant());
    SteadyClock(Arc::new(move || {
        let passed = instant().saturating_duration_since(began);
        wall.plus_micros(i64::try_from(passed.as_micros()).unwrap_or(i64::MAX))
    }))
}

/// Counters of the wall clock.
#[derive(Debug, Default)]
pub struct ClockCounts {
    jumps: AtomicU64,
    last_jump_us: AtomicI64,
}

impl ClockCounts {
    /// Jumps since the start.
    pub fn jumps(&self) -> u64 {
        self.jumps.load(Ordering::Relaxed)
    }

    /// The size of the last jump in microseconds; negative is backwards.
    pub fn last_jump_us(&self) -> i64 {
        self.last_jump_us.load(Ordering::Relaxed)
    }

    /// The metrics.
    pub fn families(&self) -> Vec<Family> {
        let direction = |us: i64| if us < 0 { "back" } else { "forward" };
        vec![
            Family::counter(
                "sidetone_clock_jumps_total",
                "Times that the wall clock jumped by two seconds or more against the monotonic clock.",
            )
            .is(self.jumps()),
            Family::gauge(
                "sidetone_clock_last_jump_seconds",
                "How far the last jump of the wall clock went.",
            )
            .with(
                [("direction", direction(self.last_jump_us()))],
                self.last_jump_us().unsigned_abs() / 1_000_000,
            ),
        ]
    }
}

/// Compares the wall clock with the monotonic clock.
#[derive(Debug)]
pub struct ClockWatch {
    wall: Timestamp,
    monotonic: Instant,
}

impl ClockWatch {
    /// A watch that starts at these readings.
    pub fn new(wall: Timestamp, monotonic: Instant) -> Self {
        Self { wall, monotonic }
    }

    /// Returns by how much the wall clock jumped since the last call, in microseconds; `None` without a jump. A leap
    /// second and the steps of a slewing time daemon are not jumps.
    pub fn look(&mut self, wall: Timestamp, monotonic: Instant) -> Option<i64> {
        let passed = monotonic.saturating_duration_since(self.monotonic);
        let passed_us = i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        let jump_us = wall.since(self.wall).saturating_sub(passed_us);
        (self.wall, self.monotonic) = (wall, monotonic);
        (jump_us.unsigned_abs() >= JUMP_US_MIN).then_some(jump_us)
    }
}

/// Checks the clocks once a second until `stop` turns true.
pub async fn watch(counts: &Arc<ClockCounts>, mut stop: watch::Receiver<bool>) {
    let mut watched = ClockWatch::new(wall_clock(), instant());
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Some(jump_us) = watched.look(wall_clock(), instant()) {
            counts.jumps.fetch_add(1, Ordering::Relaxed);
            counts.last_jump_us.store(jump_us, Ordering::Relaxed);
            tracing::warn!(
                seconds = jump_us / 1_000_000,
                "the wall clock jumped: calls go on, times of records before and after it do not compare; check NTP"
            );
        }
    }
}

/// The smallest difference that counts as a jump.
const JUMP_US_MIN: u64 = 2_000_000;
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_told_from_time_that_passes() {
        const HOUR_S: i64 = 3_600;
        let cases = [
            ("a second passes", 1, 1_000_000, None),
            ("a leap second is inserted", 1, 0, None),
            ("a leap second is left out", 1, 2_000_000, None),
            ("a stalled process catches up", 40, 40_000_000, None),
            ("an hour forward", 1, HOUR_S * 1_000_000 + 1_000_000, Some(HOUR_S * 1_000_000)),
            ("an hour back", 1, -HOUR_S * 1_000_000 + 1_000_000, Some(-HOUR_S * 1_000_000)),
            ("a day forward", 1, 24 * HOUR_S * 1_000_000 + 1_000_000, Some(24 * HOUR_S * 1_000_000)),
            ("a day back", 1, -24 * HOUR_S * 1_000_000 + 1_000_000, Some(-24 * HOUR_S * 1_000_000)),
        ];
        for (case, passed_s, wall_us, expected) in cases {
            let (wall, began) = (Timestamp::from_micros(1_767_225_600_000_000), instant());
            let mut watch = ClockWatch::new(wall, began);
            let later = began + Duration::from_secs(passed_s);
            assert_eq!(watch.look(wall.plus_micros(wall_us), later), expected, "{case}");
            // The next comparison starts at the new time.
            let next = (wall.plus_micros(wall_us + 1_000_000), later + Duration::from_secs(1));
            assert_eq!(watch.look(next.0, next.1), None, "{case}");
        }
    }
}
