//! The relay's clock: monotonic microseconds. Kernel receive times are converted to it.
//!
//! A kernel stamp (`SO_TIMESTAMPNS`) is wall time. It is converted to monotonic time with an offset that is
//! sampled with the same batch, so a step of the wall clock cannot look like jitter.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::time::Micros;

/// Monotonic microseconds since the relay was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    base: Instant,
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the relay is a driver: it reads the clock for the sessions"
    )]
    pub(super) fn start() -> Self {
        Clock { base: Instant::now() }
    }

    /// Microseconds since the start.
    pub(super) fn now(&self) -> Micros {
        Micros(i64::try_from(self.base.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// Both clocks, read together.
    #[expect(
        clippy::disallowed_methods,
        reason = "the relay is a driver: it reads the clock for the sessions"
    )]
    pub(super) fn sample(&self) -> Sample {
        let mono = self.now();
        // When the wall clock is before 1970, packets get the time of their batch, see `Sample::mono`.
        let wall_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        Sample { now: mono, wall_us: i64::try_from(wall_us).unwrap_or(i64::MAX) }
    }
}

/// The two clocks at one moment, taken after a batch was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The relay's clock.
    pub(super) now: Micros,
    /// Microseconds since the Unix epoch.
    pub(super) wall_us: i64,
}

impl Sample {
    /// Whether a packet with this stamp may have arrived after the sample; true for a packet without a stamp.
    fn is_behind(&self, stamp_us: Option<i64>) -> bool {
        stamp_us.is_none_or(|stamp_us| stamp_us > self.wall_us)
    }

    /// Whether a packet with this stamp has waited in its socket so long that calls are about to suffer.
    pub(super) fn is_late_for(&self, stamp_us: Option<i64>) -> bool {
        stamp_us.is_some_and(|stamp_us| self.wall_us.saturating_sub(stamp_us) >= WAITED_US_MIN)
    }

    /// The relay time of a packet that the kernel stamped at `stamp_us` (microseconds since the Unix epoch).
    ///
    /// The result is never in the future and at most [`STAMP_AGE_US_MAX`] in the past. This limits the error
    /// when the wall clock is set between stamp and sample. Without a stamp the packet gets the time of its
    /// batch.
    pub(super) fn mono(&self, stamp_us: Option<i64>) -> Micros {
        let Some(stamp_us) = stamp_us else { return self.now };
        let age_us = self.wall_us.saturating_sub(stamp_us);
        if (0..=STAMP_AGE_US_MAX).contains(&age_us) { self.now - age_us } else { self.now }
    }
}

/// The last reading of the clocks; several sockets that are read in one turn share it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings {
    last: Sample,
    uses: u8,
}

impl Readings {
    /// No valid reading: the first packet causes one.
    pub(super) fn new(last: Sample) -> Self {
        Readings { last, uses: USES_MAX }
    }

    /// The last reading.
    pub(super) fn last(&self) -> Sample {
        self.last
    }

    /// Causes a new reading for the next packet. Call it at the start of a turn, so that no older reading is used.
    pub(super) fn expire(&mut self) {
        self.uses = USES_MAX;
    }

    /// A reading for packets that were just received; `newest_us` is the stamp of the last one.
    pub(super) fn after(&mut self, newest_us: Option<i64>, clock: &Clock) -> Sample {
        if self.uses >= USES_MAX || self.last.is_behind(newest_us) {
            *self = Readings { last: clock.sample(), uses: 0 };
        }
        self.uses += 1;
        self.last
    }
}

/// A quarter of a packet's usual duration. A worker that keeps up reads within the half millisecond of a pause.
const WAITED_US_MIN: i64 = 5_000;
/// Sockets that share a reading.
const USES_MAX: u8 = 16;
/// The longest time a packet may have waited in the socket; an older stamp is not used.
///
/// A default receive buffer holds about 5 s of one audio stream.
const STAMP_AGE_US_MAX: i64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_moved_by_the_offset_of_its_batch() {
        let wall_us = 1_700_000_000_000_000;
        let sample = Sample { now: Micros(5_000_000), wall_us };
        for (name, stamp_us, expected) in [
            ("just now", Some(wall_us), 5_000_000),
            ("waited 20 ms", Some(wall_us - 20_000), 4_980_000),
            ("no stamp", None, 5_000_000),
            ("the wall clock was set back: from the future", Some(wall_us + 1), 5_000_000),
            ("the wall clock was set forward by an hour", Some(wall_us - 3_600_000_000), 5_000_000),
            ("nonsense", Some(i64::MIN), 5_000_000),
        ] {
            assert_eq!(sample.mono(stamp_us), Micros(expected), "{name}");
        }
    }

    #[test]
    fn a_sample_serves_for_packets_that_came_before_it() {
        let sample = Sample { now: Micros(5_000_000), wall_us: 1_700_000_000_000_000 };
        for (late, stamp_us) in [(false, 1), (false, -4_999), (true, -5_000), (true, -i64::MAX / 2)] {
            assert_eq!(sample.is_late_for(Some(1_700_000_000_000_000 + stamp_us)), late, "{stamp_us}");
        }
        assert!(!sample.is_late_for(None));
        assert!(!sample.is_behind(Some(1_700_000_000_000_000)));
        assert!(sample.is_behind(Some(1_700_000_000_000_001)));
        assert!(sample.is_behind(None));
    }

    #[test]
    fn a_reading_serves_sixteen_sockets_of_a_turn() {
        let clock = Clock::start();
        let old = Sample { now: Micros(-5), wall_us: i64::MAX };
        let mut readings = Readings::new(old);
        assert_ne!(readings.after(Some(0), &clock).now, old.now, "an empty one has the clocks read");
        for (name, uses, newest_us, is_shared) in [
            ("in the turn", 3, Some(0), true),
            ("the last use", 15, Some(0), true),
            ("enough", 16, Some(0), false),
            ("without a stamp", 3, None, false),
        ] {
            readings = Readings { last: old, uses };
            assert_eq!(readings.after(newest_us, &clock).now == old.now, is_shared, "{name}");
        }
        readings = Readings { last: old, uses: 3 };
        readings.expire();
        assert_ne!(readings.after(Some(0), &clock).now, old.now, "the next turn");
    }

    #[test]
    fn the_clock_does_not_run_backwards() {
        let clock = Clock::start();
        let first = clock.sample();
        let second = clock.sample();
        assert!(second.now >= first.now);
        assert!(first.wall_us > 1_600_000_000_000_000);
    }
}
