//! When audio packets arrive, against when their timestamps say they were made.
//!
//! Only a pair of successive audio arrivals of one segment is measured. Silence, digits and comfort noise
//! therefore never create jitter or intervals.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::modal::Modal;
use crate::stats::playout::Playout;
use crate::stats::stream::StreamConfig;
use crate::time::Micros;

/// The running sums of arrival times.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// Microseconds per clock unit, in 2^-16.
    us_per_tick: i64,
    /// The packet duration by the most frequent step.
    ptime_us: i64,
    /// A shorter gap is back to back.
    short_us: i64,
    high_us: u32,
    short_pct: u32,
    pace_pct: u32,
    // The arrival before.
    at: Micros,
    timestamp: u32,
    sequence: u16,
    kind: Option<PayloadKind>,
    pub(crate) playout: Playout,
    /// Lateness of the packet after an interruption, until the next gap explains it.
    pending_us: i64,
    // Interarrival jitter, ×16.
    jitter_x16: u32,
    pub(crate) jitter_peak_us: u32,
    pub(crate) jitter_count: u32,
    pub(crate) jitter_high_count: u32,
    pub(crate) jitter_sum_us: i64,
    pub(crate) gap_count: u32,
    pub(crate) short_gap_count: u32,
    pub(crate) gap_sum_us: i64,
    pub(crate) media_sum_us: i64,
    // The pace of the current window.
    window_gap_us: i64,
    window_media_us: i64,
    pub(crate) pace_windows: u32,
    pub(crate) pace_windows_off: u32,
    clump_start: Option<Micros>,
    pub(crate) clump_count: u32,
    pub(crate) clump_sum_us: i64,
    pub(crate) clump_square_sum: i64,
    pub(crate) steps: Modal,
    pub(crate) payload_lens: Modal,
    pub(crate) first: Option<Micros>,
    pub(crate) last: Micros,
    pub(crate) max_gap_us: i64,
    pub(crate) pauses: u32,
    pub(crate) silence_us: i64,
    pub(crate) interruptions: u32,
    pub(crate) interruption_us: i64,
    pub(crate) timestamp_resets: u32,
    /// Timestamp discontinuities that no marker announced.
    pub(crate) flaws: u32,
}

impl Timing {
    pub(crate) fn new(config: &StreamConfig) -> Self {
        let mut timing = Timing {
            us_per_tick: 0,
            ptime_us: 0,
            short_us: 0,
            high_us: config.high_jitter_us,
            short_pct: config.short_gap_pct,
            pace_pct: config.pace_pct,
            at: Micros::default(),
            timestamp: 0,
            sequence: 0,
            kind: None,
            playout: Playout::new(config.late_us),
            pending_us: 0,
            jitter_x16: 0,
            jitter_peak_us: 0,
            jitter_count: 0,
            jitter_high_count: 0,
            jitter_sum_us: 0,
            gap_count: 0,
            short_gap_count: 0,
            gap_sum_us: 0,
            media_sum_us: 0,
            window_gap_us: 0,
            window_media_us: 0,
            pace_windows: 0,
            pace_windows_off: 0,
            clump_start: None,
            clump_count: 0,
            clump_sum_us: 0,
            clump_square_sum: 0,
            steps: Modal::default(),
            payload_lens: Modal::default(),
            first: None,
            last: Micros::default(),
            max_gap_us: 0,
            pauses: 0,
            silence_us: 0,
            interruptions: 0,
            interruption_us: 0,
            timestamp_resets: 0,
            flaws: 0,
        };
        timing.set_clock(config.clock_hz(), config.ptime_ticks());
        timing
    }

    /// Goes on with another clock; the next packet is no sample.
    pub(crate) fn set_clock(&mut self, hz: i64, ptime_ticks: i64) {
        self.us_per_tick = (1_000_000 << 16) / hz.max(1);
        self.assume_step(ptime_ticks);
        self.kind = None;
    }

    /// Takes `ptime_ticks` for the packet duration until pairs are counted.
    pub(crate) fn assume_step(&mut self, ptime_ticks: i64) {
        self.steps = Modal::starting_with(ptime_ticks);
        self.follow_step();
    }

    /// Counts payload lengths anew, for a codec with another frame size.
    pub(crate) fn forget_payload_lens(&mut self) {
        self.payload_lens = Modal::default();
    }

    /// Takes in one arrival; `fresh` opens a segment and is no sample.
    pub(crate) fn arrive(&mut self, now: Micros, packet: &Packet, kind: PayloadKind, fresh: bool) {
        match self.first {
            Some(_) => self.max_gap_us = self.max_gap_us.max(now.since(self.last)),
            None => self.first = Some(now),
        }
        self.last = now;
        let before = self.kind;
        let gap_us = now.since(self.at).clamp(-GAP_MAX_US, GAP_MAX_US);
        let ticks = i64::from(packet.timestamp.wrapping_sub(self.timestamp).cast_signed());
        let packets = i64::from(packet.sequence.wrapping_sub(self.sequence).cast_signed());
        self.at = now;
        self.timestamp = packet.timestamp;
        self.sequence = packet.sequence;
        self.kind = Some(kind);
        if fresh || kind != PayloadKind::Audio || before != Some(PayloadKind::Audio) {
            self.begin(kind, before);
            return;
        }
        let mut pair = Pair {
            now,
            gap_us,
            media_us: self.ptime_us,
            ticks,
            packets,
            ptime_us: self.ptime_us,
            short_us: self.short_us,
        };
        if packets == 1 && ticks > 0 {
            self.payload_lens.add(i64::from(packet.payload_len));
            if !self.steps.add_most(ticks) {
                pair.media_us = self.to_us(ticks);
                if self.steps.add_other(ticks) {
                    self.follow_step();
                }
            }
        } else {
            pair.media_us = self.to_us(ticks);
        }
        if !self.is_regular(&pair) {
            self.irregular(&pair, packet.marker);
        } else if gap_us > PAUSE_US {
            self.interrupted(&pair);
        } else {
            self.sample(&pair);
        }
    }

    /// The most frequent packet duration by the timestamps, in microseconds.
    pub(crate) fn ptime_us(&self) -> i64 {
        self.ptime_us
    }

    /// Whether the last arrival was audio.
    pub(crate) fn ends_in_audio(&self) -> bool {
        self.kind == Some(PayloadKind::Audio)
    }

    /// Judges the pace of a last window that is at least half full.
    pub(crate) fn close(&mut self) {
        if self.window_gap_us.max(self.window_media_us) >= PACE_WINDOW_US / 2 {
            self.end_window();
        }
    }

    /// An arrival that makes no pair with the one before it.
    #[cold]
    fn begin(&mut self, kind: PayloadKind, before: Option<PayloadKind>) {
        if kind == PayloadKind::ComfortNoise || before == Some(PayloadKind::ComfortNoise) {
            self.pauses = self.pauses.saturating_add(1);
        }
        if kind == PayloadKind::Audio {
            self.rebase();
        }
    }

    fn follow_step(&mut self) {
        self.ptime_us = self.to_us(self.steps.most());
        self.short_us = self.ptime_us * i64::from(self.short_pct) / 100;
    }

    /// Whether the timestamps go with the sequence numbers: the usual step, or up to 120 ms a packet.
    fn is_regular(&self, pair: &Pair) -> bool {
        if pair.ticks == self.steps.most() * pair.packets {
            return true;
        }
        let most_us = PTIME_MAX_US * pair.packets;
        (0 < pair.media_us && pair.media_us <= most_us)
            || (pair.packets < 0 && most_us <= pair.media_us && pair.media_us < 0)
    }

    /// A timestamp that jumped: silence with a clock that ran on, or a discontinuity.
    #[cold]
    fn irregular(&mut self, pair: &Pair, marker: bool) {
        let tolerance_us = SILENCE_TOLERANCE_US.max(pair.media_us / 5);
        if pair.media_us > 0 && (pair.gap_us - pair.media_us).abs() <= tolerance_us {
            self.pauses = self.pauses.saturating_add(1);
            self.silence_us = self.silence_us.saturating_add(pair.media_us - pair.ptime_us);
        } else {
            self.timestamp_resets = self.timestamp_resets.saturating_add(1);
            self.flaws = self.flaws.saturating_add(u32::from(!marker));
        }
        self.rebase();
    }

    /// A gap over a second that the timestamps do not know of: the sender's silence, or a stall.
    #[cold]
    fn interrupted(&mut self, pair: &Pair) {
        if pair.packets == 1 {
            self.interruptions = self.interruptions.saturating_add(1);
            self.interruption_us = self.interruption_us.saturating_add(pair.gap_us);
        }
        self.pending_us = pair.lateness_us();
        self.rebase();
        self.playout.begin(pair.now);
    }

    #[inline]
    fn sample(&mut self, pair: &Pair) {
        let short = pair.gap_us < pair.short_us;
        if self.pending_us != 0 {
            // Packets back to back after a long gap were held up: the network stalled.
            if short {
                self.playout.stall(self.pending_us);
            }
            self.pending_us = 0;
        }
        self.fold_jitter(pair.lateness_us());
        self.gap_count = self.gap_count.saturating_add(1);
        self.gap_sum_us = self.gap_sum_us.saturating_add(pair.gap_us);
        self.media_sum_us = self.media_sum_us.saturating_add(pair.media_us);
        self.window_gap_us = self.window_gap_us.saturating_add(pair.gap_us);
        self.window_media_us = self.window_media_us.saturating_add(pair.media_us);
        if self.window_gap_us >= PACE_WINDOW_US || self.window_media_us >= PACE_WINDOW_US {
            self.end_window();
        }
        if short {
            self.short_gap_count = self.short_gap_count.saturating_add(1);
        } else {
            self.begin_clump(pair.now);
        }
        self.playout.fold(pair.now, pair.lateness_us(), pair.packets < 0, pair.ptime_us);
    }

    /// RFC 3550 A.8, in microseconds, with a single deviation bounded to one second.
    #[inline]
    fn fold_jitter(&mut self, lateness_us: i64) {
        let deviation = u32::try_from(lateness_us.unsigned_abs()).unwrap_or(u32::MAX).min(DEVIATION_MAX_US);
        self.jitter_x16 = self.jitter_x16 + deviation - ((self.jitter_x16 + 8) >> 4);
        let jitter_us = self.jitter_x16 >> 4;
        self.jitter_count = self.jitter_count.saturating_add(1);
        self.jitter_sum_us = self.jitter_sum_us.saturating_add(i64::from(jitter_us));
        if self.jitter_count > JITTER_LEAD {
            self.jitter_peak_us = self.jitter_peak_us.max(jitter_us);
        }
        if jitter_us >= self.high_us {
            self.jitter_high_count = self.jitter_high_count.saturating_add(1);
        }
    }

    #[inline]
    fn begin_clump(&mut self, now: Micros) {
        if let Some(start) = self.clump_start {
            let interval_us = now.since(start);
            let scaled = interval_us >> 5;
            self.clump_count = self.clump_count.saturating_add(1);
            self.clump_sum_us = self.clump_sum_us.saturating_add(interval_us);
            self.clump_square_sum = self.clump_square_sum.saturating_add(scaled.saturating_mul(scaled));
        }
        self.clump_start = Some(now);
    }

    #[cold]
    fn end_window(&mut self) {
        let tolerance = i64::from(self.pace_pct);
        let media_pct = self.window_media_us.saturating_mul(100);
        let gap = |pct: i64| self.window_gap_us.saturating_mul(pct);
        if media_pct < gap(100 - tolerance) || media_pct > gap(100 + tolerance) {
            self.pace_windows_off = self.pace_windows_off.saturating_add(1);
        }
        self.pace_windows = self.pace_windows.saturating_add(1);
        self.window_gap_us = 0;
        self.window_media_us = 0;
    }

    /// Forgets the arrival before for everything but the next pair.
    fn rebase(&mut self) {
        self.clump_start = None;
        self.playout.rebase();
    }

    #[inline]
    fn to_us(&self, ticks: i64) -> i64 {
        (ticks * self.us_per_tick) >> 16
    }
}

/// Two successive audio arrivals.
struct Pair {
    now: Micros,
    gap_us: i64,
    media_us: i64,
    ticks: i64,
    packets: i64,
    /// The packet duration before this pair was counted, and what was back to back then.
    ptime_us: i64,
    short_us: i64,
}

impl Pair {
    /// How much later than its timestamp says the second packet came, against the first.
    #[inline]
    fn lateness_us(&self) -> i64 {
        self.gap_us - self.media_us
    }
}

/// A larger gap between two arrivals, 12 days, is a broken clock.
const GAP_MAX_US: i64 = 1 << 40;
/// A longer gap is no sample of the sender's pace.
const PAUSE_US: i64 = 1_000_000;
/// The longest packet of any codec in use (RFC 7587 §3.1).
const PTIME_MAX_US: i64 = 120_000;
/// How far a silence may differ from the timestamp's step.
const SILENCE_TOLERANCE_US: i64 = 100_000;
/// A single deviation counts no more, so that one packet cannot decide the peak.
const DEVIATION_MAX_US: u32 = 1_000_000;
/// The estimator's first samples do not count as a peak.
const JITTER_LEAD: u32 = 10;
/// The pace is judged over windows of this length.
const PACE_WINDOW_US: i64 = 5_000_000;
