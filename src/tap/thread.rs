//! The reading thread: frames from the rings into the capture engine, finished calls out of it.
//!
//! It waits only for the kernel. A call that cannot be passed on yet stays in the engine, and an interface that
//! disappears is looked up until it is back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_media::time::Micros;
use sidetone_media::verdict::Thresholds;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::counters::TapCounters;
use super::interfaces::State;
use super::ring::{self, Ring, RingError, RingOptions};
use super::session::{TapSession, TappedCall};
use crate::supervise::{Beat, Supervisor, Task};

/// The interfaces, and how they are read.
#[derive(Debug, Clone)]
pub struct TapOptions {
    /// The interfaces, by name.
    pub interfaces: Vec<String>,
    /// How each of them is read.
    pub ring: RingOptions,
    /// Reads the wall clock, which the kernel's timestamps follow.
    pub now: fn() -> Micros,
}

/// The running thread.
#[derive(Debug)]
pub struct TapThread {
    stop: Arc<AtomicBool>,
    thresholds: NewThresholds,
    thread: JoinHandle<Reader>,
}

/// Thresholds that the thread takes in its next turn.
type NewThresholds = Arc<Mutex<Option<Thresholds>>>;

impl TapThread {
    /// Opens every interface and starts reading; finished calls are sent to `calls`.
    ///
    /// # Errors
    /// The first interface that cannot be read.
    pub fn start(
        options: TapOptions,
        session: TapSession,
        counters: Arc<TapCounters>,
        calls: mpsc::Sender<TappedCall>,
        supervisor: &Supervisor,
    ) -> Result<Self, TapThreadError> {
        let TapOptions { interfaces, ring, now } = options;
        let mut rings = Vec::with_capacity(interfaces.len());
        for name in &interfaces {
            rings.push(Ring::open(name, ring, now)?);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let thresholds = NewThresholds::default();
        let looked_at = now();
        let reader = Reader {
            rings,
            lost: Vec::new(),
            down: Vec::new(),
            options: ring,
            now,
            session,
            thresholds: Arc::clone(&thresholds),
            counters,
            calls,
            waiting: None,
            looked_at,
            last_frame: looked_at,
        };
        let stopped = Arc::clone(&stop);
        let run = move |reader: &mut Reader, beat: &Beat| reader.run(&stopped, beat);
        // The calls in progress are passed on with their data so far.
        let save = |reader: &mut Reader| reader.finish();
        let thread = supervisor.vital_thread(Task::Tap, reader, run, save).map_err(TapThreadError::Thread)?;
        Ok(TapThread { stop, thresholds, thread })
    }

    /// Judges calls whose audio begins from now on by these thresholds.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        *self.thresholds.lock() = Some(thresholds);
    }

    /// Stops the thread and waits until it has passed on every call; calls in progress end now.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic was logged where it happened.
        let _ = self.thread.join();
    }
}

/// Why reading could not start.
#[derive(Debug, thiserror::Error)]
pub enum TapThreadError {
    /// An interface.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system cannot start a thread.
    #[error("the reading thread cannot start: {0}")]
    Thread(#[source] io::Error),
}

struct Reader {
    rings: Vec<Ring>,
    /// Interfaces that currently do not exist, by name.
    lost: Vec<String>,
    /// Interfaces that are disabled.
    down: Vec<String>,
    options: RingOptions,
    now: fn() -> Micros,
    session: TapSession,
    thresholds: NewThresholds,
    counters: Arc<TapCounters>,
    calls: mpsc::Sender<TappedCall>,
    /// A call that did not fit into the channel.
    waiting: Option<TappedCall>,
    looked_at: Micros,
    last_frame: Micros,
}

impl Reader {
    fn run(&mut self, stop: &AtomicBool, beat: &Beat) {
        while !stop.load(Ordering::Relaxed) {
            beat.beat();
            let thresholds = self.thresholds.lock().take();
            if let Some(thresholds) = thresholds {
                self.session.set_thresholds(thresholds);
            }
            let fault = ring::wait(&self.rings, TURN);
            let drained = self.read();
            let now = (self.now)();
            // During a backlog the time of the traffic applies: calls in unread frames have not ended yet.
            self.hand_over(if drained { now } else { self.last_frame });
            if fault || now.since(self.looked_at) >= LOOK_EVERY_US {
                self.look(now);
            }
        }
        self.finish();
    }

    /// Reads the waiting blocks of the rings, up to a limit; returns whether all were read.
    fn read(&mut self) -> bool {
        for _ in 0..BLOCKS_PER_TURN {
            let (mut frames, mut bytes) = (0, 0);
            let (session, last_frame) = (&mut self.session, &mut self.last_frame);
            ring::read(&mut self.rings, |record| {
                frames += 1;
                bytes += u64::from(record.wire_len);
                *last_frame = record.at;
                session.record(record);
            });
            TapCounters::add(&self.counters.packets, frames);
            TapCounters::add(&self.counters.bytes, bytes);
            if frames == 0 {
                return true;
            }
        }
        false
    }

    fn hand_over(&mut self, now: Micros) {
        while let Some(call) = self.waiting.take().or_else(|| self.session.poll(now)) {
            match self.calls.try_send(call) {
                Ok(()) => {}
                Err(TrySendError::Full(call)) => {
                    self.waiting = Some(call);
                    break;
                }
                // The receiver no longer exists: the process ends.
                Err(TrySendError::Closed(_)) => break,
            }
        }
        self.counters.live_calls.store(self.session.live_calls(), Ordering::Relaxed);
    }

    /// Once a second: counts the drops, and checks the interfaces.
    fn look(&mut self, now: Micros) {
        let mut dropped = 0;
        for ring in &self.rings {
            let count = ring.counts().dropped;
            if count > 0 {
                tracing::warn!(
                    interface = ring.interface().name,
                    packets = count,
                    "the kernel dropped packets"
                );
            }
            dropped += count;
        }
        if dropped > 0 {
            // A dropped frame arrived after the oldest frame that was still unread.
            let from = self.last_frame.min(self.looked_at);
            self.session.dropped(from, now, dropped);
            TapCounters::add(&self.counters.dropped, dropped);
        }
        self.looked_at = now;
        self.look_at_interfaces();
        self.look_for_lost();
        let mut faults: Vec<String> =
            self.lost.iter().map(|name| format!("interface {name} is away")).collect();
        faults.extend(self.down.iter().map(|name| format!("interface {name} is down")));
        *self.counters.faults.lock() = faults;
    }

    fn look_at_interfaces(&mut self) {
        let (lost, down) = (&mut self.lost, &mut self.down);
        self.rings.retain(|ring| {
            let name = &ring.interface().name;
            let was_down = down.iter().position(|known| known == name);
            match (ring.interface().state(), was_down) {
                (State::Up, None) | (State::Down, Some(_)) => true,
                (State::Up, Some(place)) => {
                    down.swap_remove(place);
                    tracing::info!(interface = name, "the interface is up again");
                    true
                }
                (State::Down, None) => {
                    tracing::warn!(interface = name, "the interface is down; it is read again once it is up");
                    down.push(name.clone());
                    true
                }
                (State::Gone | State::Replaced, place) => {
                    if let Some(place) = place {
                        down.swap_remove(place);
                    }
                    tracing::warn!(
                        interface = name,
                        "the interface is away; it is read again once it is back"
                    );
                    lost.push(name.clone());
                    false
                }
            }
        });
    }

    fn look_for_lost(&mut self) {
        let (rings, options, now) = (&mut self.rings, self.options, self.now);
        self.lost.retain(|name| match Ring::open(name, options, now) {
            Ok(ring) => {
                tracing::info!(interface = name, "the interface is there again");
                rings.push(ring);
                false
            }
            Err(_) => true,
        });
    }

    /// Reads the rest, ends the calls in progress, and passes all of them on.
    fn finish(&mut self) {
        // Endless traffic would never be read completely.
        for _ in 0..LAST_TURNS {
            if self.read() {
                break;
            }
        }
        let now = (self.now)();
        self.look(now);
        self.session.end(now);
        let left = self.waiting.take().into_iter().chain(std::iter::from_fn(|| self.session.poll(now)));
        for call in left {
            // The writer accepts calls until this sender is dropped.
            if self.calls.blocking_send(call).is_err() {
                return;
            }
        }
    }
}

/// How long the thread waits for frames before other work.
const TURN: Duration = Duration::from_millis(100);
/// How often drops and interfaces are checked.
const LOOK_EVERY_US: i64 = 1_000_000;
/// Blocks of each ring that are read before calls are passed on.
const BLOCKS_PER_TURN: usize = 64;
/// Turns for reading the rest at the end: as many as the largest ring may need.
const LAST_TURNS: usize = ring::RING_MIB_MAX * ring::BLOCKS_PER_MIB / BLOCKS_PER_TURN;
