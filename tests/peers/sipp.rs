//! sipp registers two phones, and one calls the other many times, both playing a capture.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::ports;
use crate::common::process::Process;
use crate::peers::engine::Engine;
use crate::peers::sound;
use crate::peers::tell;
use crate::peers::turn;

/// Calls of one kind, five a second.
struct Run<'a> {
    calls: u16,
    capture: &'a Path,
    /// The packet duration of the capture.
    ptime_ms: u16,
    talk_ms: u16,
}

#[test]
fn fifty_calls_of_twenty_millisecond_packets() {
    let Some(_turn) = turn() else { return };
    let engine = Engine::start(50);
    let capture = engine.dir().join("pcma20.pcap");
    sound::write_capture(&capture, 500);
    check(engine, &Run { calls: 50, capture: &capture, ptime_ms: 20, talk_ms: 3_000 });
}

#[test]
fn ten_calls_of_the_capture_that_comes_with_sipp() {
    let Some(_turn) = turn() else { return };
    // Its packets are 30 ms long, so the mean interval is 30 and not 20.
    let capture = Path::new("/usr/share/sip-tester/g711a.pcap");
    if !capture.exists() {
        tell(&format!("NOTICE: {} is missing: the calls that play it are SKIPPED", capture.display()));
        return;
    }
    check(Engine::start(10), &Run { calls: 10, capture, ptime_ms: 30, talk_ms: 4_000 });
}

/// The caller's SIP over one connection, the callee's over UDP.
#[test]
fn fifty_calls_over_one_tcp_connection() {
    let Some(_turn) = turn() else { return };
    let engine = Engine::start(50);
    let capture = engine.dir().join("pcma20.pcap");
    sound::write_capture(&capture, 500);
    check_over(engine, &Run { calls: 50, capture: &capture, ptime_ms: 20, talk_ms: 3_000 }, &["-t", "t1"]);
}

/// An external call of a phone: the first carrier has no capacity, the second requires a digest and checks it.
#[test]
fn ten_calls_to_a_carrier_that_wants_a_digest_behind_one_that_has_no_room() {
    let Some(_turn) = turn() else { return };
    const CALLS: u16 = 10;
    let (full_port, carrier_port, caller_port) = (ports::free(1), ports::free(1), ports::free(1));
    let trunks = format!(
        "[[trunks]]\nname = \"full\"\naddress = \"sip:127.0.0.1:{full_port}\"\npriority = 1\n\
         [[trunks]]\nname = \"carrier\"\naddress = \"sip:127.0.0.1:{carrier_port}\"\npriority = 2\n\
         username = \"acme\"\npassword = \"hush\"\nrealm = \"carrier.example\"\n"
    );
    let mut engine = Engine::with(CALLS, &trunks);
    let capture = engine.dir().join("pcma20.pcap");
    sound::write_capture(&capture, 500);
    let run = Run { calls: CALLS, capture: &capture, ptime_ms: 20, talk_ms: 3_000 };
    register(&engine, "1001", "the-first-secret", caller_port);
    let mut carrier = play(&engine, &run, "carrier", carrier_port, &[]);
    let mut full = sipp(&engine, "overloaded", &["-p", &full_port.to_string(), "-m", &CALLS.to_string()]);
    ports::wait_until_bound(carrier_port);
    ports::wait_until_bound(full_port);
    let talk_ms = run.talk_ms.to_string();
    let caller_args =
        ["-s", "+447700900123", "-au", "1001", "-ap", "the-first-secret", "-d", &talk_ms, "-r", "2"];
    let mut caller = play(&engine, &run, "caller", caller_port, &caller_args);
    for peer in [&mut caller, &mut carrier, &mut full] {
        let status = peer.wait_exit();
        assert!(status.success(), "{peer} ended with {status}; {}", engine.log());
    }
    for record in engine.records(usize::from(CALLS)) {
        assert_eq!(
            [&record["direction"], &record["destination_number"], &record["sip_status"]],
            [&json!("outbound"), &json!("+447700900123"), &json!(200)]
        );
        assert_eq!(
            [&record["media_verdict"], &record["loss_pct"]],
            [&json!("ok"), &json!(0.0)],
            "{record:#}"
        );
    }
    tell("sipp: 10 calls to a carrier with digest, each behind a 503 of another");
}

/// Registers both phones, makes the calls, and checks that every record is that of a clean call.
fn check(engine: Engine, run: &Run<'_>) {
    check_over(engine, run, &[]);
}

/// The same with a transport option of sipp for the caller.
fn check_over(mut engine: Engine, run: &Run<'_>, transport: &[&str]) {
    let (callee_port, caller_port) = (ports::free(1), ports::free(1));
    register(&engine, "1001", "the-first-secret", caller_port);
    register(&engine, "1002", "the-second-secret", callee_port);
    let mut callee = play(&engine, run, "callee", callee_port, &[]);
    ports::wait_until_bound(callee_port);
    let talk_ms = run.talk_ms.to_string();
    let mut caller_args =
        vec!["-s", "1002", "-au", "1001", "-ap", "the-first-secret", "-d", &talk_ms, "-r", "5"];
    caller_args.extend(transport);
    let mut caller = play(&engine, run, "caller", caller_port, &caller_args);
    for phone in [&mut caller, &mut callee] {
        let status = phone.wait_exit();
        assert!(status.success(), "{phone} ended with {status}; {}", engine.log());
    }
    let records = engine.records(usize::from(run.calls));
    let unclean: Vec<String> =
        records.iter().filter(|record| !is_clean(record, run.ptime_ms)).map(|r| format!("{r:#}")).collect();
    let (wrong, all) = (unclean.len(), records.len());
    assert!(unclean.is_empty(), "{wrong} of {all} records are not clean: {}", unclean.join("\n"));
    let jitter_ms = records.iter().filter_map(|record| record["jitter_ms"].as_f64()).fold(0.0, f64::max);
    tell(&format!("sipp: {all} clean calls of {} ms packets, peak jitter {jitter_ms} ms", run.ptime_ms));
}

fn is_clean(record: &Value, ptime_ms: u16) -> bool {
    let interval_ms = record["mean_interval_ms"].as_f64().unwrap_or(f64::INFINITY);
    record["answered_at"].is_string()
        && record["ended_at"].is_string()
        && record["caller_number"] == "1001"
        && record["destination_number"] == "1002"
        && record["codec_a"] == "PCMA"
        && record["codec_b"] == "PCMA"
        && record["hangup_cause"] == "NORMAL_CLEARING"
        && record["media_verdict"] == "ok"
        && record["loss_pct"].as_f64() == Some(0.0)
        && (interval_ms - f64::from(ptime_ms)).abs() <= 0.5
}

fn register(engine: &Engine, number: &str, password: &str, port: u16) {
    let mut phone = sipp(
        engine,
        "register",
        &["-s", number, "-au", number, "-ap", password, "-p", &port.to_string(), "-m", "1"],
    );
    let status = phone.wait_exit();
    assert!(status.success(), "{phone} ended with {status}; {}", engine.log());
}

/// One side of the calls; it ends after the last call.
fn play(engine: &Engine, run: &Run<'_>, scenario: &'static str, port: u16, more: &[&str]) -> Process {
    let (calls, ptime_ms, port) = (run.calls.to_string(), run.ptime_ms.to_string(), port.to_string());
    // sipp takes four consecutive media ports a call.
    let media_port = ports::free(run.calls * 4).to_string();
    let capture = run.capture.to_str().unwrap();
    let mut args = vec!["-key", "capture", capture, "-key", "ptime", &ptime_ms, "-p", &port];
    args.extend(["-mp", &media_port, "-m", &calls, "-l", &calls]);
    args.extend(more);
    sipp(engine, scenario, &args)
}

fn sipp(engine: &Engine, scenario: &'static str, args: &[&str]) -> Process {
    let file: PathBuf = Path::new(SCENARIOS).join(format!("{scenario}.xml"));
    let mut all = vec!["-sf", file.to_str().unwrap(), "-i", "127.0.0.1", "-nostdin"];
    // sipp gives up by itself in any case.
    all.extend(["-timeout", "110s", "-timeout_error"]);
    all.extend(args);
    all.push(if args.contains(&"t1") { engine.sip_tcp() } else { engine.sip() });
    Process::spawn(scenario, "sipp", "sip-tester", engine.dir(), all)
}

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers");
