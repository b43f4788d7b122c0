//! The call journal: what must not be lost when the process dies, on the disk before anything
//! else happens with it.
//!
//! The switch says `answered`, `tick` every five seconds, and `ended`; none of them blocks. One
//! thread appends whatever has queued up and makes it durable with one `fdatasync` for all
//! (group commit: the wait is that of one sync, a few milliseconds). The database writer reads
//! the records back from the files, so a database that is away costs disk, not memory, and no
//! call. After a crash [`Journal::open`] gives every call that was answered and has no end
//! one: cause `CRASH`, at the last instant the node is known to have lived.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError};
use parking_lot::Mutex;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use sidetone_model::rating::Undrawn;
use sidetone_model::time::Timestamp;
use tokio::sync::{Notify, oneshot};

use crate::cdr::reader::JournalReader;
use crate::cdr::segment::{self, Record, Segment, Step};

/// The writing end of the journal of one node; clones share it.
///
/// When the last clone is dropped the journal is closed, and [`JournalReader`] ends once
/// everything has been read.
#[derive(Debug, Clone)]
pub struct Journal {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process writes it.
    #[error("open the journal in {}: another process uses it, stop that one first", dir.display())]
    InUse {
        /// Where the journal is.
        dir: PathBuf,
    },
    /// The disk refuses.
    #[error("open the journal in {}: {source}", dir.display())]
    Io {
        /// Where the journal is.
        dir: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The journal's queue is full: its disk has stalled. The record comes back to be tried again.
#[derive(Debug, thiserror::Error)]
#[error("journal the call: the queue of {QUEUE_LEN_MAX} records is full, the disk is too slow or gone")]
pub struct JournalFull {
    /// The record that was not taken; `None` for a tick.
    pub record: Option<Box<Cdr>>,
}

/// Completes with `true` once a record is on the disk, with `false` when the journal ended before.
#[derive(Debug)]
pub struct Committed(oneshot::Receiver<()>);

/// What [`Journal::open`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Calls that had been answered and now end with `CRASH`.
    pub crashed_calls: usize,
    /// Segments whose end was torn or damaged; what stood before the damage was read.
    pub damaged_segments: usize,
    /// Segments of earlier runs.
    pub segments: usize,
}

impl Journal {
    /// Opens the journal in `dir`, which is created when it is not there, ends the calls that a
    /// crash interrupted, and starts the thread.
    ///
    /// # Errors
    /// When another process has the journal open, or the disk refuses.
    pub fn open(dir: &Path) -> Result<(Self, JournalReader, Recovery), JournalError> {
        Self::open_settling(dir, &|_| {})
    }

    /// As [`Journal::open`]; a call that a crash interrupted is settled by `settle` once it has its end, at the
    /// prices that its `answered` record carries.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_settling(
        dir: &Path,
        settle: &dyn Fn(&mut Cdr),
    ) -> Result<(Self, JournalReader, Recovery), JournalError> {
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
        let mut current = Segment::create(dir, number).map_err(failed)?;
        let mut bytes = Vec::new();
        for cdr in crashed {
            encode_or_log(&Record::Ended(Box::new(cdr)), &mut bytes);
        }
        current.append(&bytes).map_err(failed)?;

        let shared = Arc::new(Shared {
            committed: Mutex::new(Mark { segment: number, len: current.len_bytes() }),
            closed: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            written: Notify::new(),
        });
        let (commands, queue) = crossbeam_channel::bounded(QUEUE_LEN_MAX);
        let appender = Appender { dir: dir.to_path_buf(), current, shared: Arc::clone(&shared), _lock: lock };
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || appender.run(&queue))
            .map_err(failed)?;
        let reader = JournalReader::new(dir, Arc::clone(&shared), undrawn);
        Ok((Self { commands, shared }, reader, recovery))
    }

    /// Notes that a call was answered; `record` is what is known of it, without an end.
    ///
    /// The promise that an answered call has a record holds from the moment the returned
    /// [`Committed`] completes: who waits for it before sending the 200 promises it to the caller.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn answered(&self, record: Cdr) -> Result<Committed, JournalFull> {
        self.send(Record::Answered(Box::new(record)))
    }

    /// Notes that the node, and with it every answered call, is alive; said every five seconds.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn tick(&self, at: Timestamp) -> Result<Committed, JournalFull> {
        self.send(Record::Tick(at))
    }

    /// Hands over the whole record of a call that is over, answered or not.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn ended(&self, record: Cdr) -> Result<Committed, JournalFull> {
        self.send(Record::Ended(Box::new(record)))
    }

    /// Whether the disk took the last records.
    pub fn is_healthy(&self) -> bool {
        !self.shared.failing.load(Ordering::Relaxed)
    }

    /// How many records wait for the disk.
    pub fn queue_len(&self) -> usize {
        self.commands.len()
    }

    fn send(&self, record: Record) -> Result<Committed, JournalFull> {
        let (committed, receiver) = oneshot::channel();
        match self.commands.try_send(Command { record, committed }) {
            Ok(()) => Ok(Committed(receiver)),
            Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => Err(JournalFull {
                record: match command.record {
                    Record::Answered(cdr) | Record::Ended(cdr) => Some(cdr),
                    Record::Tick(_) => None,
                },
            }),
        }
    }
}

impl Committed {
    /// Waits without a runtime; `true` once the record is on the disk.
    pub fn wait(self) -> bool {
        self.0.blocking_recv().is_ok()
    }
}

impl Future for Committed {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        Pin::new(&mut self.0).poll(context).map(|result| result.is_ok())
    }
}

/// How far the journal is durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) segment: u64,
    pub(super) len: u64,
}

/// What the thread and the reader both see.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) committed: Mutex<Mark>,
    pub(super) closed: AtomicBool,
    pub(super) failing: AtomicBool,
    pub(super) written: Notify,
}

#[derive(Debug)]
struct Command {
    record: Record,
    committed: oneshot::Sender<()>,
}

/// The thread that owns the file.
struct Appender {
    dir: PathBuf,
    current: Segment,
    shared: Arc<Shared>,
    _lock: File,
}

impl Appender {
    fn run(mut self, queue: &Receiver<Command>) {
        let mut open_calls: HashSet<CallId> = HashSet::new();
        let mut bytes = Vec::new();
        let mut waiting = Vec::new();
        while let Ok(first) = queue.recv() {
            bytes.clear();
            for command in std::iter::once(first).chain(queue.try_iter().take(BATCH_LEN_MAX)) {
                match &command.record {
                    Record::Answered(cdr) => {
                        open_calls.insert(cdr.call_uuid);
                    }
                    Record::Ended(cdr) => {
                        open_calls.remove(&cdr.call_uuid);
                    }
                    Record::Tick(_) => {}
                }
                // Nobody's end depends on a tick without an answered call.
                if !(matches!(command.record, Record::Tick(_)) && open_calls.is_empty()) {
                    encode_or_log(&command.record, &mut bytes);
                }
                waiting.push(command.committed);
            }
            self.commit(&bytes);
            for committed in waiting.drain(..) {
                // Who does not wait has dropped the other end.
                let _ = committed.send(());
            }
        }
        self.shared.closed.store(true, Ordering::Release);
        self.shared.written.notify_one();
    }

    /// Makes `bytes` durable, however long it takes: in a new segment when this one fails, since
    /// after a failed sync nobody knows what the disk holds.
    fn commit(&mut self, bytes: &[u8]) {
        let mut result = if bytes.is_empty() { Ok(()) } else { self.current.append(bytes) };
        while let Err(error) = result {
            if !self.shared.failing.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, dir = %self.dir.display(), "the call journal cannot be written");
            }
            std::thread::sleep(RETRY_AFTER);
            result = self.rotate().and_then(|()| self.current.append(bytes));
        }
        self.shared.failing.store(false, Ordering::Relaxed);
        self.publish();
        if self.current.len_bytes() >= SEGMENT_LEN_MAX
            && let Err(error) = self.rotate()
        {
            tracing::warn!(%error, "no new journal segment, the old one grows on");
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = segment::list(&self.dir)?.last().map_or(1, |last| last.saturating_add(1));
        self.current = Segment::create(&self.dir, next.max(self.current.number().saturating_add(1)))?;
        self.publish();
        Ok(())
    }

    fn publish(&self) {
        *self.shared.committed.lock() =
            Mark { segment: self.current.number(), len: self.current.len_bytes() };
        self.shared.written.notify_one();
    }
}

/// Reads what earlier runs left: ends the calls that a crash interrupted, and notes what ended calls take from
/// credits, which the database may not know yet.
fn recover(dir: &Path, segments: &[u64]) -> io::Result<(Recovery, Vec<Cdr>, Vec<Undrawn>)> {
    let mut recovery = Recovery { segments: segments.len(), ..Recovery::default() };
    let mut open_calls: HashMap<CallId, Box<Cdr>> = HashMap::new();
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
                        Record::Answered(cdr) => {
                            alive_at = alive_at.max(cdr.answered_at.unwrap_or(cdr.started_at));
                            open_calls.insert(cdr.call_uuid, cdr);
                        }
                        Record::Ended(cdr) => {
                            alive_at = alive_at.max(cdr.ended_at.unwrap_or(cdr.started_at));
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
    let mut crashed: Vec<Cdr> = open_calls.into_values().map(|cdr| end_by_crash(*cdr, alive_at)).collect();
    crashed.sort_unstable_by_key(|cdr| (cdr.started_at, cdr.call_uuid));
    recovery.crashed_calls = crashed.len();
    Ok((recovery, crashed, undrawn))
}

/// The record of a call whose node died: it lasted until the node was last known to live.
fn end_by_crash(mut cdr: Cdr, alive_at: Timestamp) -> Cdr {
    let answered_at = cdr.answered_at.unwrap_or(cdr.started_at);
    let ended_at = alive_at.max(answered_at);
    let seconds = ended_at.since(answered_at) / 1_000_000;
    cdr.ended_at = Some(ended_at);
    cdr.billsec = u32::try_from(seconds).unwrap_or(u32::MAX);
    cdr.hangup_cause = Some(HangupCause::Crash);
    cdr
}

fn undrawn_by(cdr: &Cdr) -> Option<Undrawn> {
    let draw = cdr.billing.credit?;
    Some(Undrawn { organisation: cdr.organisation_id, call: cdr.call_uuid, amount: draw.amount })
}

fn encode_or_log(record: &Record, bytes: &mut Vec<u8>) {
    let Err(mut error) = segment::encode(record, bytes) else { return };
    // A record is worth more than what is kept beside it.
    if let Record::Ended(cdr) = record
        && cdr.media.is_some()
    {
        tracing::error!(%error, call.id = %cdr.call_uuid, "a call is journalled without the figures of its media");
        let bare = Record::Ended(Box::new(Cdr { media: None, ..Cdr::clone(cdr) }));
        match segment::encode(&bare, bytes) {
            Ok(()) => return,
            Err(again) => error = again,
        }
    }
    // Unreachable with records of this build: their texts are bounded by the SIP parser.
    tracing::error!(%error, "a call record cannot be journalled");
}

/// Records in one sync.
const BATCH_LEN_MAX: usize = 1024;
/// More records than this that wait, and the next are given without the rows of their timelines: a disk that stalls
/// costs details, not memory. 1,024 calls of three minutes are about 30 MB.
pub const DETAILED_LEN_MAX: usize = 1_024;
const LOCK_FILE: &str = "lock";
/// Records that wait for the thread; about 10 MB without timelines, which [`DETAILED_LEN_MAX`] bounds.
const QUEUE_LEN_MAX: usize = 16_384;
/// The pause before a disk that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Bytes after which a segment is closed: a thousand calls of three minutes.
const SEGMENT_LEN_MAX: u64 = 16 * 1024 * 1024;
