//! SIGKILL of one of three nodes at a random moment, with calls, a room and notes up.
//!
//! Two rounds with few calls; twenty with
//! `SIDETONE_KILL_ROUNDS=20 cargo test --release --test engine -- cluster::kills --nocapture`.
//! `SIDETONE_KILL_SEED` repeats a run, as far as timing allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sidetone_phone::{Phone, ShownNote};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::calls::{all_records, get, items};
use super::rooms::{Guest, in_one_room, one_room};
use super::site::{Cluster, Node, operator};
use crate::common::site::{answering, calls, found, phone_config, registered, talking, within};
use crate::service::client::Ask;
use crate::service::idempotency::ADMIN;

const NAMES: [&str; 3] = ["first", "second", "third"];
const CALLERS: [&str; 3] = ["1001", "1002", "1003"];
const CALLEES: [&str; 3] = ["1004", "1005", "1006"];
const GUESTS: [&str; 3] = ["1007", "1008", "1009"];
const TONES: [u32; 3] = [430, 617, 941];
/// The silence after which a node's calls are recorded; short, so that a round is short.
const LOST_AFTER_S: u64 = 8;
/// Rooms are back within 5 s on an idle machine; this one runs all nodes and phones.
const ROOM_BACK_MAX: Duration = Duration::from_secs(15);

pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Successive calls of one phone at a node to another phone of that node.
struct Load {
    caller: Arc<Phone>,
    _callee: Phone,
    stop: watch::Sender<bool>,
    /// Calls that were answered and have ended.
    answered: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Load {
    async fn at(node: &Node, at: usize, seed: u64) -> Load {
        let caller = Arc::new(registered(phone_config(node.served.sip, CALLERS[at], answering())).await);
        let callee = registered(phone_config(node.served.sip, CALLEES[at], answering())).await;
        let (stop, stopped) = watch::channel(false);
        let (phone, answered) = (Arc::clone(&caller), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&answered);
        let task = tokio::spawn(async move {
            let mut rng = StdRng::seed_from_u64(seed);
            while !*stopped.borrow() {
                let plan = talking(CALLEES[at], rng.random_range(200..1_200));
                match phone.call(plan).await {
                    Ok(outcome) if outcome.status == 200 => {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => {}
                }
            }
        });
        Load { caller, _callee: callee, stop, answered, task }
    }

    /// Ends after the current call; returns the number of answered calls.
    async fn ends(self) -> u64 {
        self.stop.send_replace(true);
        within("the last call", self.task).await.unwrap();
        self.answered.load(Ordering::Relaxed)
    }

    /// Its node is dead: returns the number of answered calls, including the one that was up.
    async fn dies(self) -> u64 {
        // Otherwise a call that ends in between would be counted twice.
        self.task.abort();
        let _ = self.task.await;
        let up = self.caller.calls().borrow().up as u64;
        self.answered.load(Ordering::Relaxed) + up
    }
}

/// Requests through the other nodes, from three seconds after the death of one: none gets a 5xx.
pub async fn http_answers(nodes: &[&Node], killed: Instant) {
    let from = killed + Duration::from_secs(3);
    while Instant::now() < from + Duration::from_secs(4) {
        for node in nodes {
            for path in ["/calls", "/conferences", "/registrations", "/cdrs?limit=1"] {
                let answer = get(node.http(), path).await;
                assert!(answer.status < 500 || Instant::now() < from, "{path} at {}: {answer:?}", node.name);
            }
        }
    }
}

/// The records of the answered calls that a phone placed.
async fn answered(node: &Node, caller: &str) -> u64 {
    let records = all_records(node.http()).await;
    let of =
        |record: &&serde_json::Value| record["caller_number"] == caller && record["answered_at"].is_string();
    records.iter().filter(of).count() as u64
}

/// Sends a note to a guest's phone; the node may die in the meantime.
async fn send_note(node: &Node, extension: &str, text: String) {
    let note = json!({"title": text});
    let path = format!("/api/v1/extensions/{extension}/message");
    let sent = Ask::new("POST", path).bearer(ADMIN).json(&note);
    // The test does not depend on its arrival.
    let _ = tokio::time::timeout(Duration::from_secs(1), sent.send(node.http())).await;
}

pub fn ids(notes: &[ShownNote]) -> Vec<&str> {
    notes.iter().map(|note| note.id.as_str()).collect()
}

/// The phones of a dead node register at other nodes, and are called; returns the number of answered calls.
async fn phones_come_back((callees, callers): (&Node, &Node), victim: usize) -> u64 {
    let moved = registered(phone_config(callees.served.sip, CALLEES[victim], answering())).await;
    let caller = registered(phone_config(callers.served.sip, CALLERS[victim], answering())).await;
    found("a call to a phone of the dead node", async || {
        let outcome = caller.call(talking(CALLEES[victim], 200)).await.unwrap();
        (outcome.status == 200).then_some(())
    })
    .await;
    calls(&moved, 0, 0).await;
    1
}

/// No phone has shown a note twice; the guests hang up.
async fn notes_are_shown_once(guests: Vec<Option<Guest>>) {
    for guest in guests.into_iter().flatten() {
        let notes = guest.phone.notes();
        let mut once = ids(&notes);
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), notes.len(), "a note is shown twice");
        guest.leaves().await;
    }
}

struct Round {
    killed: usize,
    room_back: Duration,
    recorded: Duration,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_loses_no_record_and_its_rooms_and_phones_come_back() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.lost_after_s = setting("SIDETONE_KILL_LOST_AFTER", LOST_AFTER_S);
    let seed = setting("SIDETONE_KILL_SEED", 1);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut nodes = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        nodes.push(Some(cluster.node(name, at as u8 + 1).await));
    }
    let token = operator(nodes[0].as_ref().unwrap().http()).await;
    let mut expected = [0; 3];
    for round in 0..setting("SIDETONE_KILL_ROUNDS", 2) {
        for node in nodes.iter().flatten() {
            node.sees(&token, &NAMES.map(|name| (name, "up"))).await;
        }
        let done = one_round(&cluster, &mut nodes, &token, &mut expected, &mut rng).await;
        eprintln!(
            "round {round}: {} was killed; the room was back after {:.1} s, all calls were recorded after {:.1} s",
            NAMES[done.killed],
            done.room_back.as_secs_f64(),
            done.recorded.as_secs_f64()
        );
    }
}

async fn one_round(
    cluster: &Cluster,
    nodes: &mut [Option<Node>],
    token: &str,
    expected: &mut [u64; 3],
    rng: &mut StdRng,
) -> Round {
    let (mut loads, mut guests) = (Vec::new(), Vec::new());
    for (at, node) in nodes.iter().enumerate() {
        let node = node.as_ref().unwrap();
        loads.push(Some(Load::at(node, at, rng.random()).await));
        guests.push(Some(Guest::joins(node, GUESTS[at], TONES[at]).await));
    }
    one_room(nodes[0].as_ref().unwrap(), &GUESTS).await;
    let victim = rng.random_range(0..nodes.len());
    let living: Vec<usize> = (0..nodes.len()).filter(|at| *at != victim).collect();
    let extensions = items(&get(nodes[victim].as_ref().unwrap().http(), "/extensions?limit=100").await);
    let guest = extensions.iter().find(|found| found["number"] == GUESTS[living[0]]).unwrap();
    let guest = guest["id"].as_str().unwrap().to_owned();
    // At a random state change of the next calls, with a note in progress.
    let mut moments = loads[victim].as_ref().unwrap().caller.calls();
    for _ in 0..rng.random_range(1..12) {
        within("a change of the calls", moments.changed()).await.unwrap();
    }
    let dying = nodes[victim].take().unwrap();
    send_note(&dying, &guest, format!("{victim}")).await;
    let (data, killed) = (dying.data, Instant::now());
    dying.served.kill();
    expected[victim] += loads[victim].take().unwrap().dies().await;
    guests[victim].take().unwrap().call.abort();

    let others: Vec<&Node> = nodes.iter().flatten().collect();
    let members: Vec<&str> = living.iter().map(|at| GUESTS[*at]).collect();
    in_one_room(others[0], &members).await;
    let room_back = killed.elapsed();
    assert!(room_back <= ROOM_BACK_MAX, "the room was away for {room_back:?}");
    http_answers(&others, killed).await;

    expected[victim] += phones_come_back((others[0], others[1]), victim).await;

    // Calls that it had answered are recorded, including those known only to its journal once it is back.
    for at in &living {
        expected[*at] += loads[*at].take().unwrap().ends().await;
    }
    let back = cluster.node_on(NAMES[victim], victim as u8 + 1, data).await;
    back.sees(token, &NAMES.map(|name| (name, "up"))).await;
    nodes[victim] = Some(back);
    let reader = nodes[living[0]].as_ref().unwrap();
    for at in 0..nodes.len() {
        found(&format!("{} records of {}", expected[at], CALLERS[at]), async || {
            let count = answered(reader, CALLERS[at]).await;
            // The caller may not know of a call that was being answered when its node died.
            let most = expected[at] + u64::from(at == victim);
            assert!(count <= most, "{count} records of {} answered calls", expected[at]);
            (count >= expected[at]).then_some(())
        })
        .await;
    }
    let recorded = killed.elapsed();
    notes_are_shown_once(guests).await;
    expected[victim] =
        settled(nodes[victim].as_ref().unwrap(), nodes[living[0]].as_ref().unwrap(), victim).await;
    Round { killed: victim, room_back, recorded }
}

/// The number of records of the victim's answered calls. A node stores its journal in order: once a call after its
/// return has a record, the calls before its death have theirs.
async fn settled(back: &Node, reader: &Node, victim: usize) -> u64 {
    // With caller and callee exchanged, so that it is not one of the counted calls.
    let caller = registered(phone_config(back.served.sip, CALLEES[victim], answering())).await;
    let _callee = registered(phone_config(back.served.sip, CALLERS[victim], answering())).await;
    let before = answered(reader, CALLEES[victim]).await;
    found("a call at the node that is back", async || {
        let outcome = caller.call(talking(CALLERS[victim], 200)).await.unwrap();
        (outcome.status == 200).then_some(())
    })
    .await;
    found("its record", async || (answered(reader, CALLEES[victim]).await > before).then_some(())).await;
    answered(reader, CALLERS[victim]).await
}
