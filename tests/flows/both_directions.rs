//! A call with good audio from the caller and bad audio to it: the record, the figures and the events show both.

use std::time::Duration;

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::Position;
use sidetone_phone::Answering;

use crate::common::site::{Site, answering, calls, found, open_end, talk, talking, within};

/// The figures of each direction in a record.
const FIGURES: [&str; 5] = ["loss_pct", "jitter_ms", "mean_interval_ms", "quality_pct", "mos"];

/// The data of the event `call.ended`.
async fn ended(site: &Site) -> Value {
    found("the event", async || {
        let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
        let mut events = batch.events.into_iter().map(|placed| placed.event);
        let event = events.find(|event| event.kind.as_str() == "call.ended")?;
        Some(Value::Object(event.data))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_lost_packets_towards_the_caller_is_not_a_good_call() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let lossy = talk("clean duration=5s loss=15 seed=6");
    let answers = Answering::Answer { after: Duration::from_millis(50), talk: lossy };
    let _callee = site.phone("1002", answers).await;
    let outcome = within("the call", caller.call(talking("1002", 5_500))).await.unwrap();
    assert_eq!(outcome.status, 200);

    let record = site.record().await;
    assert_eq!(record["loss_pct"], 0.0, "the caller was heard whole: {record:#}");
    let far = &record["media_b"];
    assert_eq!(far["media_verdict"], "lossy_inbound", "{record:#}");
    assert!((8.0..25.0).contains(&far["loss_pct"].as_f64().unwrap()), "{record:#}");
    assert_eq!(record["media_verdict_worse"], "lossy_inbound", "{record:#}");
    for party in ["network_a", "network_b"] {
        assert_eq!(record[party], "127.0.0.0/24", "{record:#}");
    }

    let uuid = record["call_uuid"].as_str().unwrap();
    let (status, quality) = site.get(&format!("/cdrs/{uuid}/quality")).await;
    assert_eq!(status, 200);
    let callee = &quality["callee"];
    assert_eq!([&callee["media_verdict"], &callee["blame"]], [&json!("lossy_inbound"), &json!("network")]);
    assert_eq!(callee["sentence"], quality["legs"][1]["sentence"]);
    assert_eq!(quality["media_verdict_worse"], "lossy_inbound");
    let event = ended(&site).await;
    for figure in FIGURES {
        let of_leg = &quality["legs"][1]["inbound"][figure];
        for told in [&far[figure], &callee[figure], &event["media_b"][figure]] {
            assert_eq!(told, of_leg, "{figure}");
        }
    }
    assert_eq!(event["media_verdict_worse"], "lossy_inbound");

    // The lists can be filtered by either direction, and their totals agree.
    let verdict = record["media_verdict"].as_str().unwrap();
    for (query, total) in [
        ("media_verdict_b=lossy_inbound".to_owned(), 1),
        (format!("media_verdict={verdict}&media_verdict_b=lossy_inbound"), 1),
        (format!("media_verdict={verdict}"), 1),
        ("media_verdict_b=no_inbound_media".to_owned(), 0),
    ] {
        let (status, page) = site.get(&format!("/cdrs?{query}")).await;
        assert_eq!((status, &page["total"]), (200, &json!(total)), "{query}");
    }
    let (status, refused) = site.get("/cdrs?media_verdict_b=bad").await;
    assert_eq!(status, 400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("media_verdict_b: "), "{refused}");
}

/// The figures of a live call have the same shape, as soon as it is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_directions_of_a_live_call_are_judged() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let silent = Answering::Answer { after: Duration::from_millis(50), talk: None };
    let callee = site.phone("1002", silent).await;
    let call = async { within("the call", caller.call(open_end("1002"))).await.unwrap() };
    let watched = async {
        calls(&callee, 0, 1).await;
        let (_, page) = site.get("/calls").await;
        let uuid = page["items"][0]["uuid"].as_str().unwrap().to_owned();
        let live = found("silence", async || {
            let (_, live) = site.get(&format!("/calls/{uuid}/quality?timeline=false")).await;
            // The caller's audio must be enough to judge too, which takes longer on a busy machine. Until its first packet
            // it is `no_inbound_media`.
            let is_judged = live["callee"]["media_verdict"] == "no_inbound_media"
                && live["media_verdict"] == "no_outbound_media";
            is_judged.then_some(live)
        })
        .await;
        assert_eq!(live["media_verdict_worse"], "no_inbound_media", "the cause comes before its effect");
        assert!(live["callee"].get("loss_pct").is_none(), "what cannot be judged is absent: {live:#}");
        caller.hang_up().await.unwrap();
    };
    tokio::join!(call, watched);
    let record = site.record().await;
    assert_eq!(record["media_b"], json!({ "media_verdict": "no_inbound_media" }), "{record:#}");
}

/// A call without an answer has no called party.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_answer_tells_of_the_caller_alone() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let _busy = site.phone("1002", Answering::Refuse(486)).await;
    let outcome = within("the call", caller.call(talking("1002", 500))).await.unwrap();
    assert_eq!(outcome.status, 486);
    let record = site.record().await;
    assert_eq!([&record["media_verdict"], &record["media_verdict_worse"]], ["unanswered", "unanswered"]);
    assert!(record.get("media_b").is_none(), "{record:#}");
}
