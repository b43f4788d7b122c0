//! A killed engine with a call placed over the API: the request reads as failed, the record exists, and every report
//! arrives, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::phone;
use crate::common::killed::{Engine, reaching};
use crate::common::receiver::{Received, Receiver, Reply};
use crate::common::records::TempDir;
use crate::common::site::{answering, calls, declare, directory, found, get, post, records};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placed_call_has_its_record_and_its_reports_after_kill_9() {
    let dir = TempDir::new();
    let acme = "name = \"Acme\"\ncallback_secret = \"a secret of sixteen and more\"\n";
    declare(dir.path(), &directory().replacen("name = \"Acme\"\n", acme, 1)).await;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let receiver =
        Receiver::start(move |_| Reply::status(if well.load(Ordering::SeqCst) { 204 } else { 503 })).await;
    let settings = reaching(&receiver, dir.path());
    let engine = Engine::serve_with(dir.path(), &settings).await;
    let caller = phone(&engine, "1001", answering()).await;
    let callee = phone(&engine, "1002", answering()).await;
    let call = json!({"from": "1001", "to": "1002", "reference": "ticket-4711", "callback_url": receiver.url("/calls")});
    let (status, placed) = post(engine.http, "/calls", "", &call.to_string()).await;
    assert_eq!(status, 202, "{placed}");
    calls(&caller, 0, 1).await;
    calls(&callee, 0, 1).await;
    let path = format!("/call-requests/{}", placed["call_request_id"].as_str().unwrap());
    let http = engine.http;
    found("the answer is stored", async || {
        let (_, request) = get(http, &path).await;
        (request["state"] == "answered").then_some(())
    })
    .await;
    receiver.seen.count(1).await;
    engine.kill();
    is_well.store(true, Ordering::SeqCst);

    let engine = Engine::serve_with(dir.path(), &settings).await;
    let record = records(engine.http, 1).await.remove(0);
    assert_eq!([&record["call_uuid"], &record["reference"]], [&placed["call_uuid"], &json!("ticket-4711")]);
    assert_eq!(record["hangup_cause"], "CRASH");
    let (_, request) = get(engine.http, &path).await;
    assert_eq!([&request["state"], &request["reason"]], ["failed", "node_restarted"], "{request:#}");
    assert_eq!(request["cdr"], placed["call_uuid"], "{request:#}");
    let reports = found("the last report", async || {
        let reports: Vec<Value> = receiver.seen.now().iter().map(Received::json).collect();
        (reports.last()?["type"] == "completed").then_some(reports)
    })
    .await;
    let mut kinds: Vec<_> = reports.iter().map(|report| report["type"].as_str().unwrap()).collect();
    kinds.dedup();
    assert_eq!(kinds, ["ringing", "answered", "completed"]);
    let mut ids: Vec<_> = reports.iter().map(|report| report["id"].as_str().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3, "a report that comes again has the same id");
    assert_eq!(reports.last().unwrap()["data"]["reason"], "node_restarted");
    engine.kill();
}
