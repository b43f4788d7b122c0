//! The most recent records of the journal, for a reader that keeps up with it.
//!
//! *Bounds*: [`BYTES_MAX`] of records in their stored form. While the reader lags behind by that much, further
//! records are not kept here: it reads them from the files.

use std::collections::VecDeque;

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;

use crate::cdr::segment::Record;

/// The data of a record that the reader needs.
#[derive(Debug)]
pub(super) enum Passed {
    /// A call was answered.
    Answered(CallId),
    /// A call has ended.
    Ended(Box<Cdr>),
    /// The record in the file differs from the one that was passed.
    InFile,
    /// A tick.
    Tick,
}

impl From<Record> for Passed {
    fn from(record: Record) -> Self {
        match record {
            Record::Answered(cdr, _) => Passed::Answered(cdr.call_uuid),
            Record::Ended(cdr, _) => Passed::Ended(cdr),
            Record::Tick(_) => Passed::Tick,
        }
    }
}

/// Durable records, by their positions in the files; positions may be missing.
#[derive(Debug, Default)]
pub(super) struct Recent {
    records: VecDeque<Placed>,
    bytes: u64,
}

#[derive(Debug)]
struct Placed {
    segment: u64,
    start: u64,
    end: u64,
    passed: Passed,
}

impl Recent {
    /// Adds records with their lengths; they are consecutive in the file from `start` on.
    pub(super) fn add(
        &mut self,
        segment: u64,
        mut start: u64,
        records: impl IntoIterator<Item = (usize, Passed)>,
    ) {
        for (len, passed) in records {
            let len = len as u64;
            let end = start.saturating_add(len);
            if !matches!(passed, Passed::InFile) && self.bytes.saturating_add(len) <= BYTES_MAX {
                self.bytes = self.bytes.saturating_add(len);
                self.records.push_back(Placed { segment, start, end, passed });
            }
            start = end;
        }
    }

    /// Takes the record at this position, if it is here, with the position of the next one. Records at earlier
    /// positions are dropped: the reader has read them from the files.
    pub(super) fn take(&mut self, segment: u64, offset: u64) -> Option<(Passed, u64)> {
        loop {
            let first = self.records.front()?;
            if (first.segment, first.start) > (segment, offset) {
                return None;
            }
            let Placed { start, end, passed, segment: of } = self.records.pop_front()?;
            self.bytes = self.bytes.saturating_sub(end.saturating_sub(start));
            if (of, start) == (segment, offset) {
                return Some((passed, end));
            }
        }
    }
}

/// The calls of a few seconds, with details, at a thousand calls each second.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_taken_at_its_place_alone() {
        let mut recent = Recent::default();
        recent.add(1, 8, [(10, Passed::Tick), (5, Passed::InFile), (7, Passed::Tick)]);
        recent.add(2, 8, [(3, Passed::Tick)]);
        let mut take = |segment, offset| recent.take(segment, offset).map(|(_, end)| end);
        assert_eq!(take(1, 0), None, "before all of them");
        assert_eq!(take(1, 8), Some(18));
        assert_eq!(take(1, 18), None, "the file has another form");
        assert_eq!(take(1, 23), Some(30));
        assert_eq!(take(1, 30), None, "the next one is in the next segment");
        assert_eq!(take(2, 8), Some(11));
        assert_eq!(take(2, 11), None);
        assert_eq!(recent.bytes, 0);
    }

    #[test]
    fn a_reader_that_is_behind_finds_the_rest_in_the_files() {
        let mut recent = Recent::default();
        let len = usize::try_from(BYTES_MAX / 4).unwrap();
        recent.add(1, 0, (0..6).map(|_| (len, Passed::Tick)));
        assert_eq!((recent.records.len(), recent.bytes), (4, BYTES_MAX));
        // The reader has read three of them from the files.
        assert!(recent.take(1, BYTES_MAX / 4 * 3).is_some());
        assert!(recent.take(1, BYTES_MAX).is_none());
        assert_eq!(recent.bytes, 0);
        recent.add(1, 6 * BYTES_MAX / 4, [(1, Passed::Tick)]);
        assert!(recent.take(1, BYTES_MAX).is_none(), "not before its turn");
        assert!(recent.take(1, 6 * BYTES_MAX / 4).is_some());
    }
}
