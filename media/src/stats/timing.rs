//! When audio packets arrive, against when their timestamps say they were made.
//!
//! Only a pair of successive audio arrivals of one segment is measured. Silence, digits and comfort noise
//! therefore never create jitter or intervals.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::modal::{Followers, Modal};
use crate::stats::playout::Playout;
use crate::stats::skew::Skew;
use crate::stats::stream::StreamConfig;
use crate::stats::timeline::Tally;
use crate::stats::{Lateness, Sums};
use crate::time::Micros;

/// The running sums of arrival times, packed: a leg's packets come one by one between those of thousands of
/// others, and each cache line costs more than all the arithmetic.
///
/// Sums wrap rather than saturate: to get there, gaps must add up to 292,000 years.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    // The arrival before.
    at: Micros,
    /// The packet duration by the most frequent step.
    ptime_us: i64,
    /// A shorter gap is back to back.
    short_us: i64,
    jitter_sum_us: u64,
    // Since the pace was judged last; `rare` has what was before.
    window_gap_us: i64,
    window_media_us: i64,
    clump_start: Micros,
    clump_sum_us: i64,
    clump_square_sum: i64,
    playout: Playout,
    rare: Box<Rare>,
    timestamp: u32,
    high_us: u32,
    /// Interarrival jitter, ×16.
    jitter_x16: u32,
    /// The peak of the timeline's open row; `rare` has that of the rows before.
    row_jitter_us: u32,
    /// The longest sampled gap of the open row.
    row_gap_us: u32,
    jitter_high_count: u32,
    /// Pairs of audio arrivals that were samples.
    sample_count: u32,
    short_gap_count: u32,
    clump_count: u32,
    pair_count: u32,
    steps: Modal,
    payload_lens: Modal,
    sequence: u16,
    kind: Option<PayloadKind>,
    in_clump: bool,
    /// The lateness of an interruption waits for the next gap to explain it.
    is_pending: bool,
}

/// What a packet in the middle of talk never touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    first: Option<Micros>,
    hz: i64,
    max_gap_us: i64,
    /// The longest interruption of the open row, in microseconds.
    row_stall_us: u32,
    jitter_peak_us: u32,
    lateness: Lateness,
    skew: Skew,
    /// A packet of known transit: when it came, its timestamp, and its transit.
    transit: Option<(Micros, u32, i64)>,
    event_timestamp: Option<u32>,
    pub(crate) digits: u64,
    /// Microseconds per clock unit, in 2^-16.
    us_per_tick: i64,
    gap_sum_us: i64,
    media_sum_us: i64,
    pending_us: i64,
    pace_windows: u64,
    pace_windows_off: u64,
    short_pct: u32,
    pace_pct: u32,
    other_steps: Followers,
    other_payload_lens: Followers,
    pub(crate) silence_us: i64,
    pub(crate) interruption_us: i64,
    pub(crate) pauses: u64,
    pub(crate) interruptions: u64,
    pub(crate) timestamp_resets: u64,
    /// Timestamp discontinuities that no marker announced.
    pub(crate) flaws: u64,
}

impl Timing {
    pub(crate) fn new(config: &StreamConfig) -> Self {
        let rare = Rare { short_pct: config.short_gap_pct, pace_pct: config.pace_pct, ..Rare::default() };
        let mut timing = Timing {
            at: Micros::default(),
            ptime_us: 0,
            short_us: 0,
            jitter_sum_us: 0,
            window_gap_us: 0,
            window_media_us: 0,
            clump_start: Micros::default(),
            clump_sum_us: 0,
            clump_square_sum: 0,
            playout: Playout::new(config.late_us),
            rare: Box::new(rare),
            timestamp: 0,
            high_us: config.high_jitter_us,
            jitter_x16: 0,
            row_jitter_us: 0,
            row_gap_us: 0,
            jitter_high_count: 0,
            sample_count: 0,
            short_gap_count: 0,
            clump_count: 0,
            pair_count: 0,
            steps: Modal::default(),
            payload_lens: Modal::default(),
            sequence: 0,
            kind: None,
            in_clump: false,
            is_pending: false,
        };
        timing.set_clock(config.clock_hz(), config.ptime_ticks());
        timing
    }

    /// Goes on with another clock; the next packet is no sample.
    pub(crate) fn set_clock(&mut self, hz: i64, ptime_ticks: i64) {
        self.rare.us_per_tick = (1_000_000 << 16) / hz.max(1);
        self.rare.hz = hz.max(1);
        self.break_transit();
        self.assume_step(ptime_ticks);
        self.kind = None;
    }

    /// Takes `ptime_ticks` for the packet duration until pairs are counted.
    pub(crate) fn assume_step(&mut self, ptime_ticks: i64) {
        self.steps = Modal::starting_with(ptime_ticks);
        self.rare.other_steps = Followers::default();
        self.pair_count = 0;
        self.follow_step();
    }

    /// Counts payload lengths anew, for a codec with another frame size.
    pub(crate) fn forget_payload_lens(&mut self) {
        self.payload_lens = Modal::default();
        self.rare.other_payload_lens = Followers::default();
    }

    /// Takes in one arrival; `fresh` opens a segment and is no sample.
    pub(crate) fn arrive(&mut self, now: Micros, packet: &Packet, kind: PayloadKind, fresh: bool) {
        let before = self.kind;
        let gap_us = between(self.at, now).clamp(-GAP_MAX_US, GAP_MAX_US);
        let ticks = i64::from(packet.timestamp.wrapping_sub(self.timestamp).cast_signed());
        let packets = i64::from(packet.sequence.wrapping_sub(self.sequence).cast_signed());
        self.at = now;
        self.timestamp = packet.timestamp;
        self.sequence = packet.sequence;
        self.kind = Some(kind);
        if fresh || kind != PayloadKind::Audio || before != Some(PayloadKind::Audio) {
            if fresh {
                self.break_transit();
            }
            self.begin(now, gap_us, kind, before);
            if kind == PayloadKind::Event {
                self.digit(packet);
            }
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
            self.pair_count = self.pair_count.saturating_add(1);
            let payload_len = i64::from(packet.payload_len);
            if !self.payload_lens.add(payload_len) {
                self.payload_lens.add_other(payload_len, &mut self.rare.other_payload_lens);
            }
            if !self.steps.add(ticks) {
                pair.media_us = self.to_us(ticks);
                if self.steps.add_other(ticks, &mut self.rare.other_steps) {
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

    /// The arrival of the first packet, and of the last.
    pub(crate) fn span(&self) -> Option<(Micros, Micros)> {
        self.rare.first.map(|first| (first, self.at))
    }

    /// What happened rarely.
    pub(crate) fn rare(&self) -> &Rare {
        &self.rare
    }

    /// The smoothed interarrival jitter now.
    pub(crate) fn jitter_us(&self) -> u32 {
        self.jitter_x16 >> 4
    }

    /// The longest gap between two arrivals.
    pub(crate) fn max_gap_us(&self) -> i64 {
        self.rare.max_gap_us.max(self.row_gap_us.into())
    }

    /// Packets by lateness.
    pub(crate) fn lateness(&self) -> Lateness {
        let mut lateness = self.rare.lateness;
        lateness.note_max(self.playout.row_max_us);
        lateness
    }

    /// The sender's clock against ours.
    pub(crate) fn skew_ppm(&self) -> Option<i64> {
        self.rare.skew.ppm()
    }

    /// The packet duration by the most frequent step.
    pub(crate) fn ptime_us(&self) -> i64 {
        self.ptime_us
    }

    /// What the timeline's row is made of; the peaks begin anew.
    pub(crate) fn tally(&mut self) -> Tally {
        let tally = Tally {
            late: self.playout.late_count,
            intervals: self.sample_count,
            interval_sum_us: self.rare.gap_sum_us.wrapping_add(self.window_gap_us),
            silences: self.rare.pauses,
            restarts: self.rare.timestamp_resets,
            jitter_max_us: self.row_jitter_us,
            interval_max_us: self.row_gap_us.max(self.rare.row_stall_us),
            lateness_max_us: self.playout.row_max_us,
            ..Tally::default()
        };
        let rare = &mut *self.rare;
        rare.jitter_peak_us = rare.jitter_peak_us.max(self.row_jitter_us);
        rare.max_gap_us = rare.max_gap_us.max(self.row_gap_us.into());
        rare.lateness.note_max(self.playout.row_max_us);
        rare.row_stall_us = 0;
        self.row_jitter_us = 0;
        self.row_gap_us = 0;
        self.playout.row_max_us = 0;
        tally
    }

    /// Pairs whose timestamp step was counted.
    pub(crate) fn pair_count(&self) -> u64 {
        self.pair_count.into()
    }

    /// Everything the rules compare.
    pub(crate) fn sums(&self) -> Sums {
        Sums {
            jitter_count: self.sample_count.into(),
            jitter_high_count: self.jitter_high_count.into(),
            jitter_sum_us: i64::try_from(self.jitter_sum_us).unwrap_or(i64::MAX),
            jitter_peak_us: self.rare.jitter_peak_us.max(self.row_jitter_us).into(),
            gap_count: self.sample_count.into(),
            gap_sum_us: self.rare.gap_sum_us.wrapping_add(self.window_gap_us),
            media_sum_us: self.rare.media_sum_us.wrapping_add(self.window_media_us),
            short_gap_count: self.short_gap_count.into(),
            clump_count: self.clump_count.into(),
            clump_sum_us: self.clump_sum_us,
            clump_square_sum: self.clump_square_sum,
            pace_windows: self.rare.pace_windows,
            pace_windows_off: self.rare.pace_windows_off,
            late_count: self.playout.late_count.into(),
            pair_count: self.pair_count.into(),
            step_ticks: self.steps.value(),
            step_count: self.steps.count().into(),
            step_us: self.ptime_us,
            payload_len: u64::try_from(self.payload_lens.value()).unwrap_or(0),
            payload_len_count: self.payload_lens.count().into(),
            underrun_us: self.playout.underrun_us,
            ends_in_audio: self.kind == Some(PayloadKind::Audio),
        }
    }

    /// Judges the pace of a last window that is at least half full.
    pub(crate) fn close(&mut self) {
        if self.window_gap_us.max(self.window_media_us) >= PACE_WINDOW_US / 2 {
            self.end_window();
        }
    }

    /// An arrival that makes no pair with the one before it.
    #[cold]
    fn begin(&mut self, now: Micros, gap_us: i64, kind: PayloadKind, before: Option<PayloadKind>) {
        match self.rare.first {
            Some(_) => self.note_gap(gap_us),
            None => self.rare.first = Some(now),
        }
        if kind == PayloadKind::ComfortNoise || before == Some(PayloadKind::ComfortNoise) {
            self.rare.pauses += 1;
        }
        if kind == PayloadKind::Audio {
            self.rebase();
        }
    }

    fn follow_step(&mut self) {
        self.ptime_us = self.to_us(self.steps.value());
        self.short_us = self.ptime_us * i64::from(self.rare.short_pct) / 100;
    }

    /// Whether the timestamps go with the sequence numbers: the usual step, or up to 120 ms a packet.
    fn is_regular(&self, pair: &Pair) -> bool {
        if pair.ticks == self.steps.value() * pair.packets {
            return true;
        }
        let most_us = PTIME_MAX_US * pair.packets;
        (0 < pair.media_us && pair.media_us <= most_us)
            || (pair.packets < 0 && most_us <= pair.media_us && pair.media_us < 0)
    }

    /// A timestamp that jumped: silence with a clock that ran on, or a discontinuity.
    #[cold]
    fn irregular(&mut self, pair: &Pair, marker: bool) {
        self.note_gap(pair.gap_us);
        let tolerance_us = SILENCE_TOLERANCE_US.max(pair.media_us / 5);
        if pair.media_us > 0 && (pair.gap_us - pair.media_us).abs() <= tolerance_us {
            self.rare.pauses += 1;
            self.rare.silence_us = self.rare.silence_us.saturating_add(pair.media_us - pair.ptime_us);
        } else {
            self.rare.timestamp_resets += 1;
            self.rare.flaws += u64::from(!marker);
            self.break_transit();
        }
        self.rebase();
    }

    /// A gap over a second that the timestamps do not know of: the sender's silence, or a stall.
    #[cold]
    fn interrupted(&mut self, pair: &Pair) {
        self.note_gap(pair.gap_us);
        let gap_us = u32::try_from(pair.gap_us).unwrap_or(u32::MAX);
        self.rare.row_stall_us = self.rare.row_stall_us.max(gap_us);
        if pair.packets == 1 {
            self.rare.interruptions += 1;
            self.rare.interruption_us = self.rare.interruption_us.saturating_add(pair.gap_us);
        }
        self.rare.pending_us = pair.lateness_us();
        self.is_pending = self.rare.pending_us != 0;
        self.rebase();
        self.playout.begin(pair.now);
        self.break_transit();
        self.mark_transit(0);
    }

    #[inline]
    fn sample(&mut self, pair: &Pair) {
        let short = pair.gap_us < pair.short_us;
        if self.is_pending {
            // Packets back to back after a long gap were held up: the network stalled.
            if short {
                self.playout.stall(self.rare.pending_us);
            }
            self.is_pending = false;
        }
        self.fold_jitter(pair.lateness_us());
        self.sample_count = self.sample_count.saturating_add(1);
        self.window_gap_us = self.window_gap_us.wrapping_add(pair.gap_us);
        self.window_media_us = self.window_media_us.wrapping_add(pair.media_us);
        if self.window_gap_us >= PACE_WINDOW_US || self.window_media_us >= PACE_WINDOW_US {
            self.end_window();
        }
        if short {
            self.short_gap_count = self.short_gap_count.saturating_add(1);
        } else {
            self.begin_clump(pair.now);
        }
        // A sample's gap is at most a second; time that ran backwards is no gap.
        self.row_gap_us = self.row_gap_us.max(u32::try_from(pair.gap_us).unwrap_or(0));
        let counts = &mut self.rare.lateness;
        let turned = self.playout.fold(pair.now, pair.lateness_us(), pair.packets < 0, pair.ptime_us, counts);
        if let Some(below_us) = turned {
            self.mark_transit(below_us);
        }
    }

    /// RFC 3550 A.8, in microseconds, with a single deviation bounded to one second.
    #[inline]
    fn fold_jitter(&mut self, lateness_us: i64) {
        let deviation = u32::try_from(lateness_us.unsigned_abs().min(DEVIATION_MAX_US)).unwrap_or_default();
        self.jitter_x16 = self.jitter_x16 + deviation - ((self.jitter_x16 + 8) >> 4);
        let jitter_us = self.jitter_x16 >> 4;
        self.jitter_sum_us = self.jitter_sum_us.wrapping_add(jitter_us.into());
        // Called before the sample is counted.
        if self.sample_count >= JITTER_LEAD {
            self.row_jitter_us = self.row_jitter_us.max(jitter_us);
        }
        self.jitter_high_count = self.jitter_high_count.saturating_add(u32::from(jitter_us >= self.high_us));
    }

    #[inline]
    fn begin_clump(&mut self, now: Micros) {
        if self.in_clump {
            let interval_us = between(self.clump_start, now);
            let scaled = interval_us >> 5;
            self.clump_count = self.clump_count.saturating_add(1);
            self.clump_sum_us = self.clump_sum_us.wrapping_add(interval_us);
            self.clump_square_sum = self.clump_square_sum.wrapping_add(scaled.wrapping_mul(scaled));
        }
        self.clump_start = now;
        self.in_clump = true;
    }

    #[cold]
    fn end_window(&mut self) {
        let tolerance = i64::from(self.rare.pace_pct);
        let media_pct = self.window_media_us.saturating_mul(100);
        let gap = |pct: i64| self.window_gap_us.saturating_mul(pct);
        if media_pct < gap(100 - tolerance) || media_pct > gap(100 + tolerance) {
            self.rare.pace_windows_off += 1;
        }
        self.rare.pace_windows += 1;
        self.rare.gap_sum_us = self.rare.gap_sum_us.wrapping_add(self.window_gap_us);
        self.rare.media_sum_us = self.rare.media_sum_us.wrapping_add(self.window_media_us);
        self.window_gap_us = 0;
        self.window_media_us = 0;
    }

    #[cold]
    fn note_gap(&mut self, gap_us: i64) {
        self.rare.max_gap_us = self.rare.max_gap_us.max(gap_us);
    }

    /// The transit of the latest packet, less `below_us`, goes into the skew.
    ///
    /// It is counted from one known packet to the next in whole clock units, since the packets' own steps are
    /// rounded to microseconds.
    #[cold]
    fn mark_transit(&mut self, below_us: i64) {
        let rare = &mut *self.rare;
        let transit_us = rare.transit.map_or(0, |(at, timestamp, transit_us)| {
            let ticks = i64::from(self.timestamp.wrapping_sub(timestamp).cast_signed());
            let media_us = ticks.saturating_mul(1_000_000) / rare.hz;
            transit_us.saturating_add(self.at.since(at)).saturating_sub(media_us)
        });
        rare.transit = Some((self.at, self.timestamp, transit_us));
        rare.skew.fold(self.at, transit_us.saturating_add(below_us));
    }

    /// Timestamps begin anew, or stood still: the transit before is no measure of that after.
    #[cold]
    fn break_transit(&mut self) {
        self.rare.transit = None;
        self.rare.skew.restart();
    }

    /// A packet of a telephone event: of another one when its timestamp says so (RFC 4733 §2.2.1).
    ///
    /// Some senders let the timestamp run on within an event, without a marker.
    #[cold]
    fn digit(&mut self, packet: &Packet) {
        let rare = &mut *self.rare;
        let apart = rare.event_timestamp.map(|before| packet.timestamp.wrapping_sub(before).cast_signed());
        rare.event_timestamp = Some(packet.timestamp);
        let another = apart.is_none_or(|ticks| {
            (packet.marker && ticks != 0) || i64::from(ticks) * 1000 >= DIGIT_MS * rare.hz
        });
        rare.digits += u64::from(another);
    }

    /// Forgets the arrival before for everything but the next pair.
    fn rebase(&mut self) {
        self.in_clump = false;
        self.playout.rebase();
    }

    #[inline]
    fn to_us(&self, ticks: i64) -> i64 {
        (ticks * self.rare.us_per_tick) >> 16
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

/// Microseconds from `earlier` to `later`, which may be anything a driver says.
#[inline]
fn between(earlier: Micros, later: Micros) -> i64 {
    later.0.wrapping_sub(earlier.0)
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
const DEVIATION_MAX_US: u64 = 1_000_000;
/// The estimator's first samples do not count as a peak.
const JITTER_LEAD: u32 = 10;
/// Two digits begin at least this far apart, in milliseconds (ETSI ES 201 235-2 §4.2.4: 40 on, 40 off).
const DIGIT_MS: i64 = 50;
/// The pace is judged over windows of this length.
const PACE_WINDOW_US: i64 = 5_000_000;
