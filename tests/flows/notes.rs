//! Notes to real phones over a complete engine: what the phones show, and how their responses are stored.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallPlan, Channel, Level, Noting, Phone, ShownNote};
use tokio::task::JoinHandle;

use crate::common::site::{Site, answering, calls, found, open_end, post, within};
use crate::flows::metrics::scrape;

/// Two phones that talk, and the call's uuid.
pub struct Talk {
    pub site: Site,
    pub caller: Arc<Phone>,
    pub callee: Phone,
    pub call: String,
    pub ended: JoinHandle<()>,
}

/// 1001 and 1002 talk until one hangs up.
pub async fn talk() -> Talk {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let callee = site.phone("1002", answering()).await;
    let (call, ended) = begin(&site, &caller, open_end("1002")).await;
    calls(&callee, 0, 1).await;
    Talk { site, caller, callee, call, ended }
}

/// A call that is up, and the tasks that run until it ends.
async fn begin(site: &Site, caller: &Arc<Phone>, plan: CallPlan) -> (String, JoinHandle<()>) {
    let phone = Arc::clone(caller);
    let ended = tokio::spawn(async move {
        phone.call(plan).await.unwrap();
    });
    calls(caller, 0, 1).await;
    let (status, live) = site.get("/calls").await;
    assert_eq!(status, 200, "{live}");
    (live["items"][0]["uuid"].as_str().unwrap().to_owned(), ended)
}

impl Talk {
    /// The legs of the caller and of the callee.
    pub async fn legs(&self) -> [String; 2] {
        let (_, call) = self.site.get(&format!("/calls/{}", self.call)).await;
        let legs = call["legs"].as_array().unwrap();
        let uuid = |role: &str| {
            let leg = legs.iter().find(|leg| leg["role"] == role).unwrap();
            leg["uuid"].as_str().unwrap().to_owned()
        };
        [uuid("caller"), uuid("callee")]
    }

    /// Sends a note into the call; its id.
    pub async fn info(&self, note: &Value) -> String {
        let path = format!("/calls/{}/info", self.call);
        let (status, sent) = post(self.site.http, &path, "", &note.to_string()).await;
        assert_eq!(status, 202, "{sent}");
        sent["id"].as_str().unwrap().to_owned()
    }

    /// The record of a note into the call, once `holds` is true for it.
    pub async fn record(&self, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
        record(&self.site, &format!("/calls/{}/infos", self.call), id, holds).await
    }

    /// Asserts that both still talk; then hangs up.
    pub async fn still_up_and_over(self) {
        let both = [self.caller.calls().borrow().up, self.callee.calls().borrow().up];
        assert_eq!(both, [1, 1], "a note cost the call");
        self.caller.hang_up().await.unwrap();
        self.ended.await.unwrap();
        let record =
            found("the record", async || match self.site.get(&format!("/cdrs/{}", self.call)).await {
                (200, record) => Some(record),
                (404, _) => None,
                other => panic!("{other:?}"),
            });
        assert_eq!(record.await["hangup_cause"], "NORMAL_CLEARING");
    }
}

/// The record of a note on the list at `path`, once `holds` is true for it.
pub async fn record(site: &Site, path: &str, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
    found("the record of a note", async || {
        let (status, page) = site.get(path).await;
        assert_eq!(status, 200, "{page}");
        let note = page["items"].as_array().unwrap().iter().find(|note| note["id"] == id).cloned();
        note.filter(|note| holds(note))
    })
    .await
}

/// The first note that a phone shows.
pub async fn shown(phone: &Phone) -> ShownNote {
    within("a note on the phone", phone.notes_count().wait_for(|count| *count >= 1)).await.unwrap();
    phone.notes().remove(0)
}

pub fn status_is(status: &'static str) -> impl Fn(&Value) -> bool {
    move |note| note["status"] == status
}

/// Whether no receipt is pending.
fn settled(note: &Value) -> bool {
    note["recipients"].as_array().unwrap().iter().all(|receipt| receipt["status"] != "pending")
}

/// The extension of that number.
pub async fn extension(site: &Site, number: &str) -> String {
    let snapshot = site.engine().store.directory().await.unwrap();
    snapshot.extensions.iter().find(|extension| extension.number == number).unwrap().id.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_into_a_call_is_shown_on_every_phone_of_it_as_it_was_sent() {
    let talk = talk().await;
    let [caller, callee] = talk.legs().await;
    let note = r#" { "zebra":{"b":1,"a":[true,null]}, "title":" Owes 900 EUR ","level":"error","apple":"x", "body":"two\nlines" } "#;
    let path = format!("/calls/{}/info", talk.call);
    let (status, sent) = post(talk.site.http, &path, "", note).await;
    assert_eq!(status, 202, "{sent}");
    let id = sent["id"].as_str().unwrap().to_owned();
    assert_eq!(sent, json!({"id": id, "channel": "info", "legs": [caller, callee], "ack": false}));
    for phone in [&*talk.caller, &talk.callee] {
        let note = shown(phone).await;
        let expected = format!(
            r#"{{"id":"{id}","zebra":{{"b":1,"a":[true,null]}},"title":"Owes 900 EUR","level":"alert","apple":"x","body":"two\nlines"}}"#
        );
        assert_eq!(note.json.to_string(), expected);
        assert_eq!((note.channel, note.level), (Channel::Info, Level::Alert));
    }
    let record = talk.record(&id, |note| status_is("sent")(note) && settled(note)).await;
    let receipt = |leg: &str, name: &str| json!({"member": leg, "name": name, "sent_at": record["sent_at"], "acked_at": null, "status": "sent", "sip_status": 200});
    let mut expected = json!({
        "id": id, "channel": "info", "call_uuid": talk.call, "title": "Owes 900 EUR", "body": "two\nlines", "level": "alert",
        "ack": false, "source": "api", "status": "sent", "recipient_count": 2, "acked_count": 0,
    });
    expected["recipients"] = json!([receipt(&caller, "1001"), receipt(&callee, "1002")]);
    expected["sent_at"] = record["sent_at"].clone();
    expected["payload"] = shown(&talk.callee).await.json;
    assert_eq!(record, expected);
    // The record stays when the call has ended, but no note can be sent into it.
    let (call, path) = (talk.call.clone(), path);
    talk.caller.hang_up().await.unwrap();
    talk.site.idle().await;
    assert_eq!(post(talk.site.http, &path, "", r#"{"title":"late"}"#).await.0, 404);
    let (status, page) = talk.site.get(&format!("/calls/{call}/infos")).await;
    assert_eq!((status, &page["total"]), (200, &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_shown_on_every_device_of_the_person() {
    let site = Site::start().await;
    let id = extension(&site, "1001").await;
    let path = format!("/extensions/{id}/message");
    let (status, refused) = post(site.http, &path, "", r#"{"title":"Fire drill"}"#).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{refused}");
    let phones = [site.phone("1001", answering()).await, site.phone("1001", answering()).await];
    let other = site.phone("1002", answering()).await;
    let (status, sent) = post(site.http, &path, "", r#"{"title":"Fire drill","ack":true}"#).await;
    assert_eq!(status, 202, "{sent}");
    let note = sent["id"].as_str().unwrap();
    assert_eq!(sent, json!({"id": note, "channel": "message", "ack": true}));
    for phone in &phones {
        let shown = shown(phone).await;
        assert_eq!((shown.id.as_str(), shown.channel, shown.ack), (note, Channel::Message, true));
        assert_eq!(shown.from, "sip:events@acme.test");
    }
    let list = format!("/extensions/{id}/messages");
    let record = record(&site, &list, note, |note| status_is("sent")(note) && settled(note)).await;
    assert_eq!((&record["extension_id"], &record["recipient_count"]), (&json!(id), &json!(2)));
    let members: Vec<&Value> =
        record["recipients"].as_array().unwrap().iter().map(|r| &r["member"]).collect();
    assert_eq!(members, [&json!(id), &json!(id)]);
    assert_eq!(other.notes().len(), 0);
}

/// A phone's response to a note is on its receipt, and does not affect the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_refuses_notes_keeps_its_call() {
    let talk = talk().await;
    for (status, why) in [
        (415, "phone does not support notes (415)"),
        (489, "phone does not support notes (489)"),
        (501, "phone does not support notes (501)"),
        (405, "phone refused the note (405)"),
        (481, "phone refused the note (481)"),
        (408, "phone refused the note (408)"),
        (500, "phone refused the note (500)"),
    ] {
        talk.caller.treat_notes(Noting::Refuse(status)).await.unwrap();
        talk.callee.treat_notes(Noting::Refuse(status)).await.unwrap();
        let id = talk.info(&json!({"title": "a"})).await;
        let note = talk.record(&id, settled).await;
        assert_eq!((&note["status"], &note["error"]), (&json!("failed"), &json!(why)));
        assert_eq!(note["recipients"][0]["sip_status"], status);
        assert_eq!(note["recipients"][1]["error"], why);
    }
    // One phone that accepts it is enough.
    talk.callee.treat_notes(Noting::Show).await.unwrap();
    let id = talk.info(&json!({"title": "b"})).await;
    let note = talk.record(&id, settled).await;
    assert_eq!((&note["status"], note.get("error")), (&json!("sent"), None));
    assert_eq!(note["recipients"][0]["status"], "failed");
    talk.still_up_and_over().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_of_almost_four_kilobytes_arrives_whole() {
    let talk = talk().await;
    let note = |len: usize| json!({"title": "long", "level": "info", "text": "x".repeat(len)});
    let fixed = note(0).to_string().len() + r#""id":"","#.len() + 36;
    let id = talk.info(&note(4_095 - fixed)).await;
    let shown = shown(&talk.callee).await;
    assert_eq!((shown.id.as_str(), shown.json.to_string().len()), (id.as_str(), 4_095));
    let path = format!("/calls/{}/info", talk.call);
    let (status, refused) = post(talk.site.http, &path, "", &note(4_096 - fixed).to_string()).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("invalid_request")), "{refused}");
    talk.still_up_and_over().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_with_its_key_shows_a_note_once() {
    let talk = talk().await;
    let path = format!("/calls/{}/info", talk.call);
    let (key, note) =
        ("Idempotency-Key: evacuation-4\r\n", r#"{"title":"Evacuate building 4","level":"alert"}"#);
    let (status, first) = post(talk.site.http, &path, key, note).await;
    assert_eq!(status, 202, "{first}");
    let (status, again) = post(talk.site.http, &path, key, note).await;
    assert_eq!((status, &again), (202, &first));
    let (status, reused) = post(talk.site.http, &path, key, r#"{"title":"another"}"#).await;
    assert_eq!((status, &reused["error"]["code"]), (422, &json!("idempotency_key_reused")));
    // A later note is delivered after the first one.
    talk.info(&json!({"title": "later"})).await;
    within("two notes", talk.callee.notes_count().wait_for(|count| *count >= 2)).await.unwrap();
    let titles: Vec<String> = talk.callee.notes().into_iter().map(|note| note.title).collect();
    assert_eq!(titles, ["Evacuate building 4", "later"]);
    let (_, page) = talk.site.get(&format!("/calls/{}/infos", talk.call)).await;
    assert_eq!(page["total"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_rings_takes_no_note_yet() {
    let site = Site::start().await;
    let caller = Arc::new(site.phone("1001", answering()).await);
    let callee = site.phone("1002", Answering::Ring).await;
    let phone = Arc::clone(&caller);
    let call = tokio::spawn(async move { phone.call(open_end("1002")).await.unwrap() });
    calls(&callee, 1, 0).await;
    let (_, live) = site.get("/calls").await;
    let path = format!("/calls/{}/info", live["items"][0]["uuid"].as_str().unwrap());
    let (status, refused) = post(site.http, &path, "", r#"{"title":"a"}"#).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{refused}");
    caller.hang_up().await.unwrap();
    call.await.unwrap();
}

/// A note in progress when the engine stopped is not sent again, and its record reports that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_that_a_restart_cut_off_is_never_shown_twice() {
    let site = Site::start().await;
    let phone = site.phone("1001", answering()).await;
    phone.treat_notes(Noting::Ignore).await.unwrap();
    let id = extension(&site, "1001").await;
    let (status, sent) = post(site.http, &format!("/extensions/{id}/message"), "", r#"{"title":"a"}"#).await;
    assert_eq!(status, 202, "{sent}");
    let dir = site.stop(Duration::ZERO).await;
    let site = Site::reopen(dir).await;
    let phone = site.phone("1001", answering()).await;
    let note =
        record(&site, &format!("/extensions/{id}/messages"), sent["id"].as_str().unwrap(), |_| true).await;
    assert_eq!(note["status"], "failed");
    // The engine may have stopped before the note was sent.
    let reasons = [
        "the engine was restarted before the phone answered",
        "the engine was stopping or too busy to send it, send it again",
    ];
    assert!(reasons.iter().any(|reason| note["error"] == *reason), "{note:#}");
    // A note sent now is shown only after anything that the engine still had to send.
    let (status, _) = post(site.http, &format!("/extensions/{id}/message"), "", r#"{"title":"b"}"#).await;
    assert_eq!(status, 202);
    shown(&phone).await;
    let titles: Vec<String> = phone.notes().into_iter().map(|note| note.title).collect();
    assert_eq!(titles, ["b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_are_counted() {
    let talk = talk().await;
    talk.callee.treat_notes(Noting::Refuse(501)).await.unwrap();
    let id = talk.info(&json!({"title": "a"})).await;
    talk.record(&id, settled).await;
    let lines = [
        "sidetone_notes_total{channel=\"info\"} 1",
        "sidetone_note_receipts_total{status=\"sent\"} 1",
        "sidetone_note_receipts_total{status=\"failed\"} 1",
        "sidetone_note_acknowledgements_total{result=\"counted\"} 0",
    ];
    // The counters follow the record.
    found("the counters", async || {
        let (text, _) = scrape(&talk.site).await;
        lines.iter().all(|line| text.lines().any(|found| found == *line)).then_some(())
    })
    .await;
}
