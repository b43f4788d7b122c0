//! The end of the queue that the switch has: it never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::room::news::RoomNews;
use tokio::sync::mpsc;

/// Tells of rooms; the writer ends with it.
#[derive(Debug)]
pub struct RoomTeller {
    queue: mpsc::Sender<RoomNews>,
    counts: Arc<RoomNewsCounts>,
}

/// What can be read of the news of rooms at any time.
#[derive(Debug, Default)]
pub struct RoomNewsCounts {
    pub(super) dropped: AtomicU64,
    pub(super) live: AtomicU64,
    pub(super) stored: AtomicU64,
    pub(super) talk_dropped: AtomicU64,
    pub(super) unheard: AtomicU64,
    pub(super) waiting: AtomicU64,
}

impl RoomTeller {
    pub(super) fn new(counts: Arc<RoomNewsCounts>) -> (Self, mpsc::Receiver<RoomNews>) {
        let (queue, told) = mpsc::channel(QUEUE_LEN_MAX);
        (RoomTeller { queue, counts }, told)
    }

    /// Passes it on. The writer takes from the queue whatever the database does, so that the queue is full only when
    /// the process itself stands still; who talks, of which the next change says more, gives way long before that.
    pub fn tell(&self, news: RoomNews) {
        let is_talk = news.is_talk();
        let gives_way = is_talk && self.queue.capacity() < QUEUE_LEN_MAX / 2;
        if !gives_way && self.queue.try_send(news).is_ok() {
            return;
        }
        if is_talk {
            self.counts.talk_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        // Each time that twice as many are gone: it says so, and does not fill the log beside the queue.
        if dropped.is_power_of_two() {
            tracing::error!(dropped, "what happens in rooms is not taken: sessions are stored incompletely");
        }
    }
}

impl RoomNewsCounts {
    /// Changes that were lost because the process stood still.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Sessions that are live.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Events that were stored.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Changes of who talks that were lost for the same reason.
    pub fn talk_dropped(&self) -> u64 {
        self.talk_dropped.load(Ordering::Relaxed)
    }

    /// Events that were given up on because the database was away for too long; their sessions are complete.
    pub fn unheard(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed)
    }

    /// Changes that wait for the database.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// News that the writer has not taken yet; about 5 MB.
pub const QUEUE_LEN_MAX: usize = 16_384;
