//! The call journal: writes data that a crash must not lose to the disk before it is processed any further.
//!
//! The switch calls `answered`, `tick` every five seconds, and `ended`; none of them blocks. One thread appends all
//! waiting records and makes them durable with one `fdatasync` (group commit: the wait is that of one sync, a few
//! milliseconds). Records that no caller waits for are written immediately, so that they survive the end of the
//! process. They become durable with the next record that a caller waits for, or after `SYNC_WITHIN`. The database
//! writer gets the most recent records from memory (`recent.rs`) and older ones from the files, so that an
//! unavailable database costs disk space, not memory, and no call. After a crash [`Journal::open`] ends every
//! answered call that has no end: with the cause `CRASH`, at the last time when the node is known to have run.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, after, never};
use parking_lot::Mutex;
use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::rating::Undrawn;
use sidetone_model::time::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::cdr::copies::CallCopies;
use crate::cdr::progress::{Mark, Progress, RESERVE_IN_USE, RESERVE_LEFT, SPACE_FREE};
use crate::cdr::reader::JournalReader;
use crate::cdr::recent::Passed;
use crate::cdr::segment::{self, Record, Step};
use crate::cdr::storage::{Disk, Segment, SegmentFile, Storage};
use crate::cdr::waiter::Waiter;
use crate::supervise::{Beat, Supervisor, Task};

pub use crate::cdr::waiter::Committed;

/// The writing end of the journal of one node; clones share it.
///
/// When the last clone is dropped the journal is closed, and [`JournalReader`] ends once
/// everything has been read.
#[derive(Debug, Clone)]
pub struct Journal {
    commands: Sender<Command>,
    progress: Arc<Progress>,
    clock: Option<SteadyClock>,
    copies: Option<CallCopies>,
}

/// Options of a journal.
#[derive(Debug, Default)]
pub struct JournalOptions {
    /// Bytes that are reserved on the disk for the records of live calls when the disk is full; 0 for none.
    pub reserve_bytes: u64,
    /// Where segments are written; the directory itself when there is none.
    pub storage: Option<Box<dyn Storage>>,
    /// Owns the thread.
    pub supervisor: Supervisor,
    /// A clock that never jumps, for the ticks; without it the timestamps of the caller are used.
    pub clock: Option<SteadyClock>,
}

/// A clock that starts near the wall clock and never jumps.
#[derive(Clone)]
pub struct SteadyClock(pub Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl std::fmt::Debug for SteadyClock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SteadyClock")
    }
}

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it open.
    #[error("open the journal in {}: another process uses it, stop that one first", dir.display())]
    InUse {
        /// The directory of the journal.
        dir: PathBuf,
    },
    /// The disk fails.
    #[error("open the journal in {}: {source}", dir.display())]
    Io {
        /// The directory of the journal.
        dir: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The journal's queue is full, because its disk has stalled. The record is returned, to be tried again.
#[derive(Debug, thiserror::Error)]
#[error("journal the call: the queue of {QUEUE_LEN_MAX} records is full, the disk is too slow or gone")]
pub struct JournalFull {
    /// The record that was not taken; `None` for a tick.
    pub record: Option<Box<Cdr>>,
}

/// The result of [`Journal::open`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Calls that had been answered and now end with `CRASH`.
    pub crashed_calls: usize,
    /// Segments with a torn or damaged end; the records before the damage were read.
    pub damaged_segments: usize,
    /// Segments of earlier runs.
    pub segments: usize,
}

impl Journal {
    /// Opens the journal in `dir`, which is created if it does not exist, ends the calls that a crash
    /// interrupted, and starts the thread.
    ///
    /// # Errors
    /// When another process has the journal open, or the disk fails.
    pub fn open(dir: &Path) -> Result<(Self, JournalReader, Recovery), JournalError> {
        Self::open_settling(dir, &|_| {})
    }

    /// Like [`Journal::open`]; `settle` settles each call that a crash interrupted after its end was set, at
    /// the prices in its `answered` record.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_settling(
        dir: &Path,
        settle: &dyn Fn(&mut Cdr),
    ) -> Result<(Self, JournalReader, Recovery), JournalError> {
        Self::open_with(dir, settle, JournalOptions::default())
    }

    /// Like [`Journal::open_settling`], with these options.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_with(
        dir: &Path,
        settle: &dyn Fn(&mut Cdr),
        options: JournalOptions,
    ) -> Result<(Self, JournalReader, Recovery), JournalError> {
        let JournalOptions { reserve_bytes, storage, supervisor, clock } = options;
        let failed = |source| JournalError::Io { dir: dir.to_path_buf(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let lock = File::create(dir.join(LOCK_FILE)).map_err(failed)?;
        if lock.try_lock().is_err() {
            return Err(JournalError::InUse { dir: dir.to_path_buf() });
        }
        let segments = segment::list(dir).map_err(failed)?;
        let (recovery, mut crashed, mut undrawn) = recover(dir, &segments).map_err(failed)?;
        crashed.iter_mut().for_each(settle);
        undrawn.extend(crashed.iter().filter_map(undrawn_by));
        let number = segments.last().map_or(1, |last| last.saturating_add(1));
        let mut storage = storage.unwrap_or_else(|| Box::new(Disk::new(dir)));
        let (file, is_short) = create(storage.as_mut(), number, false).map_err(failed)?;
        let mut current = Segment::new(number, file);
        let mut bytes = Vec::new();
        for cdr in crashed {
            let _ = encode_or_log(&Record::Ended(Box::new(cdr), None), &mut bytes);
        }
        current.append(&bytes).map_err(failed)?;

        let progress = Arc::new(Progress {
            committed: Mutex::new(Mark { segment: number, len: current.len_bytes() }),
            closed: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            space: AtomicU8::new(if is_short { RESERVE_IN_USE } else { SPACE_FREE }),
            free_bytes: AtomicU64::new(u64::MAX),
            failed_segments: AtomicU64::new(0),
            written: Notify::new(),
            recent: Mutex::default(),
        });
        let (commands, queue) = crossbeam_channel::bounded(QUEUE_LEN_MAX);
        let mut appender = Appender {
            dir: dir.to_path_buf(),
            storage,
            reserve_bytes,
            current,
            queue,
            open_calls: HashSet::new(),
            bytes: Vec::new(),
            written: 0,
            taken: Vec::new(),
            waiting: Vec::new(),
            progress: Arc::clone(&progress),
            _lock: lock,
        };
        appender.look_at_the_disk();
        supervisor.vital_thread(Task::Journal, appender, Appender::run, Appender::rescue).map_err(failed)?;
        let reader = JournalReader::new(dir, Arc::clone(&progress), undrawn);
        Ok((Self { commands, progress, clock, copies: None }, reader, recovery))
    }

    /// Returns the journal that also copies its records to the other nodes of a cluster; clones made before do not.
    #[must_use]
    pub fn copying(mut self, copies: Option<CallCopies>) -> Self {
        self.copies = copies;
        self
    }

    /// Records that a call was answered; `record` contains its data so far, without an end.
    ///
    /// From the moment the returned [`Committed`] completes, it is guaranteed that the answered call gets a
    /// record: wait for it before sending the 200 to give the caller this guarantee.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn answered(&self, record: Cdr) -> Result<Committed, JournalFull> {
        let (committed, receiver) = oneshot::channel();
        self.answer(record, Waiter::Caller(committed)).map(|()| Committed::new(receiver))
    }

    /// Like [`Journal::answered`]; the call is sent to `done` once the record is on the disk.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn answered_then(&self, record: Cdr, done: mpsc::UnboundedSender<CallId>) -> Result<(), JournalFull> {
        let waiter = Waiter::Driver(record.call_uuid, done);
        self.answer(record, waiter)
    }

    fn answer(&self, mut record: Cdr, waiter: Waiter) -> Result<(), JournalFull> {
        if let Some(copies) = &self.copies {
            copies.answered(&mut record);
        }
        self.queue(Record::Answered(Box::new(record), self.steady()), waiter)
    }

    /// Records that the node, and with it every answered call, is alive; called every five seconds.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn tick(&self, at: Timestamp) -> Result<Committed, JournalFull> {
        self.send(Record::Tick(self.steady().unwrap_or(at)))
    }

    /// Records the complete record of a finished call, answered or not.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn ended(&self, mut record: Cdr) -> Result<Committed, JournalFull> {
        if let Some(copies) = self.copies.as_ref().filter(|_| record.answered_at.is_some()) {
            copies.ended(&mut record);
        }
        self.send(Record::Ended(Box::new(record), self.steady()))
    }

    /// Returns whether the disk stored the last records and has space for those of new calls.
    pub fn is_healthy(&self) -> bool {
        !self.progress.failing.load(Ordering::Relaxed) && self.has_space()
    }

    /// Returns whether more space is free than the reserve for live calls.
    pub fn has_space(&self) -> bool {
        self.progress.space.load(Ordering::Relaxed) == SPACE_FREE
    }

    /// Returns whether the reserve is still unused.
    pub fn has_reserve(&self) -> bool {
        self.progress.space.load(Ordering::Relaxed) != RESERVE_IN_USE
    }

    /// Returns the free bytes of the disk, as of the last record; `None` if unknown.
    pub fn free_bytes(&self) -> Option<u64> {
        Some(self.progress.free_bytes.load(Ordering::Relaxed)).filter(|free| *free != u64::MAX)
    }

    /// Segments that were abandoned because a write or its synchronisation failed.
    pub fn failed_segments(&self) -> u64 {
        self.progress.failed_segments.load(Ordering::Relaxed)
    }

    /// Waits until all records that were passed before are on the disk; `false` if that took longer than `patience`.
    pub async fn flush(&self, at: Timestamp, patience: Duration) -> bool {
        let Ok(committed) = self.tick(at) else { return false };
        matches!(tokio::time::timeout(patience, committed).await, Ok(true))
    }

    /// Returns how many records wait for the disk.
    pub fn queue_len(&self) -> usize {
        self.commands.len()
    }

    /// The time of the clock that never jumps.
    fn steady(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(|clock| (clock.0)())
    }

    fn send(&self, record: Record) -> Result<Committed, JournalFull> {
        let (committed, receiver) = oneshot::channel();
        self.queue(record, Waiter::Caller(committed)).map(|()| Committed::new(receiver))
    }

    fn queue(&self, record: Record, waiter: Waiter) -> Result<(), JournalFull> {
        match self.commands.try_send(Command { record, waiter }) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => Err(JournalFull {
                record: match command.record {
                    Record::Answered(cdr, _) | Record::Ended(cdr, _) => Some(cdr),
                    Record::Tick(_) => None,
                },
            }),
        }
    }
}

#[derive(Debug)]
struct Command {
    record: Record,
    waiter: Waiter,
}

/// The thread that owns the file.
struct Appender {
    dir: PathBuf,
    storage: Box<dyn Storage>,
    reserve_bytes: u64,
    current: Segment,
    queue: Receiver<Command>,
    open_calls: HashSet<CallId>,
    /// The records that are not durable yet, in their stored form.
    bytes: Vec<u8>,
    /// How many of these bytes are in the segment already.
    written: usize,
    /// The same records for the reader, each with its length in bytes.
    taken: Vec<(usize, Passed)>,
    /// The callers that wait for the records that are not durable yet.
    waiting: Vec<Waiter>,
    progress: Arc<Progress>,
    _lock: File,
}

impl Appender {
    fn run(&mut self, beat: &Beat) {
        // When the records that no caller waits for must be durable.
        let mut due = never();
        loop {
            let received = crossbeam_channel::select! {
                recv(self.queue) -> received => Some(received),
                recv(due) -> _ => None,
            };
            beat.beat();
            let was_durable = self.written == 0;
            let written = match received {
                Some(Ok(first)) => {
                    self.take(first);
                    if self.is_awaited() { Some(Ok(())) } else { self.write_on().err().map(Err) }
                }
                None => Some(Ok(())),
                Some(Err(_)) => break,
            };
            if let Some(written) = written {
                self.write(written);
                due = never();
            } else if was_durable && self.written > 0 {
                due = after(SYNC_WITHIN);
            }
            self.look_at_the_disk();
        }
        if !self.bytes.is_empty() {
            self.write(Ok(()));
        }
        self.progress.closed.store(true, Ordering::Release);
        self.progress.written.notify_one();
    }

    /// After a panic: writes all records that were passed so far to a new segment. The process ends afterwards.
    fn rescue(&mut self) {
        self.progress.failing.store(true, Ordering::Relaxed);
        if let Ok(first) = self.queue.try_recv() {
            self.take(first);
        }
        if let Err(error) = self.rotate(false).and_then(|()| self.current.append(&self.bytes)) {
            tracing::error!(%error, dir = %self.dir.display(), "the last call records could not be written");
            return;
        }
        self.publish();
        self.tell();
    }

    /// Takes a record and those queued after it.
    fn take(&mut self, first: Command) {
        for command in std::iter::once(first).chain(self.queue.try_iter().take(BATCH_LEN_MAX)) {
            match &command.record {
                Record::Answered(cdr, _) => {
                    self.open_calls.insert(cdr.call_uuid);
                }
                Record::Ended(cdr, _) => {
                    self.open_calls.remove(&cdr.call_uuid);
                }
                Record::Tick(_) => {}
            }
            // Without an answered call, no end depends on a tick.
            if !(matches!(command.record, Record::Tick(_)) && self.open_calls.is_empty()) {
                let start = self.bytes.len();
                let is_whole = encode_or_log(&command.record, &mut self.bytes);
                let passed = if is_whole { Passed::from(command.record) } else { Passed::InFile };
                self.taken.push((self.bytes.len().saturating_sub(start), passed));
            }
            self.waiting.push(command.waiter);
        }
    }

    /// Whether a caller waits for one of the records.
    fn is_awaited(&self) -> bool {
        self.waiting.iter().any(Waiter::waits)
    }

    /// Writes the records without waiting for the disk.
    fn write_on(&mut self) -> io::Result<()> {
        self.waiting.clear();
        let more = self.bytes.get(self.written..).unwrap_or_default();
        if !more.is_empty() {
            self.current.write(more)?;
        }
        self.written = self.bytes.len();
        Ok(())
    }

    /// Makes the records durable, however long it takes; `written` is the result of the last write.
    fn write(&mut self, written: io::Result<()>) {
        self.commit(written);
        self.bytes.clear();
        self.written = 0;
        self.tell();
    }

    fn tell(&mut self) {
        self.waiting.drain(..).for_each(Waiter::tell);
    }

    /// Makes the records durable. A segment whose write or synchronisation failed is replaced by a new one: the state
    /// of its data on the disk is unknown, so it is never written or synchronised again.
    fn commit(&mut self, written: io::Result<()>) {
        let unwritten = self.bytes.get(self.written..).unwrap_or_default();
        let mut result = match written {
            Ok(()) if !self.bytes.is_empty() => self.current.append(unwritten),
            written => written,
        };
        let mut tries = 0;
        while let Err(error) = result {
            self.progress.failed_segments.fetch_add(1, Ordering::Relaxed);
            if !self.progress.failing.swap(true, Ordering::Relaxed) {
                tracing::error!(
                    %error,
                    dir = %self.dir.display(),
                    segment = self.current.number(),
                    "a segment of the call journal cannot be written and is given up for a new one; no new calls are taken meanwhile"
                );
            }
            if tries > 0 {
                std::thread::sleep(RETRY_AFTER);
            }
            tries += 1;
            result = self.rotate(is_full(&error)).and_then(|()| self.current.append(&self.bytes));
        }
        self.progress.failing.store(false, Ordering::Relaxed);
        self.pass_on();
        self.publish();
        if self.current.len_bytes() >= SEGMENT_LEN_MAX
            && let Err(error) = self.rotate(false)
        {
            tracing::warn!(%error, "no new journal segment, the old one keeps growing");
        }
    }

    /// Continues in a new segment; in the reserved space if the disk has no other.
    fn rotate(&mut self, is_full: bool) -> io::Result<()> {
        let next = self.storage.list()?.last().map_or(1, |last| last.saturating_add(1));
        let number = next.max(self.current.number().saturating_add(1));
        let (file, is_short) = create(self.storage.as_mut(), number, is_full)?;
        if is_short {
            self.run_short(RESERVE_IN_USE);
        }
        self.current = Segment::new(number, file);
        self.publish();
        Ok(())
    }

    /// Reserves space on the disk, and reports when only the reserve is left.
    fn look_at_the_disk(&mut self) {
        if self.reserve_bytes == 0 {
            return;
        }
        let free = self.storage.free_bytes();
        self.progress.free_bytes.store(*free.as_ref().unwrap_or(&u64::MAX), Ordering::Relaxed);
        let Ok(free) = free else { return };
        let space = self.progress.space.load(Ordering::Relaxed);
        if space != RESERVE_IN_USE && free < self.margin() {
            self.run_short(RESERVE_LEFT);
            return;
        }
        // Slightly more than necessary: otherwise a disk at its limit would alternate between refusing and accepting
        // calls.
        let wanted = if space == RESERVE_IN_USE { self.reserve_bytes } else { 0 } + 2 * self.margin();
        if space != SPACE_FREE && free < wanted {
            return;
        }
        match self.storage.reserve(self.reserve_bytes) {
            Ok(()) if space != SPACE_FREE => {
                self.progress.space.store(SPACE_FREE, Ordering::Relaxed);
                tracing::info!(
                    free_bytes = free,
                    "the disk of the journal has space again: new calls are accepted"
                );
            }
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(%error, "no space can be set aside for the journal");
                self.run_short(RESERVE_IN_USE);
            }
        }
    }

    fn run_short(&self, space: u8) {
        if self.progress.space.swap(space, Ordering::Relaxed) == SPACE_FREE {
            tracing::error!(
                dir = %self.dir.display(),
                reserve_bytes = self.reserve_bytes,
                "the disk of the journal is full: new calls are refused until there is space, calls that are up keep their records"
            );
        }
    }

    /// Free bytes below which the disk counts as full.
    fn margin(&self) -> u64 {
        (self.reserve_bytes / 8).max(MARGIN_MIN)
    }

    /// Passes the records that are now durable to the reader.
    fn pass_on(&mut self) {
        let len: usize = self.taken.iter().map(|(len, _)| len).sum();
        let start = self.current.len_bytes().saturating_sub(len as u64);
        self.progress.recent.lock().add(self.current.number(), start, self.taken.drain(..));
    }

    fn publish(&self) {
        *self.progress.committed.lock() =
            Mark { segment: self.current.number(), len: self.current.len_bytes() };
        self.progress.written.notify_one();
    }
}

/// Creates a new segment. On a full disk it is in the reserved space; the second value states whether.
fn create(
    storage: &mut dyn Storage,
    number: u64,
    is_full_already: bool,
) -> io::Result<(Box<dyn SegmentFile>, bool)> {
    if is_full_already && let Some(file) = storage.take_reserve(number)? {
        return Ok((file, true));
    }
    match storage.create(number) {
        Ok(file) => Ok((file, false)),
        Err(error) if is_full(&error) => Ok((storage.take_reserve(number)?.ok_or(error)?, true)),
        Err(error) => Err(error),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Reads the segments of earlier runs: ends the calls that a crash interrupted, and lists the credit deductions of
/// ended calls, which may be missing in the database.
fn recover(dir: &Path, segments: &[u64]) -> io::Result<(Recovery, Vec<Cdr>, Vec<Undrawn>)> {
    let mut recovery = Recovery { segments: segments.len(), ..Recovery::default() };
    let mut open_calls: HashMap<CallId, (Box<Cdr>, Timestamp)> = HashMap::new();
    let mut undrawn = Vec::new();
    let mut alive_at = Timestamp::from_micros(i64::MIN);
    for number in segments {
        let file = File::open(segment::path_of(dir, *number))?;
        let end = file.metadata()?.len();
        if !segment::has_head(&file)? {
            recovery.damaged_segments += 1;
            continue;
        }
        let mut offset = segment::HEAD_LEN;
        loop {
            match segment::read(&file, offset, end)? {
                Step::Good(record, next) => {
                    offset = next;
                    match record {
                        Record::Answered(cdr, steady) => {
                            let answered = steady.unwrap_or(cdr.answered_at.unwrap_or(cdr.started_at));
                            alive_at = alive_at.max(answered);
                            open_calls.insert(cdr.call_uuid, (cdr, answered));
                        }
                        Record::Ended(cdr, steady) => {
                            let ended = steady.unwrap_or(cdr.ended_at.unwrap_or(cdr.started_at));
                            alive_at = alive_at.max(ended);
                            open_calls.remove(&cdr.call_uuid);
                            undrawn.extend(undrawn_by(&cdr));
                        }
                        Record::Tick(at) => alive_at = alive_at.max(at),
                    }
                }
                Step::Unreadable(next) => offset = next,
                Step::End => break,
                Step::Damaged => {
                    recovery.damaged_segments += 1;
                    tracing::warn!(
                        segment = *number,
                        offset,
                        end,
                        "the journal is torn here; read up to here"
                    );
                    break;
                }
            }
        }
    }
    let ended = |(cdr, answered): (Box<Cdr>, Timestamp)| end_by_crash(*cdr, alive_at.since(answered));
    let mut crashed: Vec<Cdr> = open_calls.into_values().map(ended).collect();
    crashed.sort_unstable_by_key(|cdr| (cdr.started_at, cdr.call_uuid));
    recovery.crashed_calls = crashed.len();
    Ok((recovery, crashed, undrawn))
}

/// The record of a call whose node crashed: it lasted until the last tick, `lasted_us` after the answer, regardless
/// of wall clock changes in between.
pub(crate) fn end_by_crash(mut cdr: Cdr, lasted_us: i64) -> Cdr {
    let answered_at = cdr.answered_at.unwrap_or(cdr.started_at);
    let lasted_us = lasted_us.max(0);
    cdr.ended_at = Some(answered_at.plus_micros(lasted_us));
    cdr.billsec = u32::try_from(lasted_us / 1_000_000).unwrap_or(u32::MAX);
    cdr.hangup_cause = Some(HangupCause::Crash);
    cdr.ended_by = Some(EndedBy::System);
    cdr
}

fn undrawn_by(cdr: &Cdr) -> Option<Undrawn> {
    let draw = cdr.billing.credit?;
    Some(Undrawn { organisation: cdr.organisation_id, call: cdr.call_uuid, amount: draw.amount })
}

/// Returns whether the complete record was encoded.
fn encode_or_log(record: &Record, bytes: &mut Vec<u8>) -> bool {
    let Err(mut error) = segment::encode(record, bytes) else { return true };
    // The record is kept without its details.
    if let Record::Ended(cdr, steady) = record
        && cdr.media.is_some()
    {
        tracing::error!(%error, call.id = %cdr.call_uuid, "a call is journalled without the figures of its media");
        let bare = Record::Ended(Box::new(Cdr { media: None, ..Cdr::clone(cdr) }), *steady);
        match segment::encode(&bare, bytes) {
            Ok(()) => return false,
            Err(again) => error = again,
        }
    }
    // Unreachable with records of this build: the SIP parser limits the length of their texts.
    tracing::error!(%error, "a call record cannot be journalled");
    false
}

/// The smallest free space that counts as enough.
const MARGIN_MIN: u64 = 64 * 1024;
/// Records in one sync.
const BATCH_LEN_MAX: usize = 1024;
/// When more records than this wait, the next ones lose the rows of their timelines, so that a stalled disk
/// costs details, not memory. 1,024 calls of three minutes are about 30 MB.
pub const DETAILED_LEN_MAX: usize = 1_024;
pub(crate) const LOCK_FILE: &str = "lock";
/// Records that wait for the thread; about 10 MB without timelines, which [`DETAILED_LEN_MAX`] limits.
const QUEUE_LEN_MAX: usize = 16_384;
/// The pause before a disk that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest time until a record that no caller waits for is durable.
const SYNC_WITHIN: Duration = Duration::from_millis(20);
/// Bytes after which a segment is closed: a thousand calls of three minutes.
const SEGMENT_LEN_MAX: u64 = 16 * 1024 * 1024;
