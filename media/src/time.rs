//! RTP time: instants in microseconds, clock rates, packet durations.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::{Add, Sub};

/// A time in microseconds since an epoch that the driver chooses and keeps for the life of a session.
///
/// A live driver counts from its monotonic clock, a capture from the Unix epoch; a session only uses
/// differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub i64);

impl Micros {
    /// The time `ms` milliseconds after the epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Micros(ms.saturating_mul(1000))
    }

    /// Microseconds from `earlier` to `self`; negative when `earlier` is later.
    pub const fn since(self, earlier: Micros) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<i64> for Micros {
    type Output = Micros;

    fn add(self, us: i64) -> Micros {
        Micros(self.0.saturating_add(us))
    }
}

impl Sub<i64> for Micros {
    type Output = Micros;

    fn sub(self, us: i64) -> Micros {
        Micros(self.0.saturating_sub(us))
    }
}

/// RTP timestamp units per second, as `a=rtpmap` states it (RFC 8866 §6.6).
///
/// Not the audio sample rate: G.722 has an RTP clock of 8,000 and samples at 16,000 (RFC 3551 §4.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockRate(NonZeroU32);

impl ClockRate {
    /// 8,000 Hz, the clock of every G.711 and G.722 stream.
    pub const HZ_8000: ClockRate = ClockRate(NonZeroU32::new(8_000).unwrap());

    /// 48,000 Hz, the clock of every Opus stream (RFC 7587 §4.1).
    pub const HZ_48000: ClockRate = ClockRate(NonZeroU32::new(48_000).unwrap());

    /// A clock rate in Hz; `None` when it is zero.
    pub const fn new(hz: u32) -> Option<Self> {
        match NonZeroU32::new(hz) {
            Some(hz) => Some(ClockRate(hz)),
            None => None,
        }
    }

    /// The rate in Hz.
    pub const fn hz(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for ClockRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
