//! D11: one of three nodes is cut off from NATS, or from the database: no data passes in either direction,
//! while its connections stay open.
//!
//! `long_partitions_of_a_minute` holds the cuts for sixty seconds each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_phone::{Answering, Phone};
use sidetone_store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::calls::{Talk, all_records, get};
use super::limits::{Outbound, carrier, counts_together, refused};
use super::rooms::{Guest, in_one_room, one_room};
use super::site::{ALL_UP, Cluster, Node, operator};
use super::wire::Wire;
use crate::common::site::{answering, calls, declare_in, found, phone_config, registered, talking, within};
use crate::common::tones::hears;
use crate::service::client::Ask;
use crate::service::idempotency::{ADMIN, directory, post, teams};
use crate::service::two_nodes::address_in;

const TONES: [u32; 2] = [430, 617];
const GUESTS: [&str; 2] = ["1007", "1008"];
/// A member that the room calls when it opens.
const MEMBER: &str = "1009";
/// The limit of outbound calls of all nodes together, and the share of each of three nodes.
const LIMIT: usize = 3;
const SHARE: usize = 1;
/// D11: the isolated node works as before within this time after the end of the partition.
const HEALED_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Three nodes, the third behind wires of its own.
struct World {
    nodes: [Node; 3],
    token: String,
    nats: Wire,
    postgres: Wire,
    _carrier: Phone,
    _cluster: Cluster,
}

async fn phone(node: &Node, number: &str) -> Arc<Phone> {
    Arc::new(registered(phone_config(node.served.sip, number, answering())).await)
}

impl World {
    async fn start() -> Option<World> {
        let mut cluster = Cluster::start().await?;
        let carrier = carrier("127.0.0.1:9".parse().unwrap()).await;
        let domain = "sip_domain = \"acme.test\"\n";
        let text = directory()
            .replacen(domain, &format!("{domain}max_outbound_calls = {LIMIT}\n"), 1)
            .replacen("number = \"300\"\n", &format!("number = \"300\"\nmembers = [\"{MEMBER}\"]\n"), 1);
        let trunk = format!("[[trunks]]\nname = \"carrier\"\naddress = \"sip:{}\"\n", carrier.local());
        let store = Store::open(&cluster.database.database).await.unwrap();
        declare_in(&store, &format!("{text}{trunk}")).await;
        store.close().await;

        let (first, second) = (cluster.node("first", 1).await, cluster.node("second", 2).await);
        let target = address_in(&cluster.database_url);
        let (nats, postgres) = (Wire::to(cluster.nats.address).await, Wire::to(target).await);
        cluster.nats_url = format!("nats://{}", nats.address);
        cluster.database_url =
            cluster.database_url.replace(&target.to_string(), &postgres.address.to_string());
        let third = cluster.node("third", 3).await;
        let token = operator(first.http()).await;
        let nodes = [first, second, third];
        for node in &nodes {
            node.sees(&token, &ALL_UP).await;
        }
        Some(World { nodes, token, nats, postgres, _carrier: carrier, _cluster: cluster })
    }

    /// Waits until all nodes see each other again; a node that was cut off is back within ten seconds.
    async fn healed(&self, since: Instant) {
        for node in &self.nodes {
            node.sees(&self.token, &ALL_UP).await;
        }
        let took = since.elapsed();
        assert!(took <= HEALED_MAX, "the nodes see each other {took:?} after the partition");
    }
}

/// A task that watches until it is stopped.
struct Watch<T> {
    stop: watch::Sender<bool>,
    task: JoinHandle<T>,
}

impl<T> Watch<T> {
    async fn ends(self) -> T {
        self.stop.send_replace(true);
        within("the end of a watch", self.task).await.unwrap()
    }
}

/// Counts how often a second node owned a room while a first one owned it before and after.
fn owners(nodes: &[Node; 3]) -> Watch<(u64, u64)> {
    let addresses = [0, 1, 2].map(|at| nodes[at].http());
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(async move {
        let (mut looks, mut doubles) = (0, 0);
        // The last three reads, oldest first: one at each node.
        let mut last = [false; 3];
        while !*stopped.borrow() {
            for (at, address) in addresses.into_iter().enumerate() {
                let metrics = Ask::new("GET", "/metrics").send(address).await.text;
                let owns = metrics.contains("sidetone_cluster_owned_rooms 1\n");
                assert!(owns || metrics.contains("sidetone_cluster_owned_rooms 0\n"), "{metrics}");
                let others = (0..3).any(|other| other != at && last[other]);
                doubles += u64::from(owns && last[at] && others);
                (last[at], looks) = (owns, looks + 1);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        (looks, doubles)
    });
    Watch { stop, task }
}

/// The most calls that a phone had at the same time, ringing or answered.
fn most_calls(phone: &Phone) -> Watch<usize> {
    let (stop, mut stopped) = watch::channel(false);
    let mut calls = phone.calls();
    let task = tokio::spawn(async move {
        let mut most = 0;
        loop {
            let now = *calls.borrow_and_update();
            most = most.max(now.ringing + now.up);
            tokio::select! {
                changed = calls.changed() => changed.unwrap(),
                _ = stopped.wait_for(|stop| *stop) => return most,
            }
        }
    });
    Watch { stop, task }
}

/// All three nodes get a request with one key: it has one effect, also while one node is cut off from NATS.
async fn one_key_has_one_effect(nodes: &[Node; 3], name: &str) {
    let ask = post("/teams", ADMIN, name, &json!({"name": name}));
    let [first, second, third] = [0, 1, 2].map(|at| nodes[at].http());
    let (one, two, three) = tokio::join!(ask.send(first), ask.send(second), ask.send(third));
    let again = ask.send(third).await;
    assert_eq!(again.status, 201, "{again:?}");
    for answer in [one, two, three] {
        match answer.status {
            201 => assert_eq!(answer.json()["id"], again.json()["id"]),
            409 => assert!(answer.has("retry-after: 1"), "{answer:?}"),
            _ => panic!("{answer:?}"),
        }
    }
    let made = teams(first).await.iter().filter(|team| team["name"] == name).count();
    assert_eq!(made, 1, "{name}");
}

/// The third node is cut off from NATS for `time`, or as long as it takes.
async fn without_nats(world: &World, time: Duration) {
    let nodes = &world.nodes;
    let [first, second, third] = nodes;
    let phones = [
        (first, "1001"),
        (second, "1002"),
        (third, "1003"),
        (first, "1004"),
        (second, "1005"),
        (third, "1006"),
    ];
    let mut callers = Vec::new();
    for (node, number) in phones {
        callers.push(phone(node, number).await);
    }
    for caller in &callers[..3] {
        counts_together(&[first, second, third], caller).await;
    }
    let member = registered(phone_config(second.served.sip, MEMBER, Answering::Ring)).await;
    let (owners, rung) = (owners(nodes), most_calls(&member));
    // The room is live at the node that will be cut off.
    let away = Guest::joins(third, GUESTS[0], TONES[0]).await;
    one_room(third, &GUESTS[..1]).await;
    let stays = Guest::joins(first, GUESTS[1], TONES[1]).await;
    in_one_room(first, &GUESTS).await;
    assert_eq!(third.metric("sidetone_cluster_owned_rooms").await, 1);
    calls(&member, 1, 0).await;
    let mut up = vec![Outbound::of(&callers[2]).await, Outbound::of(&callers[0]).await];

    let cut = Instant::now();
    world.nats.silence();
    within("the end of the room at the node that is cut off", away.call).await.unwrap();
    let ended = cut.elapsed();
    in_one_room(first, &GUESTS[1..]).await;
    let back = cut.elapsed();
    first.sees(&world.token, &[("first", "up"), ("second", "up"), ("third", "gone")]).await;
    found("the isolation", async || (third.metric("sidetone_cluster_linked").await == 0).then_some(())).await;
    one_key_has_one_effect(nodes, &format!("without-nats-{}", time.as_secs())).await;
    for caller in [&callers[3], &callers[1], &callers[4], &callers[5]] {
        up.extend(Outbound::attempt(caller).await);
    }
    assert!(up.len() <= LIMIT + SHARE, "{} calls of {LIMIT}, and a share of {SHARE}", up.len());
    assert_eq!(refused(&callers[5]).await, 503, "the node that is cut off has its share");
    tokio::time::sleep_until((cut + time).into()).await;

    world.nats.heal();
    let healed = Instant::now();
    world.healed(healed).await;
    let again = Guest::joins(third, GUESTS[0], TONES[0]).await;
    in_one_room(second, &GUESTS).await;
    hears(&again.heard, &TONES, &[TONES[1]]).await;
    hears(&stays.heard, &TONES, &[TONES[0]]).await;
    let total = up.len();
    for call in up {
        call.ends().await;
    }
    counts_together(&[first, second, third], &callers[2]).await;
    let mut fit = Vec::new();
    for caller in &callers[..LIMIT] {
        fit.push(Outbound::when_there_is_a_place(caller).await);
    }
    assert_eq!(refused(&callers[3]).await, 503, "the limit is that of all nodes again");
    for call in fit {
        call.ends().await;
    }
    again.leaves().await;
    stays.leaves().await;
    let (looks, doubles) = owners.ends().await;
    assert_eq!(doubles, 0, "two nodes owned a room in {doubles} of {looks} looks");
    assert_eq!(rung.ends().await, 1, "a default member is rung by one room at a time");
    assert_eq!(first.metric("sidetone_cluster_split_rooms").await, 0);
    eprintln!(
        "without NATS: the room ended after {:.1} s and was back after {:.1} s, {total} outbound calls of {LIMIT}, never two \
         owners in {looks} looks",
        ended.as_secs_f64(),
        back.as_secs_f64()
    );
}

/// The third node is cut off from the database for `time`, or as long as it takes.
async fn without_a_database(world: &World, time: Duration) {
    let [first, _, third] = &world.nodes;
    let (caller, _callee) = (phone(third, "1003").await, phone(third, "1006").await);
    let records = all_records(first.http()).await.len();
    let cut = Instant::now();
    world.postgres.silence();
    // A call is set up and ends without a database, and its record waits in the journal.
    let outcome = within("a call", caller.call(talking("1006", 300))).await.unwrap();
    assert_eq!(outcome.status, 200);
    let name = format!("without-postgres-{}", time.as_secs());
    let ask = post("/teams", ADMIN, &name, &json!({"name": name}));
    let asked = Instant::now();
    let at_third = within("an answer", ask.send(third.http())).await;
    let took = asked.elapsed();
    assert!(at_third.status >= 500, "{at_third:?}");
    let at_first = within("an answer", ask.send(first.http())).await;
    assert_eq!(at_first.status, 201, "{at_first:?}");
    let read = within("an answer", get(third.http(), "/cdrs?limit=1")).await;
    assert!(read.status >= 500, "{read:?}");
    tokio::time::sleep_until((cut + time).into()).await;

    world.postgres.heal();
    let healed = Instant::now();
    found("the record", async || (all_records(first.http()).await.len() > records).then_some(())).await;
    let again = found("the answer of the other node", async || {
        let again = ask.send(third.http()).await;
        (again.status == 201).then_some(again)
    })
    .await;
    let back = healed.elapsed();
    assert!(back <= HEALED_MAX, "{back:?}");
    // What the node sent during the partition arrived afterwards, and had no second effect.
    assert_eq!(again.json()["id"], at_first.json()["id"], "{again:?}");
    for node in &world.nodes {
        let made = teams(node.http()).await.iter().filter(|team| team["name"] == name.as_str()).count();
        assert_eq!(made, 1, "{name} at {}", node.name);
    }
    world.healed(healed).await;
    eprintln!(
        "without a database: {} after {:.1} s, the record and the answer are there {:.1} s after the partition",
        at_third.status,
        took.as_secs_f64(),
        back.as_secs_f64()
    );
}

/// The third node is cut off from both for `time`: its calls continue, and are recorded once.
async fn without_both(world: &World, time: Duration) {
    let [first, _, third] = &world.nodes;
    let talk = Talk::at(third, "1003", "1006").await;
    let records = all_records(first.http()).await.len();
    let cut = Instant::now();
    world.nats.silence();
    world.postgres.silence();
    first.sees(&world.token, &[("first", "up"), ("second", "up"), ("third", "gone")]).await;
    tokio::time::sleep_until((cut + time).into()).await;
    calls(&talk.callee, 0, 1).await;
    world.nats.heal();
    world.postgres.heal();
    let healed = Instant::now();
    world.healed(healed).await;
    talk.caller.hang_up().await.unwrap();
    within("the end of the call", talk.placed).await.unwrap();
    let record = found("the record", async || {
        let mut all = all_records(first.http()).await;
        assert!(all.len() <= records + 1, "{all:#?}");
        all.truncate(all.len() - records);
        all.pop()
    })
    .await;
    assert_eq!(record["hangup_cause"], "NORMAL_CLEARING", "{record:#}");
    eprintln!("without NATS and database: a call of {:.0} s has its record", cut.elapsed().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_makes_no_second_room_call_or_effect_and_heals() {
    let Some(world) = World::start().await else { return };
    without_nats(&world, Duration::ZERO).await;
    without_a_database(&world, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: partitions of sixty seconds, some three minutes"]
async fn long_partitions_of_a_minute() {
    let Some(world) = World::start().await else { return };
    let minute = Duration::from_secs(60);
    without_nats(&world, minute).await;
    without_a_database(&world, minute).await;
    without_both(&world, minute).await;
}
