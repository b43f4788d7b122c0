//! "Notes to phones" of the public document, row by row; the phones are the test's own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sidetone::call_info::{AnsweredCall, NoteSink};
use sidetone::notes::{NoteCounters, NoteService, NoteWriter, dispatcher};
use sidetone_api::{ApiState, Ports};
use sidetone_model::call::Direction;
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NodeId, OrganisationId};
use sidetone_model::note::rules::outcome;
use sidetone_model::note::{
    CallPhones, Change, Destination, Dispatch, Note, NoteLog, Phone, PhoneAnswer, Phones,
};
use sidetone_model::ports::{CdrSink, PortFuture};
use sidetone_model::problem::Problem;
use sidetone_store::{IdempotencyKeys, Store};
use tokio::runtime::Handle;
use tokio::sync::watch;
use uuid::Uuid;

use crate::common::records::{at, ended};
use crate::http::face::{Answer, Face, Ready, key, request};

const DIRECTORY: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.extensions]]
  number = "1001"
  name = "Ada"
  password = "correct horse"
  [[organisations.extensions]]
  number = "1002"
  password = "correct horse"
  [[organisations.api_keys]]
  name = "notes"
  key = "tel_acmenotes001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "notes"
  allow = ["127.0.0.1"]
  rate_per_minute = 60000
  [[organisations.api_keys]]
  name = "reader"
  key = "tel_acmereader01_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:read"]
  allow = ["127.0.0.1"]
  [[organisations.api_keys]]
  name = "sender"
  key = "tel_acmesender01_0123456789abcdefghijklmnopqrstuvwxyz"
  permissions = ["calls:control"]
  allow = ["127.0.0.1"]
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
  [[organisations.extensions]]
  number = "2001"
  password = "correct horse"
  [[organisations.api_keys]]
  name = "notes"
  key = "tel_boltnotes001_0123456789abcdefghijklmnopqrstuvwxyz"
  preset = "notes"
  allow = ["127.0.0.1"]
"#;

const NOTES: &str = "acmenotes001";
const READER: &str = "acmereader01";
const SENDER: &str = "acmesender01";
const BOLT: &str = "boltnotes001";

/// A call of Acme with two phones on it, one that rings, one without a phone of its own, and one of Bolt.
const TALK: CallId = CallId(Uuid::from_u128(0xCA11_0001));
const RINGING: CallId = CallId(Uuid::from_u128(0xCA11_0002));
const CARRIERS: CallId = CallId(Uuid::from_u128(0xCA11_0003));
const BOLTS: CallId = CallId(Uuid::from_u128(0xCA11_0004));
const LEGS: [LegId; 2] = [LegId(Uuid::from_u128(0x1E61)), LegId(Uuid::from_u128(0x1E62))];

/// Phones that accept everything, until the switch is busy.
#[derive(Default)]
struct Fake {
    calls: Mutex<HashMap<CallId, CallPhones>>,
    devices: Mutex<HashMap<ExtensionId, Vec<String>>>,
    sent: Mutex<Vec<Dispatch>>,
    is_busy: AtomicBool,
}

impl Phones for Fake {
    fn on_call(&self, call: CallId) -> PortFuture<'_, Option<CallPhones>> {
        Box::pin(async move {
            if self.is_busy.load(Ordering::Relaxed) {
                return Err(Problem::Busy { retry_after_s: 1 });
            }
            Ok(self.calls.lock().get(&call).cloned())
        })
    }

    fn devices_of(&self, extension: ExtensionId) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { Ok(self.devices.lock().get(&extension).cloned().unwrap_or_default()) })
    }

    fn send(&self, notes: Vec<Dispatch>) -> PortFuture<'_, ()> {
        self.sent.lock().extend(notes);
        Box::pin(async { Ok(()) })
    }
}

/// A face with notes, and its parts.
struct Desk {
    face: Face,
    phones: Arc<Fake>,
    service: NoteService,
    store: Store,
    runtime: Handle,
    acme: OrganisationId,
    /// 1001, 1002 and 2001.
    extensions: [String; 3],
    _running: watch::Sender<bool>,
}

impl Desk {
    fn start() -> Desk {
        let (face, behind) = Face::open(DIRECTORY, async |ground| {
            let store = ground.store.clone();
            let directory = store.directory().await.unwrap();
            let of = |number: &str| directory.extensions.iter().find(|line| line.number == number).unwrap();
            let extensions = ["1001", "1002", "2001"].map(|number| of(number).id.to_string());
            let (acme, bolt) = (of("1001").organisation_id, of("2001").organisation_id);
            let phones = Arc::new(Fake::default());
            let call = |organisation, is_answered, legs: &[LegId]| CallPhones {
                organisation,
                team: None,
                is_answered,
                phones: legs.iter().map(|leg| Phone { leg: *leg, name: "Ada".to_owned() }).collect(),
            };
            phones.calls.lock().extend([
                (TALK, call(acme, true, &LEGS)),
                (RINGING, call(acme, false, &[])),
                (CARRIERS, call(acme, true, &[])),
                (BOLTS, call(bolt, true, &LEGS)),
            ]);
            phones.devices.lock().insert(of("1001").id, vec!["sip:a@192.0.2.1".to_owned()]);
            let node = NodeId(Uuid::from_u128(0x0DE));
            let (dispatcher, queue) = dispatcher();
            let counters = Arc::new(NoteCounters::default());
            let (orders, writer) = NoteWriter::new(Arc::new(store.clone()), dispatcher.clone(), counters);
            let (running, stop) = watch::channel(false);
            let (mut writer, mut queue) = (writer, queue);
            tokio::spawn(async move { writer.run(stop).await });
            let (dispatcher_phones, dispatcher_orders) = (phones.clone(), orders.clone());
            tokio::spawn(async move { queue.run(dispatcher_phones.as_ref(), &dispatcher_orders).await });
            let clock = Arc::new(|| at(1));
            let service = NoteService::new(store.clone(), phones.clone(), (orders, dispatcher), node, clock);
            let keys = IdempotencyKeys::open(store.clone(), node).await.unwrap();
            let state = ApiState::new(
                Ports {
                    notes: Some(Arc::new(service.clone())),
                    idempotency: Arc::new(keys),
                    ..Ports::of_log(Arc::new(store.clone()), Arc::new(store.clone()), Arc::new(Ready))
                },
                Arc::new(|| at(1)),
            );
            (state, (phones, service, store, Handle::current(), acme, extensions, running))
        });
        let (phones, service, store, runtime, acme, extensions, running) = behind;
        Desk { face, phones, service, store, runtime, acme, extensions, _running: running }
    }

    fn send(&self, who: &str, path: &str, headers: &str, body: &str) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", key(who));
        Answer::of(self.face.exchange(&request("POST", path, &headers, body.as_bytes())))
    }

    fn post(&self, who: &str, path: &str, body: &str) -> Answer {
        self.send(who, path, "Content-Type: application/json\r\n", body)
    }

    fn get(&self, who: &str, path: &str) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n", key(who));
        Answer::of(self.face.exchange(&request("GET", path, &headers, b"")))
    }

    fn message(&self) -> String {
        format!("/extensions/{}/message", self.extensions[0])
    }

    fn messages(&self) -> String {
        format!("/extensions/{}/messages", self.extensions[0])
    }

    /// The notes sent to the phones so far, once there are `count`.
    fn sent(&self, count: usize) -> Vec<Dispatch> {
        for _ in 0..2_000 {
            let sent = self.phones.sent.lock().clone();
            if sent.len() >= count {
                return sent;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{count} notes were not sent");
    }
}

fn info(call: CallId) -> String {
    format!("/calls/{call}/info")
}

fn infos(call: CallId) -> String {
    format!("/calls/{call}/infos")
}

#[test]
fn a_note_into_a_call_answers_202_with_its_legs() {
    let desk = Desk::start();
    let answer = desk.post(NOTES, &info(TALK), r#"{"title":"a","ack":true}"#);
    assert_eq!(answer.status, 202, "{}", answer.body);
    let id = answer.body["id"].as_str().unwrap();
    assert_eq!(answer.body, json!({"id": id, "channel": "info", "legs": LEGS, "ack": true}));
    let [dispatch] = desk.sent(1).try_into().unwrap();
    assert_eq!(dispatch.to, Destination::Call(TALK, LEGS.to_vec()));
    assert_eq!(dispatch.payload, format!(r#"{{"id":"{id}","title":"a","ack":true,"level":"info"}}"#));
}

#[test]
fn a_note_to_a_person_answers_202_without_legs() {
    let desk = Desk::start();
    let answer = desk.post(SENDER, &desk.message(), r#"{"title":"a"}"#);
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(answer.body, json!({"id": answer.body["id"], "channel": "message", "ack": false}));
    let [dispatch] = desk.sent(1).try_into().unwrap();
    let extension = desk.extensions[0].parse().unwrap();
    assert_eq!(dispatch.to, Destination::Extension(extension, vec!["sip:a@192.0.2.1".to_owned()]));
}

#[test]
fn what_is_not_there_not_ones_own_or_has_no_phone_is_refused() {
    let desk = Desk::start();
    let nowhere = CallId(Uuid::nil());
    let extension = |index: usize| format!("/extensions/{}/message", desk.extensions[index]);
    for (who, path, status, code) in [
        (NOTES, info(nowhere), 404, "not_found"),
        (BOLT, info(nowhere), 404, "not_found"),
        (BOLT, info(TALK), 403, "forbidden"),
        (NOTES, info(BOLTS), 403, "forbidden"),
        (NOTES, info(RINGING), 409, "conflict"),
        (NOTES, info(CARRIERS), 409, "conflict"),
        (READER, info(TALK), 403, "forbidden"),
        (NOTES, "/calls/1/info".to_owned(), 400, "invalid_request"),
        (NOTES, extension(1), 409, "conflict"),
        (NOTES, extension(2), 403, "forbidden"),
        (BOLT, extension(0), 403, "forbidden"),
        (READER, extension(0), 403, "forbidden"),
        (NOTES, format!("/extensions/{}/message", Uuid::nil()), 404, "not_found"),
        (NOTES, "/extensions/1001/message".to_owned(), 400, "invalid_request"),
    ] {
        let answer = desk.post(who, &path, r#"{"title":"a"}"#);
        assert_eq!((answer.status, answer.code()), (status, code), "{who} {path}: {}", answer.body);
    }
    for (who, path, status) in [
        (NOTES, infos(nowhere), 404),
        (BOLT, infos(TALK), 403),
        (SENDER, infos(TALK), 403),
        (NOTES, desk.messages(), 200),
        (BOLT, desk.messages(), 403),
        (SENDER, desk.messages(), 403),
        (NOTES, format!("/extensions/{}/messages", Uuid::nil()), 404),
    ] {
        assert_eq!(desk.get(who, &path).status, status, "{who} {path}");
    }
    assert_eq!(desk.get(NOTES, &infos(TALK)).body["total"], 0);
    assert!(desk.phones.sent.lock().is_empty());
}

#[test]
fn a_wrong_note_is_refused_by_the_names_of_its_fields() {
    let desk = Desk::start();
    let long = format!(r#"{{"title":"a","x":"{}"}}"#, "y".repeat(4_096));
    for (body, status, message) in [
        ("", 400, "body: is missing, send a JSON object"),
        ("[]", 400, "body: must be a JSON object, not an array"),
        ("{}", 400, "title: is required"),
        (r#"{"title":" "}"#, 400, "title: must not be empty"),
        (r#"{"title":"a","title":"b"}"#, 400, "title: is given more than once"),
        (
            r#"{"ack":1,"title":7}"#,
            400,
            "ack: must be true or false, not a number; title: must be a string, not a number",
        ),
        (r#"{"title":"a","id":"x"}"#, 400, "id: is assigned by the service, leave it out"),
        (r#"{"title":"a","event":"roster"}"#, 400, "event: is reserved for what the service itself sends"),
        (
            r#"{"title":"a","x":NaN}"#,
            400,
            "body: is not JSON at line 1 column 18: NaN and Infinity are no numbers there",
        ),
        (
            &long,
            400,
            "body: must stay under 4 KB: with its id the note is 4175 bytes of JSON, at most 4095 are sent",
        ),
    ] {
        for path in [info(TALK), desk.message()] {
            let answer = desk.post(NOTES, &path, body);
            assert_eq!((answer.status, answer.code()), (status, "invalid_request"), "{body}");
            assert_eq!(answer.message(), message);
        }
    }
    let deep = format!(r#"{{"title":"a","x":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(desk.post(NOTES, &info(TALK), &deep).message(), "body: is nested deeper than 32 levels");
    for kind in ["Content-Type: text/html\r\n", "Content-Type: text/plain\r\n", ""] {
        let answer = desk.send(NOTES, &info(TALK), kind, r#"{"title":"a"}"#);
        assert_eq!((answer.status, answer.code()), (415, "unsupported_media_type"), "{kind}");
    }
    assert_eq!(desk.get(NOTES, &infos(TALK)).body["total"], 0);
}

#[test]
fn a_busy_switch_is_503_and_nothing_is_stored() {
    let desk = Desk::start();
    desk.phones.is_busy.store(true, Ordering::Relaxed);
    let answer = desk.post(NOTES, &info(TALK), r#"{"title":"a"}"#);
    assert_eq!((answer.status, answer.code()), (503, "node_busy"));
    assert!(answer.head.contains("\r\nretry-after: 1\r\n"), "{}", answer.head);
    desk.phones.is_busy.store(false, Ordering::Relaxed);
    assert_eq!(desk.get(NOTES, &infos(TALK)).body["total"], 0);
}

#[test]
fn a_record_has_every_field_of_the_table_under_its_name() {
    let desk = Desk::start();
    let note = r#"{"title":"a","level":"warn","z":1,"body":"b"}"#;
    let id = desk.post(NOTES, &info(TALK), note).body["id"].clone();
    let receipt = |leg: LegId| json!({"member": leg, "name": "Ada", "sent_at": at(1), "acked_at": null, "status": "pending"});
    let expected = json!({
        "id": id, "channel": "info", "call_uuid": TALK, "title": "a", "body": "b", "level": "warning", "ack": false,
        "source": "api", "status": "pending", "recipients": [receipt(LEGS[0]), receipt(LEGS[1])],
        "recipient_count": 2, "acked_count": 0, "sent_at": at(1),
        "payload": {"id": id, "title": "a", "level": "warning", "z": 1, "body": "b"},
    });
    let page = desk.get(READER, &infos(TALK));
    assert_eq!(page.body, json!({"items": [expected], "total": 1, "limit": 50, "offset": 0}));
    // The rows keep the order of the note.
    let text = serde_json::to_string(&page.body["items"][0]["payload"]).unwrap();
    assert!(text.ends_with(r#","title":"a","level":"warning","z":1,"body":"b"}"#), "{text}");

    let id = desk.post(NOTES, &desk.message(), r#"{"title":"m"}"#).body["id"].clone();
    let page = desk.get(READER, &desk.messages());
    let person = &desk.extensions[0];
    assert_eq!(
        page.body["items"],
        json!([{
            "id": id, "channel": "message", "extension_id": person, "title": "m", "body": "", "level": "info", "ack": false,
            "source": "api", "status": "pending", "recipient_count": 1, "acked_count": 0, "sent_at": at(1),
            "recipients": [{"member": person, "name": "Ada", "device": "sip:a@192.0.2.1", "sent_at": at(1), "acked_at": null, "status": "pending"}],
            "payload": {"id": id, "title": "m", "level": "info"},
        }])
    );
}

#[test]
fn every_filter_of_the_lists_narrows_and_a_wrong_one_is_named() {
    let desk = Desk::start();
    let mut ids = Vec::new();
    for level in ["info", "warning", "alert"] {
        let body = json!({"title": level, "level": level, "ack": true}).to_string();
        ids.push(desk.post(NOTES, &info(TALK), &body).body["id"].as_str().unwrap().to_owned());
    }
    let answered = |index: usize, answer| {
        let note = ids[index].parse().unwrap();
        let changes = [0, 1].map(|place| Change::Answered { note, place, outcome: outcome(answer) });
        desk.runtime.block_on(desk.store.write_changes(&changes)).unwrap();
    };
    answered(0, PhoneAnswer::Status(200));
    answered(1, PhoneAnswer::Status(415));
    for (query, titles) in [
        ("", vec!["alert", "warning", "info"]),
        ("?status=sent", vec!["info"]),
        ("?status=failed", vec!["warning"]),
        ("?status=pending", vec!["alert"]),
        ("?status=acked", vec![]),
        ("?level=info", vec!["info"]),
        ("?level=warn", vec!["warning"]),
        ("?level=critical", vec!["alert"]),
        ("?level=error&status=pending", vec!["alert"]),
        ("?source=api", vec!["alert", "warning", "info"]),
        ("?source=url", vec![]),
        ("?source=conference", vec![]),
        ("?acked=true", vec![]),
        ("?acked=false&limit=2", vec!["alert", "warning"]),
        ("?limit=2&offset=2", vec!["info"]),
        ("?since=2026-01-01", vec!["alert", "warning", "info"]),
        ("?since=2026-01-01T00:00:01.124Z", vec![]),
    ] {
        let page = desk.get(READER, &format!("{}{query}", infos(TALK)));
        assert_eq!((page.status, page.items("title")), (200, titles), "{query}");
    }
    let failed = desk.get(READER, &format!("{}?status=failed", infos(TALK)));
    assert_eq!(failed.body["items"][0]["error"], "phone does not support notes (415)");
    for (query, message) in [
        ("status=lost", "status: must be one of pending, sent, acked, failed"),
        ("level=INFO", "level: must be one of info, warning, alert, warn, critical, error"),
        ("source=room", "source: must be one of api, url, conference"),
        ("acked=1", "acked: must be true or false"),
        ("limit=0", "limit: must be between 1 and 500"),
        (
            "limit=501&offset=-1",
            "limit: must be between 1 and 500; offset: must be a whole number, 0 or more",
        ),
        ("sort=title", "sort: is not a parameter of this list"),
    ] {
        for list in [infos(TALK), desk.messages()] {
            let answer = desk.get(READER, &format!("{list}?{query}"));
            assert_eq!((answer.status, answer.message()), (400, message));
        }
    }
}

/// A call has a list as long as it has a record or a note.
#[test]
fn the_list_of_a_call_outlives_it() {
    let desk = Desk::start();
    assert_eq!(desk.post(NOTES, &info(TALK), r#"{"title":"a"}"#).status, 202);
    desk.sent(1);
    desk.phones.calls.lock().clear();
    assert_eq!(desk.get(NOTES, &infos(TALK)).body["total"], 1, "by its notes");
    assert_eq!(desk.get(BOLT, &infos(TALK)).status, 403);
    let record = ended(9);
    assert_eq!(desk.get(NOTES, &infos(record.call_uuid)).status, 404);
    let record = Cdr { organisation_id: desk.acme, ..record };
    desk.runtime.block_on(CdrSink::store(&desk.store, std::slice::from_ref(&record))).unwrap();
    assert_eq!(desk.get(NOTES, &infos(record.call_uuid)).body["total"], 0, "by its record");
    assert_eq!(desk.get(BOLT, &infos(record.call_uuid)).status, 403);
}

#[test]
fn a_repeated_request_with_its_key_is_one_note() {
    let desk = Desk::start();
    let headers = "Content-Type: application/json\r\nIdempotency-Key: one\r\n";
    let first = desk.send(NOTES, &info(TALK), headers, r#"{"title":"a"}"#);
    assert_eq!(first.status, 202, "{}", first.body);
    let again = desk.send(NOTES, &info(TALK), headers, r#"{"title":"a"}"#);
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert!(again.head.contains("idempotency-replayed: true"));
    let other = desk.send(NOTES, &info(TALK), headers, r#"{"title":"b"}"#);
    assert_eq!((other.status, other.code()), (422, "idempotency_key_reused"));
    // A permanent refusal is kept too; the note is sent once.
    let refused = desk.send(NOTES, &info(CARRIERS), headers, r#"{"title":"a"}"#);
    assert_eq!(refused.status, 409);
    assert_eq!(desk.post(NOTES, &info(TALK), r#"{"title":"last"}"#).status, 202);
    let sent = desk.sent(2);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].note.to_string(), first.body["id"].as_str().unwrap());
    assert_eq!(desk.get(NOTES, &infos(TALK)).body["total"], 2);
}

/// The response of the call-info URL becomes a note with the source `url`, or a failed one with the reason.
#[test]
fn what_a_call_info_url_answers_is_on_the_list_of_the_call() {
    let desk = Desk::start();
    let asked = |call_uuid| AnsweredCall {
        call_uuid,
        direction: Direction::Internal,
        caller: "1001".to_owned().into(),
        destination: "1002".to_owned().into(),
        organisation_id: desk.acme,
        extension_id: None,
        agent_id: None,
        team_id: None,
        answered_at: at(0),
    };
    let note = Note::parse(br#"{"title":"Owes 900 EUR","level":"alert"}"#).unwrap();
    desk.runtime.block_on(NoteSink::note(&desk.service, &asked(TALK), note.clone())).unwrap();
    let [dispatch] = desk.sent(1).try_into().unwrap();
    assert_eq!(dispatch.to, Destination::Call(TALK, LEGS.to_vec()));
    let page = desk.get(READER, &format!("{}?source=url", infos(TALK)));
    assert_eq!(page.items("title"), ["Owes 900 EUR"]);
    assert_eq!(page.body["items"][0]["status"], "pending");

    desk.runtime.block_on(NoteSink::note(&desk.service, &asked(CARRIERS), note)).unwrap();
    let failed = &desk.get(READER, &infos(CARRIERS)).body["items"][0];
    assert_eq!((&failed["status"], &failed["title"]), (&json!("failed"), &json!("Owes 900 EUR")));
    assert_eq!(failed["error"], "the call has no phone of yours on it");
    let reason = "the URL answered 500".to_owned();
    desk.runtime.block_on(NoteSink::failed(&desk.service, &asked(TALK), reason)).unwrap();
    let failed = &desk.get(READER, &format!("{}?status=failed", infos(TALK))).body["items"][0];
    let fields =
        ["error", "title", "payload", "recipients", "recipient_count", "source"].map(|name| &failed[name]);
    let (none, object): (Value, Value) = (json!([]), json!({}));
    assert_eq!(
        fields,
        [&json!("the URL answered 500"), &json!(""), &object, &none, &json!(0), &json!("url")]
    );
    assert_eq!(desk.sent(1).len(), 1);
}
