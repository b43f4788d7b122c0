//! Runs of the load program against an engine as a process.

use clap::Parser;

use crate::common::records::TempDir;
use crate::load::engine::Engine;
use crate::program::{Arguments, run};

/// Runs a command of the load program; its report as JSON.
pub fn load(arguments: &[&str]) -> serde_json::Value {
    let arguments = Arguments::parse_from(["load"].iter().chain(arguments));
    run(arguments).unwrap().map(|report| report.json()).unwrap_or_default()
}

pub fn provision(dir: &TempDir, extensions: &str) {
    let dir = dir.path().to_str().unwrap();
    let local = "127.0.0.1:0";
    // Below the ports that the system chooses from.
    load(&[
        "provision",
        "--dir",
        dir,
        "--extensions",
        extensions,
        "--calls",
        "200",
        "--first-port",
        "12000",
        "--sip",
        local,
        "--http",
        local,
    ]);
}

#[test]
fn calls_are_done_and_recorded() {
    let dir = TempDir::new();
    provision(&dir, "10");
    let mut engine = Engine::start(dir.path());
    let (sip, pid) = (engine.sip.to_string(), engine.pid().to_string());
    let report = load(&[
        "calls",
        "--engine",
        &sip,
        "--pid",
        &pid,
        "--rate",
        "10",
        "--seconds",
        "2",
        "--hold",
        "1",
        "--phones",
        "10",
        "--rtp",
    ]);
    for (name, expected) in [
        ("calls attempted", 20),
        ("calls answered", 20),
        ("calls done", 20),
        ("calls failed", 0),
        ("calls without an end", 0),
        ("phones invited", 20),
        ("phones acknowledged", 20),
        ("datagrams of others", 0),
    ] {
        assert_eq!(report[name], expected, "{name}: {report:#}");
    }
    for name in ["INVITE → 180 p50 [ms]", "INVITE → 200 p99 [ms]", "BYE → 200 max [ms]", "CPU per call [ms]"]
    {
        assert!(report[name].as_f64().is_some_and(|ms| ms > 0.0), "{name}: {report:#}");
    }
    // Both parties talk for 0.8 seconds of each call; a busy machine may send some of it late.
    let [sent, received] = ["packets sent", "packets received"].map(|name| report[name].as_u64().unwrap());
    assert!(received > 0 && received <= sent, "{report:#}");
    let records = engine.records(20);
    let answered = records.iter().filter(|record| !record["answered_at"].is_null()).count();
    assert_eq!((records.len(), answered), (20, 20), "{records:#?}");
}

#[test]
fn phones_register_and_calls_carry_packets() {
    let dir = TempDir::new();
    // Each phone registers once in a run: a registration fails when the next one of its phone is due.
    provision(&dir, "40");
    let engine = Engine::start(dir.path());
    let sip = engine.sip.to_string();
    for (more, requests) in [(&[][..], 80), (&["--reuse-nonce"][..], 40)] {
        let common = [
            "register",
            "--engine",
            &sip,
            "--rate",
            "20",
            "--seconds",
            "2",
            "--extensions",
            "40",
            "--sources",
            "4",
        ];
        let report = load(&[&common, more].concat());
        assert_eq!((&report["registrations done"], &report["registrations failed"]), (&40.into(), &0.into()));
        assert_eq!(report["REGISTER requests answered"], requests, "{report:#}");
    }
    let report = load(&[
        "relay",
        "--engine",
        &sip,
        "--rate",
        "200",
        "--seconds",
        "1",
        "--warm-up",
        "0.5",
        "--calls",
        "3",
        "--phones",
        "3",
    ]);
    let [sent, received] = ["packets sent", "packets received"].map(|name| report[name].as_u64().unwrap());
    assert!(received > 0 && received <= sent, "{report:#}");
    for name in ["packets received twice", "datagrams of others"] {
        assert_eq!(report[name], 0, "{name}: {report:#}");
    }
}

/// A bare relay forwards everything and changes nothing.
#[test]
fn a_bare_loop_carries_packets() {
    let listen = format!("127.0.0.1:{}", crate::common::ports::free(2));
    let options = ["bare", "--listen", &listen, "--pairs", "1", "--lifetime", "60"];
    let bare = Arguments::parse_from(["load"].iter().chain(&options));
    std::thread::spawn(move || run(bare));
    let relay =
        ["relay", "--through", "bare", "--bare", &listen, "--calls", "1", "--rate", "100", "--seconds", "1"];
    // No packet arrives until the relay has bound its ports.
    let report = (0..30).find_map(|_| {
        let report = load(&relay);
        (report["packets received"].as_u64() > Some(0)).then_some(report)
    });
    let report = report.expect("packets arrive");
    assert_eq!(report["packets received twice"], 0, "{report:#}");
}
