//! H14: the recording of a session over HTTP, also in ranges, only for callers with the permission.

use std::sync::Arc;

use serde_json::Value;
use sidetone::recorder::{Begin, DataDisk, Playback, Recordings};
use sidetone_api::{ApiState, Ports};
use sidetone_media::audio::clip::Clip;
use sidetone_media::mix::FrameSink;
use sidetone_media::time::Micros;
use sidetone_model::access::Scope;
use sidetone_model::ids::{CallId, ConferenceSessionId, NodeId, OrganisationId, RoomId};
use sidetone_model::room::rows::{RecordingRow, Rows, SessionRow};
use sidetone_model::room::{NewRoom, Pin, RoomName, RoomPin, Rooms as _};
use uuid::Uuid;

use crate::common::records::{TempDir, at};
use crate::http::face::{Face, Ground, Ready, key, request};

const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.api_keys]]
  name = "boss"
  key = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "full"
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
  [[organisations.api_keys]]
  name = "rooms"
  key = "tel_acmerooms001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "conferences"
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "listener"
  key = "tel_acmelisten01_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "recordings"
  allow = ["127.0.0.1"]
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.api_keys]]
  name = "boss"
  key = "tel_boltboss0001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "full"
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
"#;

const NODE: NodeId = NodeId(Uuid::from_u128(1));
/// Ten seconds and a frame: several chunks, the last of them short.
const FRAMES: i64 = 501;

/// A room of Acme with sessions in every state, and one of Bolt's.
struct Site {
    face: Face,
    room: RoomId,
    foreign: RoomId,
    disk: DataDisk,
    owner: OrganisationId,
    _dir: TempDir,
}

const COMPLETE: u128 = 1;
const NOT_RECORDED: u128 = 2;
const LIVE: u128 = 3;
const WRITTEN_OUT: u128 = 4;
const DELETED: u128 = 5;
const LOST: u128 = 6;
const LIVE_AND_SILENT: u128 = 7;
const ELSEWHERE: u128 = 8;
/// Live, with a recording that was stopped.
const STOPPED: u128 = 11;
/// Sessions of Acme's merged calls, and of Bolt's.
const MERGED: u128 = 9;
const MERGED_ELSEWHERE: u128 = 10;

fn session(number: u128) -> ConferenceSessionId {
    ConferenceSessionId(Uuid::from_u128(0x5E55_0000 + number))
}

impl Site {
    fn start() -> Site {
        let dir = TempDir::new();
        let disk = DataDisk::of(dir.path());
        let files = disk.clone();
        let (face, (room, foreign, owner)) = Face::open(DIRECTORY, async move |ground| {
            let snapshot = ground.store.directory().await.unwrap();
            let id = |name| snapshot.organisations.iter().find(|found| found.name == name).unwrap().id;
            let (acme, bolt) = (id("Acme"), id("Bolt"));
            let (room, foreign) = (made(&ground, acme).await, made(&ground, bolt).await);
            record(&files, acme, COMPLETE);
            record(&files, acme, MERGED);
            furnish(&ground, acme, room).await;
            merged(&ground, acme, MERGED).await;
            merged(&ground, bolt, MERGED_ELSEWHERE).await;
            let shared = Arc::new(ground.store.clone());
            let playback = Playback::new(NODE, ground.store, files);
            let state = ApiState::new(
                Ports {
                    recordings: Some(Arc::new(playback)),
                    ..Ports::of_log(shared.clone(), shared, Arc::new(Ready))
                },
                Arc::new(|| at(100)),
            );
            (state, (room, foreign, acme))
        });
        Site { face, room, foreign, disk, owner, _dir: dir }
    }

    fn path(&self, number: u128) -> String {
        format!("/conference-rooms/{}/sessions/{}/recording/audio", self.room, session(number))
    }

    fn ask(&self, who: &str, method: &str, path: &str, headers: &str) -> (u16, String, Vec<u8>) {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", key(who));
        self.face.exchange_bytes(&request(method, path, &headers, b""))
    }

    fn get(&self, headers: &str) -> (u16, String, Vec<u8>) {
        self.ask("acmeboss0001", "GET", &self.path(COMPLETE), headers)
    }

    fn file(&self) -> Vec<u8> {
        std::fs::read(self.disk.path(self.owner, session(COMPLETE))).unwrap()
    }
}

async fn made(ground: &Ground, organisation_id: OrganisationId) -> RoomId {
    let new = NewRoom {
        organisation_id,
        name: "Board".to_owned(),
        number: "200".to_owned(),
        participant_pin: RoomPin::Given(Pin::default()),
        moderator_pin: Pin::default(),
        wait_for_moderator: false,
        end_when_moderator_leaves: false,
        record: true,
        record_channels: 1,
        announce_names: false,
        max_members: 0,
        minutes_email: String::new(),
    };
    ground.store.create(Scope::Everything, new, at(0)).await.unwrap().id
}

/// Records ten seconds of ascending samples, with the real recorder.
fn record(disk: &DataDisk, owner: OrganisationId, number: u128) {
    let mut recordings = Recordings::new(disk.clone(), 0, Arc::default());
    let (begin, mut sink) = Begin::new(owner, session(number), &Arc::default());
    recordings.begin(begin);
    for frame in 0..FRAMES {
        let pcm: [i16; 320] = std::array::from_fn(|n| (frame * 320 + n as i64) as i16);
        assert!(sink.frame(Micros(frame * 20_000), &pcm));
        if frame % 100 == 0 {
            recordings.turn();
        }
    }
    drop(sink);
    recordings.finish();
}

async fn furnish(ground: &Ground, organisation_id: OrganisationId, room: RoomId) {
    let row = |number, is_recorded: bool, ended: bool| SessionRow {
        id: session(number),
        organisation_id,
        room: room.into(),
        room_id: Some(room),
        room_name: "Board".to_owned(),
        started_at: at(1),
        ended_at: ended.then(|| at(2)),
        seen_at: at(2),
        peak_members: 1,
        is_recorded,
        is_recording: is_recorded && [LIVE, WRITTEN_OUT].contains(&number),
        recording_channels: 1,
        events: 0,
        revision: 1,
    };
    let complete =
        |number, bytes| RecordingRow { session: session(number), organisation_id, bytes, error: None };
    let rows = Rows {
        sessions: vec![
            row(COMPLETE, true, true),
            row(NOT_RECORDED, false, true),
            row(LIVE, true, false),
            row(WRITTEN_OUT, true, true),
            row(DELETED, true, true),
            row(LOST, true, true),
            row(LIVE_AND_SILENT, false, false),
            row(STOPPED, true, false),
        ],
        recordings: vec![
            complete(COMPLETE, FRAMES as u64 * 640 + 80),
            complete(DELETED, 0),
            complete(LOST, 1_044),
            complete(STOPPED, 1_044),
        ],
        ..Rows::default()
    };
    ground.store.store_sessions(NODE, &rows).await.unwrap();
    let elsewhere = Rows {
        sessions: vec![row(ELSEWHERE, true, true)],
        recordings: vec![complete(ELSEWHERE, 1_044)],
        ..Rows::default()
    };
    ground.store.store_sessions(NodeId(Uuid::from_u128(2)), &elsewhere).await.unwrap();
}

/// The room of merged calls for a session.
fn merged_room(number: u128) -> RoomName {
    RoomName::Merged(CallId(Uuid::from_u128(0xCA11_0000 + number)))
}

/// A session of merged calls that has ended, with its recording.
async fn merged(ground: &Ground, organisation_id: OrganisationId, number: u128) {
    let row = SessionRow {
        id: session(number),
        organisation_id,
        room: merged_room(number),
        room_id: None,
        room_name: "Merged".to_owned(),
        started_at: at(1),
        ended_at: Some(at(2)),
        seen_at: at(2),
        peak_members: 4,
        is_recorded: true,
        is_recording: false,
        recording_channels: 1,
        events: 0,
        revision: 1,
    };
    let bytes = FRAMES as u64 * 640 + 80;
    let recording = RecordingRow { session: session(number), organisation_id, bytes, error: None };
    let rows = Rows { sessions: vec![row], recordings: vec![recording], ..Rows::default() };
    ground.store.store_sessions(NODE, &rows).await.unwrap();
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn all_of_it() {
    let site = Site::start();
    let whole = site.file();
    let (status, head, body) = site.get("");
    assert_eq!((status, body.len()), (200, FRAMES as usize * 640 + 80));
    assert_eq!(body, whole);
    assert!(
        Clip::from_wav(&body).unwrap().samples().iter().enumerate().all(|(n, sample)| *sample == n as i16)
    );
    assert_eq!(header(&head, "content-type"), Some("audio/wav"));
    assert_eq!(header(&head, "content-length"), Some(whole.len().to_string().as_str()));
    assert_eq!(header(&head, "accept-ranges"), Some("bytes"));
    let disposition = format!("inline; filename=\"{}.wav\"", session(COMPLETE));
    assert_eq!(header(&head, "content-disposition"), Some(disposition.as_str()));
    assert!(header(&head, "last-modified").unwrap().ends_with("gmt"), "{head}");
    assert_eq!(header(&head, "content-range"), None);
    assert_eq!(header(&head, "x-content-type-options"), Some("nosniff"));
    assert_eq!(header(&head, "cache-control"), Some("no-store"));
    // HEAD is GET without the body, and ignores a range.
    let (status, head_of_head, body) =
        site.ask("acmeboss0001", "HEAD", &site.path(COMPLETE), "Range: bytes=0-1\r\n");
    assert_eq!((status, body.len()), (200, 0));
    for name in
        ["content-type", "content-length", "accept-ranges", "etag", "last-modified", "content-disposition"]
    {
        assert_eq!(header(&head_of_head, name), header(&head, name), "{name}");
    }
}

#[test]
fn a_part_of_it() {
    let site = Site::start();
    let whole = site.file();
    let size = whole.len();
    let cases = [
        ("bytes=0-0", 0, 1),
        ("bytes=0-79", 0, 80),
        ("bytes=80-", 80, size),
        ("bytes=100000-300000", 100_000, 300_001),
        ("bytes=-1", size - 1, size),
        ("bytes=-1000", size - 1_000, size),
        ("bytes=-999999999", 0, size),
        ("bytes=300000-999999999", 300_000, size),
    ];
    for (range, first, end) in cases {
        let (status, head, body) = site.get(&format!("Range: {range}\r\n"));
        assert_eq!(status, 206, "{range}: {head}");
        assert_eq!(body, whole[first..end], "{range}");
        let (length, place) = ((end - first).to_string(), format!("bytes {first}-{}/{size}", end - 1));
        assert_eq!(header(&head, "content-length"), Some(length.as_str()), "{range}");
        assert_eq!(header(&head, "content-range"), Some(place.as_str()), "{range}");
        assert!(header(&head, "etag").is_some() && header(&head, "accept-ranges") == Some("bytes"));
    }
    let beyond = format!("bytes={size}-");
    for range in [beyond.as_str(), "bytes=999999999-", "bytes=-0", "bytes=0-0,5-6", "bytes=0-0, -1"] {
        let (status, head, body) = site.get(&format!("Range: {range}\r\n"));
        assert_eq!(status, 416, "{range}");
        assert_eq!(header(&head, "content-range"), Some(format!("bytes */{size}").as_str()), "{range}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["code"], "range_not_satisfiable", "{range}");
    }
    for range in ["bytes=5-2", "bytes=x", "seconds=1-2", "bytes"] {
        assert_eq!(site.get(&format!("Range: {range}\r\n")).0, 200, "{range} is none");
    }
}

#[test]
fn a_part_of_the_version_that_the_caller_has() {
    let site = Site::start();
    let (_, head, _) = site.get("");
    let etag = header(&head, "etag").unwrap().to_owned();
    let modified = header(&head, "last-modified").unwrap();
    // The client converted the head to lower case.
    let modified = httpdate::fmt_http_date(httpdate::parse_http_date(&capitals(modified)).unwrap());
    for version in [&etag, &modified] {
        assert_eq!(site.get(&format!("Range: bytes=0-9\r\nIf-Range: {version}\r\n")).0, 206, "{version}");
    }
    let weak = format!("W/{etag}");
    for version in ["\"other\"", weak.as_str(), "Mon, 01 Jan 1996 00:00:00 GMT"] {
        let (status, _, body) = site.get(&format!("Range: bytes=0-9\r\nIf-Range: {version}\r\n"));
        assert_eq!((status, body.len()), (200, site.file().len()), "{version}");
    }
    for known in [etag.as_str(), weak.as_str(), "*"] {
        let (status, head, body) = site.get(&format!("If-None-Match: {known}\r\n"));
        assert_eq!((status, body.len(), header(&head, "etag")), (304, 0, Some(etag.as_str())), "{known}");
    }
    assert_eq!(site.get("If-None-Match: \"other\"\r\n").0, 200);
    assert_eq!(site.get(&format!("If-Modified-Since: {modified}\r\n")).0, 304);
    // A file that was written again is another version.
    let path = site.disk.path(site.owner, session(COMPLETE));
    let mut file = site.file();
    file.truncate(8_080);
    std::fs::write(path, &file).unwrap();
    let (status, head, body) = site.get(&format!("If-None-Match: {etag}\r\n"));
    assert_eq!((status, body.len()), (200, 8_080));
    assert_ne!(header(&head, "etag"), Some(etag.as_str()));
}

/// Restores the capitals of `mon, 01 jan 2026 00:00:00 gmt`.
fn capitals(date: &str) -> String {
    let mut parts: Vec<String> = date.split(' ').map(str::to_owned).collect();
    for at in [0, 2] {
        parts[at][..1].make_ascii_uppercase();
    }
    parts.last_mut().unwrap().make_ascii_uppercase();
    parts.join(" ")
}

#[test]
fn what_is_not_there_and_what_is_not_over() {
    let site = Site::start();
    let unknown = session(0xABC).0.as_u128() - 0x5E55_0000;
    let cases = [
        (NOT_RECORDED, 404, "the session was not recorded, or its recording is deleted"),
        (LIVE, 409, "the session is still being recorded"),
        (WRITTEN_OUT, 409, "the session is still being recorded"),
        (STOPPED, 409, "the room is live: a further recording may be added"),
        (DELETED, 404, "the session was not recorded"),
        (LOST, 404, "the recording is not on this node"),
        (LIVE_AND_SILENT, 404, "the session was not recorded"),
        (unknown, 404, "the room had no such session"),
    ];
    for (number, expected, said) in cases {
        for headers in ["", "Range: bytes=0-1\r\n"] {
            let (status, _, body) = site.ask("acmeboss0001", "GET", &site.path(number), headers);
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(status, expected, "{number}: {body}");
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(said), "{number}: {message}");
        }
    }
}

#[test]
fn a_deleted_recording_is_gone_and_its_session_remains() {
    let site = Site::start();
    let status = |who: &str, method: &str, path: &str| site.ask(who, method, path, "").0;
    let delete = |number| {
        let path = site.path(number);
        let (status, _, body) = site.ask("acmeboss0001", "DELETE", path.strip_suffix("/audio").unwrap(), "");
        (status, String::from_utf8(body).unwrap())
    };
    let path = site.disk.path(site.owner, session(COMPLETE));
    let own = site.path(COMPLETE);
    let own = own.strip_suffix("/audio").unwrap();
    let (refused, _, body) = site.ask("acmelisten01", "DELETE", own, "");
    assert_eq!(refused, 403, "who may listen may not delete");
    assert!(String::from_utf8(body).unwrap().contains("recordings:delete"));
    assert_eq!(status("boltboss0001", "DELETE", own), 403);
    let foreign = own.replace(&site.room.to_string(), &site.foreign.to_string());
    assert_eq!(status("boltboss0001", "DELETE", &foreign), 404);
    for (number, expected) in [
        (LIVE, 409),
        (WRITTEN_OUT, 409),
        (STOPPED, 409),
        (NOT_RECORDED, 404),
        (DELETED, 404),
        (ELSEWHERE, 409),
    ] {
        assert_eq!(delete(number).0, expected, "{number}: {}", delete(number).1);
    }
    assert!(path.exists());
    assert_eq!(delete(COMPLETE), (204, String::new()));
    assert!(!path.exists());
    assert_eq!(delete(COMPLETE).0, 404, "it is gone");
    for headers in ["", "Range: bytes=0-9\r\n"] {
        assert_eq!(site.get(headers).0, 404, "{headers}");
    }
    // A crash between the removals of the file and the entry: the deletion can be repeated.
    assert_eq!((delete(LOST).0, delete(LOST).0), (204, 404));
}

/// The recording of merged calls is deleted by the name of their room, and only by its organisation.
#[test]
fn the_recording_of_merged_calls_is_deleted_by_its_organisation_alone() {
    let site = Site::start();
    let path = |room: u128, number: u128| {
        format!("/conferences/{}/sessions/{}/recording", merged_room(room), session(number))
    };
    let status = |who: &str, path: &str| site.ask(who, "DELETE", path, "").0;
    let file = site.disk.path(site.owner, session(MERGED));
    let own = path(MERGED, MERGED);
    for (who, path, expected) in [
        ("acmelisten01", own.clone(), 403),
        ("boltboss0001", own.clone(), 403),
        ("acmeboss0001", path(MERGED_ELSEWHERE, MERGED_ELSEWHERE), 403),
        // Another organisation's session in a path with the caller's own room.
        ("boltboss0001", path(MERGED_ELSEWHERE, MERGED), 404),
        ("acmeboss0001", path(MERGED, MERGED_ELSEWHERE), 404),
        ("acmeboss0001", path(0xFFFF, MERGED), 404),
        ("acmeboss0001", own.replace("svc-conf-", ""), 404),
    ] {
        assert_eq!(status(who, &path), expected, "{who} {path}");
    }
    assert!(file.exists());
    assert_eq!([204, 404], [(); 2].map(|()| status("acmeboss0001", &own)));
    assert!(!file.exists());
    assert_eq!(site.ask("acmeboss0001", "GET", &format!("{own}/audio"), "").0, 404);
    // A stored room also has such a name.
    let stored = format!("/conferences/svc-room-{}/sessions/{}/recording", site.room, session(COMPLETE));
    assert_eq!(status("boltboss0001", &stored), 403);
    assert_eq!(status("acmeboss0001", &stored), 204);
}

/// A path reads no other tenant's file, and no file outside the recordings.
#[test]
fn nobody_hears_what_is_not_theirs() {
    let site = Site::start();
    let own = site.path(COMPLETE);
    let foreign = own.replace(&site.room.to_string(), &site.foreign.to_string());
    let status = |who: &str, path: &str| site.ask(who, "GET", path, "").0;
    assert_eq!(status("acmeboss0001", &own), 200);
    assert_eq!(status("boltboss0001", &own), 403, "a foreign room");
    assert_eq!(status("boltboss0001", &foreign), 404, "a foreign session under a room of one's own");
    assert_eq!(status("acmeboss0001", &foreign), 403);
    let (status_of, _, body) = site.ask("acmerooms001", "GET", &own, "");
    assert_eq!(status_of, 403);
    assert!(String::from_utf8(body).unwrap().contains("recordings:listen"));
    assert_eq!(site.face.exchange_bytes(&request("GET", &own, "", b"")).0, 401);
    let session = session(COMPLETE).to_string();
    for sid in ["..%2f..%2fsidetone.db", "%2e%2e", "..", &session.replace('-', ""), &format!("{session}.wav")]
    {
        let path = own.replace(&session, sid);
        let answer = status("acmeboss0001", &path);
        assert!([400, 404].contains(&answer), "{sid}: {answer}");
    }
}
