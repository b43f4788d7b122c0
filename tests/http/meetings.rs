//! Sessions and meetings of conference rooms over HTTP: who reads and reports them, and the fields named in errors.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_api::{ApiState, Ports, RoomHistory};
use sidetone_model::access::Scope;
use sidetone_model::ids::{ConferenceSessionId, NodeId};
use sidetone_model::room::rows::{Rows, SessionRow};
use sidetone_model::room::{NewRoom, Pin, RoomPin, Rooms};
use uuid::Uuid;

use crate::common::records::at;
use crate::http::face::{Answer, Face, Ready, key, request};

const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.api_keys]]
  name = "rooms"
  key = "tel_acmerooms001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "conferences"
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
  [[organisations.api_keys]]
  name = "robot"
  key = "tel_acmerobot001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["conversations:write"]
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.api_keys]]
  name = "all"
  key = "tel_boltadmin001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "full"
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
"#;
const AGENT: &str = "00000000-0000-0000-0000-0000000000a6";

/// A room of Acme with two sessions, the second of them live, read a minute after the second began.
struct Sessions {
    face: Face,
    room: String,
    ids: [String; 2],
}

impl Sessions {
    fn open(with_ai: bool) -> Sessions {
        let (face, (room, ids)) = Face::open(DIRECTORY, async move |ground| {
            let store = ground.store;
            let organisation_id = store.directory().await.unwrap().organisations[0].id;
            let new = NewRoom {
                organisation_id,
                name: "Board".to_owned(),
                number: "200".to_owned(),
                participant_pin: RoomPin::Given(Pin::default()),
                moderator_pin: Pin::default(),
                wait_for_moderator: false,
                end_when_moderator_leaves: false,
                record: false,
                record_channels: 1,
                announce_names: false,
                max_members: 0,
                minutes_email: String::new(),
            };
            let room = store.create(Scope::Everything, new, at(0)).await.unwrap().id;
            let ids = [1, 2].map(|number| ConferenceSessionId(Uuid::from_u128(0x5E55 + number)));
            let row = |number: usize| SessionRow {
                id: ids[number],
                organisation_id,
                room: room.into(),
                room_id: Some(room),
                room_name: "Board".to_owned(),
                started_at: at(60 * number as i64),
                ended_at: (number == 0).then(|| at(30)),
                seen_at: at(30),
                peak_members: 1,
                is_recorded: false,
                is_recording: false,
                recording_channels: 1,
                events: 0,
                revision: 1,
            };
            let rows = Rows { sessions: vec![row(0), row(1)], ..Rows::default() };
            store.store_sessions(NodeId(Uuid::nil()), &rows).await.unwrap();
            let shared = Arc::new(store.clone());
            let meetings = with_ai.then(|| shared.clone() as _);
            let state = ApiState::new(
                Ports {
                    room_history: Some(RoomHistory { sessions: shared.clone(), meetings }),
                    ..Ports::of_log(shared.clone(), shared.clone(), Arc::new(Ready))
                },
                Arc::new(|| at(120)),
            );
            (state, (room.to_string(), ids.map(|id| id.to_string())))
        });
        Sessions { face, room, ids }
    }

    fn send(&self, who: &str, method: &str, path: &str, body: &str) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", key(who));
        Answer::of(self.face.exchange(&request(method, path, &headers, body.as_bytes())))
    }

    fn get(&self, path: &str) -> Answer {
        self.send("acmerooms001", "GET", &format!("/conference-rooms/{}{path}", self.room), "")
    }

    fn put(&self, session: &str, body: &Value) -> Answer {
        let path = format!("/conference-rooms/{}/sessions/{session}/meeting", self.room);
        self.send("acmerobot001", "PUT", &path, &body.to_string())
    }
}

fn meeting(state: &str) -> Value {
    let mut meeting = json!({
        "agent": {"id": AGENT, "name": "TapWriter"},
        "state": state,
        "notes": [{"at": "2026-01-01T00:00:05.000Z", "text": "Ship it"}],
        "turns": [
            {"seq": 1, "at": "2026-01-01T00:00:03.000Z", "speaker": "Ada", "text": "Ship it?"},
            {"seq": 2, "at": "2026-01-01T00:00:04.000Z", "speaker": "Bob", "text": "Yes."},
        ],
        "replies_unheard": [{"at": "2026-01-01T00:00:06.000Z", "text": "Shall I?"}],
        "delivered_to": ["minutes@acme.test"],
    });
    match state {
        "ready" => meeting["minutes"] = json!("It ships.\nBob does it."),
        "failed" => meeting["minutes_error"] = json!("the model was away"),
        _ => {}
    }
    meeting
}

#[test]
fn sessions_are_pages_newest_first() {
    let board = Sessions::open(true);
    let page = board.get("/sessions");
    assert_eq!((page.status, page.items("id")), (200, vec![board.ids[1].as_str(), board.ids[0].as_str()]));
    let [live, over] = [0, 1].map(|at| page.body["items"][at].clone());
    assert_eq!((&live["ended_at"], &live["duration_seconds"]), (&Value::Null, &json!(60)));
    assert_eq!((&over["ended_at"], &over["duration_seconds"]), (&json!(at(30)), &json!(30)));
    let second = board.get("/sessions?limit=1&offset=1");
    assert_eq!((second.items("id"), &second.body["total"]), (vec![board.ids[0].as_str()], &json!(2)));
    assert_eq!(board.get(&format!("/sessions/{}", board.ids[0])).body, over);
    for (query, field) in [("limit=0", "limit"), ("offset=x", "offset"), ("sort=name", "sort")] {
        let wrong = board.get(&format!("/sessions?{query}"));
        assert_eq!((wrong.status, wrong.code()), (400, "invalid_request"));
        assert!(wrong.message().starts_with(field), "{}", wrong.message());
    }
    assert_eq!(board.get("/sessions/7").status, 400);
    assert_eq!(board.get(&format!("/sessions/{AGENT}")).status, 404);
    let path = format!("/conference-rooms/{}/sessions", board.room);
    assert_eq!(board.send("boltadmin001", "GET", &path, "").status, 403);
    assert_eq!(board.send("acmerobot001", "GET", &path, "").status, 403);
    let nowhere = format!("/conference-rooms/{AGENT}/sessions");
    assert_eq!(board.send("acmerooms001", "GET", &nowhere, "").status, 404);
}

#[test]
fn a_meeting_is_read_as_it_was_reported() {
    let board = Sessions::open(true);
    let [session, other] = &board.ids;
    let path = format!("/sessions/{session}/meeting");
    assert_eq!(board.get(&path).status, 404, "no virtual agent sat in it");
    let first = board.put(session, &meeting("running"));
    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(first.location(), format!("/conference-rooms/{}{path}", board.room));
    for state in ["running", "writing", "ready", "ready"] {
        let told = board.put(session, &meeting(state));
        assert_eq!(told.status, 200, "{state}: {}", told.body);
    }
    let read = board.get(&path);
    let mut expected = meeting("ready");
    expected["session_id"] = json!(session);
    expected["room_id"] = json!(board.room);
    assert_eq!((read.status, &read.body), (200, &expected));
    // A body that was read can be sent back.
    assert_eq!(board.put(session, &read.body).status, 200);
    let late = board.put(session, &meeting("writing"));
    assert_eq!((late.status, late.code()), (409, "conflict"));
    let mut foreign = meeting("ready");
    foreign["agent"]["id"] = json!("00000000-0000-0000-0000-0000000000a7");
    assert_eq!(board.put(session, &foreign).status, 409);

    assert_eq!(board.put(other, &meeting("failed")).status, 201);
    let list = board.get("/meetings");
    let rows = &list.body["items"];
    assert_eq!((list.items("state"), &list.body["total"]), (vec!["failed", "ready"], &json!(2)));
    assert_eq!(rows[0]["minutes_error"], "the model was away");
    assert_eq!(
        rows[1],
        json!({"session_id": session, "agent": {"id": AGENT, "name": "TapWriter"}, "state": "ready",
            "has_minutes": true, "notes": 1, "turns": 2})
    );
    let path = format!("/conference-rooms/{}/sessions/{session}/meeting", board.room);
    assert_eq!(board.send("boltadmin001", "GET", &path, "").status, 403);
    assert_eq!(board.send("boltadmin001", "PUT", &path, &meeting("ready").to_string()).status, 403);
    assert_eq!(board.send("acmerooms001", "PUT", &path, &meeting("ready").to_string()).status, 403);
    assert_eq!(board.put(AGENT, &meeting("running")).status, 404);
}

#[test]
fn what_is_wrong_with_a_report_is_named() {
    let board = Sessions::open(true);
    let with = |name: &str, value: Value| {
        let mut report = meeting("running");
        report[name] = value;
        report
    };
    let without_minutes = {
        let mut report = meeting("ready");
        report.as_object_mut().unwrap().remove("minutes");
        report
    };
    let at = "2026-01-01T00:00:03Z";
    let turn = |seq: i64| json!({"seq": seq, "at": at, "speaker": "Ada", "text": "a"});
    let cases = [
        (with("agent", json!({"id": AGENT})), "agent.name: is required"),
        (with("agent", json!({"id": "a6", "name": "TapWriter"})), "agent.id: must be a UUID"),
        (with("state", json!("done")), "state: must be one of running, writing, ready, failed"),
        (with("minutes", json!("too early")), "minutes: is allowed only when state is ready"),
        (with("minutes_error", json!("none")), "minutes_error: is allowed only when state is failed"),
        (without_minutes, "minutes: must be given when state is ready"),
        (with("turns", json!([turn(1), turn(1)])), "turns: seq 1 is given more than once"),
        (with("turns", json!([turn(-1)])), "turns[0].seq"),
        (with("notes", json!([{"at": "now", "text": "a"}])), "notes[0].at"),
        (with("notes", json!([{"at": at, "text": "a".repeat(4_001)}])), "notes[0].text"),
        (with("delivered_to", json!(["nobody"])), "delivered_to[0]"),
        (with("surprise", json!(1)), "surprise"),
        (json!({}), "agent: is required"),
    ];
    for (body, message) in cases {
        let refused = board.put(&board.ids[0], &body);
        assert_eq!((refused.status, refused.code()), (400, "invalid_request"), "{body}");
        assert!(refused.message().contains(message), "{}: {message}", refused.message());
    }
    assert_eq!(board.get("/meetings").body["total"], 0);
}

/// "A meeting read on an install built without the AI module."
#[test]
fn without_the_ai_module_there_are_no_meetings_and_all_the_sessions() {
    let board = Sessions::open(false);
    let path = format!("/sessions/{}/meeting", board.ids[0]);
    for answer in [board.get(&path), board.get("/meetings"), board.put(&board.ids[0], &meeting("running"))] {
        assert_eq!((answer.status, answer.code()), (404, "not_found"));
        assert!(answer.message().contains("AI module"), "{}", answer.message());
    }
    assert_eq!(board.get("/sessions").status, 200);
}
