//! Whether another process already runs under the id of a starting node.

use std::time::Duration;

use sidetone_model::ids::NodeId;
use tokio::time::{Instant, timeout, timeout_at};

use super::bucket::Bucket;
use super::connection::Connection;
use super::member::{ENTRY_AGE_MAX, NODES};
use crate::membership::{BEAT_EVERY, Heartbeat};

impl Connection {
    /// Whether another process currently writes heartbeats under `node`. It waits for at most two heartbeats, and only
    /// if the last process with that id has not left in order. Without an answer of NATS it returns `false`, because
    /// there is no evidence.
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

/// The timeout of each answer.
const OPEN_MAX: Duration = Duration::from_secs(2);
