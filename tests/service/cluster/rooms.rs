//! Rooms whose callers are at several nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::CodecPolicy;
use tokio::task::JoinHandle;

use super::calls::{get, items, records};
use super::site::{Cluster, Node, operator};
use crate::site::{calls, found, phone_config, registered, within};
use crate::tones::hears;
use crate::two_nodes::Line;

/// None is a sum of others or of their harmonics.
const TONES: [u32; 3] = [430, 617, 941];

/// A caller in room 300 that plays a tone.
pub struct Guest {
    pub phone: Arc<Phone>,
    pub heard: Heard,
    pub call: JoinHandle<u16>,
}

impl Guest {
    pub async fn joins(node: &Node, number: &'static str, hz: u32) -> Guest {
        let heard = Heard::new();
        let config = PhoneConfig {
            codecs: CodecPolicy::new(["PCMU"]),
            voice: Some(Voice::Note(hz)),
            heard: Some(heard.clone()),
            ..phone_config(node.served.sip, number, Answering::Ring)
        };
        let phone = Arc::new(registered(config).await);
        let caller = Arc::clone(&phone);
        let plan = CallPlan { talk_time: None, ..CallPlan::to("300") };
        let call = tokio::spawn(async move { caller.call(plan).await.map_or(0, |outcome| outcome.status) });
        calls(&phone, 0, 1).await;
        Guest { phone, heard, call }
    }

    pub async fn leaves(self) {
        self.phone.hang_up().await.unwrap();
        assert_eq!(within("the end of the call", self.call).await.unwrap(), 200);
    }
}

/// The live rooms as a node shows them.
async fn rooms(node: &Node) -> Vec<Value> {
    let answer = get(node.http(), "/conferences").await;
    if answer.status == 503 {
        // A busy machine: it is asked again.
        return Vec::new();
    }
    items(&answer)
}

/// Waits until there is one room, and these numbers are in it; others may be, whose node has died and who have not been
/// missed yet.
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
    // The call has its own record, and that of its leg between the nodes died with the room.
    let records = found("the records", async || {
        let records = items(&get(second.http(), "/cdrs?limit=100").await);
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
    // The guest hears that the conference is over, and is hung up.
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
