//! Rooms whose callers are at several nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::CodecPolicy;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::interval;

use super::calls::{get, items, read, records};
use super::site::{Cluster, Node, operator, whole};
use crate::common::site::{calls, found, phone_config, registered, within};
use crate::common::tones::{hears, level};
use crate::service::client::Ask;
use crate::service::idempotency::ADMIN;
use crate::service::two_nodes::Line;

/// None is a sum of others or of their harmonics.
const TONES: [u32; 3] = [430, 617, 941];

/// The number that prompts for the number of a room.
const ASKS: &str = "+442079460002";

/// A caller in a room that plays a tone.
pub struct Guest {
    pub phone: Arc<Phone>,
    pub heard: Heard,
    pub call: JoinHandle<u16>,
}

impl Guest {
    /// A caller of room 300.
    pub async fn joins(node: &Node, number: &'static str, hz: u32) -> Guest {
        Guest::keys(node, number, hz, ("300", "")).await
    }

    /// A caller of this number that then enters these digits.
    pub async fn keys(node: &Node, number: &'static str, hz: u32, (to, digits): (&str, &str)) -> Guest {
        let heard = Heard::new();
        let config = PhoneConfig {
            codecs: CodecPolicy::new(["PCMU"]),
            voice: Some(Voice::Note(hz)),
            heard: Some(heard.clone()),
            ..phone_config(node.served.sip, number, Answering::Ring)
        };
        let phone = Arc::new(registered(config).await);
        let caller = Arc::clone(&phone);
        let plan = CallPlan { talk_time: None, ..CallPlan::to(to) };
        let call = tokio::spawn(async move { caller.call(plan).await.map_or(0, |outcome| outcome.status) });
        calls(&phone, 0, 1).await;
        if !digits.is_empty() {
            phone.dial(digits).await.unwrap();
        }
        Guest { phone, heard, call }
    }

    /// Hangs up a call that is still up.
    pub async fn leaves(self) {
        assert!(!self.call.is_finished(), "the call has ended by itself");
        self.phone.hang_up().await.unwrap();
        assert_eq!(within("the end of the call", self.call).await.unwrap(), 200);
    }
}

/// The live rooms, as read at a node.
async fn rooms(node: &Node) -> Vec<Value> {
    let answer = get(node.http(), "/conferences").await;
    if answer.status == 503 {
        // A busy machine: the request is repeated.
        return Vec::new();
    }
    items(&answer)
}

/// Waits until there is one room with these numbers in it. Others may be in it whose node has died and is not yet
/// detected as lost.
pub async fn in_one_room(node: &Node, numbers: &[&str]) {
    found("the room", async || {
        let rooms = rooms(node).await;
        let [room] = rooms.as_slice() else { return None };
        let members = room["members"].as_array()?;
        let is_in = |number: &&str| members.iter().any(|member| member["number"] == **number);
        numbers.iter().all(is_in).then_some(())
    })
    .await;
}

/// Waits until there is one room, with these numbers in it.
pub async fn one_room(node: &Node, numbers: &[&str]) {
    let mut last = Vec::new();
    let seen = found("the room", async || {
        last = rooms(node).await;
        let [room] = last.as_slice() else { return None };
        let mut members: Vec<_> =
            room["members"].as_array()?.iter().map(|member| member["number"].as_str().unwrap()).collect();
        members.sort_unstable();
        (members == numbers).then_some(())
    });
    if tokio::time::timeout(Duration::from_secs(30), seen).await.is_err() {
        panic!("{numbers:?} are not in one room: {last:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_at_several_nodes_are_in_one_room_and_stay_when_its_node_dies() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let one = Guest::joins(&first, "1001", TONES[0]).await;
    one_room(&first, &["1001"]).await;
    let other = Guest::joins(&second, "1002", TONES[1]).await;
    one_room(&second, &["1001", "1002"]).await;
    hears(&one.heard, &TONES, &[TONES[1]]).await;
    hears(&other.heard, &TONES, &[TONES[0]]).await;
    let metrics = second.metrics().await;
    assert!(metrics.contains("sidetone_cluster_split_rooms 0\n"), "{metrics}");

    // The node of the room dies: the caller at the other node is in the room there.
    let killed = Instant::now();
    first.served.kill();
    one_room(&second, &["1002"]).await;
    eprintln!("a caller is in the room again {:.1} s after its node died", killed.elapsed().as_secs_f64());
    one.call.abort();
    let third = Guest::joins(&second, "1003", TONES[2]).await;
    one_room(&second, &["1002", "1003"]).await;
    hears(&other.heard, &TONES, &[TONES[2]]).await;
    other.leaves().await;
    third.leaves().await;
    // The call has its own record; that of its leg between the nodes died with the room.
    let records = found("the records", async || {
        let records = items(&read(second.http(), "/cdrs?limit=100").await);
        (records.len() >= 2).then_some(records)
    })
    .await;
    let of = |number: &str| records.iter().filter(|record| record["caller_number"] == number).count();
    assert_eq!((of("1002"), of("1003")), (1, 1), "{records:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_node_of_a_room_dies_its_callers_at_all_other_nodes_are_together_again() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, token) = cluster.two().await;
    let third = cluster.node("third", 3).await;
    for node in [&first, &second, &third] {
        node.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    }
    let one = Guest::joins(&first, "1001", TONES[0]).await;
    one_room(&first, &["1001"]).await;
    let other = Guest::joins(&second, "1002", TONES[1]).await;
    let last = Guest::joins(&third, "1003", TONES[2]).await;
    one_room(&first, &["1001", "1002", "1003"]).await;
    hears(&other.heard, &TONES, &[TONES[0], TONES[2]]).await;
    let killed = Instant::now();
    first.served.kill();
    one_room(&second, &["1002", "1003"]).await;
    eprintln!(
        "both callers are in the room again {:.1} s after its node died",
        killed.elapsed().as_secs_f64()
    );
    one.call.abort();
    hears(&other.heard, &TONES, &[TONES[2]]).await;
    hears(&last.heard, &TONES, &[TONES[1]]).await;
    other.leaves().await;
    last.leaves().await;
    let metrics = second.metrics().await;
    assert!(metrics.contains("sidetone_cluster_split_rooms 0\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_key_the_number_of_a_room_meet_whichever_nodes_they_call() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let one = Guest::keys(&first, "1001", TONES[0], (ASKS, "300#")).await;
    one_room(&first, &["1001"]).await;
    let other = Guest::keys(&second, "1002", TONES[1], (ASKS, "300#")).await;
    one_room(&second, &["1001", "1002"]).await;
    hears(&one.heard, &TONES, &[TONES[1]]).await;
    hears(&other.heard, &TONES, &[TONES[0]]).await;
    for (node, owned) in [(&first, 1), (&second, 0)] {
        assert_eq!(node.metric("sidetone_cluster_owned_rooms").await, owned);
        assert_eq!(node.metric("sidetone_cluster_split_rooms").await, 0);
    }
    other.leaves().await;
    one.leaves().await;
}

/// The longest time in which a guest did not receive a tone, until `stop`.
fn longest_gap(heard: Heard, hz: u32, mut stop: watch::Receiver<bool>) -> JoinHandle<Duration> {
    tokio::spawn(async move {
        let mut look = interval(Duration::from_millis(10));
        let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return longest.max(last.elapsed()),
                _ = look.tick() => {}
            }
            // The audio received since the tone was heard last.
            let Some((pcm, rate_hz)) = heard.lately(40) else { continue };
            if level(&pcm, rate_hz, hz).abs() < 6.0 {
                longest = longest.max(last.elapsed());
                last = Instant::now();
                heard.clear();
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_goes_on_at_another_node_when_its_node_is_drained() {
    let Some(cluster) = Cluster::start().await else { return };
    let (mut first, second, token) = cluster.two().await;
    let third = cluster.node("third", 3).await;
    for node in [&first, &second, &third] {
        node.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    }
    let one = Guest::keys(&first, "1001", TONES[0], ("301", "0815#")).await;
    one_room(&first, &["1001"]).await;
    let other = Guest::keys(&second, "1002", TONES[1], ("301", "4711#")).await;
    let last = Guest::keys(&third, "1003", TONES[2], ("301", "4711#")).await;
    one_room(&first, &["1001", "1002", "1003"]).await;
    hears(&other.heard, &TONES, &[TONES[0], TONES[2]]).await;
    let live = items(&read(second.http(), "/conferences").await);
    let room = live[0]["room"].as_str().unwrap().to_owned();
    let lock = Ask::new("POST", format!("/api/v1/conferences/{room}/lock")).bearer(ADMIN);
    assert_eq!(whole(second.http(), &lock).await.status, 204);

    let (stop, stopped) = watch::channel(false);
    let gap = longest_gap(last.heard.clone(), TONES[1], stopped);
    let config = cluster.config("second", 2, &second.data);
    cluster.drain("first", &config).await;
    let moved = found("the room at another node", async || {
        let owned = first.metric("sidetone_cluster_owned_rooms").await;
        let rooms = rooms(&second).await;
        let [room] = rooms.as_slice() else { return None };
        let is_whole = room["members"].as_array()?.len() == 3;
        let members = first.metric("sidetone_room_sessions_live").await;
        (owned == 0 && members == 0 && is_whole).then(|| room.clone())
    })
    .await;
    stop.send_replace(true);
    let gap = within("the gap", gap).await.unwrap();
    eprintln!("a member of the room did not hear another one for {} ms at most", gap.as_millis());
    assert!(gap < Duration::from_secs(1), "{gap:?}");
    assert_eq!(moved["locked"], true, "{moved:#}");
    let members = moved["members"].as_array().unwrap();
    let role =
        |number: &str| members.iter().find(|member| member["number"] == number).unwrap()["role"].clone();
    assert_eq!((role("1001"), role("1003")), (json!("moderator"), json!("participant")));
    hears(&one.heard, &TONES, &[TONES[1], TONES[2]]).await;
    hears(&other.heard, &TONES, &[TONES[0], TONES[2]]).await;
    hears(&last.heard, &TONES, &[TONES[0], TONES[1]]).await;
    assert_eq!(first.metric("sidetone_cluster_room_leases_total{result=\"handed_over\"}").await, 1);
    assert_eq!(first.metric("sidetone_cluster_room_leases_total{result=\"lost\"}").await, 0);
    // The draining node still has the call of its own phone, and ends with it.
    one.leaves().await;
    let status = within("the end of the node", first.served.ended()).await;
    assert!(status.success(), "{status}");
    one_room(&second, &["1002", "1003"]).await;
    last.leaves().await;
    other.leaves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leg_between_the_nodes_is_marked_in_its_record() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let one = Guest::joins(&first, "1001", TONES[0]).await;
    let other = Guest::joins(&second, "1002", TONES[1]).await;
    one_room(&first, &["1001", "1002"]).await;
    other.leaves().await;
    one.leaves().await;
    let records = records(first.http(), 3).await;
    let mut legs: Vec<_> = records
        .iter()
        .map(|record| (record["caller_number"].as_str().unwrap(), record["transport"].as_str().unwrap()))
        .collect();
    legs.sort_unstable();
    assert_eq!(legs, [("1001", "sip"), ("1002", "node"), ("1002", "sip")], "{records:#?}");
    assert!(records.iter().all(|record| record["destination_number"] == json!("300")), "{records:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_nats_ends_its_rooms_before_another_one_has_them() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let first = cluster.node("first", 1).await;
    let line = Line::to(cluster.nats.address).await;
    cluster.nats_url = format!("nats://{}", line.address);
    let second = cluster.node("second", 2).await;
    let token = operator(first.http()).await;
    for node in [&first, &second] {
        node.sees(&token, &[("first", "up"), ("second", "up")]).await;
    }
    let guest = Guest::joins(&second, "1002", TONES[0]).await;
    one_room(&second, &["1002"]).await;
    line.is_whole.send_replace(false);
    // The guest hears the announcement of the end, and is hung up.
    within("the end of the call", guest.call).await.unwrap();
    let metrics = second.metrics().await;
    assert!(metrics.contains("sidetone_cluster_room_leases_total{result=\"lost\"} 1\n"), "{metrics}");
    let other = Guest::joins(&first, "1003", TONES[1]).await;
    one_room(&first, &["1003"]).await;
    line.is_whole.send_replace(true);
    first.sees(&token, &[("first", "up"), ("second", "up")]).await;
    let again = Guest::joins(&second, "1004", TONES[2]).await;
    one_room(&second, &["1003", "1004"]).await;
    again.leaves().await;
    other.leaves().await;
}
