//! The thread that writes traces, and the handle that starts them.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use sidetone_media::trace::{BLOCK_BYTES, TraceHead, TraceSink};
use sidetone_media::verdict::RULES_VERSION;
use sidetone_model::time::Timestamp;
use sidetone_switch::io::LegName;

use crate::driver::Tracing;
use crate::recorder::{DataDisk, Disk as _};
use crate::supervise::{Beat, Supervisor, Task};
use crate::traces::counters::TraceCounters;
use crate::traces::days::{Days, day_of};
use crate::traces::sink::{Block, FileSink, TraceFile};

/// `[media] trace` and `trace_days`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Whether legs that open from now on are traced.
    pub on: bool,
    /// How many days a trace is kept.
    pub days: u32,
}

/// The traces of a node.
pub struct Traces {
    begins: TraceBegins,
    thread: Option<JoinHandle<Writer>>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
}

/// Starts traces; clones share the thread.
#[derive(Clone, Debug)]
pub struct TraceBegins {
    dir: PathBuf,
    node: String,
    settings: Arc<Shared>,
    blocks: Sender<Block>,
    empties: Receiver<Vec<u8>>,
    counters: Arc<TraceCounters>,
    clock: fn() -> Timestamp,
}

#[derive(Debug)]
struct Shared {
    on: AtomicBool,
    days: AtomicU32,
}

impl Traces {
    /// Starts the thread; traces are stored below `dir`. Data that would leave less than `reserve_bytes` free on the
    /// disk is not written.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start(
        dir: PathBuf,
        node: String,
        settings: TraceSettings,
        reserve_bytes: u64,
        clock: fn() -> Timestamp,
        supervisor: &Supervisor,
    ) -> io::Result<Traces> {
        let (blocks, received) = bounded(BLOCKS_MAX);
        let (emptied, empties) = bounded(BLOCKS_MAX);
        let (stop, stopped) = bounded(0);
        let shared =
            Arc::new(Shared { on: AtomicBool::new(settings.on), days: AtomicU32::new(settings.days) });
        let counters = Arc::new(TraceCounters::default());
        let writer = Writer {
            disk: DataDisk::new(dir.clone()),
            reserve_bytes,
            blocks: received,
            emptied,
            days: Days::new(dir.clone(), clock()),
            settings: Arc::clone(&shared),
            counters: Arc::clone(&counters),
            clock,
            room: None,
            troubled: false,
        };
        let run = move |writer: &mut Writer, beat: &Beat| writer.run(&stopped, beat);
        let thread = supervisor.keep_thread(Task::Traces, writer, run)?;
        let begins = TraceBegins { dir, node, settings: shared, blocks, empties, counters, clock };
        Ok(Traces { begins, thread: Some(thread), stop: Some(stop) })
    }

    /// Returns the handle that starts traces.
    pub fn begins(&self) -> TraceBegins {
        self.begins.clone()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<TraceCounters> {
        Arc::clone(&self.begins.counters)
    }

    /// Sets new settings for legs that open from now on.
    pub fn set(&self, settings: TraceSettings) {
        self.begins.settings.on.store(settings.on, Relaxed);
        self.begins.settings.days.store(settings.days, Relaxed);
    }

    /// Writes the remaining blocks, and stops.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the trace thread stopped unexpectedly");
        }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.join();
    }
}

impl Tracing for TraceBegins {
    fn begin(&self, leg: LegName) -> Option<(TraceHead, Arc<dyn TraceSink>)> {
        if !self.settings.on.load(Relaxed) {
            return None;
        }
        let name = format!("{}/{}-{leg}.trace", day_of((self.clock)()), leg.call);
        let head = TraceHead {
            call: leg.call.to_string(),
            leg: leg.to_string(),
            node: self.node.clone(),
            rules: RULES_VERSION.to_owned(),
            ..TraceHead::default()
        };
        let file = TraceFile { path: self.dir.join(&name), name, over: AtomicBool::new(false) };
        let sink = FileSink {
            file: Arc::new(file),
            blocks: self.blocks.clone(),
            empties: self.empties.clone(),
            counters: Arc::clone(&self.counters),
        };
        self.counters.begun.fetch_add(1, Relaxed);
        Some((head, Arc::new(sink)))
    }
}

struct Writer {
    disk: DataDisk,
    reserve_bytes: u64,
    blocks: Receiver<Block>,
    emptied: Sender<Vec<u8>>,
    days: Days,
    settings: Arc<Shared>,
    counters: Arc<TraceCounters>,
    clock: fn() -> Timestamp,
    /// Bytes that may be written before the free space is checked again.
    room: Option<u64>,
    /// Whether the disk has failed and this was logged.
    troubled: bool,
}

impl Writer {
    fn run(&mut self, stopped: &Receiver<()>, beat: &Beat) {
        loop {
            beat.beat();
            crossbeam_channel::select! {
                recv(self.blocks) -> block => match block {
                    Ok(block) => self.write(block),
                    Err(_) => return,
                },
                recv(stopped) -> _ => break,
                default(IDLE) => self.room = None,
            }
            self.delete();
        }
        // Blocks that legs passed before the end are written.
        while let Ok(block) = self.blocks.recv_timeout(Duration::ZERO) {
            self.write(block);
        }
    }

    fn write(&mut self, block: Block) {
        let Block { file, mut bytes } = block;
        if file.over.load(Relaxed) {
            self.counters.dropped.fetch_add(1, Relaxed);
        } else if let Err(error) = self.append(&file.path, &bytes) {
            file.over.store(true, Relaxed);
            self.room = None;
            self.counters.failed.fetch_add(1, Relaxed);
            self.counters.dropped.fetch_add(1, Relaxed);
            if !std::mem::replace(&mut self.troubled, true) {
                tracing::warn!(%error, "traces of legs cannot be written now; calls continue without them");
            }
        } else {
            self.counters.bytes.fetch_add(bytes.len() as u64, Relaxed);
            if std::mem::take(&mut self.troubled) {
                tracing::info!("traces of legs can be written again");
            }
        }
        bytes.clear();
        // A buffer that has grown, or that does not fit back into the channel, is dropped.
        if bytes.capacity() <= 2 * BLOCK_BYTES {
            let _ = self.emptied.try_send(bytes);
        }
    }

    /// Appends to one file; none stays open, so that any number of legs can be traced.
    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len() as u64;
        let room = match self.room {
            Some(room) if room >= len => room,
            _ => self.disk.free_bytes()?.saturating_sub(self.reserve_bytes).min(ROOM_MAX),
        };
        self.room = Some(room.checked_sub(len).ok_or(io::ErrorKind::StorageFull)?);
        let mut open = OpenOptions::new();
        open.append(true).create(true).mode(0o600);
        let mut file = match (open.open(path), path.parent()) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
                open.open(path)?
            }
            (file, _) => file?,
        };
        file.write_all(bytes)
    }

    /// Deletes some old files, while nothing waits to be written.
    fn delete(&mut self) {
        while self.blocks.is_empty() {
            let now = (self.clock)();
            match self.days.step(now, self.settings.days.load(Relaxed)) {
                Ok(0) => return,
                Ok(deleted) => {
                    self.counters.deleted.fetch_add(deleted, Relaxed);
                }
                Err(error) => {
                    tracing::warn!(%error, "expired traces cannot be deleted now");
                    return self.days.rest(now);
                }
            }
        }
    }
}

/// Blocks that wait for the disk: 8 MiB.
const BLOCKS_MAX: usize = 4_096;
/// How long the thread sleeps when there is nothing to write.
const IDLE: Duration = Duration::from_secs(1);
/// Bytes after which the free space is checked again.
const ROOM_MAX: u64 = 16 << 20;
