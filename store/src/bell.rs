//! The bell that wakes readers of events, of the directory and of credentials: rung after the commit, never before.
//! It keeps the committed events themselves where their positions are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::event::{Position, RecentEvents, StreamedEvent};
use tokio::sync::watch;

use crate::recent_events::Recent;

/// Rung by every commit of this process that makes events visible; all clones share one bell.
///
/// A ring without a waiting listener is not lost: [`Listener::news`] then returns immediately.
#[derive(Debug, Clone)]
pub struct Bell {
    events: Arc<watch::Sender<u64>>,
    recent: Arc<Mutex<Recent>>,
    /// Write transactions that were committed.
    writes: Arc<AtomicU64>,
    directory: Arc<ChangeCounts>,
    credentials: Arc<ChangeCounts>,
}

/// The data, besides events, whose changes a listener can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changed {
    /// Keys, users and sessions.
    Credentials,
    /// All data that the switch caches: organisations, extensions, trunks, rooms, rates, sounds.
    Directory,
}

/// Counts changes.
#[derive(Debug)]
struct ChangeCounts {
    /// The changes that this process has committed.
    own: watch::Sender<u64>,
    /// Those changes, and the ones that other processes reported.
    all: watch::Sender<u64>,
}

/// A waiting reader of events, or of changes.
#[derive(Debug, Clone)]
pub struct Listener(watch::Receiver<u64>);

impl Bell {
    /// How many events this process has made visible.
    pub fn events_total(&self) -> u64 {
        *self.events.borrow()
    }

    /// Returns a listener for every ring from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.events.subscribe())
    }

    /// How many write transactions this process has committed.
    pub fn writes_total(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Returns a listener for every change from now on, of this process and of others that notify it.
    pub fn follow(&self, what: Changed) -> Listener {
        Listener(self.counts(what).all.subscribe())
    }

    /// Returns a listener for every change from now on that this process commits.
    pub fn follow_own(&self, what: Changed) -> Listener {
        Listener(self.counts(what).own.subscribe())
    }

    /// The count of changes, for code that does not depend on this store.
    pub fn count(&self, what: Changed) -> watch::Receiver<u64> {
        self.counts(what).all.subscribe()
    }

    /// Reports a change that another process has committed.
    pub fn notify(&self, what: Changed) {
        self.counts(what).all.send_modify(|total| *total = total.wrapping_add(1));
    }

    /// Reports a change that this process has committed.
    pub(super) fn changed(&self, what: Changed) {
        self.counts(what).own.send_modify(|total| *total = total.wrapping_add(1));
        self.notify(what);
    }

    fn counts(&self, what: Changed) -> &ChangeCounts {
        match what {
            Changed::Credentials => &self.credentials,
            Changed::Directory => &self.directory,
        }
    }

    /// Counts a write transaction.
    pub(super) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Rings for `events` new visible events, of which `placed` have positions; called in the order of the
    /// commits.
    pub(super) fn ring(&self, events: u64, placed: Vec<StreamedEvent>) {
        if !placed.is_empty() {
            self.recent.lock().add(placed);
        }
        if events > 0 {
            self.events.send_modify(|total| *total = total.wrapping_add(events));
        }
    }

    /// The events after `after` that this process stored, if they follow it without a gap.
    pub(super) fn recent(&self, after: Position, limit: u32) -> Option<RecentEvents> {
        self.recent.lock().after(after, limit as usize)
    }
}

impl Listener {
    /// Waits for `pause` and then for a ring, so that many changes in a row are read together.
    pub async fn news_after(&mut self, pause: Duration) {
        tokio::time::sleep(pause).await;
        self.news().await;
    }

    /// Waits for a ring since the previous call; may be dropped and called again.
    pub async fn news(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is closed; there will be no further ring.
            std::future::pending::<()>().await;
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            events: Arc::new(watch::Sender::new(0)),
            recent: Arc::default(),
            writes: Arc::default(),
            directory: Arc::default(),
            credentials: Arc::default(),
        }
    }
}

impl Default for ChangeCounts {
    fn default() -> Self {
        Self { own: watch::Sender::new(0), all: watch::Sender::new(0) }
    }
}
