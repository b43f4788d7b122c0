//! Whether another process already runs under the id of a node that starts.

use std::time::Duration;

use sidetone_model::ids::NodeId;
use tokio::time::{Instant, timeout, timeout_at};

use super::bucket::Bucket;
use super::connection::Connection;
use super::member::{ENTRY_AGE_MAX, NODES};
use crate::membership::{BEAT_EVERY, Heartbeat};

impl Connection {
    /// Whether another process writes heartbeats under `node` now. It waits for two heartbeats at most, and only where the
    /// last process of that id has not left in order; `false` where NATS does not answer, which is no evidence.
    pub async fn has_double(&self, node: NodeId) -> bool {
        let Ok(Ok(mut bucket)) = timeout(OPEN_MAX, Bucket::open(self, NODES, ENTRY_AGE_MAX)).await else {
            return false;
        };
        let key = node.to_string();
        let entry = timeout(OPEN_MAX, bucket.store.get(key.as_str())).await;
        let Ok(Ok(Some(stored))) = entry else { return false };
        let Ok(first) = Heartbeat::read(&stored) else { return false };
        if first.leaving {
            return false;
        }
        let until = Instant::now() + BEAT_EVERY * 2 + BEAT_EVERY / 2;
        while let Ok(Ok(change)) = timeout_at(until, bucket.next()).await {
            let beat = Heartbeat::read(&change.value).ok().filter(|_| change.key == key);
            if beat.is_some_and(|beat| beat.seq > first.seq || beat.identity.run != first.identity.run) {
                return true;
            }
        }
        false
    }
}

/// How long each answer may take.
const OPEN_MAX: Duration = Duration::from_secs(2);
