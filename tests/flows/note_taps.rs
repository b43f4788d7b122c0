//! S5 and S6 of the reliability document, row by row: whose acknowledgement counts, with real phones and a complete
//! engine.

use serde_json::{Value, json};
use sidetone_media::time::Micros;
use sidetone_model::access::Scope;
use sidetone_model::event::{EventKind, Position};
use sidetone_model::time::Timestamp;
use sidetone_phone::{Channel, Noting, Parcel, Phone, PhoneError};

use crate::common::site::{Site, answering, calls, open_end, post, until, within};
use crate::flows::notes::{Talk, extension, record, shown, status_is, talk};

/// The data of every acknowledgement event.
async fn acked(site: &Site) -> Vec<Value> {
    let store = &site.engine().store;
    let batch = store.events_after(Scope::Everything, Position::default(), 500).await.unwrap();
    let events = batch.events.into_iter().map(|placed| placed.event);
    events
        .filter(|event| event.kind == EventKind::CallInfoAcked)
        .map(|event| Value::Object(event.data))
        .collect()
}

/// Sends a note into the call that requests an acknowledgement, and waits until both phones show it.
async fn asked(talk: &Talk) -> String {
    let id = talk.info(&json!({"title": "Evacuate", "ack": true})).await;
    let shows = |phone: &Phone| phone.notes().iter().any(|note| note.id == id);
    until("both show the note", || shows(&talk.caller) && shows(&talk.callee)).await;
    id
}

fn forged(channel: Channel, id: &str) -> Parcel {
    Parcel::new(
        channel,
        json!({"ack": true, "id": id, "title": "Evacuate", "at": "2026-01-01T00:00:00Z"}).to_string(),
    )
}

async fn send(phone: &Phone, parcel: Parcel) -> u16 {
    within("an answer", phone.send(parcel)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tap_counts_once_with_the_moment_of_the_person() {
    let talk = talk().await;
    let [_, leg] = talk.legs().await;
    let id = asked(&talk).await;
    let sent_at = talk.record(&id, |_| true).await["sent_at"].as_str().unwrap().to_owned();
    let sent: Timestamp = sent_at.parse().unwrap();
    let tapped = sent.plus_micros(1_500_000);
    let at = Micros(tapped.as_micros());
    assert_eq!(within("an answer", talk.callee.acknowledge_at(&id, at)).await.unwrap(), 200);
    let note = talk.record(&id, status_is("acked")).await;
    assert_eq!((&note["acked_count"], &note["recipient_count"]), (&json!(1), &json!(2)));
    assert_eq!(note["recipients"][1]["acked_at"], tapped.to_string());
    assert_eq!(note["recipients"][0]["acked_at"], Value::Null);
    let event = json!({"id": id, "title": "Evacuate", "leg": leg, "acked_at": tapped.to_string(), "call_uuid": talk.call});
    assert_eq!(acked(&talk.site).await, [event]);
    // A second acknowledgement does not count.
    assert_eq!(within("an answer", talk.callee.acknowledge(&id)).await.unwrap(), 403);
    assert_eq!(acked(&talk.site).await.len(), 1);
    // The other phone belongs to another person.
    assert_eq!(within("an answer", talk.caller.acknowledge(&id)).await.unwrap(), 200);
    assert_eq!(talk.record(&id, |note| note["acked_count"] == 2).await["status"], "acked");
    assert_eq!(acked(&talk.site).await.len(), 2);
    talk.still_up_and_over().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_wrong_is_held_to_what_can_be() {
    let talk = talk().await;
    let id = asked(&talk).await;
    let record = talk.record(&id, |_| true).await;
    // Before the note was sent, and a day in the future.
    assert_eq!(within("an answer", talk.caller.acknowledge_at(&id, Micros(0))).await.unwrap(), 200);
    let sent: Timestamp = record["sent_at"].as_str().unwrap().parse().unwrap();
    let tomorrow = Micros(sent.plus_micros(86_400_000_000).as_micros());
    assert_eq!(within("an answer", talk.callee.acknowledge_at(&id, tomorrow)).await.unwrap(), 200);
    let note = talk.record(&id, |note| note["acked_count"] == 2).await;
    assert_eq!(note["recipients"][0]["acked_at"], record["sent_at"]);
    let ahead: Timestamp = note["recipients"][1]["acked_at"].as_str().unwrap().parse().unwrap();
    let ahead_us = ahead.since(sent);
    assert!((60_000_000..3_600_000_000).contains(&ahead_us), "{ahead_us}");
}

/// S6: acknowledgements from a phone that did not get the note, of a note that requested none, or by the wrong method.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_forged_and_unasked_acknowledgements_change_nothing() {
    let talk = talk().await;
    let site = &talk.site;
    let stranger = site.phone("1003", answering()).await;
    let friend = site.phone("1004", answering()).await;
    let id = asked(&talk).await;
    let unasked = talk.info(&json!({"title": "no button"})).await;
    let person = extension(site, "1002").await;
    let path = format!("/extensions/{person}/message");
    let (status, message) = post(site.http, &path, "", r#"{"title":"to 1002","ack":true}"#).await;
    assert_eq!(status, 202, "{message}");
    let message = message["id"].as_str().unwrap().to_owned();
    // Being in another call does not help.
    let (call, mut up) = (stranger.call(open_end("1004")), friend.calls());
    let forgeries = async {
        within("the other call", up.wait_for(|calls| calls.up == 1)).await.unwrap();
        calls(&stranger, 0, 1).await;
        for (phone, channel, note, why) in [
            (&stranger, Channel::Info, &id, "another call"),
            (&stranger, Channel::Message, &id, "another extension, another way"),
            (&stranger, Channel::Message, &message, "another extension"),
            (&talk.callee, Channel::Message, &id, "a note by INFO is acknowledged by INFO"),
            (&talk.callee, Channel::Info, &message, "a note by MESSAGE is acknowledged by MESSAGE"),
            (&talk.callee, Channel::Info, &unasked, "a note that did not ask"),
            (&talk.callee, Channel::Info, &"0190a000-0000-7000-8000-000000000001".to_owned(), "no such note"),
        ] {
            assert_eq!(send(phone, forged(channel, note)).await, 403, "{why}");
        }
        // Another user's name in From with the sender's own credentials.
        let named = Parcel { from: Some("1002".to_owned()), ..forged(Channel::Message, &message) };
        let status = send(&stranger, named).await;
        assert!([401, 403].contains(&status), "{status}");
        stranger.hang_up().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(call, forgeries);
    outcome.unwrap();
    assert_eq!(acked(site).await, Vec::<Value>::new());
    for note in [&id, &unasked] {
        let note = talk.record(note, |_| true).await;
        assert_eq!(note["acked_count"], 0, "{note}");
    }
    assert_eq!(send(&talk.callee, forged(Channel::Info, &id)).await, 200);
    talk.still_up_and_over().await;
}

/// S5: without its digest a MESSAGE is no acknowledgement, whatever its From says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_an_acknowledgement_without_a_digest_is_none() {
    let site = Site::start().await;
    let phone = site.phone("1001", answering()).await;
    let stranger = site.phone("1002", answering()).await;
    let person = extension(&site, "1001").await;
    let path = format!("/extensions/{person}/message");
    let (status, sent) = post(site.http, &path, "", r#"{"title":"Fire drill","ack":true}"#).await;
    assert_eq!(status, 202, "{sent}");
    let id = shown(&phone).await.id;
    let bare = |from: Option<&str>| Parcel {
        from: from.map(str::to_owned),
        authenticates: false,
        ..forged(Channel::Message, &id)
    };
    assert_eq!(send(&stranger, bare(Some("1001"))).await, 401);
    assert_eq!(send(&stranger, bare(None)).await, 401);
    assert_eq!(send(&phone, bare(None)).await, 401);
    assert_eq!(acked(&site).await, Vec::<Value>::new());
    // Sent to another phone it is no acknowledgement either, and that phone does not show a forged note.
    let elsewhere = Parcel { to: "1002".to_owned(), ..forged(Channel::Message, &id) };
    assert_eq!(send(&phone, elsewhere).await, 415);
    assert_eq!(acked(&site).await, Vec::<Value>::new());

    assert_eq!(within("an answer", phone.acknowledge(&id)).await.unwrap(), 200);
    let note = record(&site, &format!("/extensions/{person}/messages"), &id, status_is("acked")).await;
    let acked_at = &note["recipients"][0]["acked_at"];
    assert!(acked_at.is_string());
    let device = &note["recipients"][0]["device"];
    assert!(device.as_str().is_some_and(|device| device.starts_with("sip:1001@")), "{note:#}");
    let event = json!({"id": id, "title": "Fire drill", "leg": "sip:1001@acme.test", "device": device, "acked_at": acked_at});
    assert_eq!(acked(&site).await, [event]);
    assert_eq!(within("an answer", phone.acknowledge(&id)).await.unwrap(), 403);
    assert_eq!(acked(&site).await.len(), 1);
}

/// Each device of a person is one phone, identified by its source address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_device_of_a_person_has_its_receipt() {
    let site = Site::start().await;
    let desk = site.phone("1001", answering()).await;
    let mobile = site.phone("1001", answering()).await;
    let person = extension(&site, "1001").await;
    let (_, sent) =
        post(site.http, &format!("/extensions/{person}/message"), "", r#"{"title":"a","ack":true}"#).await;
    let id = sent["id"].as_str().unwrap();
    shown(&desk).await;
    shown(&mobile).await;
    for (phone, status, count) in [(&mobile, 200, 1), (&mobile, 403, 1), (&desk, 200, 2), (&desk, 403, 2)] {
        assert_eq!(within("an answer", phone.acknowledge(id)).await.unwrap(), status);
        assert_eq!(acked(&site).await.len(), count);
    }
    let note =
        record(&site, &format!("/extensions/{person}/messages"), id, |note| note["acked_count"] == 2).await;
    assert_eq!(note["recipient_count"], 2);
}

/// S6: after the call an acknowledgement inside it is impossible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_after_the_call_nothing_is_acknowledged_by_info() {
    let talk = talk().await;
    let id = asked(&talk).await;
    talk.caller.hang_up().await.unwrap();
    talk.site.idle().await;
    calls(&talk.callee, 0, 0).await;
    let late = within("an answer", talk.callee.acknowledge(&id)).await;
    assert!(matches!(late, Err(PhoneError::NoCall)), "{late:?}");
    // Nor by MESSAGE.
    assert_eq!(send(&talk.callee, forged(Channel::Message, &id)).await, 403);
    assert_eq!(acked(&talk.site).await, Vec::<Value>::new());
    let note = talk.record(&id, |_| true).await;
    assert_eq!((&note["acked_count"], &note["status"]), (&json!(0), &json!("sent")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_acknowledgement_is_told_so_and_costs_no_call() {
    let talk = talk().await;
    let id = asked(&talk).await;
    let parcel = |body: String| Parcel::new(Channel::Info, body);
    for (parcel, status, why) in [
        (parcel(String::new()), 200, "an INFO without a body asks whether we are there"),
        (parcel("{".to_owned()), 400, "no JSON"),
        (parcel("[]".to_owned()), 400, "no object"),
        (parcel(json!({"id": id}).to_string()), 400, "no tap"),
        (parcel(json!({"ack": false, "id": id}).to_string()), 400, "no tap"),
        (parcel(json!({"ack": "true", "id": id}).to_string()), 400, "no tap"),
        (parcel(json!({"ack": true}).to_string()), 400, "of no note"),
        (parcel(json!({"ack": true, "id": 7}).to_string()), 400, "of no note"),
        (parcel(json!({"ack": true, "id": id, "at": "soon"}).to_string()), 400, "no moment"),
        (parcel("[".repeat(4_000)), 400, "depth without end"),
        (parcel(format!("{{\"x\":\"{}\"}}", "y".repeat(5_000))), 413, "too long"),
        (
            Parcel { content_type: "text/html".to_owned(), ..parcel("<b>ok</b>".to_owned()) },
            415,
            "no JSON by its own word",
        ),
        (
            Parcel { content_type: "application/dtmf-relay".to_owned(), ..parcel("Signal=1".to_owned()) },
            200,
            "a key, for the other party",
        ),
    ] {
        assert_eq!(send(&talk.callee, parcel).await, status, "{why}");
    }
    assert_eq!(acked(&talk.site).await, Vec::<Value>::new());
    assert_eq!(send(&talk.callee, forged(Channel::Info, &id)).await, 200);
    talk.still_up_and_over().await;
}

/// A person who acknowledges immediately: the tap may arrive before the phone's response to the note is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taps_at_once_all_count() {
    let talk = talk().await;
    talk.caller.treat_notes(Noting::Tap).await.unwrap();
    talk.callee.treat_notes(Noting::Tap).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..20 {
        ids.push(talk.info(&json!({"title": number.to_string(), "ack": true})).await);
    }
    for id in &ids {
        talk.record(id, |note| note["acked_count"] == 2 && note["status"] == "acked").await;
    }
    assert_eq!(acked(&talk.site).await.len(), 40);
    let shown: Vec<String> = talk.callee.notes().into_iter().map(|note| note.id).collect();
    assert_eq!(shown, ids, "in the order they were sent");
    talk.still_up_and_over().await;
}
