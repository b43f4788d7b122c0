//! What happened to a stream second by second: the rows that a report plots.
//!
//! A row is written when its second is over, from counters that only ever grow, so a packet costs one
//! comparison. A lost packet is known for lost only when the window of sequence numbers has moved on, up to 128
//! packets later; it is entered in the row in which it was missing, which the rows tell by the newest
//! sequence number of each.

use crate::rtp::PayloadKind;
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

/// What the packets in the middle of talk say of the row that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Samples of the whole stream.
    pub(crate) samples: u32,
    /// Gaps of the open pace window; [`Rows::end_window`] was told those before.
    pub(crate) window_gap_us: i32,
    pub(crate) jitter_max_us: u32,
    pub(crate) interval_max_us: u32,
    pub(crate) lateness_max_us: u32,
    pub(crate) ptime_us: i64,
    pub(crate) newest: u16,
}

/// A timeline while it is written.
///
/// What happens rarely is entered at once; the rest is what the counters of a packet say when a row is over,
/// so that closing one touches nothing but this book.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// When the open row is over; before the first packet, always.
    end: Micros,
    book: Box<Book>,
}

#[derive(Clone, Debug)]
struct Book {
    /// Of the rows that are over.
    peaks: Peaks,
    begins: Option<Micros>,
    step_s: u32,
    /// The rows that are over.
    seconds: Vec<Second>,
    /// What the open row holds beside what the next [`Turn`] will say.
    open: Second,
    /// Samples when the open row began.
    samples: u32,
    /// What the open row's gaps add up to beside the open pace window.
    gap_us: i64,
    /// The packet duration, for losses that left whole rows empty.
    ptime_us: i64,
    /// The row in which the open segment began.
    segment: usize,
    /// Whether audio is expected now.
    is_expected: bool,
    reserve: u16,
}

/// The highest of what each row is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peaks {
    pub(crate) jitter_us: u32,
    pub(crate) interval_us: u32,
    pub(crate) lateness_us: u32,
}

impl Rows {
    /// No rows; with the first that is over, room is made for `reserve` of them.
    pub(crate) fn new(reserve: u16) -> Self {
        let book = Book {
            peaks: Peaks::default(),
            begins: None,
            step_s: 1,
            seconds: Vec::new(),
            open: Second::default(),
            samples: 0,
            gap_us: 0,
            ptime_us: 0,
            segment: 0,
            is_expected: false,
            reserve,
        };
        Rows { end: Micros(i64::MIN), book: Box::new(book) }
    }

    /// With the first row that is over, room is made for `rows` of them.
    pub(crate) fn reserve(&mut self, rows: u16) {
        self.book.reserve = rows;
    }

    /// Whether a packet at `now` comes after the open row.
    #[inline]
    pub(crate) fn is_over(&self, now: Micros) -> bool {
        now >= self.end
    }

    /// How long after `at` the open row ends.
    #[inline]
    pub(crate) fn left_us(&self, at: Micros) -> i64 {
        self.end.since(at)
    }

    /// The same book without its rows, for the peaks alone: it goes on in the open row for good.
    pub(crate) fn outline(&self) -> Rows {
        let mut rows = Rows { end: Micros(i64::MAX), ..Rows::new(0) };
        rows.book.peaks = self.book.peaks;
        rows.book.begins = self.book.begins;
        rows
    }

    /// Begins the first row at `now`, or closes the open one and goes on to that which holds `now`.
    pub(crate) fn turn(&mut self, now: Micros, turn: &Turn) {
        let book = &mut *self.book;
        match book.begins {
            None => {
                book.begins = Some(now);
                book.open.flags |= book.expected_flag();
            }
            Some(begins) => book.turn(begins, now, turn),
        }
        self.end = book.end();
    }

    /// Whether audio is expected from now on; [`Rows::turn`] was called before if time had passed.
    pub(crate) fn expect(&mut self, is_expected: bool) {
        let book = &mut *self.book;
        book.is_expected = is_expected;
        if book.begins.is_some() {
            book.open.flags |= book.expected_flag();
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

    /// The peaks of the rows that are over.
    pub(crate) fn peaks(&self) -> Peaks {
        self.book.peaks
    }

    /// A segment begins in the open row.
    pub(crate) fn begin_segment(&mut self) {
        self.book.segment = self.book.seconds.len();
        self.restart();
    }

    /// The numbering or the timestamps begin anew.
    pub(crate) fn restart(&mut self) {
        self.book.open.flags |= RESTART;
    }

    /// The sender announced silence.
    pub(crate) fn silence(&mut self) {
        self.book.open.flags |= SILENCE;
    }

    /// A packet that is no sample; `kind` says of what.
    pub(crate) fn receive(&mut self, kind: PayloadKind) {
        let open = &mut self.book.open;
        open.received = open.received.saturating_add(1);
        open.flags |= match kind {
            PayloadKind::Audio => 0,
            PayloadKind::ComfortNoise => SILENCE,
            PayloadKind::Event | PayloadKind::Other => EVENT,
        };
    }

    /// A packet that had arrived before.
    #[cold]
    pub(crate) fn duplicate(&mut self) {
        let open = &mut self.book.open;
        open.duplicates = open.duplicates.saturating_add(1);
    }

    /// A gap over a second that was not announced.
    pub(crate) fn stall(&mut self, gap_us: u32) {
        let open = &mut self.book.open;
        open.interval_max_us = open.interval_max_us.max(gap_us);
    }

    /// A late packet.
    pub(crate) fn late(&mut self) {
        let open = &mut self.book.open;
        open.late = open.late.saturating_add(1);
    }

    /// The latest `count` late packets were none.
    pub(crate) fn forgive(&mut self, count: u16) {
        let book = &mut *self.book;
        let mut left = count;
        for second in std::iter::once(&mut book.open).chain(book.seconds.iter_mut().rev()) {
            let here = left.min(second.late);
            second.late -= here;
            left -= here;
            if left == 0 {
                break;
            }
        }
    }

    /// A pace window of gaps that add up to `gap_us` is over.
    pub(crate) fn end_window(&mut self, gap_us: i32) {
        self.book.gap_us = self.book.gap_us.wrapping_add(gap_us.into());
    }

    /// Enters `count` lost packets from `sequence` on.
    #[cold]
    pub(crate) fn lose(&mut self, sequence: u16, count: u32) {
        self.book.lose(sequence, count);
    }

    /// The timeline, its last row closed by `turn`.
    pub(crate) fn close(&mut self, turn: &Turn) -> Timeline {
        let book = &mut *self.book;
        if book.begins.is_some() {
            book.close_row(turn);
        }
        let mut seconds = std::mem::take(&mut book.seconds);
        // A detail of the writing, which depends on where the numbering began.
        seconds.iter_mut().for_each(|second| second.newest = 0);
        Timeline { begins: book.begins, step_s: book.step_s, seconds }
    }
}

impl Book {
    fn turn(&mut self, begins: Micros, now: Micros, turn: &Turn) {
        self.close_row(turn);
        let mut index = self.index(begins, now);
        while index >= Timeline::ROWS_MAX || self.seconds.len() >= Timeline::ROWS_MAX {
            if self.step_s > STEP_MAX_S {
                index = Timeline::ROWS_MAX - 1;
                break;
            }
            self.coarsen();
            index = self.index(begins, now);
        }
        let fresh = Second { newest: turn.newest, flags: self.expected_flag(), ..Second::default() };
        if index > self.seconds.len() {
            self.seconds.resize(index, fresh);
        }
        // A row that grew to twice its duration may still be going on.
        self.open = if index < self.seconds.len() { self.seconds.pop().unwrap_or(fresh) } else { fresh };
    }

    fn expected_flag(&self) -> u8 {
        if self.is_expected { EXPECTED } else { 0 }
    }

    fn close_row(&mut self, turn: &Turn) {
        if self.seconds.capacity() == 0 {
            self.seconds.reserve(self.reserve.into());
        }
        let samples = turn.samples.wrapping_sub(self.samples);
        let gap_us = self.gap_us.wrapping_add(turn.window_gap_us.into());
        let row = Second {
            received: narrow(samples.into()),
            interval_max_us: turn.interval_max_us,
            lateness_max_us: turn.lateness_max_us,
            jitter_max: pack(turn.jitter_max_us.into()),
            interval_mean: pack(gap_us.checked_div(samples.into()).unwrap_or(0)),
            newest: turn.newest,
            ..Second::default()
        };
        self.seconds.push(self.open.and(row));
        self.open = Second::default();
        self.samples = turn.samples;
        self.gap_us = -i64::from(turn.window_gap_us);
        self.ptime_us = turn.ptime_us;
        self.peaks.jitter_us = self.peaks.jitter_us.max(turn.jitter_max_us);
        self.peaks.interval_us = self.peaks.interval_us.max(turn.interval_max_us);
        self.peaks.lateness_us = self.peaks.lateness_us.max(turn.lateness_max_us);
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

    fn lose(&mut self, sequence: u16, count: u32) {
        let (mut row, past) = self.place(sequence);
        let first = row - self.empty_before(row);
        let last = row;
        let ptime_us = self.ptime_us.max(1);
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
