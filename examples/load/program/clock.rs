//! The clock of a run: nanoseconds since it began.

use std::time::{Duration, Instant};

/// Nanoseconds since the beginning of a run.
pub(crate) type Nanos = u64;

/// One second.
pub(crate) const SECOND: Nanos = 1_000_000_000;
/// One millisecond.
pub(crate) const MILLISECOND: Nanos = 1_000_000;

/// The clock of a run. Only the modes read it; the machines receive `now`.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    /// Starts at zero.
    #[expect(clippy::disallowed_methods, reason = "a load generator paces by the clock")]
    pub(crate) fn start() -> Self {
        Clock { began: Instant::now() }
    }

    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Nanos {
        nanos(self.began.elapsed())
    }
}

/// Returns a duration in nanoseconds.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
