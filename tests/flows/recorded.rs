//! A recorded room, from the tone on a phone to the bytes over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_media::audio::wav::Wav;
use sidetone_model::event::EventKind;
use sidetone_model::ids::RoomId;
use sidetone_phone::CallPlan;
use sidetone_store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::chosen::database_in;
use crate::common::records::TempDir;
use crate::common::room::{directory, events, make, session};
use crate::common::site::{Site, answering, calls, declare, found, open_end, within};

/// An engine with one room at 200, which is recorded.
async fn site() -> (Site, RoomId) {
    let dir = TempDir::new();
    declare(dir.path(), &directory(1006)).await;
    let room = make(dir.path(), "200", |room| room.record = true).await;
    (Site::reopen(dir).await, room)
}

/// The status, the head and the bytes of `GET path`.
pub async fn get_bytes(http: SocketAddr, path: &str, headers: &str) -> (u16, String, Vec<u8>) {
    let request = format!(
        "GET /api/v1{path} HTTP/1.1\r\nHost: sidetone.test\r\nAuthorization: Bearer {KEY}\r\n{headers}\
         Connection: close\r\n\r\n"
    );
    exchange(http, path, &request).await
}

async fn exchange(http: SocketAddr, path: &str, request: &str) -> (u16, String, Vec<u8>) {
    let mut bytes = Vec::new();
    within(path, async {
        let mut stream = TcpStream::connect(http).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_end(&mut bytes).await.unwrap();
    })
    .await;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = bytes.split_off(end);
    let head = String::from_utf8(bytes).unwrap().to_lowercase();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head, body)
}

/// The status of `POST path`, whose response has no body on success.
pub async fn post_empty(http: SocketAddr, path: &str, json: &str) -> (u16, String) {
    let (len, headers) = (json.len(), "Content-Type: application/json\r\nContent-Length:");
    let request = format!(
        "POST /api/v1{path} HTTP/1.1\r\nHost: sidetone.test\r\nAuthorization: Bearer {KEY}\r\n{headers} {len}\r\n\
         Connection: close\r\n\r\n{json}"
    );
    let (status, _, body) = exchange(http, path, &request).await;
    (status, String::from_utf8(body).unwrap())
}

/// How much of the power of some samples is a tone of 440 Hz (Goertzel).
fn tone(samples: &[i16]) -> f64 {
    let turn = 2.0 * (std::f64::consts::TAU * 440.0 / 16_000.0).cos();
    let (mut before, mut last, mut power) = (0.0, 0.0, 1.0);
    for sample in samples.iter().map(|sample| f64::from(*sample)) {
        (before, last) = (last, sample + turn * last - before);
        power += sample * sample;
    }
    let at_440 = last * last + before * before - turn * last * before;
    2.0 * at_440 / (samples.len() as f64 * power)
}

/// Fifths of a second that contain only the tone.
fn fifths_of_tone(samples: &[i16]) -> usize {
    samples.chunks_exact(3_200).filter(|fifth| tone(fifth) > 0.9).count()
}

async fn bytes_on_disk(site: &Site, session: &Value) -> u64 {
    let id = session["id"].as_str().unwrap();
    let dirs = std::fs::read_dir(site.dir.path().join("recordings"));
    let files = dirs.into_iter().flatten().map(|dir| dir.unwrap().path().join(format!("{id}.wav")));
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

pub async fn grown(site: &Site, session: &Value, by: u64) -> u64 {
    let before = bytes_on_disk(site, session).await;
    found("the recording grows", async || {
        let now = bytes_on_disk(site, session).await;
        (now >= before + by).then_some(now)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tone_is_recorded_in_one_file_and_read_by_range() {
    let (site, room) = site().await;
    let (ada, bob) =
        (Arc::new(site.phone("1001", answering()).await), Arc::new(site.phone("1002", answering()).await));
    let silent = CallPlan { talk: None, ..open_end("200") };
    let mut placed = Vec::new();
    for (phone, plan) in [(&ada, open_end("200")), (&bob, silent)] {
        let caller = Arc::clone(phone);
        placed.push(tokio::spawn(async move { caller.call(plan).await.unwrap() }));
        calls(phone, 0, 1).await;
    }
    let live = session(site.http, room, |session| session["members"].as_array().unwrap().len() == 2).await;
    let audio = format!("/conference-rooms/{room}/sessions/{}/recording/audio", live["id"].as_str().unwrap());
    grown(&site, &live, 4 * 32_000).await;
    assert_eq!(get_bytes(site.http, &audio, "").await.0, 409, "it grows");
    // Off, and on again: the same file, without the time in between.
    let control = format!("/conferences/svc-room-{room}/record");
    for on in ["false", "true"] {
        let body = format!("{{\"on\":{on}}}");
        let (status, said) = post_empty(site.http, &control, &body).await;
        assert_eq!(status, 204, "{on}: {said}");
    }
    grown(&site, &live, 4 * 32_000).await;
    for phone in [&ada, &bob] {
        phone.hang_up().await.unwrap();
    }
    for call in placed {
        call.await.unwrap();
    }
    let over = session(site.http, room, |session| session["has_recording"] == true).await;
    let (status, _, file) = get_bytes(site.http, &audio, "").await;
    assert_eq!((status, over["recording_bytes"].as_u64()), (200, Some(file.len() as u64)), "{over}");
    assert_eq!(over.get("recording_error"), None, "{over}");
    let samples = Wav::parse(&file).unwrap().mono();
    assert!(samples.len() >= 8 * 16_000 && fifths_of_tone(&samples) >= 10, "{}", fifths_of_tone(&samples));
    // Ranges, as a player seeks.
    let size = file.len();
    for (range, first, end) in
        [("0-79", 0, 80), ("32080-64079", 32_080, 64_080), ("-3200", size - 3_200, size)]
    {
        let (status, head, part) = get_bytes(site.http, &audio, &format!("Range: bytes={range}\r\n")).await;
        assert_eq!((status, part.as_slice()), (206, &file[first..end]), "{range}");
        assert!(head.contains(&format!("content-range: bytes {first}-{}/{size}", end - 1)), "{head}");
    }
    let dir = site.stop(Duration::ZERO).await;
    let store = Store::open(&database_in(dir.path())).await.unwrap();
    let ready = events(&store, EventKind::RecordingReady).await;
    let expected = json!({"session_id": over["id"], "room_id": room, "room": format!("svc-room-{room}"),
        "bytes": size, "channels": 1, "seconds": (size - 80) / 32_000});
    assert_eq!(ready, [expected]);
    store.close().await;
}

/// The first member is on the left while there is no moderator, and its audio is not on the right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_channels_keep_two_people_apart() {
    let dir = TempDir::new();
    declare(dir.path(), &directory(1006)).await;
    let room = make(dir.path(), "200", |room| (room.record, room.record_channels) = (true, 2)).await;
    let site = Site::reopen(dir).await;
    let (ada, bob) =
        (Arc::new(site.phone("1001", answering()).await), Arc::new(site.phone("1002", answering()).await));
    let silent = CallPlan { talk: None, ..open_end("200") };
    let mut placed = Vec::new();
    for (phone, plan) in [(&ada, open_end("200")), (&bob, silent)] {
        let caller = Arc::clone(phone);
        placed.push(tokio::spawn(async move { caller.call(plan).await.unwrap() }));
        calls(phone, 0, 1).await;
    }
    let live = session(site.http, room, |session| session["members"].as_array().unwrap().len() == 2).await;
    grown(&site, &live, 4 * 64_000).await;
    let control = format!("/conferences/svc-room-{room}/record");
    for (body, expected) in
        [("{\"on\":false}", 204), ("{\"on\":true,\"channels\":1}", 409), ("{\"on\":true}", 204)]
    {
        let (status, said) = post_empty(site.http, &control, body).await;
        assert_eq!(status, expected, "{body}: {said}");
    }
    grown(&site, &live, 2 * 64_000).await;
    for phone in [&ada, &bob] {
        phone.hang_up().await.unwrap();
    }
    for call in placed {
        call.await.unwrap();
    }
    let over = session(site.http, room, |session| session["has_recording"] == true).await;
    assert_eq!(over["recording_channels"], 2, "{over}");
    let audio = format!("/conference-rooms/{room}/sessions/{}/recording/audio", over["id"].as_str().unwrap());
    let (status, _, file) = get_bytes(site.http, &audio, "").await;
    assert_eq!((status, file[58], over["recording_bytes"].as_u64()), (200, 2, Some(file.len() as u64)));
    assert_eq!(Wav::parse(&file).unwrap().frames(), (file.len() as u64 - 80) / 4);
    let samples: Vec<i16> =
        file[80..].chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect();
    let [left, right] =
        [0, 1].map(|side| samples.iter().skip(side).step_by(2).copied().collect::<Vec<i16>>());
    assert!(fifths_of_tone(&left) >= 10, "{}", fifths_of_tone(&left));
    assert_eq!(fifths_of_tone(&right), 0);
    let dir = site.stop(Duration::ZERO).await;
    let store = Store::open(&database_in(dir.path())).await.unwrap();
    let ready = events(&store, EventKind::RecordingReady).await;
    assert_eq!(
        (&ready[0]["channels"], &ready[0]["seconds"]),
        (&json!(2), &json!((file.len() - 80) / 64_000))
    );
    store.close().await;
}

/// The engine stops in order while a room is recorded: nothing is lost, and no error is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_recorded_when_the_engine_stops_is_complete() {
    let (site, room) = site().await;
    let ada = Arc::new(site.phone("1001", answering()).await);
    let caller = Arc::clone(&ada);
    let placed = tokio::spawn(async move { caller.call(open_end("200")).await.unwrap() });
    calls(&ada, 0, 1).await;
    let live = session(site.http, room, |session| session["members"].as_array().unwrap().len() == 1).await;
    grown(&site, &live, 32_000).await;
    let dir = site.stop(Duration::ZERO).await;
    placed.await.unwrap();
    let site = Site::reopen(dir).await;
    let over = session(site.http, room, |session| session["has_recording"] == true).await;
    assert_eq!(over.get("recording_error"), None, "{over}");
    assert_eq!(over["recording_bytes"].as_u64(), Some(bytes_on_disk(&site, &over).await), "{over}");
    site.stop(Duration::ZERO).await;
}

const KEY: &str = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz";
