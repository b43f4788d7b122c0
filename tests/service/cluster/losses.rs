//! D10: a node dies with a room that has no members at other nodes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::calls::{get, items, read, records};
use super::rooms::{Guest, one_room};
use super::site::{ALL_UP, Cluster};
use super::stream::Stream;
use crate::common::site::found;

const GUEST: &str = "1001";
const TONE: u32 = 430;
/// The silence after which a node's calls are recorded, and its rooms closed.
const LOST_AFTER_S: u64 = 8;
/// The longest time of reads of a live room that died with its node.
const UNREAD_MAX: Duration = Duration::from_secs(5);

/// The number of end events of that session on a stream.
fn ends(stream: &Stream, session: &Value) -> usize {
    let news = stream.of("conference.updated", "session_id", session);
    news.iter().filter(|event| event["data"]["action"] == "ended").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_dies_with_its_node_is_gone_and_its_end_is_told_once() {
    let Some(mut cluster) = Cluster::start().await else { return };
    cluster.lost_after_s = LOST_AFTER_S;
    let ([first, second, third], token) = cluster.three().await;
    let streams = [Stream::open(second.http()).await, Stream::open(third.http()).await];
    let guest = Guest::joins(&first, GUEST, TONE).await;
    one_room(&second, &[GUEST]).await;
    let room = items(&read(second.http(), "/conferences").await).remove(0);
    let (path, session) =
        (format!("/conferences/{}", room["room"].as_str().unwrap()), room["session_id"].clone());
    let sessions = format!("/conference-rooms/{}/sessions", room["room_id"].as_str().unwrap());
    found("the stored session", async || {
        let stored = items(&read(third.http(), &sessions).await);
        stored.iter().any(|stored| stored["id"] == session).then_some(())
    })
    .await;

    let (data, killed) = (first.data, Instant::now());
    first.served.kill();
    guest.call.abort();
    for node in [&second, &third] {
        found("the end of the live room", async || {
            let answer = get(node.http(), &path).await;
            assert!([200, 404, 503].contains(&answer.status), "{answer:?}");
            (answer.status == 404).then_some(())
        })
        .await;
    }
    let unread = killed.elapsed();
    assert!(unread <= UNREAD_MAX, "the room was read {unread:?} after the death of its node");
    for stream in &streams {
        found("the end of the session on the stream", async || (ends(stream, &session) >= 1).then_some(()))
            .await;
    }
    let told = killed.elapsed();
    let records = records(second.http(), 1).await;
    assert_eq!(records[0]["hangup_cause"], "CRASH", "{records:#?}");
    let recorded = killed.elapsed();

    // The node comes back, and adds nothing.
    let first = cluster.node_on("first", 1, data).await;
    first.sees(&token, &ALL_UP).await;
    let again = Guest::joins(&first, GUEST, TONE).await;
    one_room(&second, &[GUEST]).await;
    let new = items(&read(second.http(), "/conferences").await).remove(0)["session_id"].clone();
    assert_ne!(new, session);
    again.leaves().await;
    for stream in &streams {
        found("the end of the new session", async || (ends(stream, &new) >= 1).then_some(())).await;
        assert_eq!((ends(stream, &session), ends(stream, &new)), (1, 1), "an end is told once");
    }
    let stored = items(&read(third.http(), &sessions).await);
    let stored = stored.iter().find(|stored| stored["id"] == session).unwrap();
    assert_ne!(stored["ended_at"], json!(null), "{stored:#}");
    eprintln!(
        "D10: a live room is not read any more after {:.1} s, its end is told after {:.1} s, its call recorded after {:.1} s \
         (a node is lost after {LOST_AFTER_S} s)",
        unread.as_secs_f64(),
        told.as_secs_f64(),
        recorded.as_secs_f64()
    );
}
