//! Threads that read a file ahead of the engine; the engine's own thread helps when they are too slow.
//!
//! A plain file is copied block by block, by any thread that has time, each block from its own position; a compressed
//! file is unpacked by one reader. [`super::read_schedule`] decides the order of all steps.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::thread;

use parking_lot::{Condvar, Mutex};
use sidetone_media::pcap::Record;

use super::engine::Engine;
use super::feed::Feed;
use super::frames::Frames;
use super::gzip::Plain;
use super::outcome::{Broken, End};
use super::read_schedule::{Cut, Schedule, Step};

/// How a file is read ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    /// Threads in addition to the engine's own.
    pub(super) readers: usize,
    /// Bytes that one read takes.
    pub(super) block_len: usize,
}

impl ReadAhead {
    /// The settings for this number of threads, including the engine's own.
    pub(super) fn with_threads(threads: usize) -> Self {
        ReadAhead { readers: threads.saturating_sub(1).min(READERS_MAX), block_len: BLOCK_LEN }
    }

    /// Whether reading `file` ahead is possible and worth a thread.
    pub(super) fn suits(&self, file: &File) -> bool {
        self.readers > 0
            && file.metadata().is_ok_and(|file| file.is_file() && file.len() > self.block_len as u64)
    }

    /// Feeds the engine with `file`, of which `begins` was read already; `input` reads what follows.
    ///
    /// Returns `input` unread when the system cannot start a thread.
    pub(super) fn drive<'f>(
        &self,
        engine: &mut Engine,
        begins: &[u8],
        (file, input): (&'f File, Plain<&'f File>),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<End, Plain<&'f File>> {
        let is_compressed = input.is_compressed();
        let mut feed = Feed::default();
        if is_compressed {
            // No capture has a complete frame in so few bytes.
            if let Err(damage) = feed.take(begins, |_| ()) {
                return Ok(Err(damage.into()));
            }
        }
        let readers = if is_compressed { self.readers.min(1) } else { self.readers };
        let shared = Shared {
            schedule: Mutex::new(Schedule::new(feed, readers, !is_compressed)),
            changed: Condvar::new(),
            listens: engine.listens(),
        };
        let input = Mutex::new(Some(input));
        let bytes = || match is_compressed {
            true => input.lock().take().map(Bytes::Unpacked),
            false => Some(Bytes::At(file)),
        };
        let own = Blocks::new(Bytes::At(file), self.block_len);
        let end = thread::scope(|scope| {
            // However this ends, the readers are notified.
            let closing = Closing(&shared);
            let read = || {
                let failing = Failing(&shared);
                if let Some(bytes) = bytes() {
                    shared.read(Blocks::new(bytes, self.block_len));
                }
                drop(failing);
            };
            let start = |_| thread::Builder::new().name("reader".to_owned()).spawn_scoped(scope, read).ok();
            let threads: Vec<_> = (0..readers).map_while(start).collect();
            let end = (!threads.is_empty()).then(|| shared.run(engine, own, progress)).flatten();
            drop(closing);
            for thread in threads {
                // A panic of a reader becomes a panic of the engine, with the same message.
                thread.join().unwrap_or_else(|message| resume_unwind(message));
            }
            end
        });
        match (end, input.into_inner()) {
            (Some(end), _) => Ok(end),
            (None, Some(input)) => Err(input),
            // Only a panic leads here, and it was already propagated.
            (None, None) => Ok(Ok(())),
        }
    }
}

/// State that all threads share.
struct Shared {
    schedule: Mutex<Schedule>,
    changed: Condvar,
    listens: bool,
}

impl Shared {
    /// Runs a reader until there is nothing more to do.
    fn read(&self, mut blocks: Blocks<'_>) {
        loop {
            let (oldest, copied) = blocks.state();
            match self.wait(|schedule| schedule.reader(oldest, copied)) {
                Step::Copy(block) => self.copy(&mut blocks, block),
                Step::Cut(feed, frames) => self.cut(&mut blocks, feed, frames),
                Step::Fail | Step::Leave | Step::Take(_) | Step::Wait => return,
            }
        }
    }

    /// Runs the engine until the end; `None` when a reader has panicked.
    fn run(
        &self,
        engine: &mut Engine,
        mut blocks: Blocks<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Option<End> {
        loop {
            let (oldest, copied) = blocks.state();
            match self.wait(|schedule| schedule.engine(oldest, copied)) {
                Step::Copy(block) => self.copy(&mut blocks, block),
                Step::Cut(feed, frames) => self.cut(&mut blocks, feed, frames),
                Step::Take(Cut { frames, taken, end }) => {
                    engine.frames(&frames);
                    progress(taken, engine.packets());
                    if end.is_some() {
                        return end;
                    }
                    if engine.must_stop() {
                        return Some(Ok(()));
                    }
                    if self.schedule.lock().give_back(frames) {
                        self.changed.notify_all();
                    }
                }
                Step::Fail | Step::Leave | Step::Wait => return None,
            }
        }
    }

    fn copy(&self, blocks: &mut Blocks<'_>, number: u64) {
        if blocks.copy(number) {
            // No thread waits for that.
            self.schedule.lock().end();
        }
    }

    fn cut(&self, blocks: &mut Blocks<'_>, mut feed: Box<Feed>, mut frames: Frames) {
        let (taken, end) = blocks.cut(&mut feed, |record| frames.push(record, self.listens));
        frames.times = feed.times();
        self.change(|schedule| schedule.leave(Cut { frames, taken, end }, feed));
    }

    /// Returns the next step other than waiting.
    fn wait(&self, mut step: impl FnMut(&mut Schedule) -> Step) -> Step {
        let mut schedule = self.schedule.lock();
        // Every change wakes all waiting threads.
        loop {
            match step(&mut schedule) {
                Step::Wait => self.changed.wait(&mut schedule),
                step => return step,
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Schedule)) {
        change(&mut self.schedule.lock());
        self.changed.notify_all();
    }
}

/// Makes the readers leave when dropped.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.change(Schedule::close);
    }
}

/// Notifies the engine when a reader panics.
struct Failing<'a>(&'a Shared);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.change(Schedule::fail);
        }
    }
}

/// The source of a block's bytes.
enum Bytes<'a> {
    /// From the block's position in the file.
    At(&'a File),
    /// From a decompressor, in order.
    Unpacked(Plain<&'a File>),
}

/// Blocks that one thread has copied and not cut into frames yet, the oldest first.
struct Blocks<'a> {
    bytes: Bytes<'a>,
    len: usize,
    copied: VecDeque<Block>,
    free: Vec<Vec<u8>>,
    /// Bytes of the file that were read.
    taken: u64,
}

/// A part of the file.
struct Block {
    number: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are filled.
    len: usize,
    /// Bytes of the file that were read up to here.
    taken: u64,
    /// Set if no block follows, with the reason if there is one.
    last: Option<io::Result<()>>,
}

impl<'a> Blocks<'a> {
    fn new(bytes: Bytes<'a>, len: usize) -> Self {
        Blocks { bytes, len, copied: VecDeque::new(), free: Vec::new(), taken: 0 }
    }

    /// Returns the number of the oldest block, and how many blocks there are.
    fn state(&self) -> (Option<u64>, usize) {
        (self.copied.front().map(|block| block.number), self.copied.len())
    }

    /// Copies a block; returns whether it is the last.
    fn copy(&mut self, number: u64) -> bool {
        let mut buffer = self.free.pop().unwrap_or_else(|| vec![0; self.len]);
        let begin = number.saturating_mul(self.len as u64);
        let (mut len, mut last) = (0, None);
        // Each turn fills at least one byte, or is the last.
        while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
            let read = match &mut self.bytes {
                Bytes::At(file) => file.read_at(rest, begin.saturating_add(len as u64)),
                Bytes::Unpacked(input) => input.read(rest),
            };
            match read {
                Ok(0) => {
                    last = Some(Ok(()));
                    break;
                }
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    last = Some(Err(error));
                    break;
                }
            }
        }
        let taken = match &self.bytes {
            Bytes::At(_) => begin.saturating_add(len as u64),
            Bytes::Unpacked(input) => input.taken(),
        };
        // After its end an input no longer reports the number of bytes read.
        self.taken = self.taken.max(taken);
        let is_last = last.is_some();
        self.copied.push_back(Block { number, buffer, len, taken: self.taken, last });
        is_last
    }

    /// Cuts the oldest block into frames; returns the position in the file after it, and why no block follows.
    #[inline]
    fn cut(&mut self, feed: &mut Feed, each: impl FnMut(&Record<'_>)) -> (u64, Option<End>) {
        let Some(Block { buffer, len, taken, last, .. }) = self.copied.pop_front() else { return (0, None) };
        let cut = feed.take(buffer.get(..len).unwrap_or_default(), each);
        self.free.push(buffer);
        let end = match (cut, last) {
            (Err(damage), _) => Some(Err(damage.into())),
            (Ok(()), None) => None,
            (Ok(()), Some(Ok(()))) => Some(feed.finish().map_err(Broken::from)),
            (Ok(()), Some(Err(error))) => Some(Err(error.into())),
        };
        (taken, end)
    }
}

/// Readers of one file: the engine cannot keep up with more.
const READERS_MAX: usize = 7;
/// A copied block and its frames stay in the cache of the core that handles both.
const BLOCK_LEN: usize = 512 << 10;

#[cfg(test)]
#[path = "read_ahead_tests.rs"]
mod tests;
