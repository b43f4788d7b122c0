//! Live calls over HTTP: the requests to the switch, and the response when it does not answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use sidetone_api::{ApiState, Ports};
use sidetone_model::access::Scope;
use sidetone_model::call::Direction;
use sidetone_model::call_parking::ParkedIn;
use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::live_call::{
    CallState, LegRole, LiveCall, LiveCallQuery, LiveCalls, LiveLeg, LiveRecording,
};
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::prompt::Prompt;
use uuid::Uuid;

use crate::common::records::at;
use crate::http::face::{Answer, Face, Ready, key, request};

/// One organisation; `crm` may read calls, `rooms` may not.
pub const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.api_keys]]
  name = "crm"
  key = "tel_acmecrm00001_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "rooms"
  key = "tel_acmerooms001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "conferences"
  allow = ["127.0.0.1"]
"#;

/// A switch with these calls, or one that is overloaded.
#[derive(Default)]
struct Carried {
    calls: Vec<LiveCall>,
    busy: bool,
    asked: Mutex<Vec<(Scope, LiveCallQuery)>>,
}

impl LiveCalls for Carried {
    fn list(&self, scope: Scope, query: LiveCallQuery) -> PortFuture<'_, Page<LiveCall>> {
        Box::pin(async move {
            let window = query.window.clone();
            self.asked.lock().unwrap().push((scope, query));
            if self.busy {
                return Err(Problem::Busy { retry_after_s: 1 });
            }
            let (items, total) = (self.calls.clone(), self.calls.len() as u64);
            Ok(Page::by_offset(items, total, &window))
        })
    }

    fn find(&self, call: CallId) -> PortFuture<'_, Option<LiveCall>> {
        Box::pin(async move {
            if self.busy {
                return Err(Problem::Busy { retry_after_s: 1 });
            }
            Ok(self.calls.iter().find(|live| live.uuid == call).cloned())
        })
    }
}

fn id<T: From<Uuid>>(number: u128) -> T {
    Uuid::from_u128(number).into()
}

/// A call that is up with every optional field, and one that is not answered.
fn call(number: u128, organisation: OrganisationId) -> LiveCall {
    LiveCall {
        uuid: id(number),
        organisation_id: organisation,
        direction: Direction::Inbound,
        caller: Some("+442079460001".to_owned()),
        destination: Some("+442071230000".to_owned()),
        state: CallState::Answered,
        started_at: at(0),
        ringing_at: Some(at(1)),
        answered_at: Some(at(2)),
        extension_id: Some(id(11)),
        agent_id: Some(id(12)),
        team_id: Some(id(13)),
        trunk_id: Some(id(14)),
        reference: Some("ticket-4711".into()),
        variables: BTreeMap::from([("crm".into(), "17".into())]),
        held_by: Some(id(15)),
        parked: Some(ParkedIn { slot: 7, by: id(12), until: at(9) }),
        playing: Some(LivePrompt { play_id: id(17), prompt: Prompt::Goodbye, side: PlaySide::Caller }),
        recording: Some(LiveRecording { id: id(16), paused: false }),
        legs: vec![LiveLeg {
            uuid: id(15),
            role: LegRole::Callee,
            extension_id: Some(id(11)),
            number: Some("1001".to_owned()),
            name: "Ada".to_owned(),
            state: CallState::Answered,
            codec: Some("PCMU".to_owned()),
            answered_at: Some(at(2)),
            media_verdict: None,
        }],
    }
}

fn bare(number: u128, organisation: OrganisationId) -> LiveCall {
    LiveCall {
        caller: None,
        state: CallState::Queued,
        ringing_at: None,
        answered_at: None,
        extension_id: None,
        agent_id: None,
        team_id: None,
        trunk_id: None,
        reference: None,
        variables: BTreeMap::new(),
        held_by: None,
        parked: None,
        playing: None,
        recording: None,
        legs: vec![LiveLeg {
            extension_id: None,
            number: None,
            name: String::new(),
            state: CallState::Queued,
            codec: None,
            answered_at: None,
            media_verdict: None,
            ..call(number, organisation).legs.remove(0)
        }],
        ..call(number, organisation)
    }
}

/// A face over a switch with the calls that `carried` builds for Acme's id.
fn open(carried: fn(OrganisationId) -> Carried) -> (Face, Arc<Carried>) {
    Face::open(DIRECTORY, async move |ground| {
        let acme = ground.database.texts("SELECT id FROM organisations").await.remove(0).remove(0);
        let carried = Arc::new(carried(acme.unwrap().parse().unwrap()));
        let store = Arc::new(ground.store.clone());
        let state = ApiState::new(
            Ports {
                live_calls: Some(carried.clone()),
                ..Ports::of_log(store.clone(), store, Arc::new(Ready))
            },
            Arc::new(|| at(100)),
        );
        (state, carried)
    })
}

fn get(face: &Face, path: &str, short_id: &str) -> Answer {
    let authorization = format!("Authorization: Bearer {}\r\n", key(short_id));
    Answer::of(face.exchange(&request("GET", path, &authorization, b"")))
}

#[test]
fn a_call_is_shown_with_every_field_that_has_a_value() {
    let (face, _) = open(|acme| Carried { calls: vec![call(2, acme), bare(1, acme)], ..Carried::default() });
    let page = get(&face, "/calls", "acmecrm00001");
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(page.fields(), ["items", "limit", "offset", "total"]);
    let [full, bare] = [0, 1].map(|place| page.body["items"][place].clone());
    let uuid = |number: u128| Uuid::from_u128(number).to_string();
    let mut expected = json!({
        "uuid": uuid(2),
        "organisation_id": full["organisation_id"],
        "direction": "inbound",
        "caller": "+442079460001",
        "destination": "+442071230000",
        "state": "answered",
        "started_at": "2026-01-01T00:00:00.123Z",
        "ringing_at": "2026-01-01T00:00:01.123Z",
        "answered_at": "2026-01-01T00:00:02.123Z",
        "extension_id": uuid(11),
        "agent_id": uuid(12),
        "team_id": uuid(13),
        "trunk_id": uuid(14),
        "reference": "ticket-4711",
        "variables": {"crm": "17"},
        "held_by": uuid(15),
        "parked": {"slot": 7, "by": uuid(12), "until": at(9).to_string()},
        "playing": {"play_id": uuid(17), "prompt": "goodbye", "side": "caller"},
        "recording": {"id": uuid(16), "paused": false},
        "legs": [{
            "uuid": uuid(15),
            "role": "callee",
            "extension_id": uuid(11),
            "number": "1001",
            "name": "Ada",
            "state": "answered",
            "codec": "PCMU",
            "answered_at": "2026-01-01T00:00:02.123Z",
        }],
    });
    assert_eq!(full, expected);
    assert_eq!(get(&face, &format!("/calls/{}", uuid(2)), "acmecrm00001").body, expected);
    expected = json!({
        "uuid": uuid(1),
        "organisation_id": full["organisation_id"],
        "direction": "inbound",
        "destination": "+442071230000",
        "state": "queued",
        "started_at": "2026-01-01T00:00:00.123Z",
        "answered_at": null,
        "legs": [{
            "uuid": uuid(15),
            "role": "callee",
            "name": "",
            "state": "queued",
            "codec": null,
            "answered_at": null,
        }],
    });
    assert_eq!(bare, expected);
}

#[test]
fn every_filter_reaches_the_switch_and_every_wrong_one_is_named() {
    let (face, carried) = open(|_| Carried::default());
    let asked = |query: &str| get(&face, &format!("/calls?{query}"), "acmecrm00001");
    let extension = Uuid::from_u128(11);
    let answer =
        asked(&format!("state=ringing&direction=internal&extension_id={extension}&limit=7&offset=9"));
    assert_eq!((answer.status, &answer.body["limit"], &answer.body["offset"]), (200, &json!(7), &json!(9)));
    let (scope, query) = carried.asked.lock().unwrap().remove(0);
    assert!(matches!(scope, Scope::Organisation(_)));
    assert_eq!((query.state, query.direction), (Some(CallState::Ringing), Some(Direction::Internal)));
    assert_eq!((query.extension_id, query.organisation_id), (Some(extension.into()), None));
    assert_eq!((query.window.limit, query.window.offset), (7, 9));

    let answer = asked("state=up&direction=in&extension_id=7&limit=501&offset=-1&sort=state&state=ringing");
    assert_eq!((answer.status, answer.code()), (400, "invalid_request"));
    assert_eq!(
        answer.message(),
        "state: must be answered, queued or ringing; direction: must be inbound, internal or outbound; \
         extension_id: must be a UUID; limit: must be between 1 and 500; offset: must be a whole number, 0 or more; \
         sort: is not a parameter of this list; state: is given more than once"
    );
    let foreign = asked(&format!("organisation_id={extension}"));
    assert_eq!((foreign.status, foreign.code()), (403, "forbidden"));
    assert!(carried.asked.lock().unwrap().is_empty());
}

#[test]
fn a_switch_that_does_not_answer_is_said_to_be_busy() {
    let (face, _) = open(|_| Carried { busy: true, ..Carried::default() });
    for path in ["/calls", "/calls/00000000-0000-0000-0000-000000000001"] {
        let answer = get(&face, path, "acmecrm00001");
        assert_eq!((answer.status, answer.code()), (503, "node_busy"), "{path}");
        assert!(answer.head.contains("\r\nretry-after: 1\r\n"), "{}", answer.head);
    }
}

#[test]
fn what_is_not_there_and_what_is_not_ones_own() {
    let (face, _) = open(|_| Carried { calls: vec![call(1, id(99))], ..Carried::default() });
    for (path, short_id, status, code) in [
        ("/calls/00000000-0000-0000-0000-000000000002", "acmecrm00001", 404, "not_found"),
        ("/calls/00000000-0000-0000-0000-000000000001", "acmecrm00001", 403, "forbidden"),
        ("/calls/one", "acmecrm00001", 400, "invalid_request"),
        ("/calls", "acmerooms001", 403, "forbidden"),
        ("/calls/00000000-0000-0000-0000-000000000001", "acmerooms001", 403, "forbidden"),
    ] {
        let answer = get(&face, path, short_id);
        assert_eq!((answer.status, answer.code()), (status, code), "{path} {short_id}");
    }
}
