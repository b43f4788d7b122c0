//! A call over real sockets, the capture of the same call and its trace are judged alike: the record that the API shows,
//! what `analyze` says of the caller's own capture, and what it says of the header-only trace of the leg.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a helper of a test may fail the test"
)]

#[path = "common/chosen.rs"]
mod chosen;
#[path = "common/database.rs"]
mod database;
#[path = "common/records.rs"]
mod records;
#[path = "common/site.rs"]
mod site;

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sidetone::capture;
use sidetone::phone::{Answering, CallPlan, Tap};
use tokio::task::JoinSet;

use crate::site::{DOMAIN, PASSWORD, Site, directory, records_at_least, talk, within};

/// What is said, what the caller hears, and the verdict where the machine's own timing cannot change it.
struct Case {
    name: &'static str,
    /// The caller's talk; `None` says nothing.
    says: Option<&'static str>,
    /// Whether the callee talks.
    hears: bool,
    verdict: Option<&'static str>,
}

const fn case(name: &'static str, says: &'static str, verdict: Option<&'static str>) -> Case {
    Case { name, says: Some(says), hears: true, verdict }
}

/// All talks end before their calls do, so that no packet is on its way when the call is judged.
const CASES: [Case; 14] = [
    case("clean", "clean duration=6s", None),
    case("a little of both", "clean duration=6s loss=3 jitter=0..30 seed=7", Some("lossy_inbound")),
    case("lossy", "clean duration=6s loss=8 seed=3", Some("lossy_inbound")),
    case("bursts", "clean duration=6s burst=10:4 seed=5", Some("lossy_inbound")),
    case("jittery", "clean duration=6s jitter=normal:100:40 seed=2", Some("jittery_inbound")),
    case("unpaced", "clean duration=6s clump=5", Some("unpaced_sender")),
    case("wrong ptime", "clean duration=6s ptime=30 advertised=20", Some("ptime_mismatch")),
    case("out of order", "clean duration=6s swap=10 duplicate=20 seed=4", None),
    case("renumbered", "clean duration=6s ssrc_change=2s restart=4s", None),
    case("silence", "clean duration=6s dtx=1s/1s:marker", None),
    case("digits", "clean duration=6s digits=3", None),
    case("G.711 A-law", "clean duration=6s codec=pcma", None),
    Case { name: "nothing said", says: None, hears: true, verdict: Some("no_inbound_media") },
    Case {
        name: "nothing heard",
        says: Some("clean duration=6s"),
        hears: false,
        verdict: Some("no_outbound_media"),
    },
];
/// Longer than any talk, and long enough for media to be missed.
const CALL: Duration = Duration::from_millis(6_500);

/// Places the call of a case; the record of the API and the call of the analysis.
async fn measure(site: Arc<Site>, place: usize, attempt: usize) -> (Value, Value) {
    let Case { says, hears, .. } = CASES[place];
    let (caller_number, callee_number) = (format!("2{attempt}{place:02}"), format!("3{attempt}{place:02}"));
    let tap = Tap::default();
    let mut config = site.phone_config(&caller_number, Answering::Ring);
    config.tap = Some(tap.clone());
    let callee_talk = if hears { talk("clean") } else { None };
    let answering = Answering::Answer { after: Duration::from_millis(100), talk: callee_talk };
    let caller = site.phone_of(config).await;
    let _callee = site.phone(&callee_number, answering).await;
    let plan = CallPlan { talk: says.and_then(talk), talk_time: Some(CALL), ..CallPlan::to(callee_number) };
    let outcome = within("the call", caller.call(plan)).await.unwrap();
    assert_eq!(outcome.status, 200);

    let path = site.dir.path().join(format!("{caller_number}.pcap"));
    std::fs::write(&path, tap.to_pcap().unwrap()).unwrap();
    let outcome = capture::read("tap", &mut File::open(&path).unwrap(), &mut |_| {});
    assert!(outcome.broken.is_none(), "{:?}", outcome.broken);
    assert_eq!(outcome.analysis.calls.len(), 1);
    let offline = serde_json::to_value(&outcome.analysis.calls[0]).unwrap();
    let live = within("the record", async {
        loop {
            let records = records_at_least(site.http, 1).await;
            if let Some(record) = records.into_iter().find(|record| record["caller_number"] == *caller_number)
            {
                return record;
            }
        }
    })
    .await;
    check_trace(&site, &live).await;
    (live, offline)
}

/// The trace of the caller's leg says what the record says, to the last digit.
async fn check_trace(site: &Site, live: &Value) {
    let name = format!("{}-a.trace", live["call_uuid"].as_str().unwrap());
    let days = std::fs::read_dir(site.dir.path().join("traces")).unwrap();
    let path = days.map(|day| day.unwrap().path().join(&name)).find(|path| path.exists()).unwrap();
    let traced = within("the end of the trace", async {
        loop {
            let outcome = capture::read(&name, &mut File::open(&path).unwrap(), &mut |_| {});
            match outcome.broken {
                None => return serde_json::to_value(&outcome.analysis.calls[0]).unwrap(),
                Some(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    })
    .await;
    assert_eq!(traced["call_id"], live["call_uuid"]);
    let figures =
        ["media_verdict", "loss_pct", "quality_pct", "mos", "codec_a", "jitter_ms", "mean_interval_ms"];
    for figure in figures {
        assert_eq!(traced[figure], live[figure], "{figure} of {name}");
    }
}

/// What differs beyond what it may.
fn differences(live: &Value, offline: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let equal = ["media_verdict", "loss_pct", "quality_pct", "mos", "codec_a", "sip_status", "hangup_cause"];
    let close = [("jitter_ms", 1.0), ("mean_interval_ms", 0.1), ("billsec", 1.0)];
    for name in equal {
        if live[name] != offline[name] {
            differences.push(format!("{name}: live {} offline {}", live[name], offline[name]));
        }
    }
    for (name, by) in close {
        let alike = match (live[name].as_f64(), offline[name].as_f64()) {
            (Some(live), Some(offline)) => (live - offline).abs() <= by,
            (live, offline) => live == offline,
        };
        if !alike {
            differences.push(format!("{name}: live {} offline {}", live[name], offline[name]));
        }
    }
    differences
}

/// A capture notes when a packet is handed to the system, the engine when the kernel delivers it. On a machine
/// that has other work to do a sender may be interrupted between the two, so a call may be tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_call_and_its_capture_give_the_same_verdict_and_figures() {
    let mut text = directory();
    for (side, attempt, place) in (2..=3)
        .flat_map(|side| (0..ATTEMPTS).map(move |attempt| (side, attempt)))
        .flat_map(|(side, attempt)| (0..CASES.len()).map(move |place| (side, attempt, place)))
    {
        let number = format!("{side}{attempt}{place:02}");
        text += &format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n");
    }
    assert!(text.contains(DOMAIN));
    let site = Arc::new(Site::configured(&text, |config| config.media.trace = true).await);
    let mut open: Vec<usize> = (0..CASES.len()).collect();
    let mut log = Vec::new();
    for attempt in 0..ATTEMPTS {
        let mut measured = JoinSet::new();
        for place in std::mem::take(&mut open) {
            let site = Arc::clone(&site);
            measured.spawn(async move { (place, measure(site, place, attempt).await) });
        }
        while let Some(result) = measured.join_next().await {
            let (place, (live, offline)) = result.unwrap();
            let Case { name, verdict, .. } = CASES[place];
            let figures = |one: &Value| {
                ["media_verdict", "loss_pct", "jitter_ms", "quality_pct", "mos"]
                    .map(|f| one[f].to_string())
                    .join(" ")
            };
            eprintln!("{name}: live {} offline {}", figures(&live), figures(&offline));
            let mut found = differences(&live, &offline);
            if verdict.is_some_and(|verdict| live["media_verdict"] != verdict) {
                found.push(format!("the verdict is {}", live["media_verdict"]));
            }
            if !found.is_empty() {
                log.push(format!("{name}, attempt {attempt}: {}", found.join("; ")));
                open.push(place);
            }
        }
        if open.is_empty() {
            break;
        }
    }
    for line in &log {
        eprintln!("{line}");
    }
    assert!(open.is_empty(), "these differ every time: {log:#?}");
}

const ATTEMPTS: usize = 3;
