//! Both parties of a call in a room that is live at another node, and that moves from node to node.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sidetone_phone::{Answering, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::CodecPolicy;

use super::calls::{items, read};
use super::rooms::{Guest, one_room};
use super::site::{Cluster, Node};
use crate::common::site::{calls, found, phone_config, registered, within};
use crate::common::tones::hears;
use crate::service::client::Ask;
use crate::service::idempotency::ADMIN;

/// None is a sum of others or of their harmonics.
const TONES: [u32; 3] = [430, 617, 941];

/// A phone that answers and plays a tone.
async fn callee(node: &Node, number: &'static str, hz: u32) -> (Arc<Phone>, Heard) {
    let heard = Heard::new();
    let config = PhoneConfig {
        codecs: CodecPolicy::new(["PCMU"]),
        voice: Some(Voice::Note(hz)),
        heard: Some(heard.clone()),
        ..phone_config(node.served.sip, number, Answering::Answer { after: Duration::ZERO, talk: None })
    };
    (Arc::new(registered(config).await), heard)
}

/// Drains a node by the configuration of another one.
async fn drain(cluster: &Cluster, node: &str, by: (&Node, u8)) {
    cluster.drain(node, &cluster.config(by.0.name, by.1, &by.0.data)).await;
}

/// Waits until a node owns the room.
async fn owns(node: &Node) {
    found("the owner", async || (node.metric("sidetone_cluster_owned_rooms").await == 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_parties_of_a_call_are_moved_to_another_node_and_go_on_with_the_room() {
    let Some(cluster) = Cluster::start().await else { return };
    let (mut first, mut second, token) = cluster.two().await;
    let guest = Guest::joins(&first, "1003", TONES[2]).await;
    one_room(&first, &["1003"]).await;
    owns(&first).await;
    let (called, called_hears) = callee(&second, "1002", TONES[1]).await;
    let caller = Guest::keys(&second, "1001", TONES[0], ("1002", "")).await;
    hears(&caller.heard, &TONES, &[TONES[1]]).await;

    let room = items(&read(second.http(), "/conference-rooms").await);
    let room = room.iter().find(|room| room["number"] == "300").unwrap()["id"].clone();
    let live = items(&read(second.http(), "/calls").await);
    let call =
        live.iter().find(|call| call["destination"] == "1002").unwrap()["uuid"].as_str().unwrap().to_owned();
    let moved = Ask::new("POST", format!("/api/v1/calls/{call}/move-to-room"))
        .bearer(ADMIN)
        .json(&json!({"room_id": room}))
        .send(second.http())
        .await;
    assert_eq!(moved.status, 202, "{moved:?}");
    one_room(&second, &["1001", "1002", "1003"]).await;
    let all_hear = async || {
        hears(&caller.heard, &TONES, &[TONES[1], TONES[2]]).await;
        hears(&called_hears, &TONES, &[TONES[0], TONES[2]]).await;
        hears(&guest.heard, &TONES, &[TONES[0], TONES[1]]).await;
    };
    all_hear().await;

    // The room comes to the node of the call.
    drain(&cluster, "first", (&second, 2)).await;
    owns(&second).await;
    one_room(&second, &["1001", "1002", "1003"]).await;
    all_hear().await;
    guest.leaves().await;
    let status = within("the end of the first node", first.served.ended()).await;
    assert!(status.success(), "{status}");

    // And moves with both parties to the next one.
    let third = cluster.node("third", 3).await;
    for node in [&second, &third] {
        node.sees(&token, &[("first", "left"), ("second", "up"), ("third", "up")]).await;
    }
    drain(&cluster, "second", (&third, 3)).await;
    owns(&third).await;
    one_room(&third, &["1001", "1002"]).await;
    hears(&caller.heard, &TONES, &[TONES[1]]).await;
    hears(&called_hears, &TONES, &[TONES[0]]).await;
    // Each hangs up separately.
    caller.leaves().await;
    one_room(&third, &["1002"]).await;
    calls(&called, 0, 1).await;
    called.hang_up().await.unwrap();
    let status = within("the end of the second node", second.served.ended()).await;
    assert!(status.success(), "{status}");
    let record = found("the record", async || {
        let records = items(&read(third.http(), "/cdrs?limit=100").await);
        records
            .into_iter()
            .find(|record| record["call_uuid"] == call.as_str() && !record["ended_at"].is_null())
    })
    .await;
    assert!(record["transferred_to"].is_string(), "{record:#}");
}
