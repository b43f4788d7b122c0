//! Live rooms over HTTP: the requests to the switch, and the responses.

use std::sync::Mutex;

use serde_json::{Value, json};
use sidetone_media::audio::wav::header;
use sidetone_model::ids::{CallId, OrganisationId, RoomId};
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::prompt::{Prompt, SoundName};
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialKind, DialRequest, GainChange, LiveMember, LiveRoom, LiveRooms,
    MemberGain, PlayingSound, Requester, Role, RoomDialled, RoomName, RoomViewer,
};
use uuid::Uuid;

use crate::common::records::at;
use crate::http::desk::{As, Desk};

/// A switch with these rooms, which accepts every request on a known room.
#[derive(Default)]
pub struct Party {
    rooms: Mutex<Vec<LiveRoom>>,
    controls: Mutex<Vec<(RoomName, Control)>>,
    dialled: Mutex<Vec<(RoomId, DialRequest)>>,
    refusal: Mutex<Option<ControlRefused>>,
}

impl LiveRooms for Party {
    fn list(
        &self,
        viewer: RoomViewer,
        organisation: Option<OrganisationId>,
        window: Window,
    ) -> PortFuture<'_, Page<LiveRoom>> {
        let wanted = |room: &&LiveRoom| {
            viewer.sees(room) && organisation.is_none_or(|own| own == room.organisation_id)
        };
        let items: Vec<LiveRoom> = self.rooms.lock().unwrap().iter().filter(wanted).cloned().collect();
        let total = items.len() as u64;
        Box::pin(async move { Ok(Page::by_offset(items, total, &window)) })
    }

    fn find(&self, room: RoomName) -> PortFuture<'_, Option<LiveRoom>> {
        let found = self.rooms.lock().unwrap().iter().find(|live| live.room == room).cloned();
        Box::pin(async move { Ok(found) })
    }

    fn by_call(&self, call: Uuid) -> PortFuture<'_, Option<LiveRoom>> {
        let rooms = self.rooms.lock().unwrap();
        let has = |room: &&LiveRoom| room.members.iter().any(|member| member.call_uuid.0 == call);
        let found = rooms.iter().find(has).cloned();
        Box::pin(async move { Ok(found) })
    }

    fn control(&self, room: RoomName, control: Control) -> PortFuture<'_, ControlDone> {
        let refusal = self.refusal.lock().unwrap().clone();
        self.controls.lock().unwrap().push((room, control));
        Box::pin(async move {
            match (refusal, control) {
                (Some(refusal), _) => Err(refusal.into()),
                (None, Control::MuteAll) => Ok(ControlDone::AllMuted(true)),
                (None, _) => Ok(ControlDone::Done),
            }
        })
    }

    fn wrong_target(
        &self,
        _: OrganisationId,
        kind: DialKind,
        target: String,
    ) -> PortFuture<'_, Vec<FieldProblem>> {
        let unknown = (kind, target.as_str()) == (DialKind::Extension, "1999");
        let problem = unknown.then(|| ControlRefused::NoExtension(target).wrong_target().unwrap());
        Box::pin(async move { Ok(Vec::from_iter(problem)) })
    }

    fn dial(&self, room: RoomId, request: DialRequest) -> PortFuture<'_, RoomDialled> {
        let refusal = self.refusal.lock().unwrap().clone();
        let dialled = RoomDialled { target: request.target.clone(), call: CallId(Uuid::from_u128(7)) };
        self.dialled.lock().unwrap().push((room, request));
        Box::pin(async move { refusal.map_or(Ok(dialled), |refusal| Err(Problem::from(refusal))) })
    }

    fn merge(&self, _call: CallId, _with: CallId, _by: Requester) -> PortFuture<'_, LiveRoom> {
        // Merging calls needs a switch with calls.
        Box::pin(async { Err(Problem::NotFound("there is no such call".to_owned())) })
    }

    fn live_members<'a>(&'a self, rooms: &'a [RoomId]) -> PortFuture<'a, Vec<u32>> {
        let live = self.rooms.lock().unwrap();
        let members = |id: &RoomId| {
            let room = live.iter().find(|room| room.room_id == Some(*id));
            room.map_or(0, |room| u32::try_from(room.members.len()).unwrap())
        };
        let members = rooms.iter().map(members).collect();
        Box::pin(async move { Ok(members) })
    }
}

impl Party {
    /// Adds a live room of the organisation with a member of the team.
    fn open(&self, desk: &Desk, organisation: &str, room: RoomName, team: Option<&str>) {
        self.rooms.lock().unwrap().push(LiveRoom {
            room,
            organisation_id: desk.organisation(organisation).parse().unwrap(),
            room_id: room.room_id(),
            room_name: "Stand-up".to_owned(),
            session_id: Uuid::from_u128(7).into(),
            started_at: at(1),
            locked: false,
            recording: true,
            all_muted: false,
            run_seconds: 99,
            playing: Some(PlayingSound { prompt: Prompt::Alone.into(), member: Some(3) }),
            revision: 12,
            members: vec![LiveMember {
                id: 3,
                call_uuid: Uuid::from_u128(42).into(),
                number: "1001".to_owned(),
                name: String::new(),
                role: Role::Moderator,
                muted: false,
                mute_locked: false,
                deaf: false,
                on_hold: true,
                waiting: false,
                gain: MemberGain { gain_db: -3, automatic_gain: true },
                whisper_to: Some(4),
                talking: true,
                joined_at: at(1),
                extension_id: None,
                team_id: team.map(|team| team.parse().unwrap()),
            }],
        });
    }
}

fn stored(number: u128) -> RoomName {
    RoomName::Stored(Uuid::from_u128(number).into())
}

#[test]
fn a_live_room_is_shown_with_its_members() {
    let desk = Desk::start();
    let room = stored(1);
    desk.party().open(&desk, "Acme", room, None);
    let path = format!("/conferences/{room}");
    let answer = desk.get(As::Rooms, &path);
    let expected = json!({
        "room": room.to_string(), "room_id": Uuid::from_u128(1), "room_name": "Stand-up",
        "organisation_id": desk.organisation("Acme"), "session_id": Uuid::from_u128(7),
        "started_at": at(1).to_string(), "locked": false, "recording": true, "all_muted": false,
        "playing": {"prompt": "alone", "member": 3}, "run_seconds": 99, "revision": 12, "can_control": true,
        "members": [{
            "id": 3, "call_uuid": Uuid::from_u128(42), "number": "1001", "name": "", "role": "moderator",
            "muted": false, "mute_locked": false, "deaf": false, "on_hold": true, "waiting": false,
            "gain_db": -3, "automatic_gain": true, "whisper_to": 4, "talking": true, "joined_at": at(1).to_string()
        }]
    });
    assert_eq!((answer.status, &answer.body), (200, &expected));
    assert_eq!(desk.get(As::Rooms, &format!("/conferences/by-call/{}", Uuid::from_u128(42))).body, expected);
    let list = desk.get(As::Rooms, "/conferences").body;
    assert_eq!(list, json!({"items": [expected], "total": 1, "limit": 50, "offset": 0}));
    assert_eq!(desk.get(As::Listener, &path).body["can_control"], false);
}

#[test]
fn a_room_that_nobody_is_in_is_not_found() {
    let desk = Desk::start();
    let names = [stored(2).to_string(), RoomName::Merged(Uuid::nil().into()).to_string(), "lobby".to_owned()];
    for name in names {
        let answer = desk.get(As::Rooms, &format!("/conferences/{name}"));
        assert_eq!(
            (answer.status, answer.code(), answer.message()),
            (404, "not_found", "the room is not live")
        );
        let answer = desk.send(As::Rooms, "POST", &format!("/conferences/{name}/lock"), None);
        assert_eq!(answer.status, 404);
    }
    let answer = desk.get(As::Rooms, &format!("/conferences/by-call/{}", Uuid::nil()));
    assert_eq!((answer.status, answer.message()), (404, "the call is in no conference room"));
    assert_eq!(desk.get(As::Rooms, "/conferences/by-call/1001").message(), "uuid: must be a UUID");
    assert_eq!(desk.get(As::Rooms, "/conferences").body["total"], 0);
}

#[test]
fn rooms_are_seen_in_scope_alone() {
    let desk = Desk::start();
    let (own, team, foreign) = (stored(1), stored(2), stored(3));
    desk.party().open(&desk, "Acme", own, None);
    desk.party().open(&desk, "Acme", team, Some(desk.team()));
    desk.party().open(&desk, "Bolt", foreign, None);
    let listed = |who: As, query: &str| desk.get(who, &format!("/conferences{query}")).body["total"].clone();
    for (who, total) in [(As::Rooms, 2), (As::Bolt, 1), (As::Operator, 3), (As::Supervisor, 1)] {
        assert_eq!(listed(who, ""), total, "{who:?}");
    }
    let acme = desk.organisation("Acme");
    assert_eq!(listed(As::Operator, &format!("?organisation_id={acme}")), 2);
    assert_eq!(desk.get(As::Bolt, &format!("/conferences?organisation_id={acme}")).status, 403);
    assert_eq!(desk.get(As::Rooms, "/conferences?room=x&limit=0").status, 400);
    let statuses =
        |who: As| [own, team, foreign].map(|room| desk.get(who, &format!("/conferences/{room}")).status);
    assert_eq!(statuses(As::Rooms), [200, 200, 403]);
    assert_eq!(statuses(As::Bolt), [403, 403, 200]);
    assert_eq!(statuses(As::Operator), [200, 200, 200]);
    assert_eq!(statuses(As::Supervisor), [403, 200, 403]);
    assert_eq!(statuses(As::Reader), [403, 403, 403]);
    assert_eq!(statuses(As::Nobody), [401, 401, 401]);
    let lock = |who: As, room| desk.send(who, "POST", &format!("/conferences/{room}/lock"), None).status;
    assert_eq!([own, team, foreign].map(|room| lock(As::Supervisor, room)), [403, 204, 403]);
    assert_eq!([own, team, foreign].map(|room| lock(As::Bolt, room)), [403, 403, 204]);
    assert_eq!(lock(As::Listener, own), 403);
    let done: Vec<RoomName> = desk.party().controls.lock().unwrap().iter().map(|(room, _)| *room).collect();
    assert_eq!(done, [team, foreign], "what is refused does not reach the switch");
}

#[test]
fn controls_reach_the_switch_and_are_answered() {
    let desk = Desk::start();
    let room = stored(1);
    desk.party().open(&desk, "Acme", room, None);
    let post = |path: &str, body: Option<Value>| {
        desk.send(As::Rooms, "POST", &format!("/conferences/{room}/{path}"), body)
    };
    let gain = |gain_db, automatic_gain| Control::Gain(3, GainChange { gain_db, automatic_gain });
    let cases = [
        ("members/3/mute", None, 204, Control::Mute(3)),
        ("members/3/unmute", None, 204, Control::Unmute(3)),
        ("members/3/kick", Some(json!({})), 204, Control::Kick(3)),
        ("members/3/deaf", None, 204, Control::Deaf(3, true)),
        ("members/3/undeaf", Some(json!({})), 204, Control::Deaf(3, false)),
        ("members/3/hold", None, 204, Control::Hold(3, true)),
        ("members/3/unhold", None, 204, Control::Hold(3, false)),
        ("members/3/lock-mute", None, 204, Control::MuteLocked(3)),
        ("members/3/gain", Some(json!({"gain_db": -24})), 204, gain(Some(-24), None)),
        ("members/3/gain", Some(json!({"automatic_gain": true})), 204, gain(None, Some(true))),
        (
            "members/3/gain",
            Some(json!({"gain_db": 0, "automatic_gain": false})),
            204,
            gain(Some(0), Some(false)),
        ),
        ("members/3/whisper", Some(json!({"to": 4})), 204, Control::Whisper(3, Some(4))),
        ("members/3/unwhisper", None, 204, Control::Whisper(3, None)),
        ("lock", None, 204, Control::Lock),
        ("unlock", Some(json!({})), 204, Control::Unlock),
        ("mute-all", None, 200, Control::MuteAll),
        ("record", Some(json!({"on": true})), 204, Control::Record(true)),
        ("record", Some(json!({"on": false})), 204, Control::Record(false)),
        ("stop-playing", None, 204, Control::StopSound),
        ("record", Some(json!({"on": false, "channels": 2})), 204, Control::Record(false)),
        ("end", None, 204, Control::End),
    ];
    for (path, body, status, control) in cases {
        let answer = post(path, body);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let expected = if status == 200 { json!({"all_muted": true}) } else { Value::Null };
        assert_eq!(answer.body, expected, "{path}");
        assert_eq!(desk.party().controls.lock().unwrap().pop(), Some((room, control)), "{path}");
    }
    // An invalid request is refused before anything is done.
    assert_eq!(post("lock", Some(json!({"now": true}))).status, 400);
    assert_eq!(post("mute-all", Some(json!([]))).status, 400);
    assert_eq!(post("record", None).status, 400);
    assert_eq!(post("record", Some(json!({"on": 1}))).message(), "on: must be true or false, not a number");
    assert_eq!(post("record", Some(json!({}))).message(), "on: is required");
    let three = post("record", Some(json!({"on": true, "channels": 3})));
    assert_eq!((three.status, three.message()), (400, "channels: must be between 1 and 2"));
    assert_eq!(post("record", Some(json!({"on": true, "channels": 2}))).status, 204);
    let ordered: Vec<Control> =
        desk.party().controls.lock().unwrap().drain(..).map(|(_, control)| control).collect();
    assert_eq!(ordered, [Control::RecordChannels(2), Control::Record(true)]);
    let wrong = [
        ("members/3/gain", json!({}), "gain_db: is required, or automatic_gain"),
        ("members/3/gain", json!({"gain_db": 25}), "gain_db: must be between -24 and 24"),
        ("members/3/gain", json!({"gain_db": "6"}), "gain_db: must be a whole number, not a string"),
        ("members/3/whisper", json!({}), "to: is required"),
        ("members/3/whisper", json!({"to": 0}), "to: must be between 1 and 4294967295"),
    ];
    for (path, body, said) in wrong {
        let answer = post(path, Some(body));
        assert_eq!((answer.status, answer.message()), (400, said), "{path}");
    }
    assert_eq!(post("members/3/hold", Some(json!({"music": 1}))).status, 400);
    for wrong in ["x", "-1", "%2B3", "4294967296"] {
        let answer = post(&format!("members/{wrong}/mute"), None);
        assert_eq!(
            (answer.status, answer.message()),
            (400, "id: must be a member's id, a whole number"),
            "{wrong}"
        );
    }
    assert_eq!(desk.party().controls.lock().unwrap().len(), 0);
    let refusals = [
        (
            ControlRefused::Channels(1),
            409,
            "the recordings of a session are in one file, and its file has 1 channels: leave channels out",
        ),
        (ControlRefused::NoHearer, 400, "member: must be a member of the room"),
        (
            ControlRefused::Playing(Prompt::Alone.into()),
            409,
            "alone is being played: stop it first, or wait for its end",
        ),
        (ControlRefused::NotLive, 404, "the room is not live"),
        (ControlRefused::NoMember, 404, "there is no such member in the room"),
        (ControlRefused::NoListener, 400, "to: must be another member of the room"),
        (ControlRefused::Busy, 503, "the node is overloaded, try again in 30 s"),
    ];
    for (refusal, status, said) in refusals {
        *desk.party().refusal.lock().unwrap() = Some(refusal);
        let answer = post("members/9/kick", None);
        assert_eq!((answer.status, answer.message()), (status, said));
    }
}

#[test]
fn a_sound_of_the_rooms_organisation_is_played() {
    let desk = Desk::start();
    let (room, foreign) = (stored(1), stored(2));
    desk.party().open(&desk, "Acme", room, None);
    desk.party().open(&desk, "Bolt", foreign, None);
    let play = |who: As, room: RoomName, body: Value| {
        desk.send(who, "POST", &format!("/conferences/{room}/play"), Some(body))
    };
    let data: Vec<u8> = 7_i16.to_le_bytes().repeat(8_000);
    let file = [header(16_000, data.len() as u64).as_slice(), &data].concat();
    let path = format!("/organisations/{}/prompts/own-news", desk.organisation("Acme"));
    assert_eq!(desk.raw(As::Rooms, "PUT", &path, "Content-Type: audio/wav\r\n", &file).status, 200);
    let sound = |name: &str, member| PlayingSound { prompt: SoundName::from_name(name).unwrap(), member };
    // Immediately after it was stored, without waiting for the library.
    assert_eq!(play(As::Rooms, room, json!({"prompt": "own-news", "member": 3})).status, 204);
    let played = desk.party().controls.lock().unwrap().pop();
    let control = Control::Play { sound: sound("own-news", Some(3)), duration_ms: 500 };
    assert_eq!(played, Some((room, control)));
    assert_eq!(play(As::Rooms, room, json!({"prompt": "alone"})).status, 204);
    let played = desk.party().controls.lock().unwrap().pop().unwrap().1;
    assert!(
        matches!(played, Control::Play { sound: PlayingSound { member: None, .. }, duration_ms } if duration_ms > 500)
    );
    let cases = [
        (As::Rooms, room, json!({}), 400, "prompt: is required"),
        (As::Rooms, room, json!({"prompt": "louder"}), 400, "must be the name of a prompt"),
        (As::Rooms, room, json!({"prompt": "own-news", "member": 0}), 400, "member: must be between"),
        // Each of them alone is 400, and so are both.
        (As::Rooms, room, json!({"prompt": "own-news", "member": 77, "colour": 1}), 400, "; colour: "),
        (
            As::Rooms,
            room,
            json!({"prompt": "own-other"}),
            422,
            "prompt: the organisation has no sound own-other",
        ),
        (
            As::Bolt,
            foreign,
            json!({"prompt": "own-news"}),
            422,
            "prompt: the organisation has no sound own-news",
        ),
        (As::Bolt, room, json!({"prompt": "own-news"}), 403, ""),
        (As::Listener, room, json!({"prompt": "own-news"}), 403, "conferences:control"),
        (As::Rooms, stored(9), json!({"prompt": "own-news"}), 404, "the room is not live"),
    ];
    for (who, room, body, status, said) in cases {
        let answer = play(who, room, body.clone());
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(answer.message().contains(said), "{body}: {}", answer.message());
    }
    assert_eq!(desk.party().controls.lock().unwrap().len(), 0, "what is refused does not reach the switch");
}

#[test]
fn a_reading_that_is_known_is_not_sent_again() {
    let desk = Desk::start();
    let room = stored(1);
    desk.party().open(&desk, "Acme", room, None);
    let path = format!("/conferences/{room}");
    let tag = |head: &str| {
        let (_, rest) = head.split_once("\r\netag: ").unwrap();
        // The client reads heads in lower case.
        rest.split("\r\n").next().unwrap().replace("w/", "W/")
    };
    let first = desk.get(As::Rooms, &path);
    let known = tag(&first.head);
    let asked = |tag: &str| desk.raw(As::Rooms, "GET", &path, &format!("If-None-Match: {tag}\r\n"), b"");
    let again = asked(&format!("\"other\", {known}"));
    assert_eq!((again.status, &again.body, tag(&again.head)), (304, &Value::Null, known.clone()));
    assert_eq!(asked("*").status, 304);
    assert_eq!(asked("\"other\"").status, 200);
    desk.party().rooms.lock().unwrap()[0].revision += 1;
    let newer = asked(&known);
    assert_eq!((newer.status, &newer.body["revision"]), (200, &json!(13)));
    assert_ne!(tag(&newer.head), known);
}

#[test]
fn a_live_room_is_not_removed_and_counts_its_members() {
    let desk = Desk::start();
    let made = desk.post(As::Acme, "/conference-rooms", json!({"name": "A", "number": "200"}));
    let (path, id) = (made.location().to_owned(), made.body["id"].as_str().unwrap().to_owned());
    desk.party().open(&desk, "Acme", RoomName::Stored(id.parse().unwrap()), None);
    assert_eq!(desk.get(As::Rooms, &path).body["live_members"], 1);
    assert_eq!(desk.get(As::Rooms, "/conference-rooms").body["items"][0]["live_members"], 1);
    assert_eq!(desk.patch(As::Rooms, &path, json!({"name": "B"})).body["live_members"], 1);
    let answer = desk.delete(As::Rooms, &path);
    let said = format!("the room is live: end it first, POST /conferences/svc-room-{id}/end");
    assert_eq!((answer.status, answer.code(), answer.message()), (409, "conflict", said.as_str()));
    desk.party().rooms.lock().unwrap().clear();
    assert_eq!(desk.delete(As::Rooms, &path).status, 204);
}

#[test]
fn somebody_is_dialled_into_a_room() {
    let desk = Desk::start();
    let made = desk.post(As::Acme, "/conference-rooms", json!({"name": "A", "number": "200"}));
    let path = format!("{}/dial", made.location());
    let right = json!({"kind": "external", "target": "+441632960001", "role": "participant"});
    let answer = desk.post(As::Rooms, &path, right.clone());
    assert_eq!(
        (answer.status, &answer.body),
        (202, &json!({"dialling": "+441632960001", "call_uuid": CALL}))
    );
    let inside = json!({"kind": "extension", "target": "1001", "role": "moderator"});
    assert_eq!(desk.post(As::Rooms, &path, inside).body, json!({"dialling": "1001", "call_uuid": CALL}));
    let confirmed =
        json!({"kind": "external", "target": "+441632960001", "role": "participant", "confirm": true});
    assert_eq!(desk.post(As::Rooms, &path, confirmed).status, 202);
    assert!(desk.party().dialled.lock().unwrap().pop().unwrap().1.confirm);
    let dialled = desk.party().dialled.lock().unwrap().clone();
    assert!(dialled.iter().all(|(_, request)| !request.confirm), "only where it was requested");
    let seen: Vec<(&str, &str, &str)> = dialled
        .iter()
        .map(|(_, request)| (request.kind.as_str(), request.target.as_str(), request.role.as_str()))
        .collect();
    let expected = [("external", "+441632960001", "participant"), ("extension", "1001", "moderator")];
    assert_eq!(seen, expected);
    assert_eq!(json!(dialled[0].0), made.body["id"]);

    let refused = |body: Value, said: &str| {
        let answer = desk.post(As::Rooms, &path, body);
        assert_eq!((answer.status, answer.message()), (400, said));
    };
    refused(json!({}), "kind: is required; target: is required; role: is required");
    refused(
        json!({"kind": "fax", "target": "1001", "role": "guest"}),
        "kind: must be extension or external; role: must be participant or moderator",
    );
    refused(
        json!({"kind": "external", "target": "+441632960001", "role": "participant", "confirm": 1}),
        "confirm: must be true or false, not a number",
    );
    refused(
        json!({"kind": "external", "target": "1001", "role": "participant"}),
        "target: must be written like +442071230000",
    );
    refused(
        json!({"kind": "extension", "target": "+44", "role": "participant"}),
        "target: must be 1 to 15 digits",
    );
    // Errors that need the directory are named together with those of the request itself.
    for (body, status, said) in [
        (
            json!({"kind": "extension", "target": "1999", "role": "guest", "confirm": 1}),
            400,
            "target: the organisation has no extension 1999; role: must be participant or moderator; \
             confirm: must be true or false, not a number",
        ),
        (
            json!({"kind": "extension", "target": "1001", "role": "guest"}),
            400,
            "role: must be participant or moderator",
        ),
        (
            json!({"kind": "fax", "target": "1999", "role": "guest"}),
            400,
            "kind: must be extension or external; \
          role: must be participant or moderator",
        ),
    ] {
        let answer = desk.post(As::Rooms, &path, body);
        assert_eq!((answer.status, answer.message()), (status, said));
    }
    let refusals = [
        (ControlRefused::NoCredit, 409, "no credit"),
        (ControlRefused::Unregistered("1001".into()), 409, "no phone of extension 1001 is registered"),
        (ControlRefused::Locked, 409, "the room is locked: unlock it, or dial a moderator"),
        (ControlRefused::Full, 409, "the room is full: it holds max_members already"),
        (ControlRefused::NoExtension("9".into()), 400, "target: the organisation has no extension 9"),
        (ControlRefused::Busy, 503, "the node is overloaded, try again in 30 s"),
    ];
    for (refusal, status, said) in refusals {
        *desk.party().refusal.lock().unwrap() = Some(refusal);
        let answer = desk.post(As::Rooms, &path, right.clone());
        assert_eq!((answer.status, answer.message()), (status, said));
    }
    for (who, status) in [(As::Nobody, 401), (As::Reader, 403), (As::Listener, 403), (As::Bolt, 403)] {
        assert_eq!(desk.post(who, &path, right.clone()).status, status, "{who:?}");
    }
}

/// A user who may read a live room also reads its stored room, without the PINs; once it is not live, no longer.
#[test]
fn a_team_reads_the_stored_room_that_it_sees_live() {
    let desk = Desk::start();
    let pins =
        json!({"name": "Stand-up", "number": "200", "participant_pin": "1234", "moderator_pin": "9876"});
    let made = desk.post(As::Acme, "/conference-rooms", pins);
    let path = made.location().to_owned();
    assert_eq!(desk.get(As::Supervisor, &path).status, 403, "it is not live");
    let id: Uuid = made.body["id"].as_str().unwrap().parse().unwrap();
    desk.party().open(&desk, "Acme", RoomName::Stored(id.into()), Some(desk.team()));
    let read = desk.get(As::Supervisor, &path);
    assert_eq!((read.status, &read.body["name"]), (200, &json!("Stand-up")), "{}", read.body);
    assert_eq!((&read.body["participant_pin"], &read.body["moderator_pin"]), (&json!(""), &json!("")));
    assert_eq!(desk.get(As::Acme, &path).body["participant_pin"], "1234");
    assert_eq!(desk.get(As::Bolt, &path).status, 403);
    assert_eq!(desk.patch(As::Supervisor, &path, json!({"name": "Mine"})).status, 403);
}

/// A supervisor controls the rooms with a member of the team in them, and dials parties into them. A user who may only
/// read them may not.
#[test]
fn a_supervisor_dials_into_the_rooms_that_it_sees_live() {
    let desk = Desk::start();
    let made = |number: &str| {
        let made = desk.post(As::Acme, "/conference-rooms", json!({"name": number, "number": number}));
        made.body["id"].as_str().unwrap().to_owned()
    };
    let (own, other) = (made("200"), made("300"));
    let dial = |who: As, room: &str| {
        let target = json!({"kind": "extension", "target": "1001", "role": "participant"});
        desk.post(who, &format!("/conference-rooms/{room}/dial"), target).status
    };
    assert_eq!(dial(As::Supervisor, &own), 403, "it is not live");
    let room = |id: &str| RoomName::Stored(id.parse::<Uuid>().unwrap().into());
    desk.party().open(&desk, "Acme", room(&own), Some(desk.team()));
    desk.party().open(&desk, "Acme", room(&other), None);
    assert_eq!(dial(As::Supervisor, &own), 202);
    assert_eq!(dial(As::Supervisor, &other), 403, "no member of the team is in it");
    assert_eq!([dial(As::Listener, &own), dial(As::Bolt, &own)], [403, 403]);
}

/// The dial request.
const CALL: &str = "00000000-0000-0000-0000-000000000007";
