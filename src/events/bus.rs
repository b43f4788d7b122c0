//! The only reader of new events, and the streams that it passes them to.
//!
//! Events of this process come from memory. The log is read to catch up, and for events of other processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::access::Scope;
use sidetone_model::event::{EventFilter, EventLog, EventReader, Position, StreamedEvent};
use sidetone_model::problem::Problem;
use sidetone_store::{Listener, Store};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::events::queue::Queue;

/// Passes every event that becomes visible in the log to every stream; clones share one bus.
#[derive(Clone)]
pub struct Bus(Arc<Shared>);

struct Shared {
    log: Arc<dyn EventLog>,
    live: Mutex<Live>,
    /// Notified when a stream joins.
    joined: Notify,
    open: AtomicU64,
    gaps: Mutex<BTreeMap<&'static str, u64>>,
}

/// The streams that have caught up with the log.
#[derive(Default)]
struct Live {
    /// All events up to here were passed to them.
    position: Position,
    members: BTreeMap<u64, Member>,
    joined_total: u64,
    closed: bool,
}

struct Member {
    filter: Arc<EventFilter>,
    queue: Arc<Queue>,
}

/// A stream's membership of the bus; ends when dropped.
pub(super) struct Membership {
    bus: Bus,
    number: u64,
    pub(super) queue: Arc<Queue>,
    /// Events from the queue come after this position.
    pub(super) joined_at: Position,
}

impl Bus {
    /// A bus for the events of `store`. It passes no events on until [`Bus::run`] reads.
    pub fn new(store: &Store) -> Self {
        Self::over(Arc::new(store.clone()))
    }

    /// A bus for any log.
    pub fn over(log: Arc<dyn EventLog>) -> Self {
        Self(Arc::new(Shared {
            log,
            live: Mutex::default(),
            joined: Notify::new(),
            open: AtomicU64::new(0),
            gaps: Mutex::default(),
        }))
    }

    /// Reads the log for the streams until it is stopped; then every stream ends.
    pub async fn run(&self, heard: &mut Listener, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.read(heard) => {}
        }
        let mut live = self.0.live.lock();
        live.closed = true;
        live.members.values().for_each(|member| member.queue.close());
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> u64 {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Returns the number of gaps reported to streams, by reason.
    pub fn gaps_total(&self) -> BTreeMap<&'static str, u64> {
        self.0.gaps.lock().clone()
    }

    async fn read(&self, heard: &mut Listener) {
        // When the log is read even if memory seems complete: other processes do not ring this bell.
        let mut look_at = Instant::now();
        loop {
            let Some(start) = self.position_to_read() else {
                // Without streams nothing is read.
                self.0.joined.notified().await;
                continue;
            };
            let recent = if Instant::now() < look_at { self.0.log.recent(start, BATCH_LEN) } else { None };
            let is_last = match recent {
                Some(recent) => {
                    self.show(start, recent.events, recent.next);
                    recent.is_last
                }
                None => {
                    look_at = Instant::now() + LOOK_EVERY;
                    self.read_log(start).await
                }
            };
            if is_last {
                let _ = tokio::time::timeout_at(look_at, heard.news()).await;
            }
        }
    }

    /// Passes the next events of the log on; returns whether these were the last ones.
    async fn read_log(&self, start: Position) -> bool {
        match self.0.log.after(&EventReader::from(Scope::Everything), start, BATCH_LEN).await {
            Ok(batch) => {
                let events = batch.events.iter().map(|placed| Arc::new(StreamedEvent::from(placed)));
                self.show(start, events.collect(), batch.next);
                batch.is_last
            }
            Err(problem) => {
                // Streams stay open and continue when the database is available again.
                tracing::warn!(error = %problem, "the events cannot be read now");
                tokio::time::sleep(LOOK_EVERY).await;
                true
            }
        }
    }

    fn position_to_read(&self) -> Option<Position> {
        let live = self.0.live.lock();
        (!live.members.is_empty()).then_some(live.position)
    }

    /// Passes the events between `start` and `next` to the streams.
    fn show(&self, start: Position, events: Vec<Arc<StreamedEvent>>, next: Position) {
        let mut live = self.0.live.lock();
        if live.position != start {
            // All streams had left, and a stream that joined in the meantime started later.
            return;
        }
        for event in &events {
            for member in live.members.values().filter(|member| member.filter.admits_streamed(event)) {
                if let Some(gap) = member.queue.push(event) {
                    self.count_gap(gap.reason());
                    tracing::info!("a stream of events is read too slowly; its client gets stream.gap");
                }
            }
        }
        live.position = next;
    }

    /// Adds a stream that has nearly caught up.
    pub(super) async fn join(&self, filter: Arc<EventFilter>) -> Result<Membership, Problem> {
        // Without streams the position is outdated; the events in between need not be read.
        let end =
            if self.position_to_read().is_none() { self.0.log.end().await? } else { Position::default() };
        let queue = Arc::new(Queue::default());
        let (number, joined_at) = {
            let mut live = self.0.live.lock();
            if live.members.is_empty() {
                live.position = live.position.max(end);
            }
            if live.closed {
                queue.close();
            }
            live.joined_total += 1;
            let number = live.joined_total;
            live.members.insert(number, Member { filter, queue: Arc::clone(&queue) });
            (number, live.position)
        };
        self.0.joined.notify_one();
        Ok(Membership { bus: self.clone(), number, queue, joined_at })
    }

    pub(super) fn log(&self) -> &dyn EventLog {
        self.0.log.as_ref()
    }

    pub(super) fn count_gap(&self, reason: &'static str) {
        *self.0.gaps.lock().entry(reason).or_default() += 1;
    }

    /// Counts an open stream, if the limit allows it.
    pub(super) fn opened(&self) -> Result<(), Problem> {
        let opened = self.0.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < STREAMS_MAX).then_some(open + 1)
        });
        opened.map(drop).map_err(|_| Problem::Busy { retry_after_s: BUSY_RETRY_S })
    }

    pub(super) fn ended(&self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.bus.0.live.lock().members.remove(&self.number);
    }
}

/// Events of one read.
const BATCH_LEN: u32 = 256;
const BUSY_RETRY_S: u64 = 5;
/// How often the log is read for events that other processes stored.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Open streams of one process.
const STREAMS_MAX: u64 = 1000;
