//! Live calls across all nodes, and the records of the calls of a dead node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use sidetone_phone::Phone;
use tokio::task::JoinHandle;

use super::site::{Cluster, Node, operator, whole};
use crate::common::site::{answering, calls, established, found, open_end, phone_config, registered, within};
use crate::service::client::{Answer, Ask};
use crate::service::idempotency::ADMIN;
use crate::service::two_nodes::Line;

pub async fn get(http: SocketAddr, path: &str) -> Answer {
    Ask::new("GET", format!("/api/v1{path}")).bearer(ADMIN).send(http).await
}

/// The same; the request is repeated until every node that it concerns has answered in time.
pub async fn read(http: SocketAddr, path: &str) -> Answer {
    whole(http, &Ask::new("GET", format!("/api/v1{path}")).bearer(ADMIN)).await
}

pub fn items(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["items"].as_array().unwrap().clone()
}

/// Two registered phones at a node, and a call between them that stays up.
pub struct Talk {
    pub caller: Arc<Phone>,
    pub callee: Phone,
    pub placed: JoinHandle<()>,
}

impl Talk {
    pub async fn at(node: &Node, from: &'static str, to: &'static str) -> Talk {
        let caller = Arc::new(registered(phone_config(node.served.sip, from, answering())).await);
        let callee = registered(phone_config(node.served.sip, to, answering())).await;
        let placed = {
            let caller = Arc::clone(&caller);
            // A call that its node loses ends with an error, which the test expects.
            tokio::spawn(async move { drop(caller.call(open_end(to)).await) })
        };
        established(&caller, &callee).await;
        Talk { caller, callee, placed }
    }
}

/// All records of the call log.
pub async fn all_records(http: SocketAddr) -> Vec<Value> {
    let mut records = Vec::new();
    // By cursors: with offsets, a record stored in the meantime moves others to the next page.
    let mut cursor = String::new();
    loop {
        let page = read(http, &format!("/cdrs?limit=200&cursor={cursor}")).await;
        records.extend(items(&page));
        match page.json()["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return records,
        }
    }
}

/// Waits until the call log has this many records, and returns them.
pub async fn records(http: SocketAddr, count: usize) -> Vec<Value> {
    found(&format!("{count} records"), async || {
        let records = items(&read(http, "/cdrs?limit=100").await);
        assert!(records.len() <= count, "{records:#?}");
        (records.len() == count).then_some(records)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_shows_and_controls_the_calls_and_rooms_of_all() {
    let Some(mut cluster) = Cluster::start().await else { return };
    // A room without NATS stays live, because it has no owner.
    cluster.has_edge = false;
    let first = cluster.node("first", 1).await;
    let line = Line::to(cluster.nats.address).await;
    cluster.nats_url = format!("nats://{}", line.address);
    let second = cluster.node("second", 2).await;
    let token = operator(first.http()).await;
    let all_up = [("first", "up"), ("second", "up")];
    first.sees(&token, &all_up).await;
    second.sees(&token, &all_up).await;
    let here = Talk::at(&first, "1001", "1002").await;
    let there = Talk::at(&second, "1003", "1004").await;
    let guest = Arc::new(registered(phone_config(second.served.sip, "1005", answering())).await);
    let in_room = {
        let guest = Arc::clone(&guest);
        tokio::spawn(async move { drop(guest.call(open_end("300")).await) })
    };
    calls(&guest, 0, 1).await;

    let page = read(first.http(), "/calls").await;
    let mut callers: Vec<_> =
        items(&page).iter().map(|call| call["caller"].as_str().unwrap().to_owned()).collect();
    assert_eq!(callers, ["1005", "1003", "1001"], "newest first: {page:?}");
    assert_eq!(page.json()["total"], 3);
    assert!(!page.head.contains("x-sidetone-missing"), "{page:?}");
    let second_page = read(second.http(), "/calls?limit=1&offset=2").await;
    callers = items(&second_page).iter().map(|call| call["caller"].as_str().unwrap().to_owned()).collect();
    assert_eq!((callers, second_page.json()["total"].as_u64()), (vec!["1001".to_owned()], Some(3)));
    let phones = items(&read(second.http(), "/registrations").await);
    let numbers: Vec<_> = phones.iter().map(|phone| phone["number"].as_str().unwrap()).collect();
    assert_eq!(numbers, ["1001", "1002", "1003", "1004", "1005"]);
    let refused = read(first.http(), "/calls?cursor=x").await;
    assert!(refused.status == 400 && refused.text.contains("cursor"), "{refused:?}");
    let behind = read(first.http(), "/calls?offset=5000").await;
    assert!(behind.status == 200 && items(&behind).is_empty(), "{behind:?}");
    assert_eq!(behind.json()["total"], 3);
    let nobody = Ask::new("GET", "/api/v1/calls").bearer("tel_nobody");
    assert_eq!(whole(first.http(), &nobody).await.status, 401);

    // A call of the other node is read and ended by this one; the answer is the owner's.
    let of_second = items(&read(second.http(), "/calls?limit=500").await);
    let call =
        of_second.iter().find(|call| call["caller"] == "1003").unwrap()["uuid"].as_str().unwrap().to_owned();
    assert_eq!(read(first.http(), &format!("/calls/{call}")).await.json()["uuid"], call.as_str());
    let end = Ask::new("DELETE", format!("/api/v1/calls/{call}")).bearer(ADMIN);
    let ended = whole(first.http(), &end).await;
    assert!((200..300).contains(&ended.status), "{ended:?}");
    calls(&there.callee, 0, 0).await;
    within("the end of the call", there.placed).await.unwrap();
    let again = whole(first.http(), &end).await;
    assert_eq!(again.status, 404, "no node has it: {again:?}");

    let rooms = items(&read(first.http(), "/conferences").await);
    let room = rooms[0]["room"].as_str().unwrap().to_owned();
    let lock = Ask::new("POST", format!("/api/v1/conferences/{room}/lock")).bearer(ADMIN);
    let lock = whole(first.http(), &lock).await;
    assert!((200..300).contains(&lock.status), "{lock:?}");
    assert_eq!(read(second.http(), &format!("/conferences/{room}")).await.json()["locked"], true);

    // The data of a node that does not answer is missing, and its calls cannot be controlled.
    line.is_whole.send_replace(false);
    found("the part of this node", async || {
        let page = get(first.http(), "/calls").await;
        (page.status != 503 && items(&page).len() == 1).then_some(())
    })
    .await;
    let page = found("the missing node", async || {
        let page = get(second.http(), "/calls").await;
        page.head.contains("x-sidetone-missing: first").then_some(page)
    })
    .await;
    assert_eq!(items(&page).len(), 1, "{page:?}");
    let of_first = items(&read(first.http(), "/calls").await)[0]["uuid"].as_str().unwrap().to_owned();
    let hold =
        Ask::new("DELETE", format!("/api/v1/calls/{of_first}")).bearer(ADMIN).send(second.http()).await;
    assert!(hold.status == 503 && hold.head.contains("retry-after: 1"), "{hold:?}");
    calls(&here.callee, 0, 1).await;
    here.caller.hang_up().await.unwrap();
    within("the end of the call", here.placed).await.unwrap();
    guest.hang_up().await.unwrap();
    within("the end of the call", in_room).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_killed_node_are_recorded_once_by_another_node() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.lost_after_s = 8;
    let first = cluster.node("first", 1).await;
    let second = cluster.node("second", 2).await;
    let third = cluster.node("third", 3).await;
    let token = operator(second.http()).await;
    for node in [&second, &third] {
        node.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    }
    let talks = [
        Talk::at(&first, "1001", "1002").await,
        Talk::at(&first, "1003", "1004").await,
        Talk::at(&first, "1005", "1006").await,
    ];
    let other = Talk::at(&second, "1007", "1008").await;
    found("three entries", async || {
        let metrics = first.metrics().await;
        metrics.contains("sidetone_cluster_call_entries 3\n").then_some(())
    })
    .await;
    // One of them ends normally, and is not recorded again.
    talks[2].caller.hang_up().await.unwrap();
    records(second.http(), 1).await;
    found("two entries", async || {
        let metrics = first.metrics().await;
        metrics.contains("sidetone_cluster_call_entries 2\n").then_some(())
    })
    .await;

    let killed = Instant::now();
    let data = first.data;
    first.served.kill();
    talks.iter().for_each(|talk| talk.placed.abort());
    let crashed = records(third.http(), 3).await;
    eprintln!(
        "the calls of a killed node are recorded {:.1} s after its death",
        killed.elapsed().as_secs_f64()
    );
    let crashes = crashed.iter().filter(|record| record["hangup_cause"] == "CRASH");
    assert_eq!(crashes.count(), 2, "{crashed:#?}");
    assert!(crashed.iter().all(|record| record["billsec"].as_u64().unwrap() <= 60), "{crashed:#?}");
    // The node replays its journal; nothing is recorded twice.
    let first = cluster.node_on("first", 1, data).await;
    first.sees(&token, &[("first", "up"), ("second", "up"), ("third", "up")]).await;
    other.caller.hang_up().await.unwrap();
    within("the end of the other call", other.placed).await.unwrap();
    let all = records(first.http(), 4).await;
    assert_eq!(all.iter().filter(|record| record["hangup_cause"] == "CRASH").count(), 2, "{all:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_node_that_is_only_cut_off_from_nats_are_left_alone() {
    let Some(mut cluster) = Cluster::start().await else { return };
    // A sign of life is awaited for a quarter of it.
    cluster.lost_after_s = 16;
    let first = cluster.node("first", 1).await;
    let line = Line::to(cluster.nats.address).await;
    cluster.nats_url = format!("nats://{}", line.address);
    let second = cluster.node("second", 2).await;
    let token = operator(first.http()).await;
    first.sees(&token, &[("first", "up"), ("second", "up")]).await;
    let talk = Talk::at(&second, "1001", "1002").await;
    found("the entry", async || {
        let metrics = second.metrics().await;
        metrics.contains("sidetone_cluster_call_entries 1\n").then_some(())
    })
    .await;
    line.is_whole.send_replace(false);
    first.served.says("a node is cut off from NATS and lives", 1).await;
    assert_eq!(items(&read(first.http(), "/cdrs").await).len(), 0);
    calls(&talk.callee, 0, 1).await;
    line.is_whole.send_replace(true);
    first.sees(&token, &[("first", "up"), ("second", "up")]).await;
    talk.caller.hang_up().await.unwrap();
    within("the end of the call", talk.placed).await.unwrap();
    let records = records(first.http(), 1).await;
    assert_eq!(records[0]["hangup_cause"], "NORMAL_CLEARING");
}
