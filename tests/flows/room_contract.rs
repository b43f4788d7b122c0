//! Every row of the public document on live conference rooms, over HTTP, with real phones in the rooms.

use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_model::event::EventKind;
use sidetone_model::ids::RoomId;
use sidetone_phone::{Answering, CallPlan, Phone, Voice};

use crate::common::records::TempDir;
use crate::common::room::{directory, events, make, session};
use crate::common::site::{Site, answering, calls, declare, found, open_end, send};

/// A room at 200 with both PINs, 1234 and 9876, and one at 201 without a PIN.
struct Stage {
    site: Site,
    room: RoomId,
    open: RoomId,
}

impl Stage {
    async fn set() -> Stage {
        let dir = TempDir::new();
        declare(dir.path(), &directory(1006)).await;
        let pins = "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.rooms]]\n\
                    name = \"Board\"\nnumber = \"200\"\nparticipant_pin = \"1234\"\nmoderator_pin = \"9876\"\n";
        declare(dir.path(), pins).await;
        let open = make(dir.path(), "201", |room| room.max_members = 2).await;
        let site = Site::reopen(dir).await;
        let (_, page) = site.get("/conference-rooms?q=200").await;
        let room = page["items"][0]["id"].as_str().unwrap().parse().unwrap();
        Stage { site, room, open }
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        send(self.site.http, "POST", path, &body).await
    }

    async fn control(&self, path: &str) -> (u16, Value) {
        self.post(&format!("/conferences/svc-room-{}/{path}", self.room), Value::Null).await
    }

    async fn live(&self) -> (u16, Value) {
        self.site.get(&format!("/conferences/svc-room-{}", self.room)).await
    }

    /// The live room, once `holds` is true for it.
    async fn when(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        found(what, async || {
            let (status, room) = self.live().await;
            (status == 200 && holds(&room)).then_some(room)
        })
        .await
    }

    /// A registered phone that can send digits.
    async fn phone(&self, number: &str) -> Arc<Phone> {
        let mut config = self.site.phone_config(number, answering());
        config.voice = Some(Voice::Silence);
        Arc::new(self.site.phone_of(config).await)
    }

    /// A phone that dials the room with the PINs and is prompted for one.
    async fn at_the_door(&self, number: &str) -> Arc<Phone> {
        let phone = self.phone(number).await;
        let caller = Arc::clone(&phone);
        // A phone with a voice, which can send digits, gets its audio from that.
        let plan = CallPlan { talk_time: None, ..CallPlan::to("200") };
        tokio::spawn(async move { caller.call(plan).await });
        calls(&phone, 0, 1).await;
        phone
    }

    /// A phone that has entered the room with its PIN.
    async fn inside(&self, number: &str, pin: &str) -> Arc<Phone> {
        let phone = self.at_the_door(number).await;
        phone.dial(&format!("{pin}#")).await.unwrap();
        self.when("a member", |room| member(room, number).is_some()).await;
        phone
    }
}

fn member<'r>(room: &'r Value, number: &str) -> Option<&'r Value> {
    room["members"].as_array().unwrap().iter().find(|member| member["number"] == number)
}

fn numbers(room: &Value) -> Vec<&str> {
    room["members"].as_array().unwrap().iter().map(|member| member["number"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_live_while_somebody_is_in_it() {
    let stage = Stage::set().await;
    assert_eq!(stage.live().await.0, 404, "nobody is in it");
    assert_eq!(stage.site.get("/conferences").await.1["total"], 0);
    let ada = stage.inside("1001", "1234").await;
    let bob = stage.inside("1002", "9876").await;
    let (_, room) = stage.live().await;
    let path = format!("svc-room-{}", stage.room);
    assert_eq!((&room["room"], &room["room_id"]), (&json!(path), &json!(stage.room)));
    assert_eq!((&room["room_name"], &room["can_control"]), (&json!("Board"), &json!(true)));
    for field in ["locked", "recording", "all_muted"] {
        assert_eq!(room[field], false, "{field}");
    }
    assert!(room["session_id"].is_string() && room["started_at"].is_string() && room["run_seconds"].is_u64());
    let (first, second) = (member(&room, "1001").unwrap(), member(&room, "1002").unwrap());
    assert_eq!(
        (&first["id"], &first["role"], &first["muted"]),
        (&json!(1), &json!("participant"), &json!(false))
    );
    assert_eq!(
        (&second["id"], &second["role"], &second["name"]),
        (&json!(2), &json!("moderator"), &json!(""))
    );
    assert!(first["joined_at"].is_string() && first["talking"].is_boolean());

    // The room, the lookup by call and the lookup by leg agree.
    let call = first["call_uuid"].as_str().unwrap();
    let (_, live) = stage.site.get(&format!("/calls/{call}")).await;
    for uuid in [call, live["legs"][0]["uuid"].as_str().unwrap()] {
        let (status, found) = stage.site.get(&format!("/conferences/by-call/{uuid}")).await;
        assert_eq!((status, &found["session_id"]), (200, &room["session_id"]), "{uuid}");
    }
    let (_, list) = stage.site.get("/conferences").await;
    assert_eq!((&list["total"], &list["items"][0]["room"]), (&json!(1), &json!(path)));
    let (_, stored) = stage.site.get(&format!("/conference-rooms/{}", stage.room)).await;
    assert_eq!(stored["live_members"], 2);
    let (status, refused) =
        send(stage.site.http, "DELETE", &format!("/conference-rooms/{}", stage.room), &Value::Null).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")));

    // The room is live as long as it has members.
    ada.hang_up().await.unwrap();
    let room = stage.when("one member", |room| numbers(room) == ["1002"]).await;
    assert!(room["revision"].as_u64() > list["items"][0]["revision"].as_u64());
    bob.hang_up().await.unwrap();
    found("an empty room", async || (stage.live().await.0 == 404).then_some(())).await;
    let path = format!("/conferences/by-call/{call}");
    assert_eq!(stage.site.get(&path).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_control_does_what_it_says_and_is_told() {
    let stage = Stage::set().await;
    let ada = stage.inside("1001", "1234").await;
    let bob = stage.inside("1002", "9876").await;
    let muted = |room: &Value, number: &str| member(room, number).unwrap()["muted"] == true;
    for (control, expected) in [("mute", true), ("mute", true), ("unmute", false), ("unmute", false)] {
        assert_eq!(stage.control(&format!("members/1/{control}")).await, (204, Value::Null));
        assert_eq!(muted(&stage.live().await.1, "1001"), expected, "{control}");
    }
    assert_eq!(stage.control("members/9/mute").await.0, 404);
    assert_eq!(stage.control("mute-all").await, (200, json!({"all_muted": true})));
    let room = stage.live().await.1;
    assert_eq!((&room["all_muted"], muted(&room, "1001"), muted(&room, "1002")), (&json!(true), true, false));
    let eve = stage.inside("1003", "1234").await;
    assert!(muted(&stage.live().await.1, "1003"), "who joins meanwhile is muted");
    assert_eq!(stage.control("mute-all").await, (200, json!({"all_muted": false})));
    let room = stage.live().await.1;
    assert!(numbers(&room).iter().all(|number| !muted(&room, number)), "{room}");

    // Locked: a participant is refused, a moderator is admitted.
    for _ in 0..2 {
        assert_eq!(stage.control("lock").await, (204, Value::Null));
        assert_eq!(stage.live().await.1["locked"], true);
    }
    let late = stage.at_the_door("1004").await;
    late.dial("1234#").await.unwrap();
    calls(&late, 0, 0).await;
    let boss = stage.inside("1004", "9876").await;
    assert_eq!(stage.control("unlock").await, (204, Value::Null));
    assert_eq!(stage.live().await.1["locked"], false);

    let record = format!("/conferences/svc-room-{}/record", stage.room);
    for on in [true, false] {
        assert_eq!(stage.post(&record, json!({"on": on})).await, (204, Value::Null));
        assert_eq!(stage.live().await.1["recording"], on);
    }
    let kicked = member(&stage.live().await.1, "1003").unwrap()["id"].clone();
    assert_eq!(stage.control(&format!("members/{kicked}/kick")).await, (204, Value::Null));
    calls(&eve, 0, 0).await;
    let room = stage.when("three members", |room| room["members"].as_array().unwrap().len() == 3).await;
    assert_eq!(stage.control(&format!("members/{kicked}/kick")).await.0, 404, "they are gone");
    assert_eq!(stage.control("end").await, (204, Value::Null));
    for phone in [&ada, &bob, &boss] {
        calls(phone, 0, 0).await;
    }
    assert_eq!(stage.live().await.0, 404);
    for control in ["end", "lock", "unlock", "mute-all", "members/1/kick", "members/1/mute"] {
        assert_eq!(stage.control(control).await.0, 404, "{control}");
    }
    let over = session(stage.site.http, stage.room, |session| !session["ended_at"].is_null()).await;
    assert_eq!((&over["id"], &over["peak_members"]), (&room["session_id"], &json!(4)));
    told(&stage).await;
}

/// Checks the events of the controls.
async fn told(stage: &Stage) {
    let events = events(&stage.site.engine().store, EventKind::ConferenceUpdated).await;
    let room = format!("svc-room-{}", stage.room);
    assert!(events.iter().all(|event| event["room"] == room.as_str()));
    let actions: Vec<&str> = events.iter().map(|event| event["action"].as_str().unwrap()).collect();
    let count = |action: &str| actions.iter().filter(|known| **known == action).count();
    let expected = [
        ("joined", 4),
        ("left", 4),
        ("locked", 1),
        ("unlocked", 1),
        ("recording", 2),
        ("all_muted", 2),
        ("ended", 1),
    ];
    for (action, times) in expected {
        assert_eq!(count(action), times, "{action}: {actions:?}");
    }
    assert!(count("mute-member") >= 1 && count("unmute-member") >= 1, "{actions:?}");
    assert_eq!(actions.last(), Some(&"ended"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_is_dialled_in_and_seated_without_a_pin() {
    let stage = Stage::set().await;
    let dial = format!("/conference-rooms/{}/dial", stage.room);
    let body = |target: &str, role: &str| json!({"kind": "extension", "target": target, "role": role});
    let said = async |body: Value| {
        let (status, answer) = stage.post(&dial, body).await;
        (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let nobody = (409, "no phone of extension 1001 is registered".to_owned());
    assert_eq!(said(body("1001", "participant")).await, nobody);
    let unknown = (400, "target: the organisation has no extension 1999".to_owned());
    assert_eq!(said(body("1999", "participant")).await, unknown);
    let both = (400, format!("{}; role: must be participant or moderator", unknown.1));
    assert_eq!(said(body("1999", "guest")).await, both);
    let outside = json!({"kind": "external", "target": "+441632960001", "role": "participant"});
    assert_eq!(stage.post(&dial, outside).await.0, 409, "no trunk takes it");

    let ada = stage.phone("1001").await;
    let dialled = stage.post(&dial, body("1001", "moderator")).await;
    assert_eq!((dialled.0, &dialled.1["dialling"]), (202, &json!("1001")));
    let call_uuid = dialled.1["call_uuid"].clone();
    let room = stage.when("who was dialled", |room| numbers(room) == ["1001"]).await;
    assert_eq!(member(&room, "1001").unwrap()["role"], "moderator");
    assert_eq!(member(&room, "1001").unwrap()["call_uuid"], call_uuid);
    calls(&ada, 0, 1).await;

    // While the room is locked only moderators are dialled; one phone rings until the room ends.
    assert_eq!(stage.control("lock").await.0, 204);
    let _bob = stage.phone("1002").await;
    let locked = (409, "the room is locked: unlock it, or dial a moderator".to_owned());
    assert_eq!(said(body("1002", "participant")).await, locked);
    assert_eq!(stage.post(&dial, body("1002", "moderator")).await.0, 202);
    stage.when("two moderators", |room| room["members"].as_array().unwrap().len() == 2).await;
    let shy = stage.site.phone("1003", Answering::Ring).await;
    assert_eq!(stage.post(&dial, body("1003", "moderator")).await.0, 202);
    calls(&shy, 1, 0).await;
    assert_eq!(stage.control("end").await.0, 204);
    calls(&shy, 0, 0).await;
    assert_eq!(stage.live().await.0, 404, "who answers too late is not seated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_room_dials_nobody_in() {
    let stage = Stage::set().await;
    let dial = format!("/conference-rooms/{}/dial", stage.open);
    for (number, status) in [("1001", 202), ("1002", 202), ("1003", 409)] {
        let phone = stage.phone(number).await;
        let body = json!({"kind": "extension", "target": number, "role": "participant"});
        assert_eq!(stage.post(&dial, body).await.0, status, "{number}");
        if status == 202 {
            calls(&phone, 0, 1).await;
            let path = format!("/conferences/svc-room-{}", stage.open);
            found("a member", async || {
                let (status, room) = stage.site.get(&path).await;
                (status == 200 && member(&room, number).is_some()).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_set_over_http_holds_within_two_seconds() {
    let stage = Stage::set().await;
    let ids = async |number: &str| {
        let (_, page) = stage.site.get(&format!("/conference-rooms?q={number}")).await;
        page["total"].clone()
    };
    assert_eq!(ids("200").await, 1);
    let store = &stage.site.engine().store;
    let extensions = store.directory().await.unwrap().extensions;
    let id = |number: &str| {
        let line = extensions.iter().find(|line| line.number == number);
        line.unwrap().id.to_string()
    };
    // 1002 is rung when the room opens, and 1001 needs no PIN from now on: a caller that enters without a PIN shows
    // that the node has read both changes.
    let room = format!("/conference-rooms/{}", stage.room);
    let members = json!({"items": [{"extension_id": id("1002")}]});
    assert_eq!(send(stage.site.http, "PUT", &format!("{room}/members"), &members).await.0, 200);
    let exempt = json!({"items": [{"extension_id": id("1001"), "role": "moderator"}]});
    let answer = send(stage.site.http, "PUT", &format!("{room}/exemptions"), &exempt).await;
    assert_eq!(answer, (200, exempt));
    let rung = stage.phone("1002").await;
    let ada = stage.phone("1001").await;
    found("1001 to be seated without a PIN", async || {
        let caller = Arc::clone(&ada);
        let call = tokio::spawn(async move { caller.call(open_end("200")).await });
        calls(&ada, 0, 1).await;
        let seated = stage.live().await.0 == 200;
        if !seated {
            ada.hang_up().await.unwrap();
            call.await.unwrap().unwrap();
        }
        seated.then_some(())
    })
    .await;
    let live = stage.when("the default member", |room| member(room, "1002").is_some()).await;
    assert_eq!(member(&live, "1001").unwrap()["role"], "moderator");
    assert_eq!(member(&live, "1002").unwrap()["role"], "participant");
    calls(&rung, 0, 1).await;
    let session =
        session(stage.site.http, stage.room, |session| session["invites"][0]["state"] == "joined").await;
    assert_eq!(
        (&session["invites"][0]["extension_id"], &session["invites"][0]["last_reason"]),
        (&json!(id("1002")), &json!(""))
    );
}
