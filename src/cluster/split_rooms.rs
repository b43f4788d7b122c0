//! Finds rooms that are live at two nodes: their callers do not hear each other, and an operator must be informed.
//!
//! A room has one owner, so this should not happen. During a handover it is live at both nodes for a moment, so it is
//! reported only if it is found twice in a row. Nodes are queried only while this one and another one have a live
//! room, which their heartbeats report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::cluster::NodeState;
use sidetone_model::metrics::Family;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::peers::ClusterPeers;
use crate::driver::Handle;

/// The rooms that are live here and at other nodes, with the names of those nodes; clones share it.
#[derive(Clone, Debug, Default)]
pub struct SplitRooms(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

/// The task that searches for them, not started yet.
pub struct SplitRoomWatch {
    peers: ClusterPeers,
    switch: Handle,
    found: SplitRooms,
}

impl SplitRooms {
    /// Failures that do not stop the node.
    pub fn degraded(&self) -> Option<String> {
        let found = self.0.lock();
        let (room, nodes) = found.iter().next()?;
        let others = found.len().saturating_sub(1);
        let more = if others > 0 { format!(", and {others} other rooms") } else { String::new() };
        Some(format!(
            "cluster: the callers of {room} here do not hear those at {}{more}: send the callers of a room to one node",
            nodes.join(", ")
        ))
    }

    /// The metric.
    pub fn family(&self) -> Family {
        Family::gauge(
            "sidetone_cluster_split_rooms",
            "Rooms that are live at this node and at another one: their callers do not hear each other.",
        )
        .is(self.0.lock().len() as u64)
    }

    /// Replaces the found rooms, and returns those that were not found before.
    fn replace(&self, found: BTreeMap<String, Vec<String>>) -> Vec<(String, Vec<String>)> {
        let mut known = self.0.lock();
        let new = found.iter().filter(|(room, _)| !known.contains_key(*room));
        let new = new.map(|(room, nodes)| (room.clone(), nodes.clone())).collect();
        *known = found;
        new
    }
}

impl SplitRoomWatch {
    /// Searches these nodes for the rooms of this switch.
    pub fn new(peers: ClusterPeers, switch: Handle) -> (Self, SplitRooms) {
        let found = SplitRooms::default();
        (SplitRoomWatch { peers, switch, found: found.clone() }, found)
    }

    /// Runs until `stop` turns true.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        let mut before = BTreeMap::new();
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = look.tick() => {}
            }
            let found = if self.is_possible() { self.look().await } else { BTreeMap::new() };
            for (room, nodes) in self.found.replace(lasting(&found, &before)) {
                tracing::warn!(
                    conference.room = room,
                    nodes = nodes.join(", "),
                    "a room is live at this node and at others: their callers do not hear each other; send the callers of a \
                     room to one node"
                );
            }
            before = found;
        }
    }

    fn is_possible(&self) -> bool {
        let view = self.peers.0.view();
        let mut others =
            view.members.iter().filter(|member| !member.is_this && member.state == NodeState::Up);
        self.switch.live_rooms() > 0 && others.any(|member| member.last.figures.rooms > 0)
    }

    async fn look(&self) -> BTreeMap<String, Vec<String>> {
        let mut found = BTreeMap::<String, Vec<String>>::new();
        // If the switch is busy, it is queried the next time.
        let Ok(own) = super::peers::live_rooms(&self.switch).await else { return found };
        for (node, rooms) in self.peers.rooms().await {
            for room in rooms.into_iter().filter(|room| own.contains(room)) {
                found.entry(room).or_default().push(node.clone());
            }
        }
        found
    }
}

/// The rooms that were already found the last time.
fn lasting(
    found: &BTreeMap<String, Vec<String>>,
    before: &BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let lasting = found.iter().filter(|(room, _)| before.contains_key(*room));
    lasting.map(|(room, nodes)| (room.clone(), nodes.clone())).collect()
}

const LOOK_EVERY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_room_is_reported_once_and_shown_while_it_lasts() {
        let rooms = SplitRooms::default();
        assert_eq!(rooms.degraded(), None);
        // During a handover, a room is live at both nodes for a moment.
        let now = BTreeMap::from([("svc-room-2".to_owned(), vec!["b".to_owned()])]);
        assert_eq!((lasting(&now, &BTreeMap::new()), lasting(&now, &now)), (BTreeMap::new(), now.clone()));
        let found = BTreeMap::from([("svc-room-1".to_owned(), vec!["b".to_owned(), "c".to_owned()])]);
        assert_eq!(rooms.replace(found.clone()).len(), 1);
        assert_eq!(rooms.replace(found), []);
        let text = rooms.degraded().unwrap();
        assert!(text.contains("svc-room-1 here do not hear those at b, c: send"), "{text}");
        assert_eq!(rooms.replace(BTreeMap::new()), []);
        assert_eq!(rooms.degraded(), None);
    }
}
