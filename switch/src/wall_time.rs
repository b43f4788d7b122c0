//! Instants of the monotonic clock as wall times, and back.

use std::time::{Duration, Instant};

use sidetone_model::time::{Now, Timestamp};

/// The wall time of an instant near `now`.
pub(super) fn wall(now: Now, at: Instant) -> Timestamp {
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match at.checked_duration_since(now.instant) {
        Some(ahead) => now.wall.plus_micros(micros(ahead)),
        None => now.wall.plus_micros(-micros(now.instant.saturating_duration_since(at))),
    }
}

/// The instant of a wall time near `now`; `now` for a time before the start of the monotonic clock.
pub(super) fn instant(now: Now, at: Timestamp) -> Option<Instant> {
    let ahead = at.as_micros().checked_sub(now.wall.as_micros())?;
    let distance = Duration::from_micros(ahead.unsigned_abs());
    if ahead >= 0 {
        now.instant.checked_add(distance)
    } else {
        Some(now.instant.checked_sub(distance).unwrap_or(now.instant))
    }
}
