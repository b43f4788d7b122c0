//! Figures that the receiver of a stream reports about it, from its report blocks.

use super::bounds::{JITTER_US_MAX, packets_within};
use super::compound::Block;
use super::extended::of_256;
use super::view::{FarEnd, StatisticsSummary, VoipMetrics};
use crate::stats::Hundredths;
use crate::time::{ClockRate, Micros};

/// Accumulates the report blocks about one leg's outgoing audio.
///
/// *Bounds*: the state of the latest source, and sums over the earlier ones.
#[derive(Clone, Debug, Default)]
pub(super) struct FarEndFold {
    reports: u64,
    /// The latest block and its source.
    latest: Option<Latest>,
    /// Lost packets over all sources, as reported.
    lost: i64,
    /// Lost and expected packets in the time that the blocks cover.
    lost_covered: i64,
    expected: i64,
    fraction_worst: Option<u8>,
    jitter_us: Option<i64>,
    jitter_max_us: i64,
    moved: bool,
    /// Packets sent when the highest sequence number last rose, and packets sent from then until the latest
    /// block.
    sent_at_rise: u64,
    unheard: u64,
    voip: Option<VoipMetrics>,
    summary: Option<StatisticsSummary>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    at: Micros,
    block: Block,
    /// Packets sent until then.
    sent: u64,
}

impl FarEndFold {
    /// Processes one block that arrived at `now`, when `sent` RTP packets with this clock had been sent to
    /// the receiver. Returns false for an implausible block.
    pub(super) fn report(&mut self, now: Micros, block: &Block, sent: u64, clock: ClockRate) -> bool {
        let plausible = match self.latest.filter(|latest| latest.block.ssrc == block.ssrc) {
            Some(latest) => self.next(&latest, now, block),
            None => self.first(block, sent.saturating_sub(self.latest.map_or(0, |latest| latest.sent))),
        };
        if !plausible {
            return false;
        }
        self.reports += 1;
        let rose = self.rises(block);
        self.latest = Some(Latest { at: now, block: *block, sent });
        self.jitter(block.jitter_ticks, clock);
        if rose {
            self.moved = true;
            self.sent_at_rise = sent;
            self.fraction_worst = self.fraction_worst.max(Some(block.fraction_lost));
        }
        self.unheard = sent.saturating_sub(self.sent_at_rise);
        true
    }

    /// Processes VoIP metrics about the stream.
    pub(super) fn voip(&mut self, metrics: VoipMetrics) {
        self.voip = Some(metrics);
    }

    /// Processes a statistics summary about the stream.
    pub(super) fn summary(&mut self, summary: StatisticsSummary) {
        self.summary = Some(summary);
    }

    /// The figures so far; `None` when nothing was reported.
    pub(super) fn view(&self) -> Option<FarEnd> {
        if self.reports == 0 && self.voip.is_none() && self.summary.is_none() {
            return None;
        }
        let stuck = self.reports > 0 && (!self.moved || self.unheard >= UNHEARD_PACKETS);
        let lost = self.lost_covered.clamp(0, self.expected);
        Some(FarEnd {
            reports: self.reports,
            lost: self.moved.then_some(self.lost),
            loss_pct: Hundredths::ratio(i128::from(lost) * 100, i128::from(self.expected)),
            fraction_lost_worst_pct: self.fraction_worst.map(of_256),
            jitter_ms: self.jitter_us.filter(|_| self.moved).map(Hundredths::millis_from_us),
            jitter_max_ms: self
                .jitter_us
                .filter(|_| self.moved)
                .map(|_| Hundredths::millis_from_us(self.jitter_max_us)),
            highest_sequence_moves: self.reports > 0 && !stuck,
            unheard: if stuck { self.unheard } else { 0 },
            voip: self.voip,
            summary: self.summary,
        })
    }

    /// The first block about a source covers the time since that source began only if its numbers match what
    /// has been sent to it. A block in the middle of a call includes earlier losses that were not seen here.
    fn first(&mut self, block: &Block, sent: u64) -> bool {
        let lost = i64::from(block.cumulative_lost);
        if lost.abs() > most_expected(block) {
            return false;
        }
        self.lost = self.lost.saturating_add(lost);
        let sent = i64::try_from(sent).unwrap_or(i64::MAX).min(most_expected(block));
        let stated = i64::from(block.fraction_lost);
        let seen = if sent > 0 { lost.max(0).saturating_mul(256) / sent } else { i64::MAX };
        if block.highest != 0 && seen.abs_diff(stated) <= (3 + stated / 8).unsigned_abs() {
            self.lost_covered = self.lost_covered.saturating_add(lost);
            self.expected = self.expected.saturating_add(sent);
        }
        true
    }

    fn next(&mut self, latest: &Latest, now: Micros, block: &Block) -> bool {
        let before = latest.block;
        let lost = i64::from(block.cumulative_lost) - i64::from(before.cumulative_lost);
        let risen = risen(before.highest, block.highest);
        if risen < 0 {
            // The receiver restarted its counts; they continue from here.
            let anew = i64::from(block.cumulative_lost);
            let plausible = anew.abs() <= most_expected(block);
            self.lost = self.lost.saturating_add(if plausible { anew } else { 0 });
            return plausible;
        }
        let most = packets_within(now.since(latest.at));
        if risen > most || lost.abs() > risen.saturating_add(REORDERED_PACKETS) {
            return false;
        }
        self.lost = self.lost.saturating_add(lost);
        self.lost_covered = self.lost_covered.saturating_add(lost);
        self.expected = self.expected.saturating_add(risen);
        true
    }

    /// Whether the highest sequence number shows that packets arrive. A receiver that got none reports 0.
    fn rises(&self, block: &Block) -> bool {
        match self.latest {
            Some(latest) if latest.block.ssrc == block.ssrc => latest.block.highest != block.highest,
            _ => block.highest != 0,
        }
    }

    /// Ignores jitter that no network causes, so that it does not spoil the figures.
    fn jitter(&mut self, ticks: u32, clock: ClockRate) {
        let us = i64::from(ticks) * 1_000_000 / i64::from(clock.hz());
        if us <= JITTER_US_MAX {
            self.jitter_us = Some(us);
            self.jitter_max_us = self.jitter_max_us.max(us);
        }
    }
}

/// The receiver counts cycles from 0, so it cannot have expected more than this.
fn most_expected(block: &Block) -> i64 {
    i64::from(block.highest).saturating_add(1)
}

/// Difference of two highest sequence numbers; negative when the receiver restarted its counts. Some
/// receivers never count cycles; then only the lower half has wrapped.
fn risen(before: u32, after: u32) -> i64 {
    let risen = i64::from(after.wrapping_sub(before) as i32);
    if risen < 0 && before >> 16 == after >> 16 {
        let lower = i64::from((after as u16).wrapping_sub(before as u16));
        return if lower < 0x8000 { lower } else { risen };
    }
    risen
}

/// A second of audio that was sent without being reported as received.
const UNHEARD_PACKETS: u64 = 50;
/// Earlier packets that may turn out to be missing, or arrive, between two reports.
const REORDERED_PACKETS: i64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: ClockRate = ClockRate::HZ_8000;

    fn block(fraction_lost: u8, cumulative_lost: i32, highest: u32, jitter_ticks: u32) -> Block {
        Block { ssrc: 7, fraction_lost, cumulative_lost, highest, jitter_ticks, ..Block::default() }
    }

    /// Folds blocks that arrive every five seconds, each with the number of packets sent until then.
    fn fold(blocks: &[(Block, u64)]) -> FarEnd {
        let mut fold = FarEndFold::default();
        for (n, (block, sent)) in (1..).zip(blocks) {
            fold.report(Micros(n * 5_000_000), block, *sent, CLOCK);
        }
        fold.view().unwrap()
    }

    fn loss(view: &FarEnd) -> (Option<i64>, Option<i64>) {
        (view.lost, view.loss_pct.map(|pct| pct.0))
    }

    #[test]
    fn loss_is_of_what_the_reports_cover() {
        type Case<'a> = (&'a str, Vec<(Block, u64)>, (Option<i64>, Option<i64>));
        let cases: Vec<Case<'_>> = vec![
            ("none", vec![(block(0, 0, 1_249, 8), 250), (block(0, 0, 1_499, 8), 500)], (Some(0), Some(0))),
            (
                "a tenth",
                vec![(block(25, 25, 1_249, 8), 250), (block(26, 50, 1_499, 8), 500)],
                (Some(50), Some(1000)),
            ),
            ("once", vec![(block(25, 25, 1_249, 8), 250)], (Some(25), Some(1000))),
            (
                "from the middle of a call",
                vec![(block(0, 900, 70_000, 8), 250), (block(51, 950, 70_250, 8), 500)],
                (Some(950), Some(2000)),
            ),
            (
                "duplicates",
                vec![(block(0, -2, 1_249, 8), 250), (block(0, -4, 1_499, 8), 500)],
                (Some(-4), Some(0)),
            ),
            (
                "cycles that are not counted",
                vec![(block(0, 0, 65_500, 8), 250), (block(51, 50, 214, 8), 500)],
                (Some(50), Some(1000)),
            ),
            (
                "a receiver that began anew",
                vec![(block(25, 25, 75_000, 8), 250), (block(25, 5, 9, 8), 260), (block(0, 5, 259, 8), 510)],
                (Some(30), Some(500)),
            ),
            ("nonsense", vec![(block(1, 0x007f_ffff, 958, 8), 250)], (None, None)),
            (
                "one nonsense between",
                vec![
                    (block(0, 0, 1_249, 8), 250),
                    (block(9, 8_000_000, 1_300, 8), 300),
                    (block(0, 0, 1_499, 8), 500),
                ],
                (Some(0), Some(0)),
            ),
        ];
        for (name, blocks, expected) in cases {
            let mut fold = FarEndFold::default();
            for (n, (block, sent)) in (1..).zip(&blocks) {
                fold.report(Micros(n * 5_000_000), block, *sent, CLOCK);
            }
            assert_eq!(fold.view().map_or((None, None), |view| loss(&view)), expected, "{name}");
        }
    }

    #[test]
    fn a_receiver_that_hears_nothing_has_not_lost_nothing() {
        let deaf = fold(&[(block(0, 0, 0, 0), 250), (block(0, 0, 0, 0), 500)]);
        assert_eq!((loss(&deaf), deaf.highest_sequence_moves, deaf.unheard), ((None, None), false, 500));
        assert_eq!((deaf.jitter_ms, deaf.fraction_lost_worst_pct), (None, None));
        let deafened = fold(&[(block(0, 0, 1_249, 8), 250), (block(0, 0, 1_249, 8), 500)]);
        assert_eq!((deafened.highest_sequence_moves, deafened.unheard), (false, 250));
        let again = fold(&[(block(0, 0, 0, 0), 250), (block(0, 0, 1_499, 8), 500)]);
        assert_eq!((again.highest_sequence_moves, again.unheard), (true, 0));
        let quiet = fold(&[(block(0, 0, 1_249, 8), 250), (block(0, 0, 1_249, 8), 260)]);
        assert!(quiet.highest_sequence_moves, "hardly anything was sent");
    }

    #[test]
    fn one_bad_jitter_wrecks_nothing() {
        let view = fold(&[
            (block(0, 0, 1_249, 80), 250),
            (block(0, 0, 1_499, 13_936_773), 500),
            (block(0, 0, 1_749, 40), 750),
        ]);
        assert_eq!(view.jitter_ms.map(|ms| ms.0), Some(500));
        assert_eq!(view.jitter_max_ms.map(|ms| ms.0), Some(1000));
    }

    #[test]
    fn sources_add_up() {
        let second = Block { ssrc: 8, ..block(5, 5, 249, 8) };
        let third = Block { ssrc: 8, ..block(0, 10, 499, 8) };
        let view = fold(&[(block(25, 25, 1_249, 8), 250), (second, 500), (third, 750)]);
        assert_eq!((view.reports, loss(&view)), (3, (Some(35), Some(467))));
    }
}
