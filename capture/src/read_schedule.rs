//! Decides which thread handles which block of a file: any number of readers, and the engine. This module starts no
//! threads.
//!
//! Any thread copies the next block of the file that is not taken yet, whenever it has time. The position of the first
//! frame of a block is known only after the previous block was cut into frames. So the [`Feed`] is passed from block to
//! block in the order of the file, and its holder may cut. The frames wait for the engine in that order. The engine
//! cuts a block of its own only when no frames wait, and also into frames first: if it processed each frame
//! immediately, the readers would have to wait for the feed during that time.

use std::collections::VecDeque;

use super::feed::Feed;
use super::frames::Frames;
use super::outcome::End;

/// The state of all blocks.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The first block that no thread has taken.
    next: u64,
    /// The block that is being cut, or is next.
    cutting: u64,
    /// The state for cutting the next block; `None` while a thread cuts, and after the last block.
    feed: Option<Box<Feed>>,
    /// Frames that were cut and not taken by the engine, in the order of the file.
    cut: VecDeque<Cut>,
    free: Vec<Frames>,
    /// The number of free buffers from which on a reader is woken.
    wakes_from: usize,
    /// Whether the engine copies blocks as well.
    engine_copies: bool,
    /// Whether the end of the file was seen: there are no more blocks.
    ended: bool,
    /// Whether there is nothing more to do for readers.
    closed: bool,
    /// Whether a reader has panicked.
    failed: bool,
}

/// A block that was cut by a reader.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) frames: Frames,
    /// The position in the file after the block.
    pub(super) taken: u64,
    /// Why no block follows.
    pub(super) end: Option<End>,
}

/// The next step of a thread.
#[derive(Debug)]
pub(super) enum Step {
    /// Copy that block.
    Copy(u64),
    /// Cut its oldest block.
    Cut(Box<Feed>, Frames),
    /// A reader has panicked; only for the engine.
    Fail,
    /// Leave, because there is nothing more to do; only for readers.
    Leave,
    /// Take these frames; only for the engine.
    Take(Cut),
    /// Wait until something has changed.
    Wait,
}

impl Schedule {
    /// Returns the state for a file whose cutting begins with `feed`, and this number of readers.
    pub(super) fn new(feed: Feed, readers: usize, engine_copies: bool) -> Self {
        let count = readers + CUT_AHEAD;
        let free: Vec<Frames> = (0..count).map(|_| Frames::default()).collect();
        Schedule {
            next: 0,
            cutting: 0,
            feed: Some(Box::new(feed)),
            cut: VecDeque::with_capacity(count),
            free,
            wakes_from: count.div_ceil(2),
            engine_copies,
            ended: false,
            closed: false,
            failed: false,
        }
    }

    /// Returns the next step of a reader that has copied `copied` blocks, of which `oldest` is the oldest.
    pub(super) fn reader(&mut self, oldest: Option<u64>, copied: usize) -> Step {
        if self.closed {
            return Step::Leave;
        }
        self.read(oldest, copied < COPIED_MAX)
    }

    /// The same for the engine.
    pub(super) fn engine(&mut self, oldest: Option<u64>, copied: usize) -> Step {
        if let Some(cut) = self.cut.pop_front() {
            return Step::Take(cut);
        }
        if self.failed {
            return Step::Fail;
        }
        self.read(oldest, self.engine_copies && copied < ENGINE_COPIED_MAX)
    }

    fn read(&mut self, oldest: Option<u64>, has_room: bool) -> Step {
        if oldest == Some(self.cutting)
            && !self.free.is_empty()
            && let Some(feed) = self.feed.take()
        {
            return Step::Cut(feed, self.free.pop().unwrap_or_default());
        }
        if !has_room || self.ended {
            return Step::Wait;
        }
        self.next += 1;
        Step::Copy(self.next - 1)
    }

    /// Records that a block was the last.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes a block that was cut; the next one may be cut now.
    pub(super) fn leave(&mut self, cut: Cut, feed: Box<Feed>) {
        if cut.end.is_some() {
            self.close();
        }
        self.cut.push_back(cut);
        self.cutting += 1;
        self.feed = Some(feed);
    }

    /// Takes back the frames that the engine has processed; returns whether a waiting reader should be woken.
    ///
    /// Waking a reader pays only when it can process several blocks.
    pub(super) fn give_back(&mut self, mut frames: Frames) -> bool {
        frames.clear();
        self.free.push(frames);
        self.free.len() >= self.wakes_from
    }

    /// Ends the readers.
    pub(super) fn close(&mut self) {
        self.ended = true;
        self.closed = true;
    }

    /// A reader has panicked.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.close();
    }
}

/// Blocks that were cut and wait for the engine, in addition to one per reader.
const CUT_AHEAD: usize = 7;
/// Blocks that a reader copies before it may cut the first of them.
const COPIED_MAX: usize = 2;
/// The same for the engine.
const ENGINE_COPIED_MAX: usize = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sidetone_media::pcap::{LinkType, Records, Writer};
    use sidetone_media::time::Micros;

    use super::*;
    use crate::frames::Read;
    use crate::outcome::Broken;

    /// The current activity of a thread.
    enum Doing {
        Copying(u64),
        Cutting(Box<Feed>, Frames),
        Nothing,
        Taking(Cut),
    }

    /// A thread: the engine, or a reader.
    struct Actor {
        doing: Doing,
        copied: VecDeque<u64>,
        is_engine: bool,
        waits: bool,
        has_left: bool,
    }

    /// A file and its readers.
    struct Scene<'a> {
        schedule: Schedule,
        file: &'a [u8],
        block_len: usize,
        actors: Vec<Actor>,
        /// Capture times of the frames that the engine took.
        taken: Vec<i64>,
        ended: bool,
    }

    impl<'a> Scene<'a> {
        fn new(file: &'a [u8], block_len: usize, readers: usize, engine_copies: bool) -> Self {
            let actor = |n| Actor {
                doing: Doing::Nothing,
                copied: VecDeque::new(),
                is_engine: n == 0,
                waits: false,
                has_left: false,
            };
            let actors = (0..=readers).map(actor).collect();
            let schedule = Schedule::new(Feed::default(), readers, engine_copies);
            Scene { schedule, file, block_len, actors, taken: Vec::new(), ended: false }
        }

        fn block(&self, number: u64) -> (&'a [u8], bool) {
            let begin = (number as usize * self.block_len).min(self.file.len());
            let end = begin + self.block_len;
            (&self.file[begin..end.min(self.file.len())], end > self.file.len())
        }

        fn wake(&mut self) {
            self.actors.iter_mut().for_each(|actor| actor.waits = false);
        }

        /// Lets one actor finish its activity, or start its next step.
        fn act(&mut self, n: usize) {
            match std::mem::replace(&mut self.actors[n].doing, Doing::Nothing) {
                Doing::Nothing => self.begin(n),
                Doing::Copying(number) => {
                    self.actors[n].copied.push_back(number);
                    if self.block(number).1 {
                        self.schedule.end();
                    }
                }
                Doing::Cutting(mut feed, mut frames) => {
                    let number = self.actors[n].copied.pop_front().unwrap();
                    let (bytes, is_last) = self.block(number);
                    let end = match feed.take(bytes, |record| frames.push(record, false)) {
                        Ok(()) => is_last.then(|| feed.finish().map_err(Broken::from)),
                        Err(damage) => Some(Err(damage.into())),
                    };
                    self.schedule.leave(Cut { frames, taken: number, end }, feed);
                    self.wake();
                }
                Doing::Taking(cut) => {
                    self.taken.extend(cut.frames.iter().map(|frame| match frame {
                        Read::Rtp(at, _) => at.0,
                        Read::Whole(record) => record.at.0,
                    }));
                    self.ended = cut.end.is_some();
                    if self.schedule.give_back(cut.frames) {
                        self.wake();
                    }
                }
            }
        }

        fn begin(&mut self, n: usize) {
            let actor = &mut self.actors[n];
            let (oldest, copied) = (actor.copied.front().copied(), actor.copied.len());
            let step = match actor.is_engine {
                true => self.schedule.engine(oldest, copied),
                false => self.schedule.reader(oldest, copied),
            };
            match step {
                Step::Copy(number) => actor.doing = Doing::Copying(number),
                Step::Cut(feed, frames) => actor.doing = Doing::Cutting(feed, frames),
                Step::Fail => panic!("no reader fails"),
                Step::Leave => actor.has_left = true,
                Step::Take(cut) => actor.doing = Doing::Taking(cut),
                Step::Wait => actor.waits = true,
            }
            assert!(
                !actor.is_engine || !matches!(actor.doing, Doing::Copying(_)) || self.schedule.engine_copies
            );
        }
    }

    /// A capture with that many frames, one second apart.
    fn capture(frames: i64) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
        let (from, to) = ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
        for second in 0..frames {
            let payload: &[u8] = if second % 3 == 0 { b"text" } else { &[0x80; 32] };
            writer.write_udp(Micros(second * 1_000_000), from, to, payload).unwrap();
        }
        writer.finish().unwrap()
    }

    proptest! {
        #[test]
        fn every_frame_comes_once_and_in_order_whatever_thread_is_slow(
            frames in 0_i64..60,
            block_len in 1_usize..400,
            readers in 1_usize..4,
            engine_copies: bool,
            cut in 0_usize..30,
            choices in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
        ) {
            let mut file = capture(frames);
            file.truncate(file.len() - cut.min(file.len()));
            let readers = if engine_copies { readers } else { 1 };
            let mut scene = Scene::new(&file, block_len, readers, engine_copies);
            let mut choices = choices.iter().cycle();
            while !scene.ended {
                let able: Vec<usize> = (0..scene.actors.len())
                    .filter(|n| !scene.actors[*n].waits && !scene.actors[*n].has_left)
                    .collect();
                prop_assert!(!able.is_empty(), "all of them wait");
                scene.act(able[choices.next().unwrap().index(able.len())]);
            }
            let expected: Vec<i64> =
                Records::new(&file).map_while(Result::ok).map(|record| record.at.0).collect();
            prop_assert_eq!(scene.taken, expected);
            for actor in &scene.actors {
                prop_assert!(actor.copied.len() <= COPIED_MAX);
            }
        }
    }
}
