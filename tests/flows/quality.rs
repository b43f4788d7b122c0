//! A call whose caller stops sending audio: the warning meanwhile, the live figures, and the stored ones.

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::event::Position;
use sidetone_model::time::Timestamp;

use crate::common::site::{Site, answering, calls, found, open_end, talk, until, within};

/// The data of the warnings so far, once there are `count`.
async fn warnings(site: &Site, count: usize) -> Vec<Value> {
    found("the warnings", async || {
        let batch = site.engine().store.events_after(Scope::Everything, Position(0), 500).await.unwrap();
        let events = batch.events.into_iter().map(|placed| placed.event);
        let warnings = events.filter(|event| event.kind.as_str() == "call.media_warning");
        let warnings: Vec<Value> = warnings.map(|event| Value::Object(event.data)).collect();
        (warnings.len() >= count).then_some(warnings)
    })
    .await
}

/// A time of an event.
fn instant(value: &Value) -> Timestamp {
    serde_json::from_value(value.clone()).unwrap()
}

/// The packets that arrived on a leg.
fn packets(quality: &Value, leg: usize) -> u64 {
    quality["legs"][leg]["inbound"]["packets"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_told_at_once_and_both_legs_are_kept_with_the_record() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let callee = site.phone("1002", answering()).await;
    let silent = sidetone_phone::CallPlan { talk: talk("clean hole=1s..6s"), ..open_end("1002") };
    let call = async { within("the call", caller.call(silent)).await.unwrap() };
    let watched = async {
        calls(&callee, 0, 1).await;
        let (_, page) = site.get("/calls").await;
        let uuid = page["items"][0]["uuid"].as_str().unwrap().to_owned();
        let silence = warnings(&site, 1).await.remove(0);
        assert_eq!(
            [&silence["call_uuid"], &silence["leg"], &silence["party"], &silence["state"]],
            [&json!(uuid), &json!("a"), &json!("1001"), &json!("no_audio")],
            "{silence:#}"
        );
        assert_eq!([&silence["caller"], &silence["previous"]], [&json!("1001"), &json!("ok")]);

        let (status, live) = site.get(&format!("/calls/{uuid}/quality")).await;
        assert_eq!((status, &live["state"]), (200, &json!("live")), "{live:#}");
        assert_eq!(live["legs"].as_array().unwrap().len(), 2);
        let rows = &live["legs"][1]["inbound"]["timeline"]["seconds"];
        assert!(rows.as_array().unwrap().len() >= 3, "{live:#}");

        let back = warnings(&site, 2).await.remove(1);
        assert_eq!((&back["state"], &back["leg"]), (&json!("audio_back"), &json!("a")));
        // Each is a media time converted to the wall clock at its own moment; both mean the same beginning.
        assert!(instant(&back["since"]).since(instant(&silence["since"])).abs() < 500_000, "{back:#}");
        let (_, later) = site.get(&format!("/calls/{uuid}/quality?timeline=false")).await;
        assert!(packets(&later, 0) > packets(&live, 0) && packets(&later, 1) > packets(&live, 1));
        assert!(later["legs"][0]["inbound"].get("timeline").is_none());
        caller.hang_up().await.unwrap();
        uuid
    };
    let (_, uuid) = tokio::join!(call, watched);
    let record = site.record().await;
    let (status, kept) = site.get(&format!("/cdrs/{uuid}/quality")).await;
    assert_eq!(
        (status, &kept["state"], &kept["call_uuid"]),
        (200, &json!("final"), &json!(uuid)),
        "{kept:#}"
    );
    assert_eq!(kept["at"], record["ended_at"]);
    let [own, far] = [0, 1].map(|place| &kept["legs"][place]);
    assert_eq!([&own["leg"], &own["party"], &far["leg"], &far["party"]], ["a", "1001", "b", "1002"]);
    assert_eq!([&own["codec"], &far["codec"]], [&record["codec_a"], &record["codec_b"]]);
    // Exactly equal.
    for figure in ["jitter_ms", "loss_pct", "mean_interval_ms", "quality_pct", "mos"] {
        assert_eq!(own["inbound"][figure], record[figure], "{figure}");
    }
    assert_eq!([&kept["media_verdict"], &own["media_verdict"]], [&record["media_verdict"]; 2]);
    assert_eq!(own["media_verdict"], "lossy_inbound", "five seconds are missing");
    // A stalled machine may make the audio uneven, but nothing of it is missing.
    assert_ne!(far["media_verdict"], "lossy_inbound", "{far:#}");
    assert_eq!(far["inbound"]["lost"], 0, "{far:#}");
    // The audio sent to a party is what the other one sent, except for packets while the legs were closed one by one.
    let (sent, received) = (own["outbound"]["packets"].as_u64().unwrap(), packets(&kept, 1));
    assert!(sent <= received && sent * 10 > received * 9, "{sent} of {received} packets went on");
    let rows = own["inbound"]["timeline"]["seconds"].as_array().unwrap();
    let silent = rows.iter().filter(|row| row[0] == 0 && row[8] == 1).count();
    assert!((3..=5).contains(&silent), "{rows:?}");
    let (status, gone) = site.get(&format!("/calls/{uuid}/quality")).await;
    assert_eq!((status, &gone["error"]["code"]), (404, &json!("not_found")));
    until("no call is left", || site.engine().live_calls() == 0).await;
}
