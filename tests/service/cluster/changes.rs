//! A commit of one node takes effect at the others as soon as they are notified, long before they poll.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_phone::{Phone, PhoneConfig};

use super::calls::{items, read};
use super::site::{Cluster, Node};
use super::stream::Stream;
use crate::common::site::{answering, found, phone_config, registered};
use crate::service::client::Ask;
use crate::service::idempotency::{ADMIN, OTHER};

const ROUNDS: u64 = 6;

async fn ask(method: &'static str, node: &Node, path: &str, body: &Value) -> u16 {
    let ask = Ask::new(method, format!("/api/v1{path}")).bearer(ADMIN).json(body);
    ask.send(node.http()).await.status
}

async fn id_of(node: &Node, list: &str, field: &str, value: &str) -> String {
    let all = items(&read(node.http(), &format!("{list}?limit=100")).await);
    let one = all.iter().find(|one| one[field] == value).unwrap_or_else(|| panic!("{value} in {all:?}"));
    one["id"].as_str().unwrap().to_owned()
}

/// The number of times a node has read a changed directory: after a notice, and by polling.
async fn readings(node: &Node) -> (u64, u64) {
    let of = async |found: &str| {
        node.metric(&format!("sidetone_directory_changes_total{{found=\"{found}\"}}")).await
    };
    (of("notified").await, of("polled").await)
}

fn milliseconds(took: &[Duration]) -> Vec<u128> {
    took.iter().map(Duration::as_millis).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_at_one_node_ends_the_registration_at_another_at_once() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let extension = id_of(&first, "/extensions", "number", "1001").await;
    let mut phone = registered(phone_config(second.served.sip, "1001", answering())).await;
    let registered_there = async || !items(&read(second.http(), "/registrations").await).is_empty();
    found("the registration", async || registered_there().await.then_some(())).await;
    let (before, mut took) = (readings(&second).await, Vec::new());
    for round in 0..ROUNDS {
        let password = format!("another password {round}");
        let began = Instant::now();
        let change = json!({"password": password});
        assert_eq!(ask("PATCH", &first, &format!("/extensions/{extension}"), &change).await, 200);
        found("the end of the registration", async || (!registered_there().await).then_some(())).await;
        took.push(began.elapsed());
        let config = phone_config(second.served.sip, "1001", answering());
        phone = registered(PhoneConfig { password, ..config }).await;
        found("the registration", async || registered_there().await.then_some(())).await;
    }
    let after = readings(&second).await;
    let (notified, polled) = (after.0 - before.0, after.1 - before.1);
    eprintln!(
        "registrations ended {:?} ms after the request; changes: {notified} by notices, {polled} by polling",
        milliseconds(&took)
    );
    // A node may poll in the moment between the commit and the message.
    assert!(notified >= ROUNDS - 1, "{notified} of {ROUNDS} by notices");
    // The old password is no longer accepted there.
    let old = Phone::start(phone_config(second.served.sip, "1001", answering())).await.unwrap();
    assert!(old.register("1001").await.is_err());
    drop(phone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_deleted_at_one_node_is_refused_and_its_streams_end_at_another_at_once() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let stream = Stream::open_as(second.http(), OTHER).await;
    let received = "sidetone_cluster_changes_total{result=\"received\"}";
    let before = second.metric(received).await;
    let key = id_of(&first, "/api-keys", "name", "other").await;
    let began = Instant::now();
    assert_eq!(ask("DELETE", &first, &format!("/api-keys/{key}"), &json!({})).await, 204);
    let answer = Ask::new("GET", "/api/v1/teams").bearer(OTHER).send(second.http()).await;
    assert_eq!(answer.status, 401, "{answer:?}");
    stream.ends().await;
    eprintln!("the stream of a deleted key ended after {} ms", began.elapsed().as_millis());
    found("the message", async || (second.metric(received).await > before).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_found_without_nats() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let first = cluster.node("first", 1).await;
    let line = crate::service::two_nodes::Line::to(cluster.nats.address).await;
    cluster.nats_url = format!("nats://{}", line.address);
    let second = cluster.node("second", 2).await;
    line.is_whole.send_replace(false);
    found("the isolation", async || (second.metric("sidetone_cluster_linked").await == 0).then_some(()))
        .await;
    let before = readings(&second).await;
    let extension = id_of(&first, "/extensions", "number", "1001").await;
    let change = json!({"password": "another password"});
    assert_eq!(ask("PATCH", &first, &format!("/extensions/{extension}"), &change).await, 200);
    found("the change by polling", async || (readings(&second).await.1 > before.1).then_some(())).await;
    assert_eq!(readings(&second).await.0, before.0, "no message came");
}
