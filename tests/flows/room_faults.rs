//! The reports of rooms on failures: a recording that cannot be written, a party that does not join.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::{EventKind, Position};
use sidetone_phone::Answering;

use crate::common::records::TempDir;
use crate::common::room::{directory, make, session};
use crate::common::site::{Site, answering, declare, found, open_end, post};
use crate::flows::recorded::post_empty;

/// The data of the first event of a kind.
async fn event(site: &Site, kind: EventKind) -> Value {
    found(kind.as_str(), async || {
        let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
        let mut events = batch.events.into_iter().map(|placed| placed.event);
        events.find(|event| event.kind == kind).map(|event| Value::Object(event.data))
    })
    .await
}

/// A site whose directory of recordings cannot be created, because a file is in its place.
async fn unwritable(record: bool) -> (Site, String) {
    let dir = TempDir::new();
    declare(dir.path(), &directory(1006)).await;
    let room = make(dir.path(), "200", |room| room.record = record).await;
    std::fs::write(dir.path().join("recordings"), "not a directory").unwrap();
    (Site::reopen(dir).await, room.to_string())
}

async fn live(site: &Site, room: &str) -> Value {
    found("the live room", async || {
        let (status, live) = site.get(&format!("/conferences/svc-room-{room}")).await;
        (status == 200).then_some(live)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_cannot_be_written_is_refused_with_the_cause() {
    let (site, room) = unwritable(false).await;
    let ada = Arc::new(site.phone("1001", answering()).await);
    let caller = Arc::clone(&ada);
    let call = tokio::spawn(async move { caller.call(open_end("200")).await.unwrap() });
    live(&site, &room).await;
    let path = format!("/conferences/svc-room-{room}/record");
    let (status, said) = post_empty(site.http, &path, "{\"on\":true}").await;
    assert_eq!(status, 409, "{said}");
    assert!(said.contains("the room is not recorded: the recording cannot be written"), "{said}");
    assert_eq!(live(&site, &room).await["recording"], json!(false));
    assert_eq!(post_empty(site.http, &path, "{\"on\":false}").await.0, 204, "it is not recorded");
    // The disk is repaired: no restart is needed.
    std::fs::remove_file(site.dir.path().join("recordings")).unwrap();
    let (status, said) = post_empty(site.http, &path, "{\"on\":true}").await;
    assert_eq!(status, 204, "{said}");
    assert_eq!(live(&site, &room).await["recording"], json!(true));
    ada.hang_up().await.unwrap();
    call.await.unwrap();
    site.idle().await;
}

/// A room that is recorded from its start has no request to refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_fails_by_itself_is_an_event_with_the_cause() {
    let (site, room) = unwritable(true).await;
    let ada = Arc::new(site.phone("1001", answering()).await);
    let caller = Arc::clone(&ada);
    let call = tokio::spawn(async move { caller.call(open_end("200")).await.unwrap() });
    let failed = event(&site, EventKind::RecordingFailed).await;
    assert_eq!([&failed["room_id"], &failed["bytes"]], [&json!(room), &json!(0)], "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("the recording cannot be written"), "{failed}");
    let live = live(&site, &room).await;
    assert_eq!([&live["recording"], &live["session_id"]], [&json!(false), &failed["session_id"]]);
    ada.hang_up().await.unwrap();
    call.await.unwrap();
    let over = session(site.http, room.parse().unwrap(), |session| session["ended_at"].is_string()).await;
    assert_eq!([&over["recording_error"], &over["has_recording"]], [&failed["error"], &json!(false)]);
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_party_that_does_not_join_is_an_event_with_the_call_and_the_cause() {
    let (site, room) = unwritable(false).await;
    let _bob = site.phone("1002", Answering::Refuse(486)).await;
    let body = json!({"kind": "extension", "target": "1002", "role": "participant"});
    let path = format!("/conference-rooms/{room}/dial");
    let (status, dialled) = post(site.http, &path, "", &body.to_string()).await;
    assert_eq!((status, &dialled["dialling"]), (202, &json!("1002")), "{dialled}");
    let failed = event(&site, EventKind::ConferenceDialFailed).await;
    assert_eq!([&failed["call_uuid"], &failed["cause"]], [&dialled["call_uuid"], &json!("busy")], "{failed}");
    assert_eq!([&failed["room_id"], &failed["target"]], [&json!(room), &json!("1002")]);
    assert_eq!(site.record().await["call_uuid"], dialled["call_uuid"]);
    site.idle().await;
}
