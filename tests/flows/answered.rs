//! Calls that are answered, and their records, field by field.

use std::time::Duration;

use serde_json::{Value, json};
use sidetone_model::time::Timestamp;
use sidetone_phone::{Answering, CallPlan};

use crate::common::site::{Site, answering, calls, established, open_end, talk, talking, within};

/// A record in which values that differ from run to run are replaced by their type.
pub fn shape(record: &Value) -> Value {
    let mut record = record.clone();
    for name in ["call_uuid", "fs_node_id"] {
        if record.get(name).is_some() {
            record[name] = record[name].as_str().map_or(Value::Null, |_| "uuid".into());
        }
    }
    for name in ["started_at", "answered_at", "ended_at"] {
        record[name] = record[name].as_str().map_or(Value::Null, |_| "time".into());
    }
    for name in ["jitter_ms", "mean_interval_ms", "mos", "quality_pct"] {
        record[name] = record[name].as_f64().map_or(Value::Null, |_| "number".into());
        if record.get("media_b").is_some() {
            record["media_b"][name] =
                record["media_b"][name].as_f64().map_or(Value::Null, |_| "number".into());
        }
    }
    record
}

/// Asserts that the caller's audio is complete. Its timing depends on the other work of this machine.
pub fn assert_whole(record: &Value) {
    assert_eq!(record["loss_pct"], 0.0, "{record:#}");
    assert!(is_uneven_at_most(&record["media_verdict"]), "{record:#}");
}

/// Whether a verdict is ok, or one that a stalled machine causes for audio without loss.
pub fn is_uneven_at_most(verdict: &Value) -> bool {
    let verdict = verdict.as_str().unwrap_or_default();
    ["degraded_audio", "ok", "jittery_inbound", "unpaced_sender"].contains(&verdict)
}

fn instant(record: &Value, name: &str) -> i64 {
    serde_json::from_value::<Timestamp>(record[name].clone()).unwrap().as_micros() / 1000
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_call_is_relayed_both_ways_and_recorded_in_full() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let outcome = within("the call", caller.call(talking("1002", 2_500))).await.unwrap();
    assert_eq!((outcome.status, outcome.ended_by_peer), (200, false));
    assert!(outcome.received > 50, "the caller heard {}", outcome.received);
    assert!(callee.heard() > 50, "the callee heard {}", callee.heard());
    calls(&callee, 0, 0).await;

    let record = site.record().await;
    assert_whole(&record);
    let mut expected = json!({
        "call_uuid": "uuid",
        "direction": "internal",
        "transport": "sip",
        "started_at": "time",
        "answered_at": "time",
        "ended_at": "time",
        "billsec": record["billsec"],
        "billing_mode": "free",
        "transcoded": false,
        "codec_a": "PCMU",
        "codec_b": "PCMU",
        "caller_number": "1001",
        "destination_number": "1002",
        "agent_id": null,
        "team_id": null,
        "fs_node_id": "uuid",
        "hangup_cause": "NORMAL_CLEARING",
        "bridge_cause": "NORMAL_CLEARING",
        "sip_status": 200,
        "ended_by": "caller",
        "sell_amount": "0.00",
        "cost_amount": "0.00",
        "margin": "0.00",
        "currency": "EUR",
        "jitter_ms": "number",
        "loss_pct": 0.0,
        "mean_interval_ms": "number",
        "quality_pct": "number",
        "mos": "number",
        "media_verdict": record["media_verdict"],
        "media_b": {
            "media_verdict": record["media_b"]["media_verdict"],
            "jitter_ms": "number",
            "loss_pct": 0.0,
            "mean_interval_ms": "number",
            "quality_pct": "number",
            "mos": "number",
        },
        "media_verdict_worse": record["media_verdict_worse"],
        "network_a": "127.0.0.0/24",
        "network_b": "127.0.0.0/24",
    });
    assert_eq!(shape(&record), expected);

    let [started, answered, ended] = ["started_at", "answered_at", "ended_at"].map(|n| instant(&record, n));
    assert!(started <= answered && answered < ended);
    let billed = record["billsec"].as_i64().unwrap();
    assert!(billed >= 2 && (billed * 1000 - 1..=billed * 1000 + 1001).contains(&(ended - answered)));
    // The single record equals the one in the list.
    let path = format!("/cdrs/{}", record["call_uuid"].as_str().unwrap());
    expected = record;
    assert_eq!(site.get(&path).await, (200, expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callee_may_hang_up() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(open_end("1002")), async {
            established(&caller, &callee).await;
            callee.hang_up().await.unwrap();
        })
    })
    .await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.status, outcome.ended_by_peer), (200, true));
    let record = site.record().await;
    assert_eq!((&record["hangup_cause"], &record["sip_status"]), (&json!("NORMAL_CLEARING"), &json!(200)));
    assert_eq!(record["ended_by"], "callee");
    site.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_media_is_heard_before_the_answer() {
    let site = Site::start().await;
    let early = Answering::Early { after: Duration::from_secs(60), talk: talk("clean").unwrap() };
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", early).await);
    // The caller gives up during ringing: the audio that it received was early media.
    let (outcome, ()) = within("the call", async {
        tokio::join!(caller.call(open_end("1002")), async {
            crate::common::site::until("early media", || caller.heard() > 10 && callee.heard() > 10).await;
            caller.hang_up().await.unwrap();
        })
    })
    .await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.status, 487);
    assert!(outcome.received > 10);
    let record = site.record().await;
    assert_eq!(
        [&record["hangup_cause"], &record["media_verdict"], &record["answered_at"], &record["codec_a"]],
        [&json!("ORIGINATOR_CANCEL"), &json!("unanswered"), &Value::Null, &Value::Null]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_media_goes_on_through_the_answer() {
    let site = Site::start().await;
    let early = Answering::Early { after: Duration::from_millis(500), talk: talk("clean").unwrap() };
    let (caller, _callee) = (site.phone("1001", answering()).await, site.phone("1002", early).await);
    let outcome = within("the call", caller.call(talking("1002", 2_000))).await.unwrap();
    assert_eq!(outcome.status, 200);
    assert_whole(&site.record().await);
}

/// Whichever wins, both parties and the record agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_crosses_the_answer_leaves_one_consistent_record() {
    let site = Site::start().await;
    let after = Duration::from_millis(150);
    let callee = Answering::Answer { after, talk: None };
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", callee).await);
    let rounds: u64 = 12;
    let mut statuses = Vec::new();
    for round in 0..rounds {
        let patience = Some(Duration::from_millis(140 + 2 * round));
        let plan = CallPlan { patience, talk_time: Some(Duration::ZERO), ..CallPlan::to("1002") };
        statuses.push(within("the call", caller.call(plan)).await.unwrap().status);
        calls(&callee, 0, 0).await;
        site.idle().await;
    }
    let mut records = site.records(rounds as usize).await;
    records.reverse();
    for (status, record) in statuses.iter().zip(&records) {
        match record["hangup_cause"].as_str().unwrap() {
            "ORIGINATOR_CANCEL" => {
                assert_eq!(*status, 487, "{record:#}");
                assert_eq!((&record["answered_at"], &record["billsec"]), (&Value::Null, &json!(0)));
            }
            "NORMAL_CLEARING" => assert!(record["answered_at"].is_string(), "{status} {record:#}"),
            other => panic!("{other}: {record:#}"),
        }
    }
}
