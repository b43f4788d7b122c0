//! Reads the members without joining the cluster, for `sidetone nodes`.

use std::collections::BTreeMap;
use std::time::Duration;

use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use tokio::time::{Instant, timeout_at};

use super::bucket::Bucket;
use super::connection::Connection;
use super::member::{ENTRY_AGE_MAX, NODES};
use crate::membership::{GONE_AFTER, Heartbeat, MEMBERS_MAX};

/// A member as an observer sees it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its last heartbeat.
    pub last: Heartbeat,
    /// Whether it is up: a second heartbeat arrived while the observer listened.
    pub state: NodeState,
}

impl Connection {
    /// Listens until every stored member has sent another heartbeat, or for three seconds, and returns the members by
    /// name.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
    pub async fn observe(&self) -> Result<Vec<Observed>, String> {
        let mut bucket = Bucket::open(self, NODES, ENTRY_AGE_MAX).await?;
        let (began, mut members) = (Instant::now(), BTreeMap::<NodeId, Observed>::new());
        loop {
            let is_complete =
                !members.is_empty() && members.values().all(|member| member.state != NodeState::Gone);
            // The stored values arrive immediately, before the heartbeats of the members. Without any, the server may be
            // late.
            let wait = if is_complete { STORED_MAX } else { GONE_AFTER };
            match timeout_at(began + wait, bucket.next()).await {
                Ok(change) => note(&mut members, &change?.value),
                Err(_) => break,
            }
        }
        let mut members: Vec<_> = members.into_values().collect();
        members.sort_by(|a, b| a.last.identity.name.cmp(&b.last.identity.name));
        Ok(members)
    }
}

fn note(members: &mut BTreeMap<NodeId, Observed>, value: &[u8]) {
    // The members count unreadable heartbeats.
    let Ok(heartbeat) = Heartbeat::read(value) else { return };
    let node = heartbeat.identity.node;
    let before = members.get(&node);
    let state = match before {
        _ if heartbeat.leaving => NodeState::Left,
        Some(_) => NodeState::Up,
        None => NodeState::Gone,
    };
    if before.is_some() || members.len() < MEMBERS_MAX {
        members.insert(node, Observed { last: heartbeat, state });
    }
}

/// The timeout of reading the stored values.
const STORED_MAX: Duration = Duration::from_millis(500);
