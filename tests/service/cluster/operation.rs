//! Operation of nodes: draining one, and the notice of a room that is live at two.

use std::sync::Arc;

use super::calls::{Talk, read};
use super::site::{Cluster, operator};
use crate::common::site::{answering, calls, found, open_end, phone_config, registered, within};
use crate::service::client::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_drained_from_another_machine() {
    let Some(cluster) = Cluster::start().await else { return };
    let first = cluster.node("first", 1).await;
    let mut second = cluster.node("second", 2).await;
    let token = operator(first.http()).await;
    first.sees(&token, &[("first", "up"), ("second", "up")]).await;
    let talk = Talk::at(&second, "1001", "1002").await;
    let config = cluster.config("first", 1, &first.data);
    // When NATS is late, the command finds fewer nodes.
    let code = found("the refusal", async || {
        let (code, _, err) = cluster.command(&["drain", "--node", "third"], &config);
        (err == "sidetone: drain: third is not up; up are first, second\n").then_some(code)
    })
    .await;
    assert_eq!(code, 1);
    assert_eq!(cluster.drain("second", &config).await, "second drains: 1 live calls\n");
    // The call continues, and the other nodes see the drain.
    found("draining", async || {
        let nodes = Ask::new("GET", "/api/v1/nodes").bearer(&token).send(first.http()).await.json();
        (nodes["items"][1]["draining"] == true && nodes["items"][1]["state"] == "up").then_some(())
    })
    .await;
    calls(&talk.callee, 0, 1).await;
    talk.caller.hang_up().await.unwrap();
    within("the end of the call", talk.placed).await.unwrap();
    let status = within("the end of the node", second.served.ended()).await;
    assert!(status.success(), "{status}");
    first.sees(&token, &[("first", "up"), ("second", "left")]).await;
    let records = read(first.http(), "/cdrs").await.json();
    assert_eq!(
        (records["total"].as_u64(), records["items"][0]["hangup_cause"].as_str()),
        (Some(1), Some("NORMAL_CLEARING"))
    );
    let alone = &config[..config.find("[cluster]").unwrap()];
    let (code, _, err) = cluster.command(&["drain"], alone);
    assert!(code == 2 && err.contains("send SIGTERM to it"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_is_live_at_two_nodes_is_reported_while_it_is() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.has_edge = false;
    let (first, second, _) = cluster.two().await;
    let mut guests = Vec::new();
    for (node, number) in [(&first, "1001"), (&second, "1002")] {
        let guest = Arc::new(registered(phone_config(node.served.sip, number, answering())).await);
        let placed = {
            let guest = Arc::clone(&guest);
            tokio::spawn(async move { drop(guest.call(open_end("300")).await) })
        };
        calls(&guest, 0, 1).await;
        guests.push((guest, placed));
    }
    let ready = async |http| Ask::new("GET", "/readyz").send(http).await.text;
    for (node, other) in [(&first, "second"), (&second, "first")] {
        node.served.says("a room is live at this node and at others", 1).await;
        let text = found("the room", async || {
            Some(ready(node.http()).await).filter(|text| text.contains("do not hear those at"))
        })
        .await;
        assert!(text.contains(other), "{text}");
    }
    found("the metric", async || {
        first.metrics().await.contains("sidetone_cluster_split_rooms 1").then_some(())
    })
    .await;
    let (guest, placed) = guests.pop().unwrap();
    guest.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap();
    found("the end of the report", async || {
        (!ready(first.http()).await.contains("do not hear")).then_some(())
    })
    .await;
    let (guest, placed) = guests.pop().unwrap();
    guest.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap();
}
