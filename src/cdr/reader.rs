//! The reading end of the journal: the records that wait for the database, and which segments may be deleted.
//!
//! A segment is kept until every end in it is stored, and the end of every call that was answered in it. So a crash
//! at any point replays at least the records that are not in the database.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::rating::Undrawn;

use crate::cdr::progress::Progress;
use crate::cdr::recent::Passed;
use crate::cdr::segment::{self, Step};

/// The reading end: the records that wait for the database, in the order in which they were written.
#[derive(Debug)]
pub struct JournalReader {
    dir: PathBuf,
    progress: Arc<Progress>,
    segment: u64,
    offset: u64,
    file: Option<File>,
    /// The number of such calls of a segment: the segment is kept while there are any.
    open_calls: HashMap<CallId, u64>,
    /// The segment that was current when settled segments were last removed.
    pins: BTreeMap<u64, usize>,
    /// The segment that was current when settled ones were last removed.
    swept: u64,
    /// Credit deductions of calls of earlier runs.
    undrawn: Vec<Undrawn>,
}

impl JournalReader {
    pub(super) fn new(dir: &Path, progress: Arc<Progress>, undrawn: Vec<Undrawn>) -> Self {
        Self {
            dir: dir.to_path_buf(),
            progress,
            segment: 0,
            offset: 0,
            file: None,
            open_calls: HashMap::new(),
            pins: BTreeMap::new(),
            swept: 0,
            undrawn,
        }
    }

    /// Takes the credit deductions of calls of earlier runs; their records follow and are stored with them.
    pub fn take_undrawn(&mut self) -> Vec<Undrawn> {
        std::mem::take(&mut self.undrawn)
    }

    /// Returns the next ended calls, at most `len_max`; empty when everything durable has been read.
    ///
    /// Blocks on the disk.
    ///
    /// # Errors
    /// When a segment cannot be read; calling again retries.
    pub fn next_batch(&mut self, len_max: usize) -> io::Result<Vec<Cdr>> {
        let mut batch = Vec::new();
        while batch.len() < len_max {
            if self.take_recent(&mut batch) {
                continue;
            }
            let committed = *self.progress.committed.lock();
            let Some(file) = &self.file else {
                if self.open_next(committed.segment)? {
                    continue;
                }
                break;
            };
            let newest = self.segment == committed.segment;
            let end = if newest { committed.len } else { file.metadata()?.len() };
            match segment::read(file, self.offset, end)? {
                Step::Good(record, next) => {
                    self.offset = next;
                    self.take(record.into(), &mut batch);
                }
                Step::Unreadable(next) => {
                    tracing::error!(
                        segment = self.segment,
                        offset = self.offset,
                        "a journal record of another version cannot be read and is left out"
                    );
                    self.offset = next;
                }
                Step::End if newest && self.offset >= end => break,
                Step::End | Step::Damaged if newest => {
                    // The journal wrote this record itself, and the disk returned other data.
                    tracing::error!(
                        segment = self.segment,
                        offset = self.offset,
                        "a journal record is damaged"
                    );
                    self.offset = end;
                }
                Step::End | Step::Damaged => self.file = None,
            }
        }
        Ok(batch)
    }

    /// Records that everything that [`JournalReader::next_batch`] has returned is in the database, and removes
    /// segments that are no longer needed.
    pub fn settle(&mut self, stored: &[Cdr]) {
        let mut removable = self.swept < self.segment;
        for cdr in stored {
            let Some(segment) = self.open_calls.remove(&cdr.call_uuid) else { continue };
            if let Some(pins) = self.pins.get_mut(&segment) {
                *pins = pins.saturating_sub(1);
                if *pins == 0 {
                    self.pins.remove(&segment);
                    removable = true;
                }
            }
        }
        if removable {
            self.remove_settled();
        }
    }

    /// Completes when there may be more to read; `false` once the journal is closed.
    pub async fn changed(&self) -> bool {
        let written = self.progress.written.notified();
        let committed = *self.progress.committed.lock();
        if (self.segment, self.offset) != (committed.segment, committed.len) {
            return true;
        }
        if self.progress.closed.load(Ordering::Acquire) {
            return false;
        }
        written.await;
        true
    }

    /// Removes all segments once the journal is closed and everything is stored.
    ///
    /// Calls that never ended keep their segments: the next start ends them.
    pub fn finish(&mut self) {
        self.file = None;
        self.segment = u64::MAX;
        self.remove_settled();
    }

    /// Takes the next record from memory, if it is there.
    fn take_recent(&mut self, batch: &mut Vec<Cdr>) -> bool {
        let taken = self.progress.recent.lock().take(self.segment, self.offset);
        let Some((record, next)) = taken else { return false };
        self.offset = next;
        self.take(record, batch);
        true
    }

    fn take(&mut self, record: Passed, batch: &mut Vec<Cdr>) {
        match record {
            Passed::Answered(call) => {
                if let Entry::Vacant(entry) = self.open_calls.entry(call) {
                    entry.insert(self.segment);
                    *self.pins.entry(self.segment).or_default() += 1;
                }
            }
            Passed::Ended(cdr) => batch.push(*cdr),
            Passed::InFile | Passed::Tick => {}
        }
    }

    /// Opens the next segment; `false` if there is none yet.
    fn open_next(&mut self, newest: u64) -> io::Result<bool> {
        let next = segment::list(&self.dir)?.into_iter().find(|number| *number > self.segment);
        let Some(next) = next.filter(|next| *next <= newest) else { return Ok(false) };
        let file = File::open(segment::path_of(&self.dir, next))?;
        self.segment = next;
        // A segment without its head contains nothing: the next call continues with the segment after it.
        self.file = segment::has_head(&file)?.then_some(file);
        self.offset = segment::HEAD_LEN;
        Ok(true)
    }

    fn remove_settled(&mut self) {
        let numbers = match segment::list(&self.dir) {
            Ok(numbers) => numbers,
            Err(error) => {
                tracing::warn!(%error, "the journal directory cannot be read");
                return;
            }
        };
        for number in numbers.into_iter().filter(|number| *number < self.segment) {
            if self.pins.contains_key(&number) {
                continue;
            }
            // A segment that could not be removed is read again at the next start, which changes nothing.
            if let Err(error) = std::fs::remove_file(segment::path_of(&self.dir, number)) {
                tracing::warn!(segment = number, %error, "a settled journal segment cannot be removed");
            }
        }
        self.swept = self.segment;
    }
}
