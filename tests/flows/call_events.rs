//! The events of calls in the outbox: ringing, answered, ended, missed.

use std::time::Duration;

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::{Event, Position};
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, established, found, open_end, talk, within};

/// Every event, in the order of the log, once there are `count`.
async fn events(site: &Site, count: usize) -> Vec<Event> {
    found("the events", async || {
        let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
        let is_enough = batch.events.len() >= count;
        is_enough.then(|| batch.events.into_iter().map(|placed| placed.event).collect())
    })
    .await
}

/// The payloads of a kind.
fn of<'a>(events: &'a [Event], kind: &str) -> Vec<(&'a Event, Value)> {
    let those = events.iter().filter(|event| event.kind.as_str() == kind);
    those.map(|event| (event, Value::Object(event.data.clone()))).collect()
}

fn fields(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_told_when_it_rings_when_it_is_answered_and_when_it_is_over() {
    let site = Site::start().await;
    let caller = site.phone("1006", answering()).await;
    let late = Answering::Answer { after: Duration::from_millis(300), talk: talk("clean") };
    let callee = site.phone("1002", late).await;
    let call = async { within("the call", caller.call(open_end("1002"))).await.unwrap() };
    let live = async {
        established(&caller, &callee).await;
        let told = events(&site, 2).await;
        let (_, page) = site.get("/calls").await;
        caller.hang_up().await.unwrap();
        (told, page["items"][0].clone())
    };
    let (_, (told, live)) = tokio::join!(call, live);
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["call.ringing", "call.answered"]);

    let (event, answered) = of(&told, "call.answered").remove(0);
    assert!(event.team_id.is_some(), "1006 is in a team");
    assert_eq!(event.organisation_id.to_string(), live["organisation_id"].as_str().unwrap());
    assert_eq!(serde_json::to_value(event.timestamp).unwrap(), live["answered_at"]);
    assert_eq!(
        fields(&answered),
        [
            "call_uuid",
            "direction",
            "caller",
            "destination",
            "started_at",
            "ringing_at",
            "answered_at",
            "extension_id",
            "team_id",
            "legs"
        ]
    );
    assert_eq!(answered["call_uuid"], live["uuid"]);
    for name in ["direction", "caller", "destination", "answered_at", "extension_id", "team_id", "legs"] {
        assert_eq!(answered[name], live[name], "{name}");
    }
    let (_, ringing) = of(&told, "call.ringing").remove(0);
    assert_eq!((&ringing["call_uuid"], &ringing["answered_at"]), (&live["uuid"], &Value::Null));

    let record = site.record().await;
    let all = events(&site, 3).await;
    let (event, ended) = of(&all, "call.ended").remove(0);
    assert!(event.team_id.is_some());
    assert_eq!(
        [&ended["call_uuid"], &ended["caller"], &ended["destination"], &ended["extension_id"]],
        [&live["uuid"], &json!("1006"), &json!("1002"), &live["extension_id"]]
    );
    for (name, value) in record.as_object().unwrap() {
        if !["cost_amount", "margin"].contains(&name.as_str()) {
            assert_eq!(&ended[name], value, "{name}: as in the record");
        }
    }
    assert_eq!(all.len(), 3, "and that is all: {all:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_an_extension_did_not_take_is_missed() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let callee = site.phone("1006", Answering::Ring).await;
    let plan = CallPlan { patience: Some(Duration::from_millis(300)), ..CallPlan::to("1006") };
    assert_eq!(within("given up", caller.call(plan)).await.unwrap().status, 487);
    drop(callee);
    // No phone is registered.
    assert_eq!(within("nobody", caller.call(CallPlan::to("1004"))).await.unwrap().status, 480);
    // No such extension: no missed call.
    assert_eq!(within("no number", caller.call(CallPlan::to("1999"))).await.unwrap().status, 404);
    let records = site.records(3).await;
    // Ringing, three ends and two missed calls.
    let all = events(&site, 6).await;
    let missed = of(&all, "call.missed");
    assert_eq!((all.len(), missed.len()), (6, 2), "{all:#?}");

    let to = |number: &str| missed.iter().find(|(_, data)| data["destination"] == number).unwrap();
    let record = records.iter().find(|record| record["destination_number"] == "1006").unwrap();
    let (_, ringing) = of(&all, "call.ringing").remove(0);
    let (event, rang) = to("1006");
    assert!(event.team_id.is_some(), "the team of whoever missed it");
    assert_eq!(
        fields(rang),
        [
            "call_uuid",
            "direction",
            "caller",
            "destination",
            "extension_id",
            "team_id",
            "started_at",
            "ended_at",
            "hangup_cause"
        ]
    );
    assert_eq!(rang["extension_id"], ringing["legs"][1]["extension_id"], "not that of whoever called");
    assert_eq!([&rang["caller"], &rang["hangup_cause"]], [&json!("1001"), &json!("ORIGINATOR_CANCEL")]);
    assert_eq!(rang["call_uuid"], record["call_uuid"]);
    let (event, absent) = to("1004");
    assert_eq!((event.team_id, absent.get("team_id")), (None, None));
    assert_eq!(absent["hangup_cause"], "USER_NOT_REGISTERED");
}
