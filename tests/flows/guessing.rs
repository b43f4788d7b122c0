//! Guessed passwords: the organisation gets an event, and its webhook gets the same (S1).

use serde_json::json;
use sidetone_model::access::Scope;
use sidetone_model::event::{Event, Position};

use crate::common::receiver::{Receiver, Reply};
use crate::common::site::{Site, directory, found, post};
use crate::common::wire::Wire;
use crate::flows::metrics::scrape;

/// The events of that kind in the event log.
async fn events(site: &Site, kind: &str) -> Vec<Event> {
    let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
    let events = batch.events.into_iter().map(|placed| placed.event);
    events.filter(|event| event.kind.as_str() == kind).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guessed_passwords_are_told_to_the_organisation_and_counted() {
    let receiver = Receiver::start(|_| Reply::status(204)).await;
    let directory = directory().replacen(
        "\"margin:read\"",
        "\"margin:read\", \"directory:write\", \"webhooks:write\"",
        1,
    );
    let site = Site::configured(&directory, |config| {
        config.outbound_http = receiver.settings(&config.node.data_dir);
    })
    .await;
    let hook = json!({"url": receiver.url("/hook"), "events": ["security.guessing"]}).to_string();
    let (status, answer) = post(site.http, "/webhooks", "", &hook).await;
    assert_eq!(status, 201, "{answer}");
    for attempt in 0..15 {
        let mut wire = Wire::open_from("127.0.0.11", site.sip).await;
        let ask = wire.register("1001", None);
        let ask = wire.authorize(&ask, "1001", &format!("guess {attempt}")).await;
        wire.exchange(&ask).await;
    }
    let told = found("the event", async || events(&site, "security.guessing").await.pop()).await;
    let fields = ["account", "source", "limit", "failures", "window_seconds", "left_out"];
    let said = fields.map(|field| told.data[field].clone());
    assert_eq!(
        said,
        [json!("1001@acme.test"), json!("127.0.0.11"), json!("account"), json!(10), json!(300), json!(0)]
    );
    assert!(told.data["extension_id"].is_string(), "{:?}", told.data);
    let organisations = site.engine().store.directory().await.unwrap().organisations;
    assert!(
        organisations.iter().any(|known| known.id == told.organisation_id && known.sip_domain == "acme.test")
    );
    assert_eq!(events(&site, "security.guessing").await.len(), 1);
    receiver.seen.count(1).await;
    let delivered = receiver.seen.now()[0].json();
    assert_eq!(
        [&delivered["id"], &delivered["type"], &delivered["data"]],
        [&json!(told.id), &json!("security.guessing"), &json!(told.data)],
        "{delivered:#}"
    );
    let (text, samples) = scrape(&site).await;
    let count =
        |limit: &str| samples.get(&format!("sidetone_sip_guessing_total{{limit=\"{limit}\"}}")).copied();
    assert_eq!(
        [count("account"), count("all_sources"), count("source")],
        [Some(1.0), Some(0.0), Some(0.0)],
        "{text}"
    );
}
