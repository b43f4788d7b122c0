//! The engine is killed while a room is recorded: its session is closed with its members and times, its recording is
//! playable, and every event of that is sent once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sidetone::recorder::DataDisk;
use sidetone_media::audio::wav::Wav;
use sidetone_model::event::EventKind;
use sidetone_model::time::Timestamp;
use sidetone_store::Store;

use super::{phone, place};
use crate::common::chosen::database_in;
use crate::common::killed::Engine;
use crate::common::records::TempDir;
use crate::common::room::{directory, events, make, session};
use crate::common::site::{answering, calls, declare, found};

fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap())
}

fn instant(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

/// The one recording of a data directory.
fn recording(dir: &Path) -> Option<PathBuf> {
    let mut open = vec![DataDisk::of(dir).dir().to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).ok()?.map(Result::unwrap) {
            let path = entry.path();
            match path.extension() {
                _ if path.is_dir() => open.push(path),
                Some(wav) if wav == "wav" => return Some(path),
                _ => {}
            }
        }
    }
    None
}

fn bytes_of(path: Option<PathBuf>) -> u64 {
    path.and_then(|path| path.metadata().ok()).map_or(0, |file| file.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_room_is_closed_and_its_recording_plays() {
    let dir = TempDir::new();
    declare(dir.path(), &directory(1006)).await;
    let room = make(dir.path(), "200", |room| room.record = true).await;
    let engine = Engine::serve(dir.path()).await;
    let ada = Arc::new(phone(&engine, "1001", answering()).await);
    let bob = Arc::new(phone(&engine, "1002", answering()).await);
    let eve = Arc::new(phone(&engine, "1003", answering()).await);
    let mut placed = vec![place(&ada, "200")];
    calls(&ada, 0, 1).await;
    for phone in [&bob, &eve] {
        placed.push(place(phone, "200"));
        calls(phone, 0, 1).await;
    }
    eve.hang_up().await.unwrap();
    session(engine.http, room, |session| {
        let members = session["members"].as_array().unwrap();
        members.len() == 3 && members.iter().filter(|member| member["left_at"].is_null()).count() == 2
    })
    .await;
    found("three seconds of recording", async || {
        (bytes_of(recording(dir.path())) > 3 * BYTES_PER_SECOND).then_some(())
    })
    .await;
    engine.kill();
    // Not before: until it is dead, the engine marks the session as live.
    let killed_at = now();
    for call in placed {
        call.abort();
    }

    for _ in 0..2 {
        // The second start finds nothing left to repair.
        let engine = Engine::serve(dir.path()).await;
        let closed = session(engine.http, room, |_| true).await;
        let late = killed_at.as_micros() - instant(&closed["ended_at"]).as_micros();
        assert!((0..=PRECISION_US).contains(&late), "ended {late} µs before the kill: {closed}");
        let members = closed["members"].as_array().unwrap();
        let numbers: Vec<&Value> = members.iter().map(|member| &member["number"]).collect();
        assert_eq!(
            (numbers, &closed["peak_members"]),
            (vec![&json!("1001"), &json!("1002"), &json!("1003")], &json!(3))
        );
        assert!(members.iter().all(|member| instant(&member["joined_at"]) <= instant(&member["left_at"])));
        assert_eq!(
            (&members[0]["left_at"], &members[1]["left_at"]),
            (&closed["ended_at"], &closed["ended_at"])
        );
        assert!(instant(&members[2]["left_at"]) < instant(&closed["ended_at"]), "{closed}");
        // The API's data on the recording matches the file on disk, which is playable.
        let file = recording(dir.path()).unwrap();
        let wav = std::fs::read(&file).unwrap();
        assert_eq!((&closed["has_recording"], &closed["recording_bytes"]), (&true.into(), &wav.len().into()));
        let played = Wav::parse(&wav).unwrap();
        assert!(played.frames() > 2 * u64::from(played.rate_hz()), "{} frames", played.frames());
        assert!(played.mono().iter().any(|sample| sample.unsigned_abs() > 100), "nobody is heard");
        engine.kill();

        let store = Store::open(&database_in(dir.path())).await.unwrap();
        let told = events(&store, EventKind::ConferenceUpdated).await;
        store.close().await;
        let count = |action: &str| told.iter().filter(|event| event["action"] == action).count();
        assert_eq!([count("joined"), count("left"), count("recording"), count("ended")], [3, 1, 1, 1]);
        let end = told.last().unwrap();
        assert_eq!((&end["action"], &end["seq"]), (&"ended".into(), &told.len().into()));
        assert!(told.iter().all(|event| event["revision"].as_u64() <= end["revision"].as_u64()));
    }
    // The next caller opens another session.
    let engine = Engine::serve(dir.path()).await;
    let ada = Arc::new(phone(&engine, "1001", answering()).await);
    let call = place(&ada, "200");
    calls(&ada, 0, 1).await;
    let fresh = session(engine.http, room, |session| session["ended_at"].is_null()).await;
    assert_eq!(fresh["members"].as_array().unwrap().len(), 1, "{fresh}");
    call.abort();
    engine.kill();
}

/// 16 kHz, 16 bits.
const BYTES_PER_SECOND: u64 = 32_000;
/// A live session is marked every two seconds; the rest is the time of a commit on a busy machine.
const PRECISION_US: i64 = 5_000_000;
