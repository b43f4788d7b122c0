//! A call that is recorded over the API, from the tones of two phones to the two channels of the audio over HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_model::event::EventKind;
use sidetone_phone::{Answering, CallPlan, Heard, Phone, PhoneConfig, Voice};
use sidetone_sip::sdp::CodecPolicy;
use sidetone_store::Store;

use crate::common::chosen::database_in;
use crate::common::room::events;
use crate::common::site::{Site, calls, directory, found, post, send, within};
use crate::common::tones::{hears, holds_somewhere};
use crate::flows::recorded::get_bytes;

/// Neither is a harmonic of the other.
const TONES: [u32; 2] = [617, 430];

async fn saying(site: &Site, number: &str, codec: &str, hz: u32) -> (Arc<Phone>, Heard) {
    let heard = Heard::new();
    let answering = Answering::Answer { after: Duration::ZERO, talk: None };
    let config = PhoneConfig {
        codecs: CodecPolicy::new([codec]),
        voice: Some(Voice::Note(hz)),
        heard: Some(heard.clone()),
        ..site.phone_config(number, answering)
    };
    (Arc::new(site.phone_of(config).await), heard)
}

pub(crate) async fn recordings(site: &Site, call: &str) -> Vec<Value> {
    let (status, list) = site.get(&format!("/cdrs/{call}/recordings")).await;
    assert_eq!(status, 200, "{list}");
    list["items"].as_array().unwrap().clone()
}

/// The channels of a stereo file.
pub(crate) fn channels(file: &[u8]) -> [Vec<i16>; 2] {
    assert_eq!(
        (&file[..4], file[58], file[60..64].to_vec()),
        (b"RIFF".as_slice(), 2, 16_000_u32.to_le_bytes().to_vec())
    );
    let samples: Vec<i16> =
        file[80..].chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect();
    [0, 1].map(|side| samples.iter().skip(side).step_by(2).copied().collect())
}

/// Both have PCMU: their packets are relayed untouched, and the recorder decodes both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_of_a_call_are_recorded_apart() {
    recorded(["PCMU", "PCMU"]).await;
}

/// The relay transcodes between both parties while the recorder decodes each party's own stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_of_a_transcoded_call_are_recorded_apart() {
    recorded(["PCMU", "G722"]).await;
}

async fn recorded(codecs: [&str; 2]) {
    let listening = directory()
        .replace("\"margin:read\"", "\"margin:read\", \"recordings:delete\", \"recordings:listen\"");
    let site = Site::with(&listening).await;
    let ((caller, caller_heard), (callee, callee_heard)) =
        (saying(&site, "1001", codecs[0], TONES[0]).await, saying(&site, "1002", codecs[1], TONES[1]).await);
    let phone = Arc::clone(&caller);
    let plan = CallPlan { talk_time: None, ..CallPlan::to("1002") };
    let talk = tokio::spawn(async move { phone.call(plan).await.unwrap() });
    calls(&callee, 0, 1).await;
    hears(&callee_heard, &TONES, &TONES[..1]).await;
    let (_, live) = site.get("/calls?state=answered").await;
    let call = live["items"][0]["uuid"].as_str().unwrap().to_owned();
    let record = async |action: &str| {
        post(site.http, &format!("/calls/{call}/record"), "", &json!({"action": action}).to_string()).await
    };
    for (action, status) in [("pause", 409), ("stop", 409), ("erase", 400)] {
        assert_eq!(record(action).await.0, status, "{action}");
    }
    let (status, begun) = record("start").await;
    assert_eq!((status, &begun["state"]), (200, &json!("recording")), "{begun}");
    assert_eq!(record("start").await.0, 409, "it is recorded already");
    let (_, live) = site.get(&format!("/calls/{call}")).await;
    assert_eq!(live["recording"], json!({"id": begun["recording_id"], "paused": false}));
    let audio = format!("/cdrs/{call}/recordings/{}/audio", begun["recording_id"].as_str().unwrap());
    assert_eq!(get_bytes(site.http, &audio, "").await.0, 409, "it grows");
    // The parties hear each other as before, and nothing else.
    tokio::join!(
        hears(&callee_heard, &TONES, &TONES[..1]),
        hears(&caller_heard, &TONES, &TONES[1..]),
        grown(&site, &begun, 3 * 64_000)
    );
    assert_eq!(record("pause").await.1["state"], "paused");
    // The first second may begin with audio that the recorder had not written yet.
    grown(&site, &begun, 3 * 64_000).await;
    assert_eq!(record("resume").await.1["state"], "recording");
    assert_eq!(record("stop").await.1, json!({"recording_id": begun["recording_id"], "state": "stopped"}));
    let first = found("the end of the recording", async || {
        recordings(&site, &call).await.into_iter().find(|one| !one["ended_at"].is_null())
    })
    .await;
    hears(&callee_heard, &TONES, &TONES[..1]).await;
    let (status, _, file) = get_bytes(site.http, &audio, "").await;
    assert_eq!((status, first["bytes"].as_u64()), (200, Some(file.len() as u64)), "{first}");
    let [left, right] = channels(&file);
    assert!(holds_somewhere(&left, 16_000, &TONES, &TONES[..1]), "the caller is on the left");
    assert!(holds_somewhere(&right, 16_000, &TONES, &TONES[1..]), "the called party is on the right");
    assert!(!holds_somewhere(&left, 16_000, &TONES, &TONES[1..]));
    let pause = left.chunks_exact(8_000).filter(|half| half.iter().all(|sample| *sample == 0)).count();
    assert!(pause >= 1, "the pause is silent");
    let (status, head, part) = get_bytes(site.http, &audio, "Range: bytes=0-79\r\n").await;
    assert_eq!((status, part.as_slice()), (206, &file[..80]), "{head}");
    // The second recording ends with the call.
    let (_, second) = record("start").await;
    grown(&site, &second, 64_000).await;
    let path = |rid: &Value| format!("/cdrs/{call}/recordings/{}", rid.as_str().unwrap());
    assert_eq!(delete(&site, &path(&second["recording_id"])).await, 409, "it is written");
    assert_eq!(delete(&site, &path(&begun["recording_id"])).await, 204);
    assert_eq!(delete(&site, &path(&begun["recording_id"])).await, 404, "it is gone");
    assert_eq!(get_bytes(site.http, &audio, "Range: bytes=0-79\r\n").await.0, 404);
    assert_eq!(recordings(&site, &call).await[0]["bytes"], 0);
    caller.hang_up().await.unwrap();
    within("the caller", talk).await.unwrap();
    let ended = found("both recordings", async || {
        let all = recordings(&site, &call).await;
        (all.len() == 2 && all.iter().all(|one| !one["ended_at"].is_null())).then_some(all)
    })
    .await;
    assert_eq!((&ended[1]["id"], ended[1].get("error")), (&second["recording_id"], None));
    site.record().await;
    let dir = site.stop(Duration::ZERO).await;
    let store = Store::open(&database_in(dir.path())).await.unwrap();
    let ready = events(&store, EventKind::RecordingReady).await;
    assert_eq!(ready.len(), 2, "{ready:?}");
    assert_eq!(
        ready[0],
        json!({"recording_id": begun["recording_id"], "call_uuid": call, "bytes": file.len(),
        "seconds": (file.len() - 80) / 64_000})
    );
    store.close().await;
}

/// Nothing is recorded when the disk is too full, and the 409 names the setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_a_conflict() {
    let listening = directory().replace("\"margin:read\"", "\"margin:read\", \"recordings:listen\"");
    let site = Site::configured(&listening, |config| config.recordings.reserve_bytes = u64::MAX).await;
    let (caller, callee) =
        (saying(&site, "1001", "PCMU", TONES[0]).await.0, saying(&site, "1002", "PCMU", TONES[1]).await.0);
    let phone = Arc::clone(&caller);
    let plan = CallPlan { talk_time: None, ..CallPlan::to("1002") };
    let talk = tokio::spawn(async move { phone.call(plan).await.unwrap() });
    calls(&callee, 0, 1).await;
    let call = found("the call", async || {
        let (_, page) = site.get("/calls?state=answered").await;
        Some(page["items"][0]["uuid"].as_str()?.to_owned())
    })
    .await;
    let path = format!("/calls/{call}/record");
    let (status, error) = post(site.http, &path, "", &json!({"action": "start"}).to_string()).await;
    assert_eq!(status, 409, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("reserve_mb"), "{error}");
    caller.hang_up().await.unwrap();
    within("the caller", talk).await.unwrap();
    site.record().await;
    assert_eq!(recordings(&site, &call).await, Vec::<Value>::new(), "nothing of it is left");
}

pub(crate) async fn delete(site: &Site, path: &str) -> u16 {
    send(site.http, "DELETE", path, &Value::Null).await.0
}

/// Waits until the file of a recording has grown by this many bytes.
pub(crate) async fn grown(site: &Site, recording: &Value, by: u64) {
    let id = recording["recording_id"].as_str().unwrap();
    let size = || {
        let dirs = std::fs::read_dir(site.dir.path().join("recordings")).into_iter().flatten();
        let files = dirs.map(|dir| dir.unwrap().path().join(format!("{id}.wav")));
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum::<u64>()
    };
    let before = size();
    found("the recording grows", async || (size() >= before + by).then_some(())).await;
}
