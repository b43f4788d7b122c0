//! Deletes what is kept for a time and has been kept for it, a little at once so that nobody waits.

use std::time::Duration;

use sidetone_model::time::Timestamp;
use sidetone_store::{IdempotencyKeys, Store, StoreError};
use tokio::sync::watch;

/// Who deletes, and by which clock.
pub struct Sweeper {
    /// Where everything is.
    pub store: Store,
    /// The answers to requests that are carried out once.
    pub keys: IdempotencyKeys,
    /// What time it is.
    pub clock: fn() -> Timestamp,
}

/// What is kept for a time.
#[derive(Debug, Clone, Copy)]
enum Kept {
    Events,
    IdempotencyKeys,
    WebhookDeliveries,
}

impl Kept {
    const ALL: [Kept; 3] = [Kept::Events, Kept::IdempotencyKeys, Kept::WebhookDeliveries];
}

impl Sweeper {
    /// Deletes batch by batch until told to stop.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut pause = LOOK_EVERY;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = LOOK_EVERY;
            for kept in Kept::ALL {
                match self.purge(kept).await {
                    Ok(true) => pause = BATCH_PAUSE,
                    Ok(false) => {}
                    Err(error) => tracing::warn!(%error, ?kept, "what is old cannot be deleted now"),
                }
            }
        }
    }

    /// Deletes one batch; says whether there may be more.
    async fn purge(&self, kept: Kept) -> Result<bool, StoreError> {
        let now = (self.clock)();
        Ok(match kept {
            Kept::Events => self.store.purge_events(now).await? == Store::EVENT_PURGE_BATCH,
            Kept::IdempotencyKeys => self.keys.purge(now).await? == IdempotencyKeys::PURGE_BATCH,
            Kept::WebhookDeliveries => {
                self.store.purge_webhook_deliveries(now).await? == Store::WEBHOOK_PURGE_BATCH
            }
        })
    }
}

/// How long others may write between two batches.
const BATCH_PAUSE: Duration = Duration::from_millis(100);
/// How often old rows are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(60);
