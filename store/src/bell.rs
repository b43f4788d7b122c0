//! The bell that wakes readers of events: rung after the commit, never before. It has the committed events
//! themselves where their positions are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sidetone_model::event::{Position, RecentEvents, StreamedEvent};
use tokio::sync::watch;

use crate::recent_events::Recent;

/// Rung by every commit of this process that makes events visible; all clones are one bell.
///
/// A ring without a waiting listener is not lost: [`Listener::news`] then returns at once.
#[derive(Debug, Clone)]
pub struct Bell {
    events: Arc<watch::Sender<u64>>,
    recent: Arc<Mutex<Recent>>,
    /// Transactions that wrote something and were committed.
    writes: Arc<AtomicU64>,
}

/// A waiting reader of events.
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

    /// How many writing transactions this process has committed.
    pub fn writes_total(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Counts a writing transaction.
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
        Self { events: Arc::new(watch::Sender::new(0)), recent: Arc::default(), writes: Arc::default() }
    }
}
