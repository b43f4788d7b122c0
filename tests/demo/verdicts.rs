//! `sidetone demo --once --json`: every call of the demo ends with its intended verdict.

use std::process::{Command, Output};

use serde_json::Value;

fn demo(args: &[&str], temporary: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .arg("demo")
        .args(args)
        .env("TMPDIR", temporary)
        .env_remove("RUST_LOG")
        .output()
        .expect("the binary runs")
}

#[test]
fn every_verdict_is_the_expected_one_and_nothing_stays_behind() {
    let folder = std::env::temp_dir().join(format!("sidetone-demo-test-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of our own");
    let output = demo(&["--once", "--json"], &folder);
    let left: Vec<_> = std::fs::read_dir(&folder).expect("it is there").collect();
    std::fs::remove_dir_all(&folder).expect("it is ours");

    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let calls = json["calls"].as_array().expect("calls");
    let unexpected: Vec<_> = calls.iter().filter(|call| call["as_expected"] != true).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}\n{said}");
    for call in calls.iter().filter(|call| call["record"]["answered_at"].is_string()) {
        assert_eq!(call["quality"]["media_verdict"], call["record"]["media_verdict"], "{call:#}");
        assert!(call["quality"]["sentence"].as_str().is_some_and(|sentence| sentence.len() > 20), "{call:#}");
    }
    let note = &json["note"];
    assert_eq!(note["as_expected"], true, "{note:#}");
    assert_eq!(
        (&note["record"]["acked_count"], &note["record"]["recipient_count"]),
        (&1.into(), &2.into()),
        "{note:#}"
    );
    let conference = &json["conference"];
    assert_eq!(conference["as_expected"], true, "{conference:#}");
    let members = conference["room"]["members"].as_array().expect("members");
    let muted: Vec<_> = members.iter().map(|member| member["muted"] == true).collect();
    assert_eq!(muted, [true, false, false], "{conference:#}");
    assert_eq!(conference["roster"]["members"][0]["name"], "Ada", "{conference:#}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(left.is_empty(), "{left:?}");

    let verdicts: std::collections::BTreeSet<_> =
        calls.iter().filter_map(|call| call["record"]["media_verdict"].as_str()).collect();
    assert_eq!(verdicts.len(), 10, "every verdict there is: {verdicts:?}");
    for key in ["url", "key", "user", "password"] {
        assert!(json["http"][key].is_string(), "http.{key}");
    }
    for key in [
        "address",
        "transport",
        "domain",
        "extension",
        "password",
        "answering_extension",
        "conference_room",
        "conference_pin",
    ] {
        assert!(json["sip"][key].is_string(), "sip.{key}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_one_line() {
    let output = demo(&["--once"], std::path::Path::new("/dev/null"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("sidetone: demo: /dev/null/") && said.contains("TMPDIR"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty());
}

/// Sends SIGINT to a demo once `is_ready` is true for its folder, and returns what it left.
fn interrupted(args: &[&str], is_ready: impl Fn(&std::path::Path) -> bool) -> (Output, usize) {
    let name = args.join("");
    let folder = std::env::temp_dir().join(format!("sidetone-demo-interrupted{name}-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of our own");
    let process = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .arg("demo")
        .args(args)
        .env("TMPDIR", &folder)
        .env_remove("RUST_LOG")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    while !is_ready(&folder) {
        std::thread::yield_now();
    }
    let sent = Command::new("kill").arg("-INT").arg(process.id().to_string()).status();
    assert!(sent.expect("kill runs").success());
    let output = process.wait_with_output().expect("it ends");
    let left = std::fs::read_dir(&folder).expect("it is there").count();
    std::fs::remove_dir_all(&folder).expect("it is ours");
    (output, left)
}

#[test]
fn an_interrupted_demo_ends_without_its_calls_and_leaves_nothing() {
    // The journal exists once the engine runs, and the calls take seconds.
    let journal = |folder: &std::path::Path| {
        let demo = std::fs::read_dir(folder).into_iter().flatten().flatten().next();
        demo.is_some_and(|demo| demo.path().join("journal").is_dir())
    };
    let (output, left) = interrupted(&["--once"], journal);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), left), (Some(1), 0), "{said}");
    assert_eq!(said, "sidetone: demo: interrupted\n");
    assert!(output.stdout.is_empty());
}
