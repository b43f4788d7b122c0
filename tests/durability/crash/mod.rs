//! kill -9 in the middle of calls and notes: everything that was acknowledged before exists exactly once afterwards.

mod notes;
mod requested;
mod room;

use std::collections::HashSet;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sidetone_phone::{Answering, CallPlan, Phone};
use tokio::task::JoinHandle;

use crate::common::killed::Engine;
use crate::common::records::TempDir;
use crate::common::site::{answering, calls, declare, directory, open_end, phone_config, registered, within};

async fn phone(engine: &Engine, number: &str, answering: Answering) -> Phone {
    registered(phone_config(engine.sip, number, answering)).await
}

/// Places a call that never ends by itself.
fn place(caller: &Arc<Phone>, number: &str) -> JoinHandle<()> {
    let (caller, plan) = (Arc::clone(caller), open_end(number));
    tokio::spawn(async move {
        let _ = caller.call(plan).await;
    })
}

/// Each record by its caller, destination and cause, sorted.
fn summary(records: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = records
        .iter()
        .map(|record| {
            let word = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
            let answered = if record["answered_at"].is_null() { "unanswered" } else { "answered" };
            format!("{} {} {answered}", word("destination_number"), word("hangup_cause"))
        })
        .collect();
    lines.sort();
    lines
}

fn uuids(records: &[Value]) -> HashSet<String> {
    records.iter().map(|record| record["call_uuid"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answered_call_has_exactly_one_record_after_kill_9() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let engine = Engine::serve(dir.path()).await;
    let caller = Arc::new(phone(&engine, "1001", answering()).await);
    let callee = phone(&engine, "1002", answering()).await;
    let placed: Vec<_> = (0..20).map(|_| place(&caller, "1002")).collect();
    // Every caller has received its 200.
    calls(&caller, 0, 20).await;
    calls(&callee, 0, 20).await;
    engine.kill();
    for call in placed {
        call.abort();
    }

    let engine = Engine::serve(dir.path()).await;
    let first = crate::common::site::records(engine.http, 20).await;
    assert_eq!(summary(&first), vec!["1002 CRASH answered"; 20]);
    assert_eq!(uuids(&first).len(), 20);
    for record in &first {
        // The figures known at the answer are kept; unfinished measurements are left out.
        assert_eq!((&record["codec_a"], &record["sip_status"]), (&"PCMU".into(), &200.into()));
        assert!(record.get("media_verdict").is_none() && record.get("loss_pct").is_none(), "{record:#}");
    }
    engine.kill();
    // No record is stored twice, and none was only in memory.
    let engine = Engine::serve(dir.path()).await;
    assert_eq!(crate::common::site::records(engine.http, 20).await, first);
    engine.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_calls_stay_as_they_ended_and_ringing_ones_were_never_answered() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let engine = Engine::serve(dir.path()).await;
    let caller = Arc::new(phone(&engine, "1001", answering()).await);
    let other = Arc::new(phone(&engine, "1004", answering()).await);
    let talker = phone(&engine, "1002", answering()).await;
    let ringer = phone(&engine, "1003", Answering::Ring).await;
    for _ in 0..5 {
        let plan = CallPlan { talk_time: Some(Duration::ZERO), ..CallPlan::to("1002") };
        assert_eq!(within("a short call", other.call(plan)).await.unwrap().status, 200);
    }
    // The phone is notified of the end before the record is on the disk.
    crate::common::site::records(engine.http, 5).await;
    let mut placed: Vec<_> = (0..6).map(|_| place(&caller, "1002")).collect();
    placed.extend((0..4).map(|_| place(&other, "1003")));
    calls(&caller, 0, 6).await;
    calls(&other, 4, 0).await;
    calls(&ringer, 4, 0).await;
    engine.kill();
    drop((talker, ringer));
    for call in placed {
        call.abort();
    }

    let mut expected = vec!["1002 CRASH answered"; 6];
    expected.extend(["1002 NORMAL_CLEARING answered"; 5]);
    for _ in 0..2 {
        let engine = Engine::serve(dir.path()).await;
        let records = crate::common::site::records(engine.http, 11).await;
        assert_eq!(summary(&records), expected);
        engine.kill();
    }
}

/// A kill while calls are being set up: a caller that received its 200 has a record; no caller has two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_answers_forgets_no_caller_who_heard_one() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let mut known: HashSet<String> = HashSet::new();
    for round in 1..=4 {
        let engine = Engine::serve(dir.path()).await;
        let caller = Arc::new(phone(&engine, "1001", answering()).await);
        let _callee = phone(&engine, "1002", answering()).await;
        let placed: Vec<_> = (0..20).map(|_| place(&caller, "1002")).collect();
        let mut counted = caller.calls();
        within("a few answers", counted.wait_for(|calls| calls.up >= 4 * round)).await.unwrap();
        engine.kill();
        let heard = caller.calls().borrow().up;
        for call in placed {
            call.abort();
        }
        let engine = Engine::serve(dir.path()).await;
        let records = crate::common::site::records_at_least(engine.http, known.len() + heard).await;
        let now = uuids(&records);
        assert_eq!(now.len(), records.len(), "a call has two records");
        assert!(now.is_superset(&known), "a record is gone");
        assert!(records.iter().all(|record| record["hangup_cause"] == "CRASH"));
        engine.kill();
        known = now;
    }
}
