//! The switch's end of the queue, which never blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::room::event::RoomEvent;
use tokio::sync::mpsc;

/// Sends the changes of rooms; the writer ends when it is dropped.
#[derive(Debug)]
pub struct HistorySender {
    queue: mpsc::Sender<RoomEvent>,
    counts: Arc<HistoryCounters>,
}

/// Counters of the stored changes, readable at any time.
#[derive(Debug, Default)]
pub struct HistoryCounters {
    pub(super) dropped: AtomicU64,
    pub(super) live: AtomicU64,
    pub(super) stored: AtomicU64,
    pub(super) talk_dropped: AtomicU64,
    pub(super) discarded: AtomicU64,
    pub(super) waiting: AtomicU64,
}

impl HistorySender {
    pub(super) fn new(counts: Arc<HistoryCounters>) -> (Self, mpsc::Receiver<RoomEvent>) {
        let (queue, told) = mpsc::channel(QUEUE_LEN_MAX);
        (HistorySender { queue, counts }, told)
    }

    /// Sends a change. The writer empties the queue independent of the state of the database, so the queue is full
    /// only if the process itself is stalled. Talk changes are dropped when the queue is half full, because the next
    /// one replaces them.
    pub fn send(&self, event: RoomEvent) {
        let is_talk = event.is_talk();
        let gives_way = is_talk && self.queue.capacity() < QUEUE_LEN_MAX / 2;
        if !gives_way && self.queue.try_send(event).is_ok() {
            return;
        }
        if is_talk {
            self.counts.talk_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        // Logs whenever the number has doubled, so that a full queue does not fill the log as well.
        if dropped.is_power_of_two() {
            tracing::error!(dropped, "history of rooms is lost: sessions are stored incompletely");
        }
    }
}

impl HistoryCounters {
    /// Changes that were lost because the process was stalled.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Live sessions.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Stored events.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Talk changes that were lost because the queue was half full.
    pub fn talk_dropped(&self) -> u64 {
        self.talk_dropped.load(Ordering::Relaxed)
    }

    /// Events that were discarded because the database was unavailable for too long; their sessions are
    /// complete.
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Changes that wait for the database.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Largest number of changes that the writer has not taken yet; about 5 MB.
pub const QUEUE_LEN_MAX: usize = 16_384;
