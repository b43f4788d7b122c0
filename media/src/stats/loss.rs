//! Loss, duplicates and reordering by sequence number alone (RFC 3550 appendix A.1 and A.3).
//!
//! A *segment* is a run of continuous numbering. A packet counts as lost only when its number leaves a window
//! of 128 packets without having arrived, or when its segment closes. So reordering never counts as loss, and
//! duplicates never make loss negative. Wraparound needs no special code, because all arithmetic on sequence
//! numbers is modulo 2^16.

use crate::stats::bursts::BurstCount;
use crate::stats::timeline::Rows;

/// The window over the newest sequence numbers of a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossWindow {
    /// Bit i is set when the packet i before `newest` arrived; the low half comes first. Two words of 64 bits
    /// avoid padding.
    seen: [u64; 2],
    /// Numbers of the open segment; 0 while none is open.
    in_segment: u32,
    newest: u16,
    /// The number that will confirm a jump (RFC 3550 A.1 `bad_seq`).
    awaited: Option<u16>,
    /// Arrivals since the latest loss run, at most 255; it starts at 99, "long ago".
    since: u8,
    /// Whether the numbers that leave the window are in a loss run.
    in_run: bool,
    /// Counts that a packet in order does not touch.
    totals: Box<LossTotals>,
}

/// The counts of all segments so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossTotals {
    /// Numbers in closed segments.
    closed: u64,
    /// Numbers of packets without payload: these are not media, and neither received nor lost.
    skipped: u64,
    /// Packets known to be lost.
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) before_segment: u64,
    pub(crate) jumps: u64,
    pub(crate) segments: u64,
    /// Packets in the current loss run.
    run: u32,
    /// Loss runs by length.
    pub(crate) runs: [u32; 10],
    pub(crate) longest_run: u32,
    pub(crate) bursts: BurstCount,
}

/// The position of a sequence number relative to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// After the newest number.
    Ahead,
    /// Before the first number of its segment: too late to be counted.
    BeforeSegment,
    /// Before the newest number, and not seen before.
    Behind,
    /// Seen already.
    Duplicate,
    /// The first number of a new segment.
    First,
    /// Far from the newest number; the next packet shows whether the sender jumped.
    Unconfirmed,
}

impl LossWindow {
    /// Opens a segment that begins with `sequence`, and closes the one before it.
    pub(crate) fn open(&mut self, sequence: u16, rows: &mut Rows) {
        self.close(rows);
        rows.begin_segment();
        self.set_seen(1);
        self.newest = sequence;
        self.in_segment = 1;
        self.awaited = None;
        self.totals.segments += 1;
    }

    /// Closes the open segment: numbers still missing in it are lost.
    pub(crate) fn close(&mut self, rows: &mut Rows) {
        let mut left = self.in_segment.min(WINDOW);
        let seen = self.seen();
        // Each iteration decides at least one number: consecutive arrived numbers, or one missing number.
        while left > 0 {
            let arrived = (seen << (WINDOW - left)).leading_ones().min(left);
            if arrived > 0 {
                self.end_run();
                self.since = self.since.saturating_add(u8::try_from(arrived).unwrap_or(u8::MAX));
                left -= arrived;
            } else {
                left -= 1;
                self.lose(left, rows);
            }
        }
        self.end_run();
        self.totals.bursts.close();
        self.totals.closed = self.totals.closed.saturating_add(self.in_segment.into());
        self.in_segment = 0;
        self.set_seen(0);
        self.since = FAR;
    }

    /// Processes the sequence number of one arrival.
    #[inline]
    pub(crate) fn place(&mut self, sequence: u16, rows: &mut Rows) -> Place {
        if self.in_segment == 0 {
            self.open(sequence, rows);
            return Place::First;
        }
        match sequence.wrapping_sub(self.newest) {
            0 => {
                self.totals.duplicates += 1;
                rows.duplicate();
                Place::Duplicate
            }
            ahead @ 1..DROPOUT_MAX => {
                self.advance(u32::from(ahead), rows);
                self.newest = sequence;
                self.awaited = None;
                Place::Ahead
            }
            far if far >= MISORDER_START => self.fill(u32::from(far.wrapping_neg()), rows),
            _ => self.jump(sequence, rows),
        }
    }

    /// Processes a number that does not continue the numbering; the second such number in a row opens a
    /// segment (RFC 3550 A.1).
    pub(crate) fn jump(&mut self, sequence: u16, rows: &mut Rows) -> Place {
        if self.awaits(sequence) {
            self.totals.jumps += 1;
            self.open(sequence, rows);
            Place::First
        } else {
            self.awaited = Some(sequence.wrapping_add(1));
            Place::Unconfirmed
        }
    }

    /// Whether `sequence` would confirm a jump.
    #[inline]
    pub(crate) fn awaits(&self, sequence: u16) -> bool {
        self.awaited == Some(sequence)
    }

    /// How many numbers are missing between the newest one and `sequence`; 0 when `sequence` does not
    /// continue the numbering.
    #[inline]
    pub(crate) fn left_out(&self, sequence: u16) -> u16 {
        match sequence.wrapping_sub(self.newest) {
            ahead @ 2..DROPOUT_MAX if self.in_segment > 0 => ahead - 1,
            _ => 0,
        }
    }

    /// Whether `sequence` is less than the window's width ahead of the newest number, or at most 100 before
    /// it.
    pub(crate) fn is_near(&self, sequence: u16) -> bool {
        let ahead = sequence.wrapping_sub(self.newest);
        self.in_segment > 0 && (u32::from(ahead) < WINDOW || ahead >= MISORDER_START)
    }

    /// Processes the number of a packet without payload, which counts as neither received nor lost.
    pub(crate) fn skip(&mut self, sequence: u16, rows: &mut Rows) {
        if !self.is_near(sequence) {
            return;
        }
        match sequence.wrapping_sub(self.newest) {
            ahead @ 1..MISORDER_START => {
                self.advance(u32::from(ahead), rows);
                self.newest = sequence;
                self.awaited = None;
                self.totals.skipped += 1;
            }
            far => {
                let behind = u32::from(far.wrapping_neg());
                let bit = 1_u128 << (behind & (WINDOW - 1));
                if behind < self.in_segment && self.seen() & bit == 0 {
                    self.set_seen(self.seen() | bit);
                    self.totals.skipped += 1;
                }
            }
        }
    }

    /// How many packets from `sequence` on, at most `most`, continue the numbering while only received
    /// numbers leave the window.
    #[inline]
    pub(crate) fn in_order(&self, sequence: u16, most: usize) -> usize {
        let in_segment = self.in_segment as usize;
        if in_segment == 0 || sequence != self.newest.wrapping_add(1) {
            0
        } else if in_segment < WINDOW as usize {
            most.min(WINDOW as usize - in_segment)
        } else {
            let [_, high] = self.seen;
            most.min(high.leading_ones() as usize)
        }
    }

    /// Adds `count` such packets in one step.
    #[inline]
    pub(crate) fn follow(&mut self, count: u16) {
        if self.in_segment >= WINDOW && count > 0 {
            self.end_run();
            self.since = self.since.saturating_add(u8::try_from(count).unwrap_or(u8::MAX));
        }
        let seen = self.seen().checked_shl(count.into()).unwrap_or(0);
        let fresh = 1_u128.checked_shl(count.into()).unwrap_or(0).wrapping_sub(1);
        self.set_seen(seen | fresh);
        self.newest = self.newest.wrapping_add(count);
        self.in_segment = self.in_segment.saturating_add(count.into());
        self.awaited = None;
    }

    /// Whether `sequence` is among the numbers in the window.
    pub(crate) fn covers(&self, sequence: u16) -> bool {
        let behind = u32::from(self.newest.wrapping_sub(sequence));
        behind < self.in_segment && behind <= MISORDER_MAX
    }

    /// Repeated packets, over all segments.
    pub(crate) fn duplicates(&self) -> u64 {
        self.totals.duplicates
    }

    /// Packets that were sent according to their numbers, over all segments.
    pub(crate) fn expected(&self) -> u64 {
        self.totals.closed.saturating_add(self.in_segment.into()).saturating_sub(self.totals.skipped)
    }

    /// The newest number, the count of numbers in its segment so far, and the number of segments; `None`
    /// while none is open.
    pub(crate) fn numbering(&self) -> Option<(u16, u32, u64)> {
        (self.in_segment > 0).then_some((self.newest, self.in_segment, self.totals.segments))
    }

    /// The newest number of the open segment.
    pub(crate) fn newest(&self) -> u16 {
        self.newest
    }

    /// The counts so far.
    pub(crate) fn totals(&self) -> &LossTotals {
        &self.totals
    }

    /// Processes a packet `behind` numbers before the newest: late, a duplicate, or from before the segment.
    fn fill(&mut self, behind: u32, rows: &mut Rows) -> Place {
        let bit = 1_u128 << (behind & (WINDOW - 1));
        if behind >= self.in_segment {
            self.totals.before_segment += 1;
            Place::BeforeSegment
        } else if self.seen() & bit != 0 {
            self.totals.duplicates += 1;
            rows.duplicate();
            Place::Duplicate
        } else {
            self.set_seen(self.seen() | bit);
            self.totals.reordered += 1;
            Place::Behind
        }
    }

    /// Moves the window forward by `ahead` packets, of which only the last has arrived.
    #[inline]
    fn advance(&mut self, ahead: u32, rows: &mut Rows) {
        if ahead == 1 {
            if self.in_segment >= WINDOW {
                let [_, high] = self.seen;
                self.leave(high >> 63 == 1, WINDOW - 1, rows);
            }
            self.set_seen(self.seen() << 1 | 1);
        } else {
            self.jump_ahead(ahead, rows);
        }
        self.in_segment = self.in_segment.saturating_add(ahead);
    }

    #[cold]
    fn jump_ahead(&mut self, ahead: u32, rows: &mut Rows) {
        let seen = self.seen();
        // The oldest numbers leave first; positions before the segment's start are not counted.
        for step in 0..ahead.min(WINDOW) {
            if self.in_segment.saturating_add(step) >= WINDOW {
                let behind = WINDOW - 1 - step;
                self.leave(seen >> behind & 1 == 1, behind, rows);
            }
        }
        // Numbers beyond the window's width were never in the window; they are lost in one run.
        if let Some(beyond) = ahead.checked_sub(WINDOW).filter(|beyond| *beyond > 0) {
            self.miss(beyond);
            rows.lose(self.newest.wrapping_add(1), beyond);
        }
        self.set_seen(seen.checked_shl(ahead).unwrap_or(0) | 1);
    }

    /// Decides about the number `behind` the newest when it leaves the window; called in order.
    #[inline]
    fn leave(&mut self, arrived: bool, behind: u32, rows: &mut Rows) {
        if arrived {
            self.end_run();
            self.since = self.since.saturating_add(1);
        } else {
            self.lose(behind, rows);
        }
    }

    #[cold]
    fn lose(&mut self, behind: u32, rows: &mut Rows) {
        self.miss(1);
        let [_, _, high, low] = behind.to_be_bytes();
        let sequence = self.newest.wrapping_sub(u16::from_be_bytes([high, low]));
        rows.lose(sequence, 1);
    }

    /// Adds `count` lost numbers.
    fn miss(&mut self, count: u32) {
        let totals = &mut *self.totals;
        totals.lost = totals.lost.saturating_add(count.into());
        // Within a run nothing arrived since its first packet.
        totals.bursts.miss(if self.in_run { 0 } else { self.since.into() }, count);
        totals.run = totals.run.saturating_add(count);
        self.in_run = true;
    }

    #[inline]
    fn end_run(&mut self) {
        if self.in_run {
            self.count_run();
        }
    }

    #[cold]
    fn count_run(&mut self) {
        let totals = &mut *self.totals;
        let run = std::mem::take(&mut totals.run);
        let index = usize::try_from(run.saturating_sub(1)).unwrap_or(usize::MAX).min(totals.runs.len() - 1);
        if let Some(count) = totals.runs.get_mut(index) {
            *count = count.saturating_add(1);
        }
        totals.longest_run = totals.longest_run.max(run);
        self.in_run = false;
        self.since = 0;
    }

    fn seen(&self) -> u128 {
        let [low, high] = self.seen;
        u128::from(high) << 64 | u128::from(low)
    }

    fn set_seen(&mut self, seen: u128) {
        self.seen = [seen as u64, (seen >> 64) as u64];
    }
}

/// Packets that may still arrive late; the width of the bit field.
const WINDOW: u32 = 128;
/// A larger step ahead is a jump, not loss (RFC 3550 A.1 `MAX_DROPOUT`).
const DROPOUT_MAX: u16 = 3000;
/// A packet further behind is a jump, not reordering (RFC 3550 A.1 `MAX_MISORDER`).
const MISORDER_MAX: u32 = 100;
/// Distances modulo 2^16 from this value on mean that a packet is behind the newest.
const MISORDER_START: u16 = 0_u16.wrapping_sub(100);
/// "Long ago": the initial number of arrivals since a loss run.
const FAR: u8 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = (u64, u64, u64, u64);

    /// Feeds `sequences`, closes the segment, and returns (expected, lost, duplicates, reordered).
    fn fold(sequences: impl IntoIterator<Item = u16>) -> Outcome {
        let (mut window, mut rows) = (LossWindow::default(), Rows::new(0));
        for sequence in sequences {
            window.place(sequence, &mut rows);
        }
        window.close(&mut rows);
        let totals = window.totals();
        (window.expected(), totals.lost, totals.duplicates, totals.reordered)
    }

    #[test]
    fn sequences_are_judged() {
        let without = |missing: &[u16]| (0..300).filter(|n| !missing.contains(n)).collect::<Vec<u16>>();
        let cases: Vec<(&str, Vec<u16>, Outcome)> = vec![
            ("nothing", vec![], (0, 0, 0, 0)),
            ("one", vec![7], (1, 0, 0, 0)),
            ("in order", without(&[]), (300, 0, 0, 0)),
            ("over the wrap", (65_500..=65_535).chain(0..100).collect(), (136, 0, 0, 0)),
            ("one lost", without(&[50]), (300, 1, 0, 0)),
            ("a run of three", without(&[50, 51, 52]), (300, 3, 0, 0)),
            ("two, one apart", without(&[50, 52]), (300, 2, 0, 0)),
            ("three, one apart each", without(&[50, 52, 54]), (300, 3, 0, 0)),
            ("four, one apart each", without(&[50, 52, 54, 56]), (300, 4, 0, 0)),
            ("two, two apart", without(&[50, 53]), (300, 2, 0, 0)),
            ("swapped", vec![0, 2, 1, 3], (4, 0, 0, 1)),
            ("doubled", vec![0, 0, 1, 1, 2, 2], (3, 0, 3, 0)),
            ("doubled late", vec![0, 1, 2, 0], (3, 0, 1, 0)),
            ("before the first", vec![10, 9, 11], (2, 0, 0, 0)),
            ("100 late", (0..20).chain(21..121).chain([20]).collect(), (121, 0, 0, 1)),
            ("a single far number", vec![0, 1, 40_000, 2, 3], (4, 0, 0, 0)),
            ("a jump", vec![0, 1, 40_000, 40_001, 40_002], (4, 0, 0, 0)),
            ("2,999 ahead", vec![0, 2_999], (3_000, 2_998, 0, 0)),
            ("3,000 ahead", vec![0, 3_000, 3_001], (2, 0, 0, 0)),
        ];
        for (name, sequences, expected) in cases {
            assert_eq!(fold(sequences), expected, "{name}");
        }
    }

    #[test]
    fn numbers_without_payload_are_neither_received_nor_lost() {
        /// Name, numbers, the numbers without payload among them, expected and lost.
        type Case<'a> = (&'a str, &'a [u16], &'a [u16], (u64, u64));
        let cases: [Case<'_>; 7] = [
            ("one between others", &[0, 1, 2, 3], &[2], (3, 0)),
            ("a row of them", &[0, 1, 2, 3, 4], &[1, 2, 3], (2, 0)),
            ("behind the newest", &[0, 2, 1, 3], &[1], (3, 0)),
            ("twice", &[0, 1, 1, 2], &[1], (2, 0)),
            ("after a loss", &[0, 3, 4], &[3], (4, 2)),
            ("far off", &[0, 500, 1, 2], &[500], (3, 0)),
            ("before the first", &[9, 10, 11], &[9], (2, 0)),
        ];
        for (name, numbers, skipped, expected) in cases {
            let (mut window, mut rows) = (LossWindow::default(), Rows::new(0));
            for number in numbers {
                if skipped.contains(number) {
                    window.skip(*number, &mut rows);
                } else {
                    window.place(*number, &mut rows);
                }
            }
            window.close(&mut rows);
            assert_eq!((window.expected(), window.totals().lost), expected, "{name}");
        }
    }

    #[test]
    fn a_wide_step_equals_many_small_ones() {
        // The fast path must count the same as the window bit by bit.
        for ahead in [2_u16, 100, 127, 128, 129, 130, 200, 300] {
            let missing: Vec<u16> = (301..300 + ahead).chain([50, 299]).collect();
            let (expected, lost, ..) = fold((0..=300 + ahead).filter(|n| !missing.contains(n)));
            assert_eq!(expected, u64::from(ahead) + 301, "{ahead}");
            assert_eq!(lost, u64::from(ahead) + 1, "{ahead}");
        }
    }

    #[test]
    fn runs_are_sorted_by_length() {
        let (mut window, mut rows) = (LossWindow::default(), Rows::new(0));
        for sequence in (0..1000).filter(|n| !matches!(n, 10 | 20..=21 | 30..=45 | 990..=998)) {
            window.place(sequence, &mut rows);
        }
        window.close(&mut rows);
        assert_eq!(window.totals().runs, [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(window.totals().longest_run, 16);
    }
}
