//! API operations on live calls, on real sockets: transfer, the move into a room, and hold.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_phone::{CallOutcome, Phone};
use tokio::task::JoinHandle;

use crate::common::site::{
    Site, answering, calls, directory, established, found, open_end, post, send, until, within,
};

/// A call of 1001 to 1002.
struct Talk {
    caller: Arc<Phone>,
    callee: Phone,
    call: JoinHandle<CallOutcome>,
    uuid: String,
}

impl Talk {
    async fn begin(site: &Site) -> Talk {
        let caller = Arc::new(site.phone("1001", answering()).await);
        let callee = site.phone("1002", answering()).await;
        let phone = Arc::clone(&caller);
        let call = tokio::spawn(async move { phone.call(open_end("1002")).await.unwrap() });
        established(&caller, &callee).await;
        let uuid = found("the call", async || {
            let (_, page) = site.get("/calls?state=answered").await;
            Some(page["items"][0]["uuid"].as_str()?.to_owned())
        })
        .await;
        Talk { caller, callee, call, uuid }
    }

    async fn operate(&self, site: &Site, operation: &str, body: Value) -> (u16, Value) {
        post(site.http, &format!("/calls/{}/{operation}", self.uuid), "", &body.to_string()).await
    }
}

/// Waits until a phone has received another second of audio.
async fn hears(phone: &Phone) {
    let before = phone.heard();
    until("a second of audio", || phone.heard() > before + 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_transfers_the_called_party_to_another_phone() {
    let site = Site::start().await;
    let third = site.phone("1003", answering()).await;
    let talk = Talk::begin(&site).await;
    for (body, status, names) in [
        (json!({}), 422, "to: "),
        (json!({"to": "1003", "with": talk.uuid}), 422, "to: "),
        (json!({"to": "8"}), 422, "to: "),
        (json!({"to": "1004"}), 409, "to: "),
        (json!({"with": talk.uuid}), 422, "with: "),
        (json!({"to": "1003", "leg": talk.uuid}), 422, "leg: "),
        (json!({"to": "1003", "leg": "x"}), 400, "leg: "),
        (json!({"leg": "x", "to": "8"}), 422, "to: "),
        (json!({"leg": "x", "to": "8"}), 422, "leg: "),
        (json!({"leg": talk.uuid, "to": "8"}), 422, "to: "),
        (json!({"leg": talk.uuid, "to": "8", "with": "x"}), 422, "leg: "),
    ] {
        let (answered, error) = talk.operate(&site, "transfer", body.clone()).await;
        assert_eq!(answered, status, "{body}: {error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(names), "{body}: {error}");
    }
    hears(&talk.callee).await;
    let (status, begun) = talk.operate(&site, "transfer", json!({"to": "1003"})).await;
    assert_eq!(status, 202, "{begun}");
    calls(&third, 0, 1).await;
    let outcome = within("the caller's end", talk.call).await.unwrap();
    assert_eq!(outcome.status, 200);
    calls(&talk.caller, 0, 0).await;
    calls(&talk.callee, 0, 1).await;
    hears(&talk.callee).await;
    hears(&third).await;
    let target = begun["call_uuid"].as_str().unwrap();
    let (status, _) = send(site.http, "DELETE", &format!("/calls/{target}"), &Value::Null).await;
    assert_eq!(status, 204);
    calls(&third, 0, 0).await;
    calls(&talk.callee, 0, 0).await;
    let records = site.records(2).await;
    let of = |uuid: &str| records.iter().find(|record| record["call_uuid"] == uuid).unwrap();
    let (first, onward) = (of(&talk.uuid), of(target));
    assert_eq!([&first["transferred_to"], &onward["transferred_from"]], [target, talk.uuid.as_str()]);
    assert_eq!(onward["destination_number"], "1003");
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_moves_a_call_into_a_room() {
    let room = "[[organisations.rooms]]\nname = \"Guarded\"\nnumber = \"300\"\nparticipant_pin = \"1234\"\n\
                moderator_pin = \"9876\"\n";
    let readable = directory().replace("\"margin:read\"", "\"margin:read\", \"conferences:read\"");
    let site = Site::with(&(readable + room)).await;
    let talk = Talk::begin(&site).await;
    let (_, rooms) = site.get("/conference-rooms").await;
    let id = rooms["items"][0]["id"].as_str().unwrap();
    let (status, error) = talk.operate(&site, "move-to-room", json!({"room_id": talk.uuid})).await;
    assert_eq!(status, 404, "there is no such room: {error}");
    let (status, moved) = talk.operate(&site, "move-to-room", json!({"room_id": id})).await;
    assert_eq!((status, &moved["room"]), (202, &json!(format!("svc-room-{id}"))), "{moved}");
    let live = format!("/conferences/svc-room-{id}");
    found("both members", async || {
        let (status, room) = site.get(&live).await;
        (status == 200 && room["members"].as_array()?.len() == 2).then_some(())
    })
    .await;
    hears(&talk.caller).await;
    hears(&talk.callee).await;
    let (status, error) = talk.operate(&site, "move-to-room", json!({"room_id": id})).await;
    assert_eq!((status, &error["error"]["code"]), (409, &json!("conflict")), "{error}");
    talk.caller.hang_up().await.unwrap();
    within("the caller", talk.call).await.unwrap();
    calls(&talk.callee, 0, 1).await;
    talk.callee.hang_up().await.unwrap();
    let record = site.record().await;
    assert_eq!(record["call_uuid"], talk.uuid);
    site.idle().await;
}

/// The callee hears music and the caller nothing, until the call is resumed over the API.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_puts_a_call_on_hold_with_music() {
    let site = Site::start().await;
    let talk = Talk::begin(&site).await;
    hears(&talk.callee).await;
    let (_, live) = site.get(&format!("/calls/{}", talk.uuid)).await;
    let holder = live["legs"][0]["uuid"].clone();
    assert_eq!(live.get("held_by"), None);
    for (operation, body, status, names) in [
        ("hold", json!({"leg": talk.uuid}), 422, "leg: "),
        ("hold", json!({"leg": "x"}), 400, "leg: "),
        ("unhold", json!({}), 409, "no program"),
    ] {
        let (answered, error) = talk.operate(&site, operation, body.clone()).await;
        assert_eq!(answered, status, "{body}: {error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(names), "{body}: {error}");
    }
    let (status, held) = talk.operate(&site, "hold", json!({})).await;
    assert_eq!((status, &held["held_by"]), (200, &holder), "{held}");
    let (_, live) = site.get(&format!("/calls/{}", talk.uuid)).await;
    assert_eq!(live["held_by"], holder);
    // From here on all audio comes from the mixer: the caller's packets end there.
    let before = talk.caller.heard();
    hears(&talk.callee).await;
    hears(&talk.callee).await;
    let since = talk.caller.heard() - before;
    assert!(since < 50, "the caller heard {since} packets in two seconds of hold");
    let (status, resumed) = talk.operate(&site, "unhold", json!({})).await;
    assert_eq!((status, &resumed["held_by"]), (200, &Value::Null), "{resumed}");
    hears(&talk.caller).await;
    hears(&talk.callee).await;
    talk.caller.hang_up().await.unwrap();
    within("the caller", talk.call).await.unwrap();
    let record = site.record().await;
    assert_eq!(record["call_uuid"], talk.uuid);
    site.idle().await;
}
