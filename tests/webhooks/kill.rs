//! W3: the engine is killed during sending, repeatedly: every event that was acknowledged arrives, always with the same
//! id.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::common::killed::{Engine, reaching};
use crate::common::receiver::{Received, Receiver, Reply};
use crate::common::records::TempDir;
use crate::common::site::{declare, within};
use crate::service::client::Ask;
use crate::webhooks::world::eventually;

const KEY: &str = "tel_acmekiller01_0123456789abcdefghijklmnopqrstuvwxyz";
const ROUNDS: usize = 20;
const REPORTS_MIN: usize = 10;

async fn post(engine: &Engine, path: &str, body: &Value) -> Value {
    let answer = Ask::new("POST", format!("/api/v1{path}")).bearer(KEY).json(body).send(engine.http).await;
    assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
    answer.json()
}

/// Reports a completed conversation, which stores an event; returns its id when it was acknowledged.
async fn report(to: SocketAddr) -> Option<String> {
    let id = Uuid::new_v4().to_string();
    let body = json!({
        "call_uuid": Uuid::new_v4(), "agent_kind": "human", "direction": "inbound",
        "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:01:00Z", "summary": "told"
    });
    let ask = Ask::new("PUT", format!("/api/v1/conversations/{id}")).bearer(KEY).json(&body);
    let answer = ask.try_send(to).await.ok()?;
    assert_eq!(answer.status, 201, "{answer:?}");
    Some(id)
}

/// The conversation in a delivery.
fn told_of(request: &Received) -> String {
    request.json()["data"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_sending_it_loses_nothing() {
    let dir = TempDir::new();
    let directory = format!(
        "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n\
         [[organisations.api_keys]]\nname = \"all\"\nkey = \"{KEY}\"\npreset = \"full\"\n\
         allow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n"
    );
    declare(dir.path(), &directory).await;
    // Long enough that a kill happens in between.
    let receiver = Receiver::start(|_| Reply::status(204).after(Duration::from_millis(40))).await;
    let engine = Engine::serve_with(dir.path(), &reaching(&receiver, dir.path())).await;
    let webhook = json!({"url": receiver.url("/hook"), "events": ["conversation.*"]});
    let webhook = post(&engine, "/webhooks", &webhook).await;
    let path = format!("/api/v1/webhooks/{}/deliveries", webhook["id"].as_str().unwrap());
    let mut engine = Some(engine);
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    for round in 0..ROUNDS {
        let running = match engine.take() {
            Some(engine) => engine,
            None => Engine::serve_with(dir.path(), &reaching(&receiver, dir.path())).await,
        };
        let before = receiver.seen.now().len();
        let http = running.http;
        let (told, mut counted) = watch::channel(Vec::new());
        let reports = tokio::spawn(async move {
            while let Some(id) = report(http).await {
                told.send_modify(|told: &mut Vec<String>| told.push(id));
            }
            told.borrow().clone()
        });
        // Each round at another point of the work.
        receiver.seen.count(before + 1).await;
        within("a few reports", counted.wait_for(|told| told.len() > round % REPORTS_MIN)).await.unwrap();
        running.kill();
        acknowledged.extend(reports.await.unwrap());
    }
    assert!(acknowledged.len() >= ROUNDS * 2, "{}", acknowledged.len());

    let engine = Engine::serve_with(dir.path(), &reaching(&receiver, dir.path())).await;
    // All deliveries are done once an event stored now has arrived.
    let last = report(engine.http).await.unwrap();
    acknowledged.insert(last.clone());
    eventually("the last report arrives", async || {
        receiver.seen.now().iter().any(|request| told_of(request) == last)
    })
    .await;
    eventually("nothing waits", async || {
        let mut waiting = 0;
        for status in ["pending", "delivering", "retrying"] {
            let ask = Ask::new("GET", format!("{path}?status={status}")).bearer(KEY);
            waiting += ask.send(engine.http).await.json()["total"].as_u64().unwrap();
        }
        waiting == 0
    })
    .await;

    // Each id is one event, however often it arrived; and each acknowledged report arrived.
    let seen = receiver.seen.now();
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut arrived: BTreeSet<String> = BTreeSet::new();
    for request in &seen {
        let id = request.header("webhook-id").to_owned();
        assert_eq!(request.json()["id"], id.as_str());
        arrived.insert(told_of(request));
        let known = bodies.entry(id).or_insert_with(|| request.body.clone());
        assert_eq!(known, &request.body, "the same id with another body");
    }
    let lost: Vec<_> = acknowledged.difference(&arrived).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert_eq!(bodies.len(), arrived.len(), "an event arrived under two ids");
    let (told, events, sent) = (acknowledged.len(), bodies.len(), seen.len());
    eprintln!(
        "W3: {ROUNDS} kills, {told} reports acknowledged, {events} events arrived in {sent} deliveries"
    );
    engine.kill();
}
