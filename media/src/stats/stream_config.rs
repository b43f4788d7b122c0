//! The settings that a stream needs before its first packet.

use crate::stats::Hundredths;
use crate::time::ClockRate;
use crate::verdict::Thresholds;

/// Settings of a stream before its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// The RTP clock of the audio.
    pub clock: ClockRate,
    /// The advertised packet duration in milliseconds.
    pub ptime_ms: u32,
    /// Payload bytes per millisecond, of a codec with a constant bit rate.
    pub bytes_per_ms: Option<u32>,
    /// Smoothed jitter that counts as high, in microseconds.
    pub high_jitter_us: u32,
    /// Lateness that counts as late, in microseconds.
    pub late_us: u32,
    /// A gap below this share of the packet duration counts as back to back, in percent.
    pub short_gap_pct: u32,
    /// Deviation of the media rate that counts as off pace, in percent.
    pub pace_pct: u32,
    /// Rows of the timeline for which memory is allocated in one step, when the first row ends.
    pub timeline_reserve: u16,
}

impl StreamConfig {
    /// The configuration for a clock and an advertised packet duration, with these thresholds.
    pub fn new(clock: ClockRate, ptime_ms: u32, thresholds: &Thresholds) -> Self {
        StreamConfig {
            clock,
            ptime_ms,
            bytes_per_ms: None,
            high_jitter_us: us_from_millis(thresholds.jitter_ms),
            late_us: us_from_millis(thresholds.late_ms),
            short_gap_pct: whole_percent(thresholds.clump_gap_pct),
            pace_pct: whole_percent(thresholds.pace_pct),
            timeline_reserve: TIMELINE_RESERVE,
        }
    }

    /// The clock in Hz, at least that of RTP's slowest payload (RFC 4103, 1,000 Hz).
    pub(crate) fn clock_hz(&self) -> i64 {
        i64::from(self.clock.hz()).max(CLOCK_MIN_HZ)
    }

    /// The advertised packet duration in clock units.
    pub(crate) fn ptime_ticks(&self) -> i64 {
        i64::from(self.ptime_ms.clamp(1, PTIME_MAX_MS)) * self.clock_hz() / 1000
    }
}

fn us_from_millis(ms: Hundredths) -> u32 {
    u32::try_from(ms.0.saturating_mul(10)).unwrap_or(u32::MAX)
}

fn whole_percent(pct: Hundredths) -> u32 {
    u32::try_from(pct.0 / 100).unwrap_or(0).min(100)
}

/// RTP's slowest clock in use, text (RFC 4103); the conversion to microseconds stays within 64 bits.
const CLOCK_MIN_HZ: i64 = 1_000;
/// A longer advertised packet duration is ignored.
const PTIME_MAX_MS: u32 = 10_000;
/// A minute of rows, so that the timeline of a live leg allocates at most once a minute.
const TIMELINE_RESERVE: u16 = 64;
