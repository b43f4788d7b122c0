//! The record of a call over real sockets, the capture of the same call and its trace are judged alike, in both
//! directions. Compared are the record in the API, `analyze` of each phone's own capture, and `analyze` of the
//! header-only trace of each leg.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sidetone::config::MediaIo;
use sidetone_capture as capture;
use sidetone_phone::{Answering, CallPlan, Tap};
use tokio::task::JoinSet;

use crate::common::site::{DOMAIN, PASSWORD, Site, directory, has_io_uring, records_at_least, talk, within};

/// The scenarios of caller and callee, and the verdicts where the machine's own timing cannot change them.
struct Case {
    name: &'static str,
    /// The caller's scenario; `None` sends nothing.
    says: Option<&'static str>,
    /// The callee's.
    hears: Option<&'static str>,
    /// The verdict on the caller's leg.
    verdict: Option<&'static str>,
    /// The verdict on the callee's leg.
    verdict_b: Option<&'static str>,
}

const CLEAN: Option<&str> = Some("clean duration=6s");

const fn case(name: &'static str, says: &'static str, verdict: Option<&'static str>) -> Case {
    Case { name, says: Some(says), hears: CLEAN, verdict, verdict_b: None }
}

/// The caller talks undisturbed, the callee with scenario `hears`.
const fn back(name: &'static str, hears: &'static str, verdict_b: Option<&'static str>) -> Case {
    Case { name, says: CLEAN, hears: Some(hears), verdict: None, verdict_b }
}

/// All scenarios end before their calls do, so that no packet is in flight when the call is judged.
const CASES: [Case; 19] = [
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
    back("lossy towards the caller", "clean duration=6s loss=15 seed=6", Some("lossy_inbound")),
    back(
        "jittery towards the caller",
        "clean duration=6s jitter=normal:100:40 seed=2",
        Some("jittery_inbound"),
    ),
    back("unpaced towards the caller", "clean duration=6s clump=5", Some("unpaced_sender")),
    back("out of order towards the caller", "clean duration=6s swap=10 duplicate=20 seed=4", None),
    Case {
        name: "lossy both ways",
        says: Some("clean duration=6s loss=8 seed=3"),
        hears: Some("clean duration=6s burst=10:4 seed=5"),
        verdict: Some("lossy_inbound"),
        verdict_b: Some("lossy_inbound"),
    },
    Case {
        name: "nothing said",
        says: None,
        hears: CLEAN,
        verdict: Some("no_inbound_media"),
        verdict_b: Some("no_outbound_media"),
    },
    Case {
        name: "nothing heard",
        says: CLEAN,
        hears: None,
        verdict: Some("no_outbound_media"),
        verdict_b: Some("no_inbound_media"),
    },
];
/// Longer than any scenario, and long enough for missing media to be detected.
const CALL: Duration = Duration::from_millis(6_500);

/// The call in a phone's own capture.
fn analyzed(site: &Site, number: &str, tap: &Tap) -> Value {
    let path = site.dir.path().join(format!("{number}.pcap"));
    std::fs::write(&path, tap.to_pcap().unwrap()).unwrap();
    let outcome = capture::read("tap", &mut File::open(&path).unwrap(), &mut |_| {});
    assert!(outcome.broken.is_none(), "{:?}", outcome.broken);
    assert_eq!(outcome.analysis.calls.len(), 1);
    serde_json::to_value(&outcome.analysis.calls[0]).unwrap()
}

/// The result of a case: the record of the API, and the call in the caller's and in the callee's capture.
struct Measured {
    live: Value,
    of_caller: Value,
    of_callee: Value,
}

/// Places the call of a case.
async fn measure(site: Arc<Site>, place: usize, attempt: usize) -> Measured {
    let Case { says, hears, .. } = CASES[place];
    let (caller_number, callee_number) = (format!("2{attempt}{place:02}"), format!("3{attempt}{place:02}"));
    let (tap, far_tap) = (Tap::default(), Tap::default());
    let mut config = site.phone_config(&caller_number, Answering::Ring);
    config.tap = Some(tap.clone());
    let answering = Answering::Answer { after: Duration::from_millis(100), talk: hears.and_then(talk) };
    let mut far_config = site.phone_config(&callee_number, answering);
    far_config.tap = Some(far_tap.clone());
    let caller = site.phone_of(config).await;
    let _callee = site.phone_of(far_config).await;
    let plan =
        CallPlan { talk: says.and_then(talk), talk_time: Some(CALL), ..CallPlan::to(callee_number.as_str()) };
    let outcome = within("the call", caller.call(plan)).await.unwrap();
    assert_eq!(outcome.status, 200);

    let of_caller = analyzed(&site, &caller_number, &tap);
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
    check_trace(&site, &live, "a", &live).await;
    check_trace(&site, &live, "b", &live["media_b"]).await;
    // The record is written when both legs are over: the callee's BYE has been sent.
    let of_callee = within("the end of the callee's capture", async {
        loop {
            let analyzed = analyzed(&site, &callee_number, &far_tap);
            if analyzed.get("ended_at").is_some() {
                return analyzed;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    Measured { live, of_caller, of_callee }
}

/// The trace of a leg has exactly the figures of the record.
async fn check_trace(site: &Site, live: &Value, leg: &str, told: &Value) {
    let name = format!("{}-{leg}.trace", live["call_uuid"].as_str().unwrap());
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
    if leg == "a" {
        // For the far leg a record has the codec of the sent audio, its trace that of the received audio.
        assert_eq!(traced["codec_a"], live["codec_a"], "codec of {name}");
    }
    // A trace has one leg: at its top, or as the callee of its call.
    let traced = traced.get("callee").unwrap_or(&traced);
    for figure in ["media_verdict", "loss_pct", "quality_pct", "mos", "jitter_ms", "mean_interval_ms"] {
        // A figure that cannot be judged is null or absent.
        assert_eq!(traced[figure], told[figure], "{figure} of {name}");
    }
}

/// The differences beyond the tolerance between the record of a call and its capture.
fn differences_of_call(live: &Value, offline: &Value) -> Vec<String> {
    differences(live, offline, &["codec_a", "sip_status", "hangup_cause"], &[("billsec", 1.0)])
}

/// The same for a leg.
fn differences_of_leg(live: &Value, offline: &Value) -> Vec<String> {
    let equal = ["media_verdict", "loss_pct", "quality_pct", "mos"];
    differences(live, offline, &equal, &[("jitter_ms", 1.0), ("mean_interval_ms", 0.1)])
}

fn differences(live: &Value, offline: &Value, equal: &[&str], close: &[(&str, f64)]) -> Vec<String> {
    let mut differences = Vec::new();
    for name in equal.iter().copied() {
        if live[name] != offline[name] {
            differences.push(format!("{name}: live {} offline {}", live[name], offline[name]));
        }
    }
    for (name, by) in close.iter().copied() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_call_and_its_capture_give_the_same_verdict_and_figures() {
    compare(MediaIo::Epoll).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_call_over_io_uring_and_its_capture_give_the_same_verdict_and_figures() {
    if has_io_uring() {
        compare(MediaIo::IoUring).await;
    }
}

/// A capture timestamps a packet when it is passed to the system, the engine when the kernel delivers it. On a busy
/// machine a sender may be interrupted between the two, so a call may be tried again.
async fn compare(io: MediaIo) {
    let mut text = directory();
    for (side, attempt, place) in (2..=3)
        .flat_map(|side| (0..ATTEMPTS).map(move |attempt| (side, attempt)))
        .flat_map(|(side, attempt)| (0..CASES.len()).map(move |place| (side, attempt, place)))
    {
        let number = format!("{side}{attempt}{place:02}");
        text += &format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n");
    }
    assert!(text.contains(DOMAIN));
    let site =
        Arc::new(Site::configured(&text, |config| (config.media.trace, config.media.io) = (true, io)).await);
    let mut open: Vec<usize> = (0..CASES.len()).collect();
    let mut log = Vec::new();
    for attempt in 0..ATTEMPTS {
        let mut measured = JoinSet::new();
        for place in std::mem::take(&mut open) {
            let site = Arc::clone(&site);
            measured.spawn(async move { (place, measure(site, place, attempt).await) });
        }
        while let Some(result) = measured.join_next().await {
            let (place, Measured { live, of_caller, of_callee }) = result.unwrap();
            let Case { name, verdict, verdict_b, .. } = CASES[place];
            let (far, far_offline) = (&live["media_b"], &of_callee["callee"]);
            let figures = |one: &Value| {
                ["media_verdict", "loss_pct", "jitter_ms", "quality_pct", "mos"]
                    .map(|f| one[f].to_string())
                    .join(" ")
            };
            eprintln!("{name}: live {} offline {}", figures(&live), figures(&of_caller));
            eprintln!("{name}, callee: live {} offline {}", figures(far), figures(far_offline));
            let mut found = differences_of_call(&live, &of_caller);
            found.extend(differences_of_leg(&live, &of_caller));
            let far_found = differences_of_leg(far, far_offline);
            found.extend(far_found.into_iter().map(|found| format!("callee {found}")));
            if verdict_b.is_some_and(|verdict| far["media_verdict"] != verdict) {
                found.push(format!("the callee's verdict is {}", far["media_verdict"]));
            }
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

/// A failed one costs only the time of its call, beside which little else runs.
const ATTEMPTS: usize = 8;
