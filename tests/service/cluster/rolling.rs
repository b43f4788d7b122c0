//! A rolling upgrade: each of three nodes is drained, ends and starts again, with calls at all of them, and a room with
//! callers at all of them.

use std::sync::Arc;

use sidetone_phone::Phone;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::calls::all_records;
use super::rooms::{Guest, one_room};
use super::site::{Cluster, Node, operator};
use crate::common::site::{answering, found, phone_config, registered, talking, within};
use crate::common::tones::hears;

const NAMES: [&str; 3] = ["first", "second", "third"];
const CALLERS: [&str; 3] = ["1001", "1002", "1003"];
const CALLEES: [&str; 3] = ["1004", "1005", "1006"];

/// The callers of the room, and their tones.
const GUESTS: [(&str, u32); 3] = [("1007", 430), ("1008", 617), ("1009", 941)];

/// The phones of a pair: they register at another node when theirs is drained.
type Pair = Arc<(Phone, Phone)>;

async fn pair(node: &Node, at: usize) -> Pair {
    let phone = async |number| registered(phone_config(node.served.sip, number, answering())).await;
    Arc::new((phone(CALLERS[at]).await, phone(CALLEES[at]).await))
}

/// Successive calls of a pair.
struct Load {
    pair: watch::Sender<Option<Pair>>,
    /// The number of answered calls, and the statuses of failed ones.
    task: JoinHandle<(u64, Vec<u16>)>,
}

impl Load {
    async fn at(node: &Node, at: usize) -> Load {
        let (present, mut pairs) = watch::channel(Some(pair(node, at).await));
        let task = tokio::spawn(async move {
            let (mut answered, mut failed) = (0, Vec::new());
            loop {
                let Some(pair) = pairs.borrow_and_update().clone() else { break };
                let status = pair.0.call(talking(CALLEES[at], 400)).await.map_or(0, |outcome| outcome.status);
                match status {
                    200 => answered += 1,
                    // A proxy in front of the nodes would try another one; here the call waits until the phones have
                    // moved.
                    503 => {
                        let _ = pairs.changed().await;
                    }
                    status => failed.push(status),
                }
            }
            (answered, failed)
        });
        Load { pair: present, task }
    }

    async fn ends(self) -> (u64, Vec<u16>) {
        self.pair.send_replace(None);
        within("the last call", self.task).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_one_node_after_the_other_is_drained_and_starts_again() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut nodes = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        nodes.push(Some(cluster.node(name, at as u8 + 1).await));
    }
    let token = operator(nodes[0].as_ref().unwrap().http()).await;
    for node in nodes.iter().flatten() {
        node.sees(&token, &NAMES.map(|name| (name, "up"))).await;
    }
    let mut loads = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        loads.push(Load::at(node.as_ref().unwrap(), at).await);
    }
    let mut guests = Vec::new();
    for (node, (number, hz)) in nodes.iter().flatten().zip(GUESTS) {
        guests.push(Some(Guest::joins(node, number, hz).await));
    }
    let everybody = GUESTS.map(|(number, _)| number);
    one_room(nodes[0].as_ref().unwrap(), &everybody).await;
    let mut places = [0, 1, 2];
    for drained in 0..nodes.len() {
        let next = (drained + 1) % nodes.len();
        let config = cluster.config(NAMES[next], next as u8 + 1, &nodes[next].as_ref().unwrap().data);
        cluster.drain(NAMES[drained], &config).await;
        // Every pair at this node, its own and those that moved here.
        for (at, load) in loads.iter().enumerate().filter(|(at, _)| places[*at] == drained) {
            let moved = pair(nodes[next].as_ref().unwrap(), at).await;
            load.pair.send_replace(Some(moved));
        }
        // The room moves to another node with all its callers. Those of this node call again at the next.
        let node = nodes[drained].as_ref().unwrap();
        found("the end of the room at the drained node", async || {
            (node.metric("sidetone_room_sessions_live").await == 0).then_some(())
        })
        .await;
        one_room(nodes[next].as_ref().unwrap(), &everybody).await;
        for at in (0..guests.len()).filter(|at| places[*at] == drained) {
            guests[at].take().unwrap().leaves().await;
            let (number, hz) = GUESTS[at];
            guests[at] = Some(Guest::joins(nodes[next].as_ref().unwrap(), number, hz).await);
        }
        one_room(nodes[next].as_ref().unwrap(), &everybody).await;
        places = places.map(|place| if place == drained { next } else { place });
        let Node { mut served, data, .. } = nodes[drained].take().unwrap();
        let status = within("the end of the node", served.ended()).await;
        assert!(status.success(), "{status}");
        let back = cluster.node_on(NAMES[drained], drained as u8 + 1, data).await;
        back.sees(&token, &NAMES.map(|name| (name, "up"))).await;
        nodes[drained] = Some(back);
    }
    for at in 0..guests.len() {
        let others: Vec<u32> = GUESTS.iter().map(|(_, hz)| *hz).filter(|hz| *hz != GUESTS[at].1).collect();
        hears(&guests[at].as_ref().unwrap().heard, &GUESTS.map(|(_, hz)| hz), &others).await;
    }
    for guest in guests.into_iter().flatten() {
        guest.leaves().await;
    }
    let mut answered = 0;
    for load in loads {
        let (own, failed) = load.ends().await;
        assert!(own > 0 && failed.is_empty(), "{own} calls were answered, and others ended with {failed:?}");
        answered += own;
    }
    let reader = nodes[0].as_ref().unwrap();
    let records = found(&format!("{answered} records"), async || {
        let mut records = all_records(reader.http()).await;
        records.retain(|record| record["answered_at"].is_string() && record["destination_number"] != "300");
        assert!(records.len() as u64 <= answered, "{} records of {answered} calls", records.len());
        (records.len() as u64 == answered).then_some(records)
    })
    .await;
    let other = records.iter().find(|record| record["hangup_cause"] != "NORMAL_CLEARING");
    assert!(other.is_none(), "{other:#?}");
    eprintln!("{answered} calls, none failed");
}
