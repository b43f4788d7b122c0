//! Folds the packets of one stream into figures.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::decimal::divide_half_even;
use crate::stats::loss::{LossWindow, Place};
use crate::stats::stream_config::StreamConfig;
use crate::stats::timeline::{Rows, Timeline};
use crate::stats::timing::Timing;
use crate::stats::{Figures, Hundredths, Next, Steps, Sums};
use crate::time::Micros;

/// The result for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Counted as received.
    Counted,
    /// It had arrived before.
    Duplicate,
    /// Set aside: numbered before its segment, or so far off that the next packet decides.
    Set,
}

/// The statistics of one stream, updated with each packet.
///
/// With the packets of one SSRC it gives that stream's figures. A leg's session feeds it one SSRC after
/// another, and announces each with [`Stream::begin_source`].
#[derive(Clone, Debug)]
pub struct Stream {
    window: LossWindow,
    timing: Timing,
    rows: Rows,
    /// Whether the next packet opens a segment, and why.
    restart: Restart,
    clock_hz: u32,
    bytes_per_ms: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    No,
    /// Signalling changed something; late packets of the old segment still belong to it.
    Signalled,
    /// The packets have another SSRC.
    Source,
}

impl Stream {
    /// A stream without packets.
    pub fn new(config: &StreamConfig) -> Self {
        Stream {
            window: LossWindow::default(),
            timing: Timing::new(config),
            rows: Rows::new(config.timeline_reserve),
            restart: Restart::No,
            clock_hz: config.clock.hz(),
            bytes_per_ms: config.bytes_per_ms.unwrap_or(0),
        }
    }

    /// Folds one packet that arrived at `now` with content of this `kind`.
    #[inline]
    pub fn push(&mut self, now: Micros, packet: &Packet, kind: PayloadKind) -> Arrival {
        if self.restart != Restart::No {
            self.apply_restart(now, packet.sequence);
        }
        if self.rows.is_over(now) {
            self.turn(now);
        }
        let place = if kind == PayloadKind::Audio && self.is_renumbered(now, packet) {
            self.window.jump(packet.sequence, &mut self.rows)
        } else {
            self.window.place(packet.sequence, &mut self.rows)
        };
        match place {
            Place::Ahead | Place::Behind | Place::First => {}
            Place::Duplicate => return Arrival::Duplicate,
            Place::BeforeSegment | Place::Unconfirmed => return Arrival::Set,
        }
        self.timing.arrive(now, packet, kind, place, &mut self.rows);
        Arrival::Counted
    }

    /// Whether the sender restarted its numbering while the audio continues: numbers are missing, but too
    /// little time has passed for lost packets.
    #[inline]
    fn is_renumbered(&self, now: Micros, packet: &Packet) -> bool {
        match self.window.left_out(packet.sequence) {
            0 => false,
            missing => self.window.awaits(packet.sequence) || self.timing.is_too_soon(now, packet, missing),
        }
    }

    /// Counts the number of a packet whose payload type was not negotiated: it arrived, so it is not lost.
    ///
    /// A number that does not continue the numbering is ignored: keepalives may have any number (RFC 6263
    /// §4).
    pub(crate) fn push_refused(&mut self, now: Micros, packet: &Packet) {
        if self.restart != Restart::No || !self.window.is_near(packet.sequence) {
            return;
        }
        if self.rows.is_over(now) {
            self.turn(now);
        }
        if matches!(self.window.place(packet.sequence, &mut self.rows), Place::Ahead | Place::Behind) {
            self.timing.count_refused(&mut self.rows);
        }
    }

    /// Counts the number of a packet without payload, such as a probe or a keepalive: it is not lost, and it
    /// is not media.
    pub(crate) fn push_empty(&mut self, now: Micros, packet: &Packet) {
        if self.restart == Restart::No {
            if self.rows.is_over(now) {
                self.turn(now);
            }
            self.window.skip(packet.sequence, &mut self.rows);
        }
    }

    /// The expected packet after the last one, in step; `None` when another packet is as likely.
    pub(crate) fn next(&self) -> Option<Next> {
        let next = self.timing.next().filter(|_| self.restart == Restart::No)?;
        (self.window.in_order(next.sequence, 1) == 1).then_some(next)
    }

    /// Folds `steps`, with the result of [`Stream::push`] for each of them.
    pub(crate) fn push_steps(&mut self, mut steps: Steps<'_>) {
        while let Some((at, packet)) = steps.packet() {
            let mut taken = self.fold_steps(at, &steps);
            if taken == 0 {
                self.push(at, &packet, PayloadKind::Audio);
                taken = 1;
            }
            if taken == steps.gaps.len() {
                return;
            }
            steps = steps.after(taken);
        }
    }

    /// Folds `steps` into this stream and into another, with the result of [`Stream::push_steps`] for each. Parts that
    /// are equal for both are computed once.
    pub(crate) fn push_steps_into_both(&mut self, other: &mut Stream, mut steps: Steps<'_>) {
        while let Some((at, packet)) = steps.packet() {
            let Some(mut taken) = self.fold_steps_of_both(other, at, &steps) else {
                self.push_steps(steps);
                other.push_steps(steps);
                return;
            };
            if taken == 0 {
                self.push(at, &packet, PayloadKind::Audio);
                other.push(at, &packet, PayloadKind::Audio);
                taken = 1;
            }
            if taken == steps.gaps.len() {
                return;
            }
            steps = steps.after(taken);
        }
    }

    /// Folds the first of `steps` up to the next other event, and returns their number; the first arrived
    /// `at`.
    #[inline]
    fn fold_steps(&mut self, at: Micros, steps: &Steps<'_>) -> usize {
        let Some((steps, row_us)) = self.begin_steps(at, steps) else { return 0 };
        let taken = self.timing.arrive_in_steps(&steps, row_us);
        self.window.follow(taken);
        taken.into()
    }

    /// The same for two streams; `None`, and no packet is folded, when the results would differ.
    pub(super) fn fold_steps_of_both(
        &mut self,
        other: &mut Stream,
        at: Micros,
        steps: &Steps<'_>,
    ) -> Option<usize> {
        let (steps, row_us) = self.begin_steps(at, steps)?;
        let (others, other_row_us) = other.begin_steps(at, &steps)?;
        if (steps.gaps.len(), row_us) != (others.gaps.len(), other_row_us) {
            return None;
        }
        let taken = self.timing.arrive_in_both(&mut other.timing, &steps, row_us)?;
        self.window.follow(taken);
        other.window.follow(taken);
        Some(taken.into())
    }

    /// The first of `steps` that continue the numbering, and the time until the open row ends, which holds the
    /// first of them; `None` when the next packet opens a segment.
    #[inline]
    fn begin_steps<'a>(&mut self, at: Micros, steps: &Steps<'a>) -> Option<(Steps<'a>, i64)> {
        if self.restart != Restart::No {
            return None;
        }
        if self.rows.is_over(at) {
            self.turn(at);
        }
        let in_order = self.window.in_order(steps.first.sequence, steps.gaps.len());
        let gaps = steps.gaps.get(..in_order).unwrap_or_default();
        Some((Steps { gaps, ..*steps }, self.rows.left_us(steps.first.after)))
    }

    /// Whether `now` is after the open row of the timeline.
    #[inline]
    pub(crate) fn is_row_over(&self, now: Micros) -> bool {
        self.rows.is_over(now)
    }

    /// Adds the mean square of the decoded samples of a packet that was folded; for the timeline.
    #[inline]
    pub(crate) fn hear(&mut self, power: u64) {
        self.rows.hear(power);
    }

    /// Makes the next packet open a segment, because signalling changed address, codec or direction.
    pub fn begin_segment(&mut self) {
        if self.restart == Restart::No && self.window.totals().segments > 0 {
            self.restart = Restart::Signalled;
        }
    }

    /// Makes the next packet the first of another SSRC.
    pub fn begin_source(&mut self) {
        self.restart = Restart::Source;
    }

    /// Changes the audio format. With another clock the next packet is not a sample; with another frame size
    /// the counting of payload lengths restarts. Numbering and thresholds do not change.
    pub fn reconfigure(&mut self, config: &StreamConfig) {
        if config.clock.hz() != self.clock_hz {
            self.clock_hz = config.clock.hz();
            self.timing.set_clock(config.clock_hz(), config.ptime_ticks());
        } else if self.timing.pair_count() == 0 {
            self.timing.assume_step(config.ptime_ticks());
        }
        if config.bytes_per_ms.unwrap_or(0) != self.bytes_per_ms {
            self.bytes_per_ms = config.bytes_per_ms.unwrap_or(0);
            self.timing.forget_payload_lens();
        }
    }

    /// Reserves space for this many rows of the timeline; see [`StreamConfig::timeline_reserve`].
    pub(crate) fn reserve_rows(&mut self, rows: u16) {
        self.rows.reserve(rows);
    }

    /// Whether the next packet opens a segment.
    pub(crate) fn is_restarting(&self) -> bool {
        self.restart != Restart::No
    }

    /// Unique packets so far, of every kind.
    pub fn received(&self) -> u64 {
        let apart = self.timing.apart();
        self.timing.audio() + u64::from(apart.comfort_noise) + u64::from(apart.events)
    }

    /// Unique packets so far, without those whose payload type was not negotiated.
    pub(crate) fn accepted(&self) -> u64 {
        self.received().saturating_sub(self.refused())
    }

    /// Packets whose payload type was not negotiated.
    pub(crate) fn refused(&self) -> u64 {
        self.timing.apart().refused.into()
    }

    /// Audio packets so far.
    pub(crate) fn audio(&self) -> u64 {
        self.timing.audio()
    }

    /// Packets that were sent so far according to their numbers, over all segments.
    pub fn expected(&self) -> u64 {
        self.window.expected()
    }

    /// Repeated packets so far, over all segments.
    pub(crate) fn duplicates(&self) -> u64 {
        self.window.duplicates()
    }

    /// The newest sequence number, the count of numbers in its segment so far, and the number of segments.
    pub(crate) fn numbering(&self) -> Option<(u16, u32, u64)> {
        self.window.numbering()
    }

    /// The current smoothed interarrival jitter, in microseconds (RFC 3550 A.8).
    pub(crate) fn jitter_us(&self) -> u32 {
        self.timing.jitter_us()
    }

    /// Arrival of the last counted packet.
    pub fn last(&self) -> Option<Micros> {
        self.timing.span().map(|(_, last)| last)
    }

    /// Whether the sender suppresses silence: the last packet was not audio, or it has paused before.
    pub(crate) fn may_be_silent(&self) -> bool {
        self.timing.may_be_silent()
    }

    /// The figures so far, as if the stream ended here.
    pub fn figures(&self) -> Figures {
        self.report(0, None).0
    }

    /// The figures and the timeline so far; rows continue until `until` while audio is expected.
    pub fn report(&self, local_drop: u64, until: Option<Micros>) -> (Figures, Timeline) {
        self.clone().conclude(local_drop, until)
    }

    /// Like [`Stream::report`], at the end: the stream cannot be used afterwards.
    pub(crate) fn conclude(&mut self, local_drop: u64, until: Option<Micros>) -> (Figures, Timeline) {
        if let Some(until) = until.filter(|until| self.rows.awaits(*until)) {
            self.turn(until);
        }
        let mut figures = self.close(local_drop);
        let turn = self.timing.turn(self.window.newest());
        let timeline = self.rows.close(&turn);
        figures.worst_10s = timeline.worst_10s(&figures);
        (figures, timeline)
    }

    /// A copy without the rows of the timeline, which grow with the call. Its figures equal those of the
    /// stream, except for the worst ten seconds.
    pub(crate) fn outline(&self) -> Stream {
        Stream {
            window: self.window.clone(),
            timing: self.timing.clone(),
            rows: self.rows.outline(),
            ..*self
        }
    }

    /// The figures of an [`Stream::outline`].
    pub(crate) fn into_figures(mut self, local_drop: u64) -> Figures {
        self.close(local_drop)
    }

    fn close(&mut self, local_drop: u64) -> Figures {
        self.window.close(&mut self.rows);
        self.timing.close(&mut self.rows);
        self.closed_figures(local_drop)
    }

    /// Sets whether the party should send audio from `now` on; for the timeline.
    pub fn expect_audio(&mut self, now: Micros, is_expected: bool) {
        if self.rows.has_begun() && self.rows.is_over(now) {
            self.turn(now);
        }
        self.rows.expect(is_expected);
    }

    fn closed_figures(&self, local_drop: u64) -> Figures {
        let timing = &self.timing;
        let received = self.received();
        let expected = self.window.expected();
        let losses = self.window.totals();
        let missing = losses.lost;
        let local_drop = local_drop.min(missing);
        let lost = missing - local_drop;
        let span_us = timing.span().map_or(0, |(first, last)| last.since(first));
        let (sums, lateness) = (timing.sums(&self.rows), timing.lateness(&self.rows));
        let (late_80, late_200) = timing.late();
        let mut figures = Figures {
            received,
            expected,
            lost,
            local_drop,
            duplicates: losses.duplicates,
            reordered: losses.reordered,
            before_segment: losses.before_segment,
            audio: timing.audio(),
            comfort_noise: timing.apart().comfort_noise.into(),
            events: timing.apart().events.into(),
            others: timing.apart().others.into(),
            segments: losses.segments,
            sequence_jumps: losses.jumps,
            timestamp_resets: timing.apart().timestamp_resets,
            pauses: timing.apart().pauses,
            interruptions: timing.apart().interruptions,
            silence_ms: timing.apart().silence_us / 1000,
            interruption_ms: timing.apart().interruption_us / 1000,
            flaws: lost
                .saturating_add(late_80.saturating_add(late_200) / 2)
                .saturating_add(timing.apart().flaws),
            enough: received >= 10 && (expected >= 50 || (expected >= 20 && span_us >= 1_000_000)),
            jitter_ms: (sums.jitter_count >= 20).then(|| Hundredths::millis_from_us(sums.jitter_peak_us)),
            jitter_mean_ms: mean_millis(sums.jitter_sum_us, sums.jitter_count),
            max_gap_ms: (received > 1).then(|| Hundredths::millis_from_us(timing.max_gap_us(&self.rows))),
            first: timing.span().map(|(first, _)| first),
            last: self.last(),
            loss_runs: losses.runs,
            lateness: lateness.coarse(),
            longest_loss_packets: losses.longest_run,
            longest_loss_ms: i64::from(losses.longest_run).saturating_mul(sums.step_us) / 1000,
            late_80,
            late_200,
            bursts: losses.bursts.figures(expected, missing, sums.step_us),
            clock_skew_ppm: timing.apart().skew_ppm(),
            lateness_percentiles: lateness.percentiles(),
            lateness_counts: lateness,
            dtmf_events: timing.apart().digits,
            sums,
            ..Figures::default()
        };
        self.add_shares(&mut figures);
        figures
    }

    /// Adds the figures derived from other figures and their sums.
    fn add_shares(&self, figures: &mut Figures) {
        let sums = figures.sums;
        figures.burst_share = figures.bursts.map(|bursts| bursts.lost_share_pct);
        if sums.gap_count >= 20 {
            figures.mean_interval_ms = mean_millis(sums.gap_sum_us, sums.gap_count);
            figures.pace_ratio = pace_ratio(&sums);
        }
        if sums.pair_count > 0 {
            figures.ptime_ms =
                Hundredths::ratio(i128::from(sums.step_ticks) * 1000, i128::from(self.clock_hz.max(1000)));
            figures.payload_ptime_ms =
                Hundredths::ratio(i128::from(sums.payload_len), i128::from(self.bytes_per_ms));
        }
        if figures.enough {
            figures.loss_pct =
                Hundredths::ratio(i128::from(figures.lost) * 100, i128::from(figures.expected));
            if !figures.is_mostly_other() {
                figures.quality_pct = quality_pct(figures.received, figures.flaws);
                figures.mos = figures.quality_pct.map(mos);
            }
        }
    }

    #[cold]
    fn apply_restart(&mut self, now: Micros, sequence: u16) {
        let straggler = self.restart == Restart::Signalled
            && self.window.covers(sequence)
            && self.last().is_some_and(|last| now.since(last) < STRAGGLER_US);
        if !straggler {
            self.restart = Restart::No;
            self.window.close(&mut self.rows);
        }
    }

    /// Moves on to the timeline's row that holds `now`.
    #[cold]
    fn turn(&mut self, now: Micros) {
        let turn = self.timing.turn(self.window.newest());
        self.rows.turn(now, &turn);
    }
}

/// `100 · (received − flaws) / received`, between 0 and 100; `None` without packets.
fn quality_pct(received: u64, flaws: u64) -> Option<Hundredths> {
    Hundredths::ratio(i128::from(received.saturating_sub(flaws)) * 100, i128::from(received))
}

/// The mean opinion score of a quality in percent, between 1.00 and 4.50.
///
/// With `P = 100 − quality` and `R = 100 − 95 P / (P + 10)` it is `1 + 0.035 R + 7·10⁻⁶ R (R − 60) (100 − R)` (ITU-T
/// G.107 Annex B).
fn mos(quality: Hundredths) -> Hundredths {
    let flawed = i128::from(10_000 - quality.0.clamp(0, 10_000));
    // R is `n / d`; the score, in units of 1 / (10⁶ d³), is exact.
    let (n, d) = (100_000 + 5 * flawed, flawed + 1_000);
    let scaled = 1_000_000 * d * d * d + 35_000 * n * d * d + 7 * n * (n - 60 * d) * (100 * d - n);
    let hundredths = divide_half_even(scaled, 10_000 * d * d * d).and_then(|value| i64::try_from(value).ok());
    Hundredths(hundredths.unwrap_or(100).clamp(100, 450))
}

/// Media time in percent of arrival time; `None` when the clock stood still or ran backwards.
fn pace_ratio(sums: &Sums) -> Option<Hundredths> {
    let (media, gap) = (i128::from(sums.media_sum_us), i128::from(sums.gap_sum_us));
    if media < 0 || gap <= 0 { None } else { Hundredths::ratio(media * 100, gap) }
}

fn mean_millis(sum_us: i64, count: u64) -> Option<Hundredths> {
    Hundredths::ratio(i128::from(sum_us), i128::from(count) * 1000)
}

/// For this time after signalling, a packet of the old segment may still arrive.
const STRAGGLER_US: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ClockRate;
    use crate::verdict::Thresholds;

    #[test]
    fn mos_follows_quality() {
        let cases =
            [(10_000, 450), (9_900, 437), (9_800, 417), (9_500, 352), (9_000, 271), (0, 110), (5_005, 128)];
        for (quality, expected) in cases {
            assert_eq!(mos(Hundredths(quality)), Hundredths(expected), "{quality}");
        }
    }

    #[test]
    fn an_empty_stream_judges_nothing() {
        let config = StreamConfig::new(ClockRate::HZ_8000, 20, &Thresholds::default());
        let figures = Stream::new(&config).figures();
        let sums = Sums { step_ticks: 160, step_us: 20_000, ..Sums::default() };
        assert_eq!(figures, Figures { sums, ..Figures::default() });
    }

    #[test]
    fn own_drops_are_not_the_networks() {
        let config = StreamConfig::new(ClockRate::HZ_8000, 20, &Thresholds::default());
        let mut stream = Stream::new(&config);
        for n in (0_u16..1000).filter(|n| n % 10 != 5) {
            let packet =
                Packet { sequence: n, timestamp: u32::from(n) * 160, payload_len: 160, ..Packet::default() };
            stream.push(Micros(i64::from(n) * 20_000), &packet, PayloadKind::Audio);
        }
        let figures = stream.report(100, None).0;
        assert_eq!((figures.expected, figures.lost, figures.local_drop), (1000, 0, 100));
        assert_eq!((figures.flaws, figures.mos), (0, Some(Hundredths(450))));
        let figures = stream.report(60, None).0;
        assert_eq!((figures.lost, figures.local_drop, figures.loss_pct), (40, 60, Some(Hundredths(400))));
        let figures = stream.figures();
        assert_eq!((figures.lost, figures.flaws), (100, 100));
    }
}
