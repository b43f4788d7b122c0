//! Deletes data after its retention time, in small batches so that other queries do not wait.

use std::time::Duration;

use sidetone_model::time::Timestamp;
use sidetone_store::{IdempotencyKeys, Store, StoreError};
use tokio::sync::watch;

/// The deletion task's store and clock.
pub struct Sweeper {
    /// The store.
    pub store: Store,
    /// The stored answers of requests that are executed once.
    pub keys: IdempotencyKeys,
    /// The clock.
    pub clock: fn() -> Timestamp,
}

/// The kinds of data with a retention time.
#[derive(Debug, Clone, Copy)]
enum Kept {
    CallRequests,
    Events,
    IdempotencyKeys,
    Signalling,
    SpokenNames,
    WebhookDeliveries,
}

impl Kept {
    const ALL: [Kept; 6] = [
        Kept::CallRequests,
        Kept::Events,
        Kept::IdempotencyKeys,
        Kept::Signalling,
        Kept::SpokenNames,
        Kept::WebhookDeliveries,
    ];
}

impl Sweeper {
    /// Deletes batch by batch until it is stopped.
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
                    Err(error) => tracing::warn!(%error, ?kept, "expired rows cannot be deleted now"),
                }
            }
        }
    }

    /// Deletes one batch; returns whether there may be more.
    async fn purge(&self, kept: Kept) -> Result<bool, StoreError> {
        let now = (self.clock)();
        Ok(match kept {
            Kept::CallRequests => self.store.purge_requests(now).await? == Store::REQUEST_PURGE_BATCH,
            Kept::Events => self.store.purge_events(now).await? == Store::EVENT_PURGE_BATCH,
            Kept::IdempotencyKeys => self.keys.purge(now).await? == IdempotencyKeys::PURGE_BATCH,
            Kept::Signalling => self.store.purge_signalling(now).await? == Store::SIGNALLING_PURGE_BATCH,
            Kept::SpokenNames => self.store.purge_spoken_names(now).await? == Store::SPOKEN_NAME_PURGE_BATCH,
            Kept::WebhookDeliveries => {
                self.store.purge_webhook_deliveries(now).await? == Store::WEBHOOK_PURGE_BATCH
            }
        })
    }
}

/// Pause between two batches, in which others can write.
const BATCH_PAUSE: Duration = Duration::from_millis(100);
/// How often old rows are searched for.
const LOOK_EVERY: Duration = Duration::from_secs(60);
