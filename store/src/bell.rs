//! The bell that wakes who reads events: rung after the commit, never before.

use std::sync::Arc;

use tokio::sync::watch;

/// Rung by every commit of this process that made events visible; clones are one bell.
///
/// A ring that nobody waits for is not lost: [`Listener::news`] returns at once for it.
#[derive(Debug, Clone)]
pub struct Bell(Arc<watch::Sender<u64>>);

/// Somebody who waits for the bell.
#[derive(Debug, Clone)]
pub struct Listener(watch::Receiver<u64>);

impl Bell {
    /// How many events this process has made visible.
    pub fn events_total(&self) -> u64 {
        *self.0.borrow()
    }

    /// Hears every ring from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }

    /// Says that `events` more are visible.
    pub(super) fn ring(&self, events: u64) {
        if events > 0 {
            self.0.send_modify(|total| *total = total.wrapping_add(events));
        }
    }
}

impl Listener {
    /// Waits for a ring since the last one that was waited for; may be dropped and called again.
    pub async fn news(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is gone, and nothing rings any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}
