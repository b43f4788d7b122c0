//! The number of NATS messages of a call.

use std::time::Instant;

use super::site::{Cluster, Node};
use crate::common::site::{answering, found, phone_config, registered, talking, within};
use crate::service::client::Ask;

const CALLS: u64 = 60;

/// The messages that the server has received and sent.
async fn messages(cluster: &Cluster) -> u64 {
    let shown = Ask::new("GET", "/varz").send(cluster.nats.monitor).await;
    let shown = shown.json();
    shown["in_msgs"].as_u64().unwrap() + shown["out_msgs"].as_u64().unwrap()
}

/// The heartbeats that the node has written.
async fn heartbeats(node: &Node) -> u64 {
    node.metric("sidetone_cluster_heartbeats_total{result=\"written\"}").await
}

/// Waits until the node has no call entry left.
async fn is_done(node: &Node) {
    found("the end of all entries", async || {
        node.metrics().await.contains("sidetone_cluster_call_entries 0\n").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_inside_one_node_costs_four_messages_of_nats_and_two_more_when_it_is_stored_late() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, _second, _) = cluster.two().await;
    let caller = registered(phone_config(first.served.sip, "1001", answering())).await;
    let _callee = registered(phone_config(first.served.sip, "1002", answering())).await;
    assert_eq!(within("a call", caller.call(talking("1002", 50))).await.unwrap().status, 200);
    is_done(&first).await;
    // Heartbeats and their delivery continue: their rate is measured without calls.
    let (began, before) = (Instant::now(), messages(&cluster).await);
    let beats = heartbeats(&first).await;
    found("five heartbeats", async || (heartbeats(&first).await >= beats + 5).then_some(())).await;
    let idle = (messages(&cluster).await - before) as f64 / began.elapsed().as_secs_f64();
    let (began, before) = (Instant::now(), messages(&cluster).await);
    for _ in 0..CALLS {
        assert_eq!(within("a call", caller.call(talking("1002", 50))).await.unwrap().status, 200);
    }
    is_done(&first).await;
    let sent = (messages(&cluster).await - before) as f64;
    let per_call = (sent - idle * began.elapsed().as_secs_f64()) / CALLS as f64;
    eprintln!("{per_call:.2} messages of NATS for a call, {idle:.1} a second without calls");
    assert!((3.5..6.5).contains(&per_call), "{per_call} messages for a call");
}
