//! Arrival times of audio packets relative to their timestamps.
//!
//! Only pairs of successive audio arrivals in one segment are measured. So silence, DTMF digits and comfort
//! noise never cause jitter or intervals.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::cold_timing::ColdTiming;
use crate::stats::loss::Place;
use crate::stats::modal::{Followers, narrow};
use crate::stats::playout::{Due, Playout};
use crate::stats::stream_config::StreamConfig;
use crate::stats::timeline::{Rows, Turn};
use crate::stats::{Lateness, Sums};
use crate::time::Micros;

/// The running sums of arrival times, packed. Between two packets of a leg there are packets of thousands of
/// other legs, so each cache line costs more than all the arithmetic.
///
/// Values that can be derived are not stored. [`ColdTiming`] holds the overflow of the 32-bit sums and everything
/// that in-step packets do not change.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// The previous arrival.
    pub(super) at: Micros,
    pub(super) apart: Box<ColdTiming>,
    pub(super) timestamp: u32,
    /// Microseconds per clock unit, in 2^-16.
    us_per_tick: u32,
    /// A shorter gap counts as back to back.
    pub(super) short_us: u32,
    /// The most frequent timestamp step between neighbours.
    pub(super) step: i32,
    /// The most frequent payload length of neighbours.
    pub(super) payload_len: i32,
    /// Pairs of neighbours so far.
    pub(super) pairs: u32,
    pub(super) high_us: u32,
    /// Interarrival jitter, ×16.
    pub(super) jitter_x16: u32,
    jitter_sum_us: u32,
    /// The jitter peak of the timeline's open row; [`Rows`] has that of earlier rows.
    pub(super) row_jitter_us: u32,
    /// The longest sampled gap of the open row.
    pub(super) row_gap_us: u32,
    /// Pairs of audio arrivals that were samples.
    pub(super) sample_count: u32,
    // Sums since the pace was last judged.
    pub(super) window_gap_us: i32,
    pub(super) window_media_us: i32,
    clump_sum_us: u32,
    clump_square_sum: u32,
    pub(super) playout: Playout,
    pub(super) sequence: u16,
    pub(super) kind: Option<PayloadKind>,
    pub(super) clump: Clump,
}

/// Where the latest clump of packets began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clump {
    /// There is none yet.
    None,
    /// With the previous packet.
    Before,
    /// Earlier; `apart` has the time.
    Earlier,
}

impl Timing {
    pub(crate) fn new(config: &StreamConfig) -> Self {
        let mut timing = Timing {
            at: Micros::default(),
            apart: Box::new(ColdTiming::new(config)),
            timestamp: 0,
            us_per_tick: 0,
            short_us: 0,
            step: 0,
            payload_len: 0,
            pairs: 0,
            high_us: config.high_jitter_us,
            jitter_x16: 0,
            jitter_sum_us: 0,
            row_jitter_us: 0,
            row_gap_us: 0,
            sample_count: 0,
            window_gap_us: 0,
            window_media_us: 0,
            clump_sum_us: 0,
            clump_square_sum: 0,
            playout: Playout::new(config.late_us),
            sequence: 0,
            kind: None,
            clump: Clump::None,
        };
        timing.set_clock(config.clock_hz(), config.ptime_ticks());
        timing
    }

    /// Changes the clock; the next packet is not a sample.
    pub(crate) fn set_clock(&mut self, hz: i64, ptime_ticks: i64) {
        let hz = hz.max(1);
        // Exact down to 16 Hz; slower clocks are excluded before.
        self.us_per_tick = u32::try_from((1_000_000 << 16) / hz).unwrap_or(u32::MAX);
        self.apart.set_clock(hz);
        self.assume_step(ptime_ticks);
        self.kind = None;
    }

    /// Uses `ptime_ticks` as the packet duration until pairs are counted.
    pub(crate) fn assume_step(&mut self, ptime_ticks: i64) {
        self.step = narrow(ptime_ticks);
        self.apart.other_steps = Followers::begin(self.pairs);
        self.apart.other_step = None;
        self.apart.pairs_before = self.pairs;
        self.follow_step();
    }

    /// Restarts the counting of payload lengths, for a codec with another frame size.
    pub(crate) fn forget_payload_lens(&mut self) {
        self.payload_len = 0;
        self.apart.other_payload_lens = Followers::begin(self.pairs);
    }

    /// Processes one arrival with its place; the first of a segment is not a sample.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Micros,
        packet: &Packet,
        kind: PayloadKind,
        place: Place,
        rows: &mut Rows,
    ) {
        let is_ahead = place == Place::Ahead && kind == PayloadKind::Audio;
        if !is_ahead || !self.arrive_in_step(now, packet, rows) {
            self.arrive_any(now, packet, kind, place, rows);
        }
    }

    /// The fast path for most audio packets: in step, that is, the next number with the usual timestamp step,
    /// after at most a second. Many conditions are then known, which saves a third of the arithmetic, and 32
    /// bits are enough for the rest.
    ///
    /// Returns false and changes nothing for any other packet.
    #[inline]
    fn arrive_in_step(&mut self, now: Micros, packet: &Packet, rows: &mut Rows) -> bool {
        let Ok(gap_us) = u32::try_from(between(self.at, now)) else { return false };
        let ticks = packet.timestamp.wrapping_sub(self.timestamp).cast_signed();
        let media_us = self.ptime_us();
        let (Ok(gap), Ok(media)) = (i32::try_from(gap_us), i32::try_from(media_us)) else { return false };
        let is_in_talk = (self.kind == Some(PayloadKind::Audio))
            & (self.clump == Clump::Before)
            & !self.playout.is_rebased();
        let is_next = (packet.sequence.wrapping_sub(self.sequence) == 1)
            & (ticks == self.step)
            & (ticks > 0)
            & (packet.payload_len == self.payload_len.cast_unsigned());
        let is_a_sample =
            (gap_us >= self.short_us) & (i64::from(gap_us) <= PAUSE_US) & (media_us <= PAUSE_US);
        if !(is_in_talk & is_next & is_a_sample) {
            return false;
        }
        self.at = now;
        self.timestamp = packet.timestamp;
        self.sequence = packet.sequence;
        self.pairs = self.pairs.wrapping_add(1);
        // Both values are at most a second, so their difference is too, and the sums of open windows do not
        // overflow.
        let late_us = gap - media;
        self.fold_jitter(late_us.unsigned_abs());
        self.sample_count = self.sample_count.wrapping_add(1);
        self.window_gap_us = self.window_gap_us.wrapping_add(gap);
        self.window_media_us = self.window_media_us.wrapping_add(media);
        self.judge_window(rows);
        self.count_clump(gap_us, gap_us >> 5);
        self.row_gap_us = self.row_gap_us.max(gap_us);
        let below_us = self.playout.fold_in_step(gap, late_us, media_us, &mut self.apart.playout, rows);
        if let Some(below_us) = below_us {
            self.apart.mark_transit(self.at, self.timestamp, below_us);
        }
        true
    }

    /// Processes any arrival.
    fn arrive_any(&mut self, now: Micros, packet: &Packet, kind: PayloadKind, place: Place, rows: &mut Rows) {
        let before = self.kind;
        let fresh = place == Place::First;
        let ticks = i64::from(packet.timestamp.wrapping_sub(self.timestamp).cast_signed());
        // Filled in one go and never copied: a copy right after its fields were written stalls the processor.
        let pair = Pair {
            before: self.at,
            now,
            gap_us: between(self.at, now).clamp(-GAP_MAX_US, GAP_MAX_US),
            media_us: self.to_us(ticks),
            ticks,
            packets: i64::from(packet.sequence.wrapping_sub(self.sequence).cast_signed()),
            is_overtaken: place == Place::Behind,
            ptime_us: self.ptime_us(),
            short_us: self.short_us.into(),
        };
        self.at = now;
        self.timestamp = packet.timestamp;
        self.sequence = packet.sequence;
        self.kind = Some(kind);
        if fresh || kind != PayloadKind::Audio || before != Some(PayloadKind::Audio) {
            if fresh {
                self.apart.break_transit();
            }
            self.begin(&pair, packet, kind, before, rows);
        } else {
            self.follow(&pair, packet, rows);
        }
    }

    /// The arrival of the first packet, and of the last.
    pub(crate) fn span(&self) -> Option<(Micros, Micros)> {
        self.apart.first.map(|first| (first, self.at))
    }

    /// The rarely used part.
    pub(crate) fn apart(&self) -> &ColdTiming {
        &self.apart
    }

    /// Audio packets.
    pub(crate) fn audio(&self) -> u64 {
        u64::from(self.sample_count) + u64::from(self.apart.audio)
    }

    /// The current smoothed interarrival jitter.
    pub(crate) fn jitter_us(&self) -> u32 {
        self.jitter_x16 >> 4
    }

    /// The longest gap between two arrivals.
    pub(crate) fn max_gap_us(&self, rows: &Rows) -> i64 {
        let sampled_us = rows.peaks().interval_us.max(self.row_gap_us);
        self.apart.max_gap_us.max(sampled_us.into())
    }

    /// Late packets that a phone with a buffer of 80 ms had to conceal, and the same for 200 ms.
    pub(crate) fn late(&self) -> (u64, u64) {
        let players = &self.apart.playout.players;
        (players.short.late, players.long.late)
    }

    /// Packets by lateness.
    pub(crate) fn lateness(&self, rows: &Rows) -> Lateness {
        self.playout.lateness(&self.apart.playout, rows.peaks().lateness_us)
    }

    /// Whether the sender suppresses silence: the last packet was not audio, or it has paused before.
    pub(crate) fn may_be_silent(&self) -> bool {
        self.kind.is_some_and(|kind| kind != PayloadKind::Audio)
            || self.apart.pauses > 0
            || self.apart.interruptions > 0
    }

    /// Pairs whose timestamp step was counted.
    pub(crate) fn pair_count(&self) -> u32 {
        self.pairs.wrapping_sub(self.apart.pairs_before)
    }

    /// Whether `missing` packets cannot have been lost between the newest packet and `packet`: the timestamp
    /// advances by exactly one packet duration, and both it and the clock by less than half a duration for each
    /// missing number.
    ///
    /// The duration is that of the latest two neighbours. The most frequent duration of the call is that of
    /// packets from before a change, and would make real loss after it a jump.
    pub(crate) fn is_too_soon(&self, now: Micros, packet: &Packet, missing: u16) -> bool {
        let Some(step) = self.latest_step() else { return false };
        let ticks = packet.timestamp.wrapping_sub(self.timestamp).cast_signed();
        let needed_us = self.to_us(step.into()) * i64::from(missing) / 2;
        self.kind == Some(PayloadKind::Audio)
            && packet.sequence.wrapping_sub(self.sequence) == missing.wrapping_add(1)
            && ticks > 0
            && ticks == step
            && self.to_us(ticks.into()) < needed_us
            && (0..needed_us).contains(&between(self.at, now))
    }

    /// The timestamp step between the latest two neighbours; `None` if no pair was counted.
    fn latest_step(&self) -> Option<i32> {
        match self.apart.other_step {
            Some((step, pairs)) if pairs == self.pairs => Some(step),
            // Every later pair had the most frequent step.
            _ => (self.pair_count() > 0).then_some(self.step),
        }
    }

    /// Counts a packet of a payload type that was not negotiated; it does not affect the timing of the audio.
    #[cold]
    pub(crate) fn count_refused(&mut self, rows: &mut Rows) {
        rows.receive(PayloadKind::Other);
        self.apart.count_refused();
    }

    /// The packet duration according to the most frequent step.
    #[inline]
    pub(crate) fn ptime_us(&self) -> i64 {
        self.to_us(self.step.into())
    }

    /// The counters for the timeline's row that is over; the row's peaks restart.
    pub(crate) fn turn(&mut self, newest: u16) -> Turn {
        Turn {
            samples: self.sample_count,
            window_gap_us: self.window_gap_us,
            jitter_max_us: std::mem::take(&mut self.row_jitter_us),
            interval_max_us: std::mem::take(&mut self.row_gap_us),
            lateness_max_us: self.playout.take_row_max_us(),
            ptime_us: self.ptime_us(),
            newest,
        }
    }

    /// The sums that the rules compare.
    pub(crate) fn sums(&self, rows: &Rows) -> Sums {
        let apart = &*self.apart;
        let clumps = self.sample_count.wrapping_sub(apart.short_gap_count).wrapping_sub(apart.first_clumps);
        Sums {
            jitter_count: self.sample_count.into(),
            jitter_high_count: apart.jitter_high_count.into(),
            jitter_sum_us: apart.jitter_sum_us.wrapping_add(self.jitter_sum_us.into()),
            jitter_peak_us: rows.peaks().jitter_us.max(self.row_jitter_us).into(),
            gap_count: self.sample_count.into(),
            gap_sum_us: apart.gap_sum_us.wrapping_add(self.window_gap_us.into()),
            media_sum_us: apart.media_sum_us.wrapping_add(self.window_media_us.into()),
            short_gap_count: apart.short_gap_count.into(),
            clump_count: clumps.into(),
            clump_sum_us: apart.clump_sum_us.wrapping_add(self.clump_sum_us.into()),
            clump_square_sum: apart.clump_square_sum.wrapping_add(self.clump_square_sum.into()),
            pace_windows: apart.pace_windows,
            pace_windows_off: apart.pace_windows_off,
            late_count: apart.playout.late_count.into(),
            pair_count: self.pair_count().into(),
            step_ticks: self.step.into(),
            step_count: apart.other_steps.leader_count(self.pairs).into(),
            step_us: self.ptime_us(),
            payload_len: u64::try_from(self.payload_len).unwrap_or(0),
            payload_len_count: apart.other_payload_lens.leader_count(self.pairs).into(),
            late_80_runs: apart.playout.players.short.runs,
            late_200_runs: apart.playout.players.long.runs,
            ends_in_audio: self.kind == Some(PayloadKind::Audio),
        }
    }

    /// Judges the pace of the last window when it is at least half full.
    pub(crate) fn close(&mut self, rows: &mut Rows) {
        if self.window_gap_us.max(self.window_media_us) >= PACE_WINDOW_US / 2 {
            self.end_window(rows);
        }
    }

    /// Processes an arrival that forms no pair with the one before it.
    #[cold]
    fn begin(
        &mut self,
        pair: &Pair,
        packet: &Packet,
        kind: PayloadKind,
        before: Option<PayloadKind>,
        rows: &mut Rows,
    ) {
        let apart = &mut *self.apart;
        rows.receive(kind);
        match apart.first {
            Some(_) => apart.note_gap(pair.gap_us),
            None => apart.first = Some(pair.now),
        }
        if kind == PayloadKind::ComfortNoise || before == Some(PayloadKind::ComfortNoise) {
            apart.pauses += 1;
        }
        apart.count(kind, packet);
        if kind == PayloadKind::Audio {
            self.rebase();
        }
    }

    /// Processes an audio arrival after another.
    #[inline]
    fn follow(&mut self, pair: &Pair, packet: &Packet, rows: &mut Rows) {
        if pair.packets == 1 && pair.ticks > 0 {
            self.pairs = self.pairs.wrapping_add(1);
            let payload_len = i64::from(packet.payload_len);
            if payload_len != i64::from(self.payload_len) {
                self.apart.other_payload_lens.add(payload_len, &mut self.payload_len, self.pairs);
            }
            if pair.ticks != i64::from(self.step) {
                self.apart.other_step = Some((narrow(pair.ticks), self.pairs));
                if self.apart.other_steps.add(pair.ticks, &mut self.step, self.pairs) {
                    self.follow_step();
                }
            }
        }
        if !self.is_regular(pair) {
            self.irregular(pair, packet.marker, rows);
        } else if pair.gap_us > PAUSE_US {
            self.interrupted(pair, rows);
        } else {
            self.sample(pair, rows);
        }
    }

    fn follow_step(&mut self) {
        let short_us = self.ptime_us() * i64::from(self.apart.short_pct) / 100;
        self.short_us = u32::try_from(short_us).unwrap_or(u32::MAX);
    }

    /// Whether the timestamps match the sequence numbers: the usual step, or up to 120 ms per packet.
    #[inline]
    fn is_regular(&self, pair: &Pair) -> bool {
        if pair.ticks == i64::from(self.step) * pair.packets {
            return true;
        }
        let most_us = PTIME_MAX_US * pair.packets;
        (0 < pair.media_us && pair.media_us <= most_us)
            || (pair.packets < 0 && most_us <= pair.media_us && pair.media_us < 0)
    }

    /// Handles a timestamp that jumped: announced silence (the timestamp advanced with the time), or a
    /// discontinuity.
    #[cold]
    fn irregular(&mut self, pair: &Pair, marker: bool, rows: &mut Rows) {
        let apart = &mut *self.apart;
        rows.receive(PayloadKind::Audio);
        apart.audio = apart.audio.wrapping_add(1);
        apart.note_gap(pair.gap_us);
        let tolerance_us = SILENCE_TOLERANCE_US.max(pair.media_us / 5);
        if pair.media_us > 0 && (pair.gap_us - pair.media_us).abs() <= tolerance_us {
            apart.pauses += 1;
            rows.silence();
            apart.silence_us = apart.silence_us.saturating_add(pair.media_us - pair.ptime_us);
        } else {
            apart.timestamp_resets += 1;
            rows.restart();
            apart.flaws += u64::from(!marker);
            apart.break_transit();
        }
        self.rebase();
    }

    /// Handles a gap over a second that the timestamps do not show: the sender's silence, or a stall.
    #[cold]
    fn interrupted(&mut self, pair: &Pair, rows: &mut Rows) {
        let apart = &mut *self.apart;
        rows.receive(PayloadKind::Audio);
        apart.audio = apart.audio.wrapping_add(1);
        apart.note_gap(pair.gap_us);
        rows.stall(u32::try_from(pair.gap_us).unwrap_or(u32::MAX));
        if pair.packets == 1 {
            apart.interruptions += 1;
            apart.interruption_us = apart.interruption_us.saturating_add(pair.gap_us);
        }
        apart.break_transit();
        apart.mark_transit(self.at, self.timestamp, 0);
        self.rebase();
        self.playout.begin(&mut self.apart.playout);
    }

    #[inline]
    fn sample(&mut self, pair: &Pair, rows: &mut Rows) {
        let short = pair.gap_us < pair.short_us;
        let deviation_us = pair.lateness_us().unsigned_abs().min(DEVIATION_MAX_US);
        self.fold_jitter(u32::try_from(deviation_us).unwrap_or_default());
        self.sample_count = self.sample_count.wrapping_add(1);
        self.fold_window(pair, rows);
        if short {
            self.extend_clump(pair);
        } else {
            self.begin_clump(pair);
        }
        // A sample's gap is at most a second; a negative time difference is not a gap.
        self.row_gap_us = self.row_gap_us.max(u32::try_from(pair.gap_us).unwrap_or(0));
        let due = Due {
            gap_us: pair.gap_us,
            late_us: pair.lateness_us(),
            is_overtaken: pair.is_overtaken,
            ptime_us: pair.ptime_us,
        };
        if let Some(below_us) = self.playout.fold(&due, &mut self.apart.playout, rows) {
            self.apart.mark_transit(self.at, self.timestamp, below_us);
        }
    }

    /// Updates the jitter (RFC 3550 A.8) in microseconds; a single deviation is at most one second.
    #[inline]
    fn fold_jitter(&mut self, deviation_us: u32) {
        self.jitter_x16 = self.jitter_x16 + deviation_us - ((self.jitter_x16 + 8) >> 4);
        let jitter_us = self.jitter_x16 >> 4;
        self.add_jitter(jitter_us);
        // Called before the sample is counted.
        if self.sample_count >= JITTER_LEAD {
            self.row_jitter_us = self.row_jitter_us.max(jitter_us);
        }
        if jitter_us >= self.high_us {
            self.apart.jitter_high_count = self.apart.jitter_high_count.wrapping_add(1);
        }
    }

    /// Adds to the jitter sum, and carries its overflow to `apart`.
    #[inline]
    pub(super) fn add_jitter(&mut self, jitter_us: u32) {
        let (sum_us, is_full) = self.jitter_sum_us.overflowing_add(jitter_us);
        self.jitter_sum_us = sum_us;
        if is_full {
            self.apart.jitter_sum_us = self.apart.jitter_sum_us.wrapping_add(FULL);
        }
    }

    #[inline]
    fn fold_window(&mut self, pair: &Pair, rows: &mut Rows) {
        self.window_gap_us = clip(i64::from(self.window_gap_us) + pair.gap_us);
        self.window_media_us = clip(i64::from(self.window_media_us) + pair.media_us);
        self.judge_window(rows);
    }

    /// Judges the pace when a window is full.
    #[inline]
    fn judge_window(&mut self, rows: &mut Rows) {
        if self.window_gap_us >= PACE_WINDOW_US || self.window_media_us >= PACE_WINDOW_US {
            self.end_window(rows);
        }
    }

    /// Counts a packet that is back to back with the one before.
    #[cold]
    fn extend_clump(&mut self, pair: &Pair) {
        self.apart.short_gap_count = self.apart.short_gap_count.wrapping_add(1);
        if self.clump == Clump::Before {
            self.apart.clump_start = pair.before;
            self.clump = Clump::Earlier;
        }
    }

    #[inline]
    fn begin_clump(&mut self, pair: &Pair) {
        let interval_us = match self.clump {
            Clump::Before => pair.gap_us,
            Clump::Earlier => between(self.apart.clump_start, pair.now),
            Clump::None => {
                self.apart.first_clumps = self.apart.first_clumps.wrapping_add(1);
                self.clump = Clump::Before;
                return;
            }
        };
        self.clump = Clump::Before;
        match u16::try_from(interval_us >> 5) {
            Ok(scaled) => self.count_clump(u32::try_from(interval_us).unwrap_or_default(), scaled.into()),
            // Over two seconds, or negative.
            Err(_) => self.apart.add_clump(interval_us),
        }
    }

    /// Counts a clump; `scaled` is its interval in steps of 32 microseconds, at most 16 bits.
    #[inline]
    fn count_clump(&mut self, interval_us: u32, scaled: u32) {
        self.add_clumps(interval_us, scaled.wrapping_mul(scaled));
    }

    /// Adds to the sums of the clumps' intervals and of their squares.
    #[inline]
    pub(super) fn add_clumps(&mut self, interval_us: u32, square: u32) {
        let (sum_us, is_sum_full) = self.clump_sum_us.overflowing_add(interval_us);
        let (square_sum, is_full) = self.clump_square_sum.overflowing_add(square);
        self.clump_sum_us = sum_us;
        self.clump_square_sum = square_sum;
        if is_sum_full || is_full {
            self.apart.carry_clumps(is_sum_full, is_full);
        }
    }

    #[cold]
    fn end_window(&mut self, rows: &mut Rows) {
        rows.end_window(self.window_gap_us);
        let apart = &mut *self.apart;
        let (gap_us, media_us) = (i64::from(self.window_gap_us), i64::from(self.window_media_us));
        let tolerance = i64::from(apart.pace_pct);
        let media_pct = media_us * 100;
        if media_pct < gap_us * (100 - tolerance) || media_pct > gap_us * (100 + tolerance) {
            apart.pace_windows_off += 1;
        }
        apart.pace_windows += 1;
        apart.gap_sum_us = apart.gap_sum_us.wrapping_add(gap_us);
        apart.media_sum_us = apart.media_sum_us.wrapping_add(media_us);
        self.window_gap_us = 0;
        self.window_media_us = 0;
    }

    /// Starts clumps and playout again with the next pair.
    fn rebase(&mut self) {
        self.clump = Clump::None;
        self.playout.rebase();
    }

    #[inline]
    fn to_us(&self, ticks: i64) -> i64 {
        (ticks * i64::from(self.us_per_tick)) >> 16
    }
}

/// Two successive audio arrivals.
struct Pair {
    before: Micros,
    now: Micros,
    gap_us: i64,
    media_us: i64,
    ticks: i64,
    packets: i64,
    /// Whether a later packet had arrived before the second one.
    is_overtaken: bool,
    /// The packet duration before this pair was counted, and the back-to-back limit at that time.
    ptime_us: i64,
    short_us: i64,
}

impl Pair {
    /// How much the transit grew from the first packet to the second: arrival gap minus timestamp step.
    #[inline]
    fn lateness_us(&self) -> i64 {
        self.gap_us - self.media_us
    }
}

/// Microseconds from `earlier` to `later`; a driver may pass any values.
#[inline]
fn between(earlier: Micros, later: Micros) -> i64 {
    later.0.wrapping_sub(earlier.0)
}

/// Clips microseconds of a window; only a clock that was set back by half an hour reaches the bounds.
#[inline]
fn clip(us: i64) -> i32 {
    i32::try_from(us).unwrap_or(if us < 0 { i32::MIN } else { i32::MAX })
}

/// The value of a 32-bit sum's overflow.
const FULL: i64 = 1 << 32;
/// A larger gap between two arrivals, 12 days, means a broken clock.
const GAP_MAX_US: i64 = 1 << 40;
/// A longer gap is not a sample of the sender's pace.
pub(super) const PAUSE_US: i64 = 1_000_000;
/// The longest packet of any codec in use (RFC 7587 §3.1).
const PTIME_MAX_US: i64 = 120_000;
/// Tolerated difference between a silence and the timestamp's step.
const SILENCE_TOLERANCE_US: i64 = 100_000;
/// A single deviation counts at most this much, so that one packet cannot decide the peak.
const DEVIATION_MAX_US: u64 = 1_000_000;
/// The estimator's first samples are excluded from the peak.
pub(super) const JITTER_LEAD: u32 = 10;
/// The pace is judged over windows of this length.
pub(super) const PACE_WINDOW_US: i32 = 5_000_000;

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
