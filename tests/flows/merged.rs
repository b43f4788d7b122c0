//! Two calls that are merged into one conference, on real sockets.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::Position;
use sidetone_phone::{CallOutcome, Phone};
use tokio::task::JoinHandle;

use crate::common::room::directory as room_directory;
use crate::common::site::{Site, answering, calls, established, found, open_end, post, send, within};
use crate::flows::recorded::{get_bytes, grown, post_empty};

/// Two phones that talk.
struct Talk {
    caller: Arc<Phone>,
    callee: Phone,
    call: JoinHandle<CallOutcome>,
    uuid: String,
}

async fn talk(site: &Site, from: &str, to: &'static str) -> Talk {
    let caller = Arc::new(site.phone(from, answering()).await);
    let callee = site.phone(to, answering()).await;
    let phone = Arc::clone(&caller);
    let call = tokio::spawn(async move { phone.call(open_end(to)).await.unwrap() });
    established(&caller, &callee).await;
    let uuid = found("the call", async || {
        let (_, page) = site.get("/calls?state=answered").await;
        let items = page["items"].as_array().unwrap();
        let call = items.iter().find(|call| call["caller"] == from)?;
        Some(call["uuid"].as_str().unwrap().to_owned())
    })
    .await;
    Talk { caller, callee, call, uuid }
}

async fn merge(site: &Site, call: &str, body: Value) -> (u16, Value) {
    post(site.http, &format!("/calls/{call}/conference"), "", &body.to_string()).await
}

/// The payloads of `call.conferenced`, once there is one.
async fn conferenced(site: &Site) -> Vec<Value> {
    found("call.conferenced", async || {
        let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
        let those = batch.events.into_iter().map(|placed| placed.event);
        let those = those.filter(|event| event.kind.as_str() == "call.conferenced");
        let data: Vec<Value> = those.map(|event| Value::Object(event.data)).collect();
        (!data.is_empty()).then_some(data)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_of_two_calls_is_in_one_room_and_leaves_alone() {
    let site = Site::start().await;
    let (one, two) = (talk(&site, "1001", "1002").await, talk(&site, "1003", "1004").await);
    let (status, room) = merge(&site, &one.uuid, json!({"with": two.uuid})).await;
    assert_eq!(status, 200, "{room:#}");
    assert_eq!(room["room"], format!("svc-conf-{}", one.uuid));
    assert!(room.get("room_id").is_none() && room["can_control"] == json!(false), "{room:#}");
    let members = room["members"].as_array().unwrap();
    let numbers: Vec<&str> = members.iter().map(|member| member["number"].as_str().unwrap()).collect();
    assert_eq!(numbers, ["1001", "1002", "1003", "1004"]);
    assert_eq!([&members[0]["call_uuid"], &members[3]["call_uuid"]], [&json!(one.uuid), &json!(two.uuid)]);
    let told = conferenced(&site).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["room"], room["room"]);
    assert_eq!(told[0]["call_uuids"], json!([one.uuid, two.uuid]));

    // A caller hangs up: its callee stays in the conference, and their call stays up.
    one.caller.hang_up().await.unwrap();
    within("the caller", one.call).await.unwrap();
    let left = found("one leg", async || {
        let (_, call) = site.get(&format!("/calls/{}", one.uuid)).await;
        (call["legs"].as_array().unwrap().len() == 1).then_some(call)
    })
    .await;
    assert_eq!([&left["state"], &left["legs"][0]["number"]], [&json!("answered"), &json!("1002")]);
    calls(&one.callee, 0, 1).await;
    calls(&two.callee, 0, 1).await;
    for phone in [&one.callee, &two.callee] {
        phone.hang_up().await.unwrap();
    }
    calls(&two.caller, 0, 1).await;
    two.caller.hang_up().await.unwrap();
    within("the other caller", two.call).await.unwrap();
    for record in site.records(2).await {
        assert_eq!(record["hangup_cause"], "NORMAL_CLEARING", "{record:#}");
        assert_eq!([&record["codec_a"], &record["codec_b"]], [&json!("PCMU"), &json!("PCMU")]);
        let verdict = record["media_verdict"].as_str().unwrap_or_default();
        assert!(!["no_inbound_media", "no_outbound_media"].contains(&verdict), "{record:#}");
    }
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_merged_says_why() {
    let site = Site::start().await;
    let one = talk(&site, "1001", "1002").await;
    let nobody = "0190a1b2-0000-7000-8000-000000000000";
    for (call, body, status, why) in [
        (one.uuid.as_str(), json!({"with": one.uuid}), 409, "merged with itself"),
        (one.uuid.as_str(), json!({"with": nobody}), 404, "no such call"),
        (nobody, json!({"with": one.uuid}), 404, "no such call"),
        (one.uuid.as_str(), json!({"with": "1001"}), 400, "with"),
        (one.uuid.as_str(), json!({}), 400, "with"),
        (one.uuid.as_str(), json!({"with": nobody, "and": nobody}), 400, "and"),
    ] {
        let (answered, error) = merge(&site, call, body).await;
        assert_eq!(answered, status, "{why}: {error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(why), "{why}: {error}");
    }
    one.caller.hang_up().await.unwrap();
    within("the caller", one.call).await.unwrap();
    site.idle().await;
}

/// Merged calls have no stored room: their session and their recording are read by the room name of the switch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_and_the_recording_of_merged_calls_can_be_read() {
    let listens = "\"recordings:listen\"";
    let directory = room_directory(1006).replace(listens, &format!("{listens}, \"recordings:delete\""));
    let site = Site::with(&directory).await;
    let (one, two) = (talk(&site, "1001", "1002").await, talk(&site, "1003", "1004").await);
    let (status, room) = merge(&site, &one.uuid, json!({"with": two.uuid})).await;
    assert_eq!(status, 200, "{room:#}");
    let path = format!("/conferences/{}", room["room"].as_str().unwrap());
    let (status, said) = post_empty(site.http, &format!("{path}/record"), "{\"on\":true}").await;
    assert_eq!(status, 204, "{said}");
    let live = found("the live session", async || {
        let (_, page) = site.get(&format!("{path}/sessions")).await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    assert_eq!([&live["room"], &live["id"]], [&room["room"], &room["session_id"]], "{live:#}");
    let session = format!("{path}/sessions/{}", live["id"].as_str().unwrap());
    let audio = format!("{session}/recording/audio");
    grown(&site, &live, 32_000).await;
    assert_eq!(get_bytes(site.http, &audio, "").await.0, 409, "it is live");
    for phone in [&one.caller, &two.caller] {
        phone.hang_up().await.unwrap();
    }
    for phone in [&one.callee, &two.callee] {
        phone.hang_up().await.unwrap();
    }
    for call in [one.call, two.call] {
        within("a caller", call).await.unwrap();
    }
    let over = found("the recording", async || {
        let (_, over) = site.get(&session).await;
        (over["has_recording"] == true).then_some(over)
    })
    .await;
    assert!(over.get("room_id").is_none() && over["ended_at"].is_string(), "{over:#}");
    let numbers = over["members"].as_array().unwrap().iter().map(|member| member["number"].as_str().unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), ["1001", "1002", "1003", "1004"]);
    let (status, _, file) = get_bytes(site.http, &audio, "").await;
    assert_eq!((status, over["recording_bytes"].as_u64()), (200, Some(file.len() as u64)), "{over:#}");
    let recording = format!("{session}/recording");
    for status in [204, 404] {
        assert_eq!(send(site.http, "DELETE", &recording, &Value::Null).await.0, status);
    }
    assert_eq!(get_bytes(site.http, &audio, "").await.0, 404, "it is deleted");
    assert_eq!(site.get(&session).await.1["has_recording"], false);
    let nowhere = format!("/conferences/svc-conf-{}/sessions", two.uuid);
    for (path, status) in [(nowhere.as_str(), 404), ("/conferences/lobby/sessions", 404)] {
        assert_eq!(site.get(path).await.0, status, "{path}");
    }
    site.idle().await;
}
