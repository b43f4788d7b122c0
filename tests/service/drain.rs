//! SIGTERM: new calls are refused, live ones run to their end or to the limit, each has a record, and the exit code is
//! 0.

use std::sync::Arc;

use sidetone_phone::{Answering, CallPlan, Phone};
use std::time::Duration;
use tokio::task::JoinHandle;

use crate::common::records::TempDir;
use crate::common::site::{self, calls, declare, directory, found, phone_config, registered, until, within};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

const KEY: &str = "tel_acmeboss0001_0123456789abcdefghijklmnopqrstuvwxyz";
const CALLS: usize = 100;

async fn serve(dir: &TempDir, drain_seconds: u32) -> Served {
    let more = format!("drain_seconds = {drain_seconds}\n[http]\nlisten = \"127.0.0.1:0\"\n");
    let start = Start { config: config(dir.path(), &more), log: "info", files_max: None, env: Vec::new() };
    Served::with(dir.path(), start).await
}

async fn phone(engine: &Served, number: &str) -> Arc<Phone> {
    let silent = Answering::Answer { after: Duration::ZERO, talk: None };
    Arc::new(registered(phone_config(engine.sip, number, silent)).await)
}

/// A call without audio that never ends by itself; returns whether the peer ended it.
fn place(caller: &Arc<Phone>) -> JoinHandle<bool> {
    let (caller, plan) = (Arc::clone(caller), CallPlan { talk_time: None, ..CallPlan::to("1002") });
    tokio::spawn(async move { caller.call(plan).await.is_ok_and(|outcome| outcome.ended_by_peer) })
}

/// D9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_calls_are_drained() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let mut engine = serve(&dir, 15).await;
    let (caller, callee) = (phone(&engine, "1001").await, phone(&engine, "1002").await);
    let other = phone(&engine, "1003").await;
    let placed: Vec<_> = (0..CALLS).map(|_| place(&caller)).collect();
    calls(&caller, 0, CALLS).await;
    calls(&callee, 0, CALLS).await;
    assert_eq!(Ask::new("GET", "/readyz").send(engine.http).await.status, 200);

    engine.signal("TERM");
    let readiness = within("draining", async {
        loop {
            let answer = Ask::new("GET", "/readyz").send(engine.http).await;
            if answer.status == 503 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(readiness.text.contains("draining"), "{readiness:?}");
    // Until the last call has ended the API responds, and calls continue.
    let page = Ask::new("GET", "/api/v1/cdrs").bearer(KEY).send(engine.http).await;
    assert_eq!(page.status, 200, "{page:?}");
    let refused = within("a refusal", async {
        loop {
            let plan = CallPlan { talk_time: Some(Duration::ZERO), ..CallPlan::to("1002") };
            let status = other.call(plan).await.unwrap().status;
            if status != 200 {
                return status;
            }
        }
    })
    .await;
    assert_eq!(refused, 503);
    assert!(caller.calls().borrow().up >= CALLS, "calls end only at the limit");

    assert_eq!(within("exit", engine.ended()).await.code(), Some(0), "{}", engine.said());
    for call in placed {
        assert!(within("the end of a call", call).await.unwrap(), "a call was not ended by a BYE");
    }
    let engine = serve(&dir, 0).await;
    // The records include calls of the other phone before the drain.
    found("a record of each call", async || {
        let records = site::records_at_least(engine.http, CALLS).await;
        let ended = records
            .iter()
            .filter(|record| record["caller_number"] == "1001" && record["hangup_cause"] == "NORMAL_CLEARING")
            .filter(|record| record["answered_at"].is_string() && record["ended_at"].is_string())
            .count();
        assert!(ended <= CALLS, "{ended} records of {CALLS} calls");
        (ended == CALLS).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_it_at_once_and_loses_no_record() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let mut engine = serve(&dir, 3_600).await;
    let (caller, _callee) = (phone(&engine, "1001").await, phone(&engine, "1002").await);
    let placed = place(&caller);
    calls(&caller, 0, 1).await;
    engine.signal("TERM");
    engine.says("draining", 1).await;
    // A reload is too late and harmless.
    engine.signal("HUP");
    engine.says("is not reloaded: the engine is stopping", 1).await;
    engine.signal("TERM");
    assert_eq!(within("exit", engine.ended()).await.code(), Some(1), "{}", engine.said());
    placed.abort();
    let engine = serve(&dir, 0).await;
    let records = site::records(engine.http, 1).await;
    assert_eq!(records[0]["hangup_cause"], "CRASH", "{records:?}");
    until("the phones are left", || true).await;
}
