//! Calls and notes to phones that are registered at another node.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallOutcome, CallPlan, Carrier, Phone, PhoneConfig};
use tokio::task::JoinHandle;

use super::calls::{items, read};
use super::site::{Cluster, Node, whole};
use crate::common::site::{
    answering, calls, established, found, open_end, phone_config, registered, talking, within,
};
use crate::service::client::Ask;
use crate::service::idempotency::ADMIN;

/// A phone of a node.
pub async fn phone(node: &Node, number: &'static str) -> Phone {
    registered(phone_config(node.served.sip, number, answering())).await
}

async fn extension(node: &Node, number: &str) -> String {
    let extensions = items(&read(node.http(), "/extensions?limit=100").await);
    let found = extensions.iter().find(|extension| extension["number"] == number).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

/// Calls until the phone is known at the caller's node: a call before that is refused immediately.
async fn call(caller: &Phone, plan: &CallPlan) -> CallOutcome {
    found("a call that reaches its phone", async || {
        let outcome = caller.call(plan.clone()).await.unwrap();
        (outcome.status != 480).then_some(outcome)
    })
    .await
}

/// Places a call that stays up, as [`call`] does, and returns once `callee`, which has no call, rings or answers. The
/// task ends with the final status.
pub async fn place(caller: &Arc<Phone>, callee: &Phone, number: &'static str) -> JoinHandle<u16> {
    calls(callee, 0, 0).await;
    found("a call that reaches its phone", async || {
        let caller = Arc::clone(caller);
        let mut placed = tokio::spawn(async move { caller.call(open_end(number)).await.unwrap().status });
        let mut at_callee = callee.calls();
        let reached = async { drop(at_callee.wait_for(|calls| calls.ringing + calls.up > 0).await.unwrap()) };
        tokio::select! {
            () = reached => Some(placed),
            status = &mut placed => {
                assert_eq!(status.unwrap(), 480);
                None
            }
        }
    })
    .await
}

/// The records with a cause, once there is one.
async fn ended(http: SocketAddr, cause: &str) -> Vec<Value> {
    found(cause, async || {
        let records = items(&read(http, "/cdrs?limit=100").await);
        let found: Vec<_> = records.into_iter().filter(|record| record["hangup_cause"] == cause).collect();
        (!found.is_empty()).then_some(found)
    })
    .await
}

/// The node's listener for the others.
fn internal(node: &Node) -> SocketAddr {
    let said = node.served.said();
    let line = said.lines().find(|line| line.contains("SIP of the other nodes is taken")).unwrap().to_owned();
    let at = line.find("127.0.0.").unwrap();
    let end = line[at..]
        .find(|c: char| !(c.is_ascii_digit() || ".:".contains(c)))
        .map_or(line.len(), |len| at + len);
    line[at..end].parse().unwrap()
}

/// The node's address for SIP over TCP.
async fn tcp(node: &Node, token: &str) -> SocketAddr {
    let nodes = Ask::new("GET", "/api/v1/nodes").bearer(token).send(node.http()).await.json();
    let own = nodes["items"].as_array().unwrap().iter().find(|found| found["this"] == true).unwrap().clone();
    let sip = own["sip"].as_array().unwrap();
    sip.iter().find_map(|url| url.as_str()?.strip_prefix("tcp://")?.parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_at_another_node_is_called_and_heard() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, token) = cluster.two().await;
    let caller = Arc::new(phone(&first, "1001").await);
    let callee = phone(&second, "1002").await;
    let outcome = within("the call", call(&caller, &talking("1002", 2_500))).await;
    assert_eq!((outcome.status, outcome.ended_by_peer), (200, false));
    assert!(outcome.received > 50 && callee.heard() > 50, "{} {}", outcome.received, callee.heard());
    calls(&callee, 0, 0).await;
    let records = ended(first.http(), "NORMAL_CLEARING").await;
    assert_eq!(records.len(), 1, "{records:#?}");
    let record = &records[0];
    assert_eq!(
        (&record["caller_number"], &record["destination_number"]),
        (&json!("1001"), &json!("1002")),
        "{record:#}"
    );
    let verdict = record["media_verdict"].as_str().unwrap();
    assert!(["degraded_audio", "ok", "jittery_inbound", "unpaced_sender"].contains(&verdict), "{record:#}");

    // The callee hangs up: over UDP, and over TCP.
    let carrier = PhoneConfig {
        carrier: Carrier::Tcp,
        ..phone_config(tcp(&second, &token).await, "1003", answering())
    };
    let over_tcp = registered(carrier).await;
    for (phone, number) in [(&callee, "1002"), (&over_tcp, "1003")] {
        let placed = place(&caller, phone, number).await;
        established(&caller, phone).await;
        phone.hang_up().await.unwrap();
        within("the end of the call", placed).await.unwrap();
        calls(phone, 0, 0).await;
    }
    // A call that the phone does not answer is cancelled at its node too.
    let silent = registered(phone_config(second.served.sip, "1004", Answering::Ring)).await;
    let plan = CallPlan { patience: Some(Duration::from_secs(2)), ..open_end("1004") };
    let outcome = within("the call", call(&caller, &plan)).await;
    assert_eq!(outcome.status, 487);
    calls(&silent, 0, 0).await;
    let metrics = second.metrics().await;
    assert!(metrics.contains("sidetone_edge_messages_total{result=\"refused\"} 0"), "{metrics}");
    // The other way round: the phone at the second node calls the one at the first.
    let placed = place(&Arc::new(over_tcp), &caller, "1001").await;
    calls(&caller, 0, 1).await;
    caller.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phones_of_one_extension_at_two_nodes_ring_together() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let caller = Arc::new(phone(&first, "1001").await);
    let here = registered(phone_config(first.served.sip, "1002", Answering::Ring)).await;
    let there = registered(phone_config(second.served.sip, "1002", Answering::Ring)).await;
    // It rings at both once the binding is known here.
    found("both ring", async || {
        let placed = place(&caller, &here, "1002").await;
        calls(&here, 1, 0).await;
        let mut at_there = there.calls();
        let both = at_there.wait_for(|calls| calls.ringing == 1);
        let rings = tokio::time::timeout(Duration::from_secs(2), both).await.is_ok();
        if rings {
            there.answer().await.unwrap();
            established(&caller, &there).await;
            calls(&here, 0, 0).await;
        }
        caller.hang_up().await.unwrap();
        within("the end of the call", placed).await.unwrap();
        rings.then_some(())
    })
    .await;
    calls(&there, 0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_to_a_phone_at_another_node_is_shown_and_acknowledged() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let caller = Arc::new(phone(&first, "1001").await);
    let callee = phone(&second, "1002").await;
    let id = extension(&first, "1002").await;
    let path = format!("/api/v1/extensions/{id}/message");
    let note = json!({"title": "Fire drill", "ack": true});
    let sent = found("a note that is taken", async || {
        let sent = Ask::new("POST", path.clone()).bearer(ADMIN).json(&note).send(first.http()).await;
        (![409, 503].contains(&sent.status)).then_some(sent)
    })
    .await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let message = sent.json()["id"].as_str().unwrap().to_owned();
    within("the note", callee.notes_count().wait_for(|count| *count >= 1)).await.unwrap();
    assert_eq!(callee.notes()[0].id, message);
    assert_eq!(within("an answer", callee.acknowledge(&message)).await.unwrap(), 200);
    let acknowledged = async |list: &str, note: &str| {
        found("the acknowledgement", async || {
            let notes = items(&read(second.http(), list).await);
            notes.into_iter().find(|found| found["id"] == note && found["status"] == "acked")
        })
        .await
    };
    let record = acknowledged(&format!("/extensions/{id}/messages"), &message).await;
    assert_eq!((&record["recipient_count"], &record["acked_count"]), (&json!(1), &json!(1)), "{record:#}");

    // Into a call: the owner of the call is the first node, the phone is at the second.
    let placed = place(&caller, &callee, "1002").await;
    established(&caller, &callee).await;
    let live = items(&read(second.http(), "/calls").await);
    let uuid = live[0]["uuid"].as_str().unwrap().to_owned();
    let info = Ask::new("POST", format!("/api/v1/calls/{uuid}/info")).bearer(ADMIN);
    let info = info.json(&json!({"title": "Owes 900 EUR", "ack": true}));
    let info = whole(second.http(), &info).await;
    assert_eq!(info.status, 202, "{info:?}");
    let info = info.json()["id"].as_str().unwrap().to_owned();
    within("the note", callee.notes_count().wait_for(|count| *count >= 2)).await.unwrap();
    assert_eq!(within("an answer", callee.acknowledge(&info)).await.unwrap(), 200);
    acknowledged(&format!("/calls/{uuid}/infos"), &info).await;
    callee.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_phones_of_a_killed_node_are_skipped_until_they_register_elsewhere() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, token) = cluster.two().await;
    let third = cluster.node("third", 3).await;
    first.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    let caller = Arc::new(phone(&first, "1001").await);
    let callee = registered(phone_config(second.served.sip, "1002", Answering::Ring)).await;
    let placed = place(&caller, &callee, "1002").await;
    // A call that rings there ends when its node is found dead, and a new one is not sent there.
    let killed = Instant::now();
    second.served.kill();
    // Immediately if the node died before its 180 arrived: the retransmitted INVITE causes an ICMP error.
    let status = within("the end of the ringing call", placed).await.unwrap();
    assert_eq!(status, 480);
    eprintln!("a call that rings at a killed node ends after {:.1} s", killed.elapsed().as_secs_f64());
    first.sees(&token, &[("first", "up"), ("second", "gone"), ("third", "up")]).await;
    let began = Instant::now();
    let outcome = within("the call", caller.call(open_end("1002"))).await.unwrap();
    assert_eq!(outcome.status, 480);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(callee);
    let callee = phone(&third, "1002").await;
    let placed = place(&caller, &callee, "1002").await;
    established(&caller, &callee).await;
    caller.hang_up().await.unwrap();
    within("the end of the call", placed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_vanished_or_moved_is_not_waited_for() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let caller = Arc::new(phone(&first, "1001").await);
    let callee = phone(&second, "1002").await;
    assert_eq!(within("the call", call(&caller, &talking("1002", 300))).await.status, 200);
    // Its process ends without a REGISTER or BYE: a datagram to it causes an ICMP error.
    drop(callee);
    let began = Instant::now();
    let outcome = within("the call", caller.call(open_end("1002"))).await.unwrap();
    assert_eq!(outcome.status, 480, "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // A phone that moves to the caller's node is reached there.
    let moved = phone(&first, "1002").await;
    assert_eq!(within("the call", call(&caller, &talking("1002", 300))).await.status, 200);
    calls(&moved, 0, 0).await;
}

/// The messages that the node's internal listener has dropped.
async fn dropped(node: &Node) -> u64 {
    node.metric("sidetone_edge_messages_total{result=\"dropped\"}").await
}

/// The internal listener accepts only members, and only tokens that the node has signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_and_forged_tokens_reach_no_phone() {
    let Some(cluster) = Cluster::start().await else { return };
    let (first, second, _) = cluster.two().await;
    let callee = registered(phone_config(second.served.sip, "1002", Answering::Ring)).await;
    second.served.says("SIP of the other nodes is taken", 1).await;
    let to = internal(&second);
    let request = |from: SocketAddr, token: &str| {
        format!(
            "INVITE sip:1002@{} SIP/2.0\r\nVia: SIP/2.0/UDP {from};rport;branch=z9hG4bK{}\r\n\
             Route: <sip:{token}@{to};lr>\r\nMax-Forwards: 70\r\nFrom: <sip:1001@acme.test>;tag=a\r\n\
             To: <sip:1002@acme.test>\r\nCall-ID: {token}\r\nCSeq: 1 INVITE\r\nContact: <sip:1001@{from}>\r\n\
             Content-Length: 0\r\n\r\n",
            callee.local(),
            from.port()
        )
    };
    // From the address of a member, with tokens that no node has signed.
    let member = UdpSocket::bind((first.served.sip.ip(), 0)).unwrap();
    member.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let from = member.local_addr().unwrap();
    let mut buffer = [0; 4_096];
    for token in ["edge~AQAAAACcQMAAAglk6gTgp0T4IEmsUA", "edge~", "edge~x.y"] {
        // The node may not have seen the other one yet.
        let len = found("an answer", async || {
            member.send_to(request(from, token).as_bytes(), to).unwrap();
            tokio::task::block_in_place(|| member.recv(&mut buffer)).ok()
        })
        .await;
        let answer = String::from_utf8_lossy(&buffer[..len]).into_owned();
        assert!(answer.starts_with("SIP/2.0 403 "), "{answer}");
    }
    let before = dropped(&second).await;
    let stranger = UdpSocket::bind("127.0.0.9:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let from = stranger.local_addr().unwrap();
    stranger.send_to(request(from, "edge~x").as_bytes(), to).unwrap();
    stranger.send_to(b"OPTIONS sip:x@127.0.0.2 SIP/2.0\r\n\r\n", to).unwrap();
    assert!(stranger.recv(&mut buffer).is_err(), "a stranger got an answer");
    found("two dropped messages", async || (dropped(&second).await >= before + 2).then_some(())).await;
    calls(&callee, 0, 0).await;
}
