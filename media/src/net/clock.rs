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

/// The two clocks at one moment, taken right after a batch was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The relay's clock.
    pub(super) now: Micros,
    /// Microseconds since the Unix epoch.
    pub(super) wall_us: i64,
}

impl Sample {
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
    fn the_clock_does_not_run_backwards() {
        let clock = Clock::start();
        let first = clock.sample();
        let second = clock.sample();
        assert!(second.now >= first.now);
        assert!(first.wall_us > 1_600_000_000_000_000);
    }
}
