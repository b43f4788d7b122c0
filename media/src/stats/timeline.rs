//! What happened to a stream second by second: the rows that a report plots.
//!
//! A row is written when its second is over, from counters that only ever grow, so a packet costs one
//! comparison. A lost packet is known for lost only when the window of sequence numbers has moved on, up to 128
//! packets later; it is entered in the row in which it was missing, which the rows tell by the newest
//! sequence number of each.

use crate::time::Micros;

/// The rows of one stream or leg, in time.
///
/// *Bounds*: [`Timeline::ROWS_MAX`] rows. A leg that outlives them has rows of twice the duration, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Arrival of the first packet, when the first row begins; `None` before.
    pub begins: Option<Micros>,
    /// The duration of each row in seconds.
    pub step_s: u32,
    /// The rows, without gaps; the last one may be shorter.
    pub seconds: Vec<Second>,
}

impl Timeline {
    /// Rows that are kept: an hour of seconds.
    pub const ROWS_MAX: usize = 3_600;
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline { begins: None, step_s: 1, seconds: Vec::new() }
    }
}

/// One row of a [`Timeline`]; counts stop at 65,535.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Unique packets of every kind.
    pub received: u16,
    /// Packets missing here that never came, those that our own host dropped among them.
    pub lost: u16,
    /// Audio packets later than the lateness threshold.
    pub late: u16,
    /// Packets that had arrived before.
    pub duplicates: u16,
    /// Longest gap between two audio packets, without announced silence, in microseconds.
    pub interval_max_us: u32,
    /// How late the latest audio packet was against the quickest, in microseconds.
    pub lateness_max_us: u32,
    pub(super) jitter_max: u16,
    pub(super) interval_mean: u16,
    /// The newest sequence number at the row's end.
    pub(super) newest: u16,
    pub(super) flags: u8,
}

impl Second {
    /// Peak of the smoothed interarrival jitter in microseconds, to [`Second::RESOLUTION_US`].
    pub fn jitter_max_us(&self) -> u32 {
        u32::from(self.jitter_max) * Second::RESOLUTION_US
    }

    /// Mean gap between audio packets in microseconds, to [`Second::RESOLUTION_US`]; 0 without any.
    pub fn interval_mean_us(&self) -> u32 {
        u32::from(self.interval_mean) * Second::RESOLUTION_US
    }

    /// Whether the party should have sent audio during at least a part of it.
    pub fn is_audio_expected(&self) -> bool {
        self.flags & EXPECTED != 0
    }

    /// Whether the sender announced silence in it.
    pub fn has_silence(&self) -> bool {
        self.flags & SILENCE != 0
    }

    /// Whether telephone events or packets of another kind than audio and comfort noise came in it.
    pub fn has_events(&self) -> bool {
        self.flags & EVENT != 0
    }

    /// Whether the numbering or the timestamps began anew in it.
    pub fn has_restart(&self) -> bool {
        self.flags & RESTART != 0
    }

    /// In what steps the two packed durations are kept.
    pub const RESOLUTION_US: u32 = 16;

    /// This row and the one after it as one.
    fn and(self, next: Second) -> Second {
        let weight = |row: &Second| u64::from(row.received) * u64::from(row.interval_mean != 0);
        let weights = weight(&self) + weight(&next);
        let weighted = |row: &Second| weight(row) * u64::from(row.interval_mean);
        let interval_mean = (weighted(&self) + weighted(&next)).checked_div(weights).unwrap_or(0);
        Second {
            received: self.received.saturating_add(next.received),
            lost: self.lost.saturating_add(next.lost),
            late: self.late.saturating_add(next.late),
            duplicates: self.duplicates.saturating_add(next.duplicates),
            interval_max_us: self.interval_max_us.max(next.interval_max_us),
            lateness_max_us: self.lateness_max_us.max(next.lateness_max_us),
            jitter_max: self.jitter_max.max(next.jitter_max),
            interval_mean: u16::try_from(interval_mean).unwrap_or(u16::MAX),
            newest: next.newest,
            flags: self.flags | next.flags,
        }
    }
}

/// The counters of a stream at one moment, all of which only grow but for `late`, and the peaks since the
/// moment before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) received: u64,
    pub(crate) duplicates: u64,
    /// Late packets; falls when a step of the delay is recognised and forgiven.
    pub(crate) late: u32,
    pub(crate) intervals: u32,
    pub(crate) interval_sum_us: i64,
    pub(crate) events: u32,
    pub(crate) silences: u64,
    pub(crate) restarts: u64,
    pub(crate) jitter_max_us: u32,
    pub(crate) interval_max_us: u32,
    pub(crate) lateness_max_us: u32,
    pub(crate) newest: u16,
}

impl Tally {
    /// The row between `before` and this moment.
    fn row_since(&self, before: &Tally) -> Second {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let intervals = self.intervals.wrapping_sub(before.intervals);
        let interval_sum_us = self.interval_sum_us.wrapping_sub(before.interval_sum_us);
        let interval_mean_us = interval_sum_us.checked_div(intervals.into()).unwrap_or(0);
        Second {
            received: narrow(self.received - before.received.min(self.received)),
            lost: 0,
            late: narrow(u64::from(self.late.saturating_sub(before.late))),
            duplicates: narrow(self.duplicates - before.duplicates.min(self.duplicates)),
            interval_max_us: self.interval_max_us,
            lateness_max_us: self.lateness_max_us,
            jitter_max: pack(self.jitter_max_us.into()),
            interval_mean: pack(interval_mean_us),
            newest: self.newest,
            flags: flag(self.events != before.events, EVENT)
                | flag(self.silences != before.silences, SILENCE)
                | flag(self.restarts != before.restarts, RESTART),
        }
    }
}

/// A timeline while it is written.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// When the open row is over; before the first packet, always.
    end: Micros,
    book: Box<Book>,
}

#[derive(Clone, Debug)]
struct Book {
    begins: Option<Micros>,
    step_s: u32,
    /// The rows that are over.
    seconds: Vec<Second>,
    /// What the open row holds beside what the counters will say.
    open: Second,
    /// The counters when the open row began.
    base: Tally,
    /// The row in which the open segment began.
    segment: usize,
    /// Whether audio is expected now.
    is_expected: bool,
    reserve: u16,
}

impl Rows {
    /// No rows; with the first that is over, room is made for `reserve` of them.
    pub(crate) fn new(reserve: u16) -> Self {
        let book = Book {
            begins: None,
            step_s: 1,
            seconds: Vec::new(),
            open: Second::default(),
            base: Tally::default(),
            segment: 0,
            is_expected: false,
            reserve,
        };
        Rows { end: Micros(i64::MIN), book: Box::new(book) }
    }

    /// Whether a packet at `now` comes after the open row.
    #[inline]
    pub(crate) fn is_over(&self, now: Micros) -> bool {
        now >= self.end
    }

    /// Begins the first row at `now`, or closes the open one and goes on to that which holds `now`.
    #[cold]
    pub(crate) fn turn(&mut self, now: Micros, tally: Tally) {
        let book = &mut *self.book;
        match book.begins {
            None => {
                book.begins = Some(now);
                book.open.flags = book.expected_flag();
            }
            Some(begins) => book.turn(begins, now, tally),
        }
        self.end = book.end();
    }

    /// Whether audio is expected from now on; [`Rows::turn`] was called before if time had passed.
    pub(crate) fn expect(&mut self, is_expected: bool) {
        self.book.is_expected = is_expected;
        if is_expected {
            self.book.open.flags |= EXPECTED;
        }
    }

    /// Whether there is a row.
    pub(crate) fn has_begun(&self) -> bool {
        self.book.begins.is_some()
    }

    /// Whether there are rows to come until `now` because audio is expected.
    pub(crate) fn awaits(&self, now: Micros) -> bool {
        self.has_begun() && self.book.is_expected && self.is_over(now)
    }

    /// A segment begins in the open row.
    pub(crate) fn begin_segment(&mut self) {
        self.book.segment = self.book.seconds.len();
    }

    /// Enters `count` lost packets from `sequence` on, sent about every `ptime_us`.
    #[cold]
    pub(crate) fn lose(&mut self, sequence: u16, count: u32, ptime_us: i64) {
        self.book.lose(sequence, count, ptime_us);
    }

    /// The timeline, its last row closed by `tally`.
    pub(crate) fn close(mut self, tally: Tally) -> Timeline {
        let book = &mut *self.book;
        if book.begins.is_some() {
            book.close_row(tally);
        }
        let mut seconds = std::mem::take(&mut book.seconds);
        // A detail of the writing, which depends on where the numbering began.
        seconds.iter_mut().for_each(|second| second.newest = 0);
        Timeline { begins: book.begins, step_s: book.step_s, seconds }
    }
}

impl Book {
    fn turn(&mut self, begins: Micros, now: Micros, tally: Tally) {
        self.close_row(tally);
        let mut index = self.index(begins, now);
        while index >= Timeline::ROWS_MAX || self.seconds.len() >= Timeline::ROWS_MAX {
            if self.step_s > STEP_MAX_S {
                index = Timeline::ROWS_MAX - 1;
                break;
            }
            self.coarsen();
            index = self.index(begins, now);
        }
        let empty = Second { newest: tally.newest, flags: self.expected_flag(), ..Second::default() };
        self.seconds.resize(index.max(self.seconds.len()), empty);
        // A row that grew to twice its duration may still be going on.
        self.open = if index < self.seconds.len() {
            self.seconds.pop().unwrap_or_default()
        } else {
            Second { flags: self.expected_flag(), ..Second::default() }
        };
    }

    fn expected_flag(&self) -> u8 {
        if self.is_expected { EXPECTED } else { 0 }
    }

    fn close_row(&mut self, tally: Tally) {
        if self.seconds.capacity() == 0 {
            self.seconds.reserve(self.reserve.into());
        }
        let row = self.open.and(tally.row_since(&self.base));
        self.seconds.push(row);
        self.open = Second::default();
        let forgiven = self.base.late.saturating_sub(tally.late);
        self.forgive(forgiven);
        self.base = tally;
    }

    /// Takes `count` late packets back, the latest first.
    fn forgive(&mut self, count: u32) {
        let mut left = count;
        for second in self.seconds.iter_mut().rev() {
            if left == 0 {
                break;
            }
            let here = left.min(second.late.into());
            second.late = second.late.saturating_sub(narrow(here.into()));
            left -= here;
        }
    }

    /// Twice the step, half the rows.
    fn coarsen(&mut self) {
        let len = self.seconds.len();
        for index in 0..len.div_ceil(2) {
            let pair = (self.seconds.get(2 * index).copied(), self.seconds.get(2 * index + 1).copied());
            let merged = match pair {
                (Some(first), Some(second)) => first.and(second),
                (Some(first), None) => first,
                (None, _) => Second::default(),
            };
            if let Some(slot) = self.seconds.get_mut(index) {
                *slot = merged;
            }
        }
        self.seconds.truncate(len.div_ceil(2));
        self.segment /= 2;
        self.step_s = self.step_s.saturating_mul(2);
    }

    /// Which row holds `now`; what comes before the first is held by it.
    fn index(&self, begins: Micros, now: Micros) -> usize {
        let since_us = now.since(begins).max(0);
        usize::try_from(since_us / self.step_us()).unwrap_or(usize::MAX)
    }

    fn step_us(&self) -> i64 {
        i64::from(self.step_s) * 1_000_000
    }

    /// When the open row is over.
    fn end(&self) -> Micros {
        let rows = i64::try_from(self.seconds.len()).unwrap_or(i64::MAX).saturating_add(1);
        let begins = self.begins.unwrap_or_default();
        if self.step_s > STEP_MAX_S {
            return Micros(i64::MAX);
        }
        begins + rows.saturating_mul(self.step_us())
    }

    fn lose(&mut self, sequence: u16, count: u32, ptime_us: i64) {
        let (mut row, past) = self.place(sequence);
        let first = row - self.empty_before(row);
        let last = row;
        let ptime_us = ptime_us.max(1);
        let mut left = count;
        let mut number = past;
        row = first;
        // In a gap that left rows empty, packets were missing at the pace at which they are sent.
        while left > 0 {
            let here = if row < last {
                let due = i64::try_from(row - first + 1).unwrap_or(i64::MAX).saturating_mul(self.step_us());
                let until = u32::try_from(due / ptime_us).unwrap_or(u32::MAX);
                until.saturating_sub(number).min(left)
            } else {
                left
            };
            let second = self.seconds.get_mut(row).unwrap_or(&mut self.open);
            second.lost = second.lost.saturating_add(narrow(here.into()));
            number = number.saturating_add(here);
            left -= here;
            row += 1;
        }
    }

    /// The first row of the open segment that ends after `sequence`, and how many packets before it were the
    /// last to be numbered.
    fn place(&self, sequence: u16) -> (usize, u32) {
        let mut row = self.seconds.len();
        while let Some(before) = row.checked_sub(1).filter(|before| *before >= self.segment) {
            let Some(second) = self.seconds.get(before) else { break };
            let ahead = sequence.wrapping_sub(second.newest).cast_signed();
            if ahead > 0 {
                return (row, u32::from(ahead.unsigned_abs()) - 1);
            }
            row = before;
        }
        (row, 0)
    }

    /// Rows right before `row` in which nothing came.
    fn empty_before(&self, row: usize) -> usize {
        let earlier = self.seconds.get(self.segment.min(row)..row).unwrap_or_default();
        earlier.iter().rev().take_while(|second| second.received == 0).count()
    }
}

fn narrow(count: u64) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn pack(us: i64) -> u16 {
    u16::try_from(us.max(0) / i64::from(Second::RESOLUTION_US)).unwrap_or(u16::MAX)
}

const EXPECTED: u8 = 1;
const SILENCE: u8 = 2;
const EVENT: u8 = 4;
const RESTART: u8 = 8;
/// Rows of a longer step than 34 years are not doubled once more; only a broken clock gets there.
const STEP_MAX_S: u32 = 1 << 30;
