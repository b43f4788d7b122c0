//! Calls that are not answered, and their records.

use std::time::Duration;

use serde_json::{Value, json};
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, calls, codecs, established, open_end, talking, within};
use crate::flows::answered::shape;

/// The record of an unanswered call of 1001 to `1002`; `changes` replaces fields, and removes optional ones that are
/// `null`.
fn unanswered(changes: Value) -> Value {
    let mut record = json!({
        "call_uuid": "uuid",
        "direction": "internal",
        "transport": "sip",
        "started_at": "time",
        "answered_at": null,
        "ended_at": "time",
        "billsec": 0,
        "billing_mode": "free",
        "transcoded": false,
        "codec_a": null,
        "codec_b": null,
        "caller_number": "1001",
        "destination_number": "1002",
        "agent_id": null,
        "team_id": null,
        "fs_node_id": "uuid",
        "sell_amount": "0.00",
        "cost_amount": "0.00",
        "margin": "0.00",
        "currency": "EUR",
        "jitter_ms": null,
        "mean_interval_ms": null,
        "quality_pct": null,
        "mos": null,
    });
    for (name, value) in changes.as_object().unwrap() {
        record[name] = value.clone();
    }
    // There is no called party: the caller's verdict is the worse one.
    if let Some(verdict) = record.get("media_verdict").cloned() {
        record["media_verdict_worse"] = verdict;
    }
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_refuses() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let cases =
        [(486, "USER_BUSY"), (603, "CALL_REJECTED"), (480, "NO_USER_RESPONSE"), (404, "UNALLOCATED_NUMBER")];
    for (place, (status, cause)) in cases.into_iter().enumerate() {
        let callee = site.phone("1002", Answering::Refuse(status)).await;
        let outcome = within("the call", caller.call(CallPlan::to("1002"))).await.unwrap();
        assert_eq!((outcome.status, outcome.received), (status, 0));
        let record = site.records(place + 1).await.remove(0);
        let expected = unanswered(json!({
            "hangup_cause": cause, "bridge_cause": cause, "sip_status": status, "media_verdict": "unanswered",
            "ended_by": "callee", "network_a": "127.0.0.0/24",
        }));
        assert_eq!(shape(&record), expected, "{status}");
        // The next phone of this number replaces this one.
        unregister(&site, &callee.local().to_string()).await;
    }
}

/// Removes every binding of 1002, as the phone at `local` would.
async fn unregister(site: &Site, local: &str) {
    let mut wire = crate::common::wire::Wire::open(site.sip).await;
    let ask = wire.register("1002", Some(&format!("<sip:1002@{local}>;expires=0")));
    assert_eq!(wire.authorized(&ask, "1002", crate::common::site::PASSWORD).await.status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_answers_and_the_caller_gives_up() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", Answering::Ring).await);
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(CallPlan::to("1002")), async {
            calls(&callee, 1, 0).await;
            caller.hang_up().await.unwrap();
        })
    })
    .await;
    assert_eq!(outcome.unwrap().status, 487);
    calls(&callee, 0, 0).await;
    let expected = unanswered(json!({
        "hangup_cause": "ORIGINATOR_CANCEL", "media_verdict": "unanswered", "ended_by": "caller",
        "network_a": "127.0.0.0/24",
    }));
    assert_eq!(shape(&site.record().await), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_lead_nowhere_are_refused_and_recorded() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let cases = [("1003", 480, "USER_NOT_REGISTERED"), ("7777", 404, "UNALLOCATED_NUMBER")];
    for (place, (number, status, cause)) in cases.into_iter().enumerate() {
        let outcome = within("the call", caller.call(CallPlan::to(number))).await.unwrap();
        assert_eq!(outcome.status, status, "{number}");
        let record = site.records(place + 1).await.remove(0);
        // No phone was rung: no bridge, no RTP session.
        let expected = unanswered(json!({
            "destination_number": number, "hangup_cause": cause, "ended_by": "system",
        }));
        assert_eq!(shape(&record), expected, "{number}");
    }
    site.idle().await;
}

/// The line may use G.722 alone, and its phone does not have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_without_a_codec_of_its_line_answers_488() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let mut ulaw = site.phone_config("1722", Answering::Answer { after: Duration::ZERO, talk: None });
    ulaw.codecs = codecs(&["PCMU"]);
    let _callee = site.phone_of(ulaw).await;
    let outcome = within("the call", caller.call(CallPlan::to("1722"))).await.unwrap();
    assert_eq!(outcome.status, 488);
    let expected = unanswered(json!({
        "destination_number": "1722",
        "hangup_cause": "INCOMPATIBLE_DESTINATION",
        "bridge_cause": "INCOMPATIBLE_DESTINATION",
        "sip_status": 488,
        "media_verdict": "unanswered",
        "ended_by": "callee",
        "network_a": "127.0.0.0/24",
    }));
    assert_eq!(shape(&site.record().await), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_belongs_to_the_callers_team() {
    let site = Site::start().await;
    let caller = site.phone("1006", answering()).await;
    let outcome = within("the call", caller.call(CallPlan::to("7777"))).await.unwrap();
    assert_eq!(outcome.status, 404);
    let record = site.record().await;
    assert!(record["team_id"].as_str().is_some_and(|id| id.len() == 36), "{record:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_free_port_the_call_is_503_and_ports_come_back() {
    let site = Site::narrow().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let other = site.phone("1003", answering()).await;
    within("the call", async {
        tokio::join!(caller.call(open_end("1002")), async {
            established(&caller, &callee).await;
            let refused = other.call(CallPlan::to("1002")).await.unwrap();
            assert_eq!(refused.status, 503);
            callee.hang_up().await.unwrap();
        })
    })
    .await
    .0
    .unwrap();
    // A port stays unused for some seconds after its call, so that no late packet reaches the next one.
    let mut refusals = 1;
    within("another call", async {
        while other.call(talking("1002", 100)).await.unwrap().status == 503 {
            refusals += 1;
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    })
    .await;
    let records = site.records(2 + refusals).await;
    let with = |cause: &str| records.iter().filter(|record| record["hangup_cause"] == cause).count();
    assert_eq!((with("NORMAL_CLEARING"), with("SWITCH_CONGESTION")), (2, refusals));
}
