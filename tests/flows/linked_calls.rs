//! Recordings and prompts of two calls that a transfer has linked, from the tones of two phones to the audio over HTTP.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_model::event::EventKind;
use sidetone_phone::{CallPlan, Heard, Phone};
use sidetone_store::Store;
use tokio::task::JoinHandle;

use crate::common::chosen::database_in;
use crate::common::room::events;
use crate::common::site::{Site, calls, directory, found, post, send, within};
use crate::common::tones::holds_somewhere;
use crate::flows::call_prompts::{CALLEE, CALLER, PROMPT, TONES, hears_only, saying, store_prompt};
use crate::flows::call_recorded::{channels, delete, grown, recordings};
use crate::flows::recorded::get_bytes;

/// A blind transfer: both calls have one media group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_after_a_blind_transfer_is_recorded_from_both_sides() {
    recorded(["PCMU", "PCMU"], false).await;
}

/// An attended transfer: the ports of both calls may be in different threads of the relay, and are transcoded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transcoded_calls_after_an_attended_transfer_are_recorded_from_both_sides() {
    recorded(["PCMU", "G722"], true).await;
}

/// The calls continue, and the error names the operation that moves their parties into the room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn linked_calls_do_not_move_into_a_room() {
    let joined = joined(["PCMU", "PCMU"], false).await;
    let (_, rooms) = joined.site.get("/conference-rooms").await;
    let room = rooms["items"][0]["id"].as_str().unwrap();
    for call in [&joined.first, &joined.second] {
        let body = json!({"room_id": room}).to_string();
        let (status, error) = post(joined.site.http, &format!("/calls/{call}/move-to-room"), "", &body).await;
        assert_eq!((status, &error["error"]["code"]), (409, &json!("conflict")), "{error}");
        let why = error["error"]["message"].as_str().unwrap();
        assert!(why.contains(&format!("POST /conference-rooms/{room}/dial")), "{why}");
    }
    for (_, heard) in &joined.phones {
        heard.clear();
    }
    joined.talk_to_each_other().await;
    joined.phones[0].0.hang_up().await.unwrap();
    calls(&joined.phones[1].0, 0, 0).await;
    joined.site.idle().await;
}

const ROOM: &str = "[[organisations.rooms]]\nname = \"Guarded\"\nnumber = \"300\"\nparticipant_pin = \"1234\"\n\
                    moderator_pin = \"9876\"\n";

/// 1002, the callee of the first call, and 1003, which has replaced the caller.
struct Joined {
    site: Site,
    phones: [(Arc<Phone>, Heard); 2],
    first: String,
    second: String,
}

async fn dial(phone: &Arc<Phone>, number: &str) -> JoinHandle<()> {
    let (phone, plan) = (Arc::clone(phone), CallPlan { talk_time: None, ..CallPlan::to(number) });
    tokio::spawn(async move { drop(phone.call(plan).await.unwrap()) })
}

/// Returns the answered call to a number.
async fn answered(site: &Site, number: &str) -> String {
    found("the answered call", async || {
        let (_, page) = site.get("/calls?state=answered").await;
        let mut items = page["items"].as_array()?.iter();
        Some(items.find(|call| call["destination"] == number)?["uuid"].as_str()?.to_owned())
    })
    .await
}

async fn joined(codecs: [&str; 2], attended: bool) -> Joined {
    let permitted = "\"margin:read\", \"recordings:delete\", \"recordings:listen\", \"directory:read\", \
                     \"conferences:read\", \"conferences:write\"";
    let directory = directory().replace("\"margin:read\"", permitted) + ROOM;
    let site = Site::configured(&directory, |config| config.media.workers = Some(8)).await;
    store_prompt(&site).await;
    let third = saying(&site, "1003", codecs[0], TONES[CALLER]).await;
    let callee = saying(&site, "1002", codecs[1], TONES[CALLEE]).await;
    let (caller, _) = saying(&site, "1001", "PCMU", 2_500).await;
    let mut talks = vec![dial(&caller, "1002").await];
    calls(&callee.0, 0, 1).await;
    let first = answered(&site, "1002").await;
    let body = match attended {
        true => {
            let (other, _) = saying(&site, "1001", "PCMU", 2_500).await;
            talks.push(dial(&other, "1003").await);
            calls(&third.0, 0, 1).await;
            json!({"with": answered(&site, "1003").await})
        }
        false => json!({"to": "1003"}),
    };
    let (status, begun) = post(site.http, &format!("/calls/{first}/transfer"), "", &body.to_string()).await;
    assert_eq!(status, 202, "{begun}");
    for talk in talks {
        within("the phone that transferred leaves", talk).await.unwrap();
    }
    let second = begun["call_uuid"].as_str().unwrap().to_owned();
    let joined = Joined { site, phones: [third, callee], first, second };
    joined.talk_to_each_other().await;
    joined
}

impl Joined {
    async fn talk_to_each_other(&self) {
        found("1002 hears 1003", async || hears_only(&self.phones[1].1, CALLER)).await;
        found("1003 hears 1002", async || hears_only(&self.phones[0].1, CALLEE)).await;
    }

    async fn record(&self, call: &str, action: &str) -> (u16, Value) {
        post(self.site.http, &format!("/calls/{call}/record"), "", &json!({"action": action}).to_string())
            .await
    }

    /// Plays the prompt until one party hears it: a new sound reaches the node within two seconds.
    async fn play(&self, call: &str, side: &str, heard: &Heard) {
        found("the prompt", async || {
            let (_, live) = self.site.get(&format!("/calls/{call}")).await;
            if live.get("playing").is_none_or(|playing| playing["side"] != side) {
                let body = json!({"prompt": "goodbye", "side": side}).to_string();
                let (status, begun) = post(self.site.http, &format!("/calls/{call}/play"), "", &body).await;
                assert_eq!(status, 202, "{begun}");
            }
            hears_only(heard, PROMPT)
        })
        .await;
    }
}

async fn recorded(codecs: [&str; 2], attended: bool) {
    let joined = joined(codecs, attended).await;
    let (first, second) = (joined.first.as_str(), joined.second.as_str());
    let (status, begun) = joined.record(first, "start").await;
    assert_eq!((status, &begun["state"]), (200, &json!("recording")), "{begun}");
    let id = begun["recording_id"].as_str().unwrap().to_owned();
    for call in [first, second] {
        let (status, error) = joined.record(call, "start").await;
        assert_eq!(status, 409, "{error}");
        let (_, live) = joined.site.get(&format!("/calls/{call}")).await;
        assert_eq!(live["recording"], json!({"id": id, "paused": false}));
    }
    tokio::join!(joined.talk_to_each_other(), grown(&joined.site, &begun, 3 * 64_000));
    assert_eq!(joined.record(second, "pause").await.1["state"], "paused");
    assert_eq!(joined.record(first, "resume").await.1["state"], "recording");
    // 1002 is the callee of its call, and the peer of 1003 in the second call.
    joined.play(first, "callee", &joined.phones[1].1).await;
    joined.phones[0].1.clear();
    found("1003 hears 1002", async || hears_only(&joined.phones[0].1, CALLEE)).await;
    let (_, live) = joined.site.get(&format!("/calls/{second}")).await;
    assert_eq!(live["playing"]["side"], "caller", "{live}");
    let stopped = send(joined.site.http, "DELETE", &format!("/calls/{second}/play"), &Value::Null).await;
    assert_eq!(stopped.0, 204);
    joined.talk_to_each_other().await;
    // The recording ends when one of both parties hangs up.
    joined.phones[0].0.hang_up().await.unwrap();
    calls(&joined.phones[1].0, 0, 0).await;
    joined.site.records(2).await;
    let ended = found("the end of the recording", async || {
        let all = recordings(&joined.site, second).await;
        all.into_iter().find(|one| !one["ended_at"].is_null())
    })
    .await;
    assert_eq!(
        [&ended["id"], &ended["call_uuid"], &ended["linked_call_uuid"], &ended["error"]],
        [&json!(id), &json!(first), &json!(second), &Value::Null]
    );
    assert_eq!(recordings(&joined.site, first).await, std::slice::from_ref(&ended));
    let path = |call: &str| format!("/cdrs/{call}/recordings/{id}");
    let (status, _, file) = get_bytes(joined.site.http, &format!("{}/audio", path(second)), "").await;
    assert_eq!((status, ended["bytes"].as_u64()), (200, Some(file.len() as u64)), "{ended}");
    let [left, right] = channels(&file);
    let has = |samples: &[i16], tone: usize| holds_somewhere(samples, 16_000, &TONES, &TONES[tone..=tone]);
    assert!(has(&left, CALLER) && has(&right, CALLEE), "1003 took the place of the caller");
    assert!(!has(&left, CALLEE) && !has(&right, CALLER));
    assert_eq!(delete(&joined.site, &path(second)).await, 204);
    assert_eq!(delete(&joined.site, &path(first)).await, 404, "it is gone for both");
    let dir = joined.site.stop(std::time::Duration::ZERO).await;
    let store = Store::open(&database_in(dir.path())).await.unwrap();
    let ready = events(&store, EventKind::RecordingReady).await;
    let expected = json!({"recording_id": id, "call_uuid": first, "linked_call_uuid": second,
        "bytes": file.len(), "seconds": (file.len() - 80) / 64_000});
    assert_eq!(ready, [expected]);
    store.close().await;
}
