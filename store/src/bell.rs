//! The bell that wakes readers of events: rung after the commit, never before.

use std::sync::Arc;

use tokio::sync::watch;

/// Rung by every commit of this process that makes events visible; all clones are one bell.
///
/// A ring without a waiting listener is not lost: [`Listener::news`] then returns at once.
#[derive(Debug, Clone)]
pub struct Bell(Arc<watch::Sender<u64>>);

/// A waiting reader of events.
#[derive(Debug, Clone)]
pub struct Listener(watch::Receiver<u64>);

impl Bell {
    /// How many events this process has made visible.
    pub fn events_total(&self) -> u64 {
        *self.0.borrow()
    }

    /// Returns a listener for every ring from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }

    /// Rings for `events` new visible events.
    pub(super) fn ring(&self, events: u64) {
        if events > 0 {
            self.0.send_modify(|total| *total = total.wrapping_add(events));
        }
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
        Self(Arc::new(watch::Sender::new(0)))
    }
}
