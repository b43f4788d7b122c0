//! A stream's figures second by second: the rows that a report plots.
//!
//! A row is written when its second is over, from counters that only grow, so a packet costs one comparison.
//! A packet is known to be lost only when the window of sequence numbers has moved on, up to 128 packets
//! later. It is counted in the row in which it was missing; that row is found by the newest sequence number
//! of each row.

use crate::audio::level::{dbov, power_at_dbov};
use crate::rtp::PayloadKind;
use crate::time::Micros;

/// The rows of one stream or leg, in order of time.
///
/// *Bounds*: [`Timeline::ROWS_MAX`] rows. For a longer leg the duration of the rows doubles, as often as
/// needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Arrival of the first packet, the start of the first row; `None` before.
    pub begins: Option<Micros>,
    /// The duration of each row in seconds.
    pub step_s: u32,
    /// The rows, without gaps; the last one may be shorter.
    pub seconds: Vec<Second>,
}

impl Timeline {
    /// The largest number of rows: an hour of seconds.
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
    /// Missing packets, those dropped by our own host included.
    pub lost: u16,
    /// Audio packets later than the lateness threshold.
    pub late: u16,
    /// Packets that had arrived before.
    pub duplicates: u16,
    /// Longest gap between two audio packets, without announced silence, in microseconds.
    pub interval_max_us: u32,
    /// Largest lateness of an audio packet relative to the fastest, in microseconds.
    pub lateness_max_us: u32,
    pub(super) jitter_max: u16,
    pub(super) interval_mean: u16,
    /// The newest sequence number at the row's end.
    pub(super) newest: u16,
    pub(super) flags: u8,
    /// Level of the decoded audio: 0 when none was decoded, else 1 plus the dB below the largest level.
    pub(super) level: u8,
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

    /// Whether audio from the party was expected during at least a part of the row.
    pub fn is_audio_expected(&self) -> bool {
        self.flags & EXPECTED != 0
    }

    /// Whether the sender announced silence during the row.
    pub fn has_silence(&self) -> bool {
        self.flags & SILENCE != 0
    }

    /// Whether telephone events or packets of kinds other than audio and comfort noise arrived during the
    /// row.
    pub fn has_events(&self) -> bool {
        self.flags & EVENT != 0
    }

    /// Whether the numbering or the timestamps restarted during the row.
    pub fn has_restart(&self) -> bool {
        self.flags & RESTART != 0
    }

    /// Level of the audio that was decoded during the row, in whole dBov; −127 is digital silence (RFC 6465 §3).
    /// `None` when none was decoded.
    pub fn level_dbov(&self) -> Option<i8> {
        self.level.checked_sub(1).and_then(|below| i8::try_from(below).ok()).map(|below| -below)
    }

    /// Resolution of the two packed durations.
    pub const RESOLUTION_US: u32 = 16;

    /// This row and the next one merged.
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
            level: match (self.level_dbov(), next.level_dbov()) {
                (Some(one), Some(other)) => {
                    let (weight, next_weight) = (u64::from(self.received), u64::from(next.received));
                    let sum = power(one) * weight + power(other) * next_weight;
                    level_of(sum.checked_div(weight + next_weight).unwrap_or(0))
                }
                _ => self.level.max(next.level),
            },
        }
    }
}

/// The mean square at a level in whole dBov; digital silence has none.
fn power(level_dbov: i8) -> u64 {
    if level_dbov == i8::MIN + 1 { 0 } else { power_at_dbov(level_dbov.into()) }
}

/// A mean square as [`Second::level`] holds it.
fn level_of(power: u64) -> u8 {
    let below = dbov(power).map_or(BELOW_MAX, |level| (-level).round().clamp(0.0, BELOW_MAX));
    // Between 1 and 128.
    below as u8 + 1
}

/// The contribution of the timing counters to a row that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Samples of the whole stream so far.
    pub(crate) samples: u32,
    /// Gaps of the open pace window; [`Rows::end_window`] has received those before.
    pub(crate) window_gap_us: i32,
    pub(crate) jitter_max_us: u32,
    pub(crate) interval_max_us: u32,
    pub(crate) lateness_max_us: u32,
    pub(crate) ptime_us: i64,
    pub(crate) newest: u16,
}

/// The timeline while it is written.
///
/// Rare events are entered immediately. The rest comes from a packet's counters when a row is over, so that closing a
/// row touches only this structure.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// End of the open row; before the first packet every time is after it.
    end: Micros,
    book: Box<Book>,
}

#[derive(Clone, Debug)]
struct Book {
    /// Peaks of the rows that are over.
    peaks: Peaks,
    begins: Option<Micros>,
    step_s: u32,
    /// The rows that are over.
    seconds: Vec<Second>,
    /// Counts of the open row, without those of the next [`Turn`].
    open: Second,
    /// Samples when the open row began.
    samples: u32,
    /// Sum of the open row's gaps, without the open pace window.
    gap_us: i64,
    /// The packet duration, for losses that span whole rows.
    ptime_us: i64,
    /// The row in which the open segment began.
    segment: usize,
    /// Whether audio is expected now.
    is_expected: bool,
    reserve: u16,
    /// Mean squares of the packets that were decoded in the open row, and their number.
    heard_power: u64,
    heard_packets: u32,
}

/// The highest values of all rows that are over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peaks {
    pub(crate) jitter_us: u32,
    pub(crate) interval_us: u32,
    pub(crate) lateness_us: u32,
}

impl Rows {
    /// No rows; when the first is over, space for `reserve` of them is allocated.
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
            heard_power: 0,
            heard_packets: 0,
        };
        Rows { end: Micros(i64::MIN), book: Box::new(book) }
    }

    /// Sets the number of rows for which space is allocated when the first one is over.
    pub(crate) fn reserve(&mut self, rows: u16) {
        self.book.reserve = rows;
    }

    /// Whether `now` is after the open row.
    #[inline]
    pub(crate) fn is_over(&self, now: Micros) -> bool {
        now >= self.end
    }

    /// Time from `at` to the end of the open row.
    #[inline]
    pub(crate) fn left_us(&self, at: Micros) -> i64 {
        self.end.since(at)
    }

    /// A copy without rows that only keeps the peaks; its open row never ends.
    pub(crate) fn outline(&self) -> Rows {
        let mut rows = Rows { end: Micros(i64::MAX), ..Rows::new(0) };
        rows.book.peaks = self.book.peaks;
        rows.book.begins = self.book.begins;
        rows
    }

    /// Begins the first row at `now`, or closes the open row and moves on to the row that holds `now`.
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

    /// Sets whether audio is expected from now on; call [`Rows::turn`] before if the row is over.
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

    /// Whether rows are missing until `now` because audio is expected.
    pub(crate) fn awaits(&self, now: Micros) -> bool {
        self.has_begun() && self.book.is_expected && self.is_over(now)
    }

    /// The peaks of the rows that are over.
    pub(crate) fn peaks(&self) -> Peaks {
        self.book.peaks
    }

    /// Records that a segment begins in the open row.
    pub(crate) fn begin_segment(&mut self) {
        self.book.segment = self.book.seconds.len();
        self.restart();
    }

    /// Records that the numbering or the timestamps restarted.
    pub(crate) fn restart(&mut self) {
        self.book.open.flags |= RESTART;
    }

    /// Records silence that the sender announced.
    pub(crate) fn silence(&mut self) {
        self.book.open.flags |= SILENCE;
    }

    /// Counts a packet of this `kind` that is not a sample.
    pub(crate) fn receive(&mut self, kind: PayloadKind) {
        let open = &mut self.book.open;
        open.received = open.received.saturating_add(1);
        open.flags |= match kind {
            PayloadKind::Audio => 0,
            PayloadKind::ComfortNoise => SILENCE,
            PayloadKind::Event | PayloadKind::Other => EVENT,
        };
    }

    /// Adds the mean square of a decoded packet, which arrived in the open row.
    #[inline]
    pub(crate) fn hear(&mut self, power: u64) {
        let book = &mut *self.book;
        book.heard_power = book.heard_power.saturating_add(power);
        book.heard_packets = book.heard_packets.saturating_add(1);
    }

    /// Counts a duplicate.
    #[cold]
    pub(crate) fn duplicate(&mut self) {
        let open = &mut self.book.open;
        open.duplicates = open.duplicates.saturating_add(1);
    }

    /// Records a gap over a second that was not announced.
    pub(crate) fn stall(&mut self, gap_us: u32) {
        let open = &mut self.book.open;
        open.interval_max_us = open.interval_max_us.max(gap_us);
    }

    /// Counts a late packet.
    pub(crate) fn late(&mut self) {
        let open = &mut self.book.open;
        open.late = open.late.saturating_add(1);
    }

    /// Removes the latest `count` late packets from the counts.
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

    /// Adds the gaps of a finished pace window.
    pub(crate) fn end_window(&mut self, gap_us: i32) {
        self.book.gap_us = self.book.gap_us.wrapping_add(gap_us.into());
    }

    /// Counts `count` lost packets from `sequence` on.
    #[cold]
    pub(crate) fn lose(&mut self, sequence: u16, count: u32) {
        self.book.lose(sequence, count);
    }

    /// The timeline, after closing its last row with `turn`.
    pub(crate) fn close(&mut self, turn: &Turn) -> Timeline {
        let book = &mut *self.book;
        if book.begins.is_some() {
            book.close_row(turn);
        }
        let mut seconds = std::mem::take(&mut book.seconds);
        // This field is internal and depends on where the numbering began.
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
        // A row that grew to twice its duration may not be over yet.
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
            level: self.heard_power.checked_div(self.heard_packets.into()).map_or(0, level_of),
            ..Second::default()
        };
        self.seconds.push(self.open.and(row));
        self.open = Second::default();
        (self.heard_power, self.heard_packets) = (0, 0);
        self.samples = turn.samples;
        self.gap_us = -i64::from(turn.window_gap_us);
        self.ptime_us = turn.ptime_us;
        self.peaks.jitter_us = self.peaks.jitter_us.max(turn.jitter_max_us);
        self.peaks.interval_us = self.peaks.interval_us.max(turn.interval_max_us);
        self.peaks.lateness_us = self.peaks.lateness_us.max(turn.lateness_max_us);
    }

    /// Doubles the step and merges rows in pairs.
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

    /// The index of the row that holds `now`; times before the first row belong to it.
    fn index(&self, begins: Micros, now: Micros) -> usize {
        let since_us = now.since(begins).max(0);
        usize::try_from(since_us / self.step_us()).unwrap_or(usize::MAX)
    }

    fn step_us(&self) -> i64 {
        i64::from(self.step_s) * 1_000_000
    }

    /// End of the open row.
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
        // When a gap spans empty rows, the lost packets are distributed at the rate at which they are sent.
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

    /// The first row of the open segment that ends after `sequence`, and how many numbers lie between the end
    /// of the previous row and `sequence`.
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

    /// Number of rows right before `row` in which no packet arrived.
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

/// Digital silence is this many dB below the largest level (RFC 6465 §3).
const BELOW_MAX: f64 = 127.0;
const EXPECTED: u8 = 1;
const SILENCE: u8 = 2;
const EVENT: u8 = 4;
const RESTART: u8 = 8;
/// A row step longer than 34 years is not doubled again; only a broken clock leads there.
const STEP_MAX_S: u32 = 1 << 30;
