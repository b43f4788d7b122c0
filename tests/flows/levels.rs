//! The audio level of each second: the stored call has the figures of the capture of the same call.

use std::time::Duration;

use serde_json::Value;
use sidetone_capture::{EngineOptions, read_with};
use sidetone_model::media_quality::QualityTimeline;
use sidetone_phone::{Answering, CallPlan, Tap};

use crate::common::site::{Site, answering, directory, talk, within};

/// The levels of a timeline, by second.
fn levels(inbound: &Value) -> Vec<Option<i64>> {
    let timeline = &inbound["timeline"];
    let columns: Vec<&str> =
        timeline["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(columns, QualityTimeline::COLUMNS);
    let place = columns.iter().position(|name| *name == "level_dbov").unwrap();
    timeline["seconds"].as_array().unwrap().iter().map(|row| row[place].as_i64()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_call_and_its_capture_have_the_same_levels() {
    let site = Site::configured(&directory(), |config| config.media.audio_evidence = true).await;
    let tap = Tap::default();
    let mut config = site.phone_config("1001", Answering::Ring);
    config.tap = Some(tap.clone());
    let caller = site.phone_of(config).await;
    let _callee = site.phone("1002", answering()).await;
    // The audio ends before the call, so that no packet is in flight when the call is judged.
    let talk = talk("clean duration=6s");
    let plan = CallPlan { talk, talk_time: Some(Duration::from_millis(6_500)), ..CallPlan::to("1002") };
    assert_eq!(within("the call", caller.call(plan)).await.unwrap().status, 200);
    let record = site.record().await;
    let (status, stored) =
        site.get(&format!("/cdrs/{}/quality", record["call_uuid"].as_str().unwrap())).await;
    assert_eq!(status, 200, "{stored:#}");

    let file = tap.to_pcap().unwrap();
    let options = EngineOptions { audio: true, ..EngineOptions::default() };
    let outcome = read_with(options, "tap", &mut &file[..], &mut |_, _| {});
    assert!(outcome.broken.is_none(), "{:?}", outcome.broken);
    let offline = serde_json::to_value(&outcome.analysis.calls[0]).unwrap();
    let (live, offline) = (levels(&stored["legs"][0]["inbound"]), levels(&offline["inbound"]));
    assert!(live.len() >= 6 && offline.len() >= 6, "{live:?} {offline:?}");
    // A packet at the end of a second may be in the next second of the capture.
    for (second, (live, offline)) in live.iter().zip(&offline).take(5).enumerate() {
        let (live, offline) = (live.unwrap(), offline.unwrap());
        assert!((live - offline).abs() <= 1, "second {second}: {live} and {offline} dBov");
    }
}
