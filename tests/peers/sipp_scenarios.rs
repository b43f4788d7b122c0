//! Behaviour of phones and carriers in a call, each as a scenario of sipp over UDP, TCP and TLS: the far end's messages
//! are checked by the scenarios in `scenarios/`, the record here.
//!
//! The sipp of Debian is built without TLS: over TLS, phones send through a tunnel of the test.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::common::ports;
use crate::common::process::Process;
use crate::common::tunnel::Tunnel;
use crate::peers::engine::{AUTHORITY, Engine};
use crate::peers::sound;
use crate::peers::tell;
use crate::peers::turn;

/// A caller, which is 1001, and its callees.
struct Row {
    caller: &'static str,
    /// The number that it calls.
    number: &'static str,
    callees: &'static [Callee],
    /// The record's `sip_status`, `hangup_cause`, `bridge_cause`, `ended_by` and `media_verdict_worse`; the newest
    /// record comes first.
    records: &'static [[&'static str; 5]],
}

/// A callee: a registered extension, or the next trunk.
enum Callee {
    Extension(&'static str, &'static str),
    Trunk(&'static str),
}
use Callee::{Extension, Trunk};

const TALKED: [&str; 5] = ["200", "NORMAL_CLEARING", "NORMAL_CLEARING", "caller", "ok"];

const ROWS: &[Row] = &[
    Row {
        caller: "caller_100rel",
        number: "1002",
        callees: &[Extension("1002", "callee_100rel")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_early",
        number: "1002",
        callees: &[Extension("1002", "callee_early")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_refused_480",
        number: "1002",
        callees: &[Extension("1002", "callee_congested")],
        records: &[["480", "NORMAL_CIRCUIT_CONGESTION", "NORMAL_CIRCUIT_CONGESTION", "callee", "unanswered"]],
    },
    Row {
        caller: "caller_refused_486",
        number: "1002",
        callees: &[Extension("1002", "callee_busy")],
        records: &[["486", "USER_BUSY", "USER_BUSY", "callee", "unanswered"]],
    },
    Row {
        caller: "caller_cancels",
        number: "1002",
        callees: &[Extension("1002", "callee_cancelled")],
        records: &[["null", "LOSE_RACE", "null", "caller", "unanswered"]],
    },
    Row {
        caller: "caller_plain",
        number: "1002",
        callees: &[Extension("1002", "callee_redirects"), Extension("1003", "callee_diverted")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_plain",
        number: "1002",
        callees: &[Extension("1002", "callee_offerless")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_updates",
        number: "1002",
        callees: &[Extension("1002", "callee_plain")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_multipart",
        number: "1002",
        callees: &[Extension("1002", "callee_plain")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_refers",
        number: "1002",
        callees: &[Extension("1002", "callee_plain"), Extension("1003", "callee_brief")],
        records: &[
            ["200", "NORMAL_CLEARING", "NORMAL_CLEARING", "callee", "ok"],
            ["200", "NORMAL_CLEARING", "NORMAL_CLEARING", "caller", "ok"],
        ],
    },
    Row {
        caller: "caller_plain",
        number: "+447700900123",
        callees: &[Trunk("carrier_silent"), Trunk("callee_plain")],
        records: &[TALKED],
    },
    Row {
        caller: "caller_message",
        number: "1002",
        callees: &[Extension("1002", "callee_message")],
        records: &[],
    },
    Row { caller: "caller_lamp", number: "1002", callees: &[], records: &[] },
    Row { caller: "caller_mailbox", number: "1001", callees: &[], records: &[] },
];

#[test]
fn every_scenario_over_udp_has_its_record() {
    let Some(_turn) = turn() else { return };
    ROWS.iter().for_each(|row| check(row, "udp"));
}

/// The caller and the carriers over TCP; extensions are called over UDP.
#[test]
fn every_scenario_over_tcp_has_its_record() {
    let Some(_turn) = turn() else { return };
    ROWS.iter().for_each(|row| check(row, "tcp"));
}

/// The caller and the extensions over TLS, each with its own connection; the carriers over TCP.
#[test]
fn every_scenario_over_tls_has_its_record() {
    let Some(_turn) = turn() else { return };
    ROWS.iter().for_each(|row| check(row, "tls"));
}

/// 1003 takes the place of 1001 in its call with 1002 by an INVITE with Replaces, over each transport.
#[test]
fn a_phone_takes_over_a_call_by_replaces() {
    let Some(_turn) = turn() else { return };
    for transport in ["udp", "tcp", "tls"] {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut engine = Engine::with(4, THIRD);
        sound::write_capture(&engine.dir().join("pcma20.pcap"), 500);
        let (port, inside) = (ports::free(1), if transport == "tls" { "tls" } else { "udp" });
        let inner = Way::open(&engine, inside, &runtime);
        register(&engine, "1002", &inner, port);
        let mut callee = sipp(&engine, "callee_plain", &inner, port, &[]);
        ports::wait_until_bound(port);
        let way = Way::open(&engine, transport, &runtime);
        let tag_file = engine.dir().join("tag");
        let first = ["-s", "1002", "-key", "caller", "1001", "-au", "1001", "-ap", "the-first-secret"];
        let more = ["-cid_str", "held-%u", "-key", "tagfile", tag_file.to_str().unwrap()];
        let first: Vec<&str> = first.into_iter().chain(more).collect();
        let mut replaced = sipp(&engine, "caller_replaced", &way, ports::free(1), &first);
        let tag = replaced.wait("the tag of the switch", |_| {
            std::fs::read_to_string(&tag_file).ok().filter(|tag| tag.ends_with('\n'))
        });
        let replaces = format!("held-1;to-tag={};from-tag=replaced", tag.trim());
        let second = ["-s", "1002", "-key", "caller", "1003", "-au", "1003", "-ap", "the-third-secret"];
        let second: Vec<&str> = second.into_iter().chain(["-key", "replaces", &replaces]).collect();
        let other = Way::open(&engine, transport, &runtime);
        let mut replacing = sipp(&engine, "caller_replaces", &other, ports::free(1), &second);
        for peer in [&mut replacing, &mut replaced, &mut callee] {
            let status = peer.wait_exit();
            assert!(status.success(), "{peer} ended with {status}: {} {}", complaints(&engine), engine.log());
        }
        let records = engine.records(2);
        let of = |number: &str| {
            records
                .iter()
                .find(|record| record["caller_number"] == number)
                .unwrap_or_else(|| panic!("{records:#?}"))
        };
        let (first, second) = (of("1001"), of("1003"));
        assert_eq!(first["transferred_to"], second["call_uuid"], "{records:#?}");
        assert_eq!(second["transferred_from"], first["call_uuid"], "{records:#?}");
        for record in [first, second] {
            assert_eq!(record["hangup_cause"], "NORMAL_CLEARING", "{record:#}");
            assert!(record["answered_at"].is_string(), "{record:#}");
        }
        tell(&format!("sipp: Replaces over {transport}"));
    }
}

/// The destination of a phone's SIP.
pub struct Way {
    /// The transport option of sipp.
    mode: &'static str,
    at: String,
    _tunnel: Option<Tunnel>,
}

impl Way {
    /// The destination of a phone over that transport.
    fn open(engine: &Engine, transport: &str, runtime: &Runtime) -> Way {
        match transport {
            "tcp" => Way { mode: "t1", at: engine.sip_tcp().to_owned(), _tunnel: None },
            "tls" => {
                let to = engine.sip_tls().parse().unwrap();
                let tunnel = runtime.block_on(Tunnel::tls(to, trusting(engine), "acme.test"));
                Way { mode: "u1", at: tunnel.udp.to_string(), _tunnel: Some(tunnel) }
            }
            _ => Way::udp(engine),
        }
    }

    /// The destination of a phone or a carrier over UDP.
    pub fn udp(engine: &Engine) -> Way {
        Way { mode: "u1", at: engine.sip().to_owned(), _tunnel: None }
    }
}

/// A TLS client that trusts only the certificate of the engine.
fn trusting(engine: &Engine) -> ClientConfig {
    let pem = std::fs::read(engine.dir().join(AUTHORITY)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// Runs a row on its own engine, and checks that the records and registrations are those of the row.
fn check(row: &Row, transport: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // Carriers are called over TCP where phones use TLS, and extensions by UDP where the caller uses TCP.
    let (outside, inside) = match transport {
        "tls" => ("tcp", "tls"),
        other => (other, "udp"),
    };
    let mut directory = THIRD.to_owned();
    let given = |callee: &Callee| (ports::free(1), matches!(callee, Trunk(_)));
    let places: Vec<(u16, bool)> = row.callees.iter().map(given).collect();
    for (priority, (port, _)) in places.iter().enumerate().filter(|(_, (_, is_trunk))| *is_trunk) {
        directory += &format!(
            "[[trunks]]\nname = \"carrier{priority}\"\naddress = \"sip:127.0.0.1:{port};transport={outside}\"\n\
             priority = {priority}\nprogress_seconds = 5\n"
        );
    }
    let mut engine = Engine::with(4, &directory);
    sound::write_capture(&engine.dir().join("pcma20.pcap"), 500);
    let (mut peers, mut ways) = (Vec::new(), Vec::new());
    for (callee, (port, _)) in row.callees.iter().zip(&places) {
        let (scenario, over) = match callee {
            Extension(_, scenario) => (*scenario, inside),
            Trunk(scenario) => (*scenario, outside),
        };
        // A carrier sends nothing before it is called, so its destination does not matter.
        let way = Way::open(&engine, over, &runtime);
        if let Extension(number, _) = callee {
            register(&engine, number, &way, *port);
        }
        peers.push(sipp(&engine, scenario, &way, *port, &[]));
        if way.mode == "u1" {
            ports::wait_until_bound(*port);
        } else {
            ports::wait_until_accepting(*port);
        }
        ways.push(way);
    }
    let way = Way::open(&engine, transport, &runtime);
    let credentials = ["-s", row.number, "-key", "caller", "1001", "-au", "1001", "-ap", "the-first-secret"];
    peers.push(sipp(&engine, row.caller, &way, ports::free(1), &credentials));
    for peer in peers.iter_mut().rev() {
        let status = peer.wait_exit();
        let complaints = complaints(&engine);
        assert!(
            status.success(),
            "{}: {peer} ended with {status}: {complaints} {}",
            row.caller,
            engine.log()
        );
    }
    let records: Vec<Value> = engine.records(row.records.len());
    // Several programs that share a busy machine send their packets at uneven intervals, and that is measured.
    let seen = |record: &Value| {
        FIELDS.map(|field| match text_of(&record[field]).as_str() {
            "jittery_inbound" | "unpaced_sender" => "ok".to_owned(),
            text => text.to_owned(),
        })
    };
    let seen: Vec<[String; 5]> = records.iter().map(seen).collect();
    assert_eq!(json!(seen), json!(row.records), "{} over {transport}: {records:#?}", row.caller);
    tell(&format!("sipp: {} over {transport}", row.caller));
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The output of sipp on unexpected messages.
fn complaints(engine: &Engine) -> String {
    let files = std::fs::read_dir(engine.dir()).unwrap().filter_map(Result::ok);
    let errors = files.filter(|file| file.file_name().to_string_lossy().ends_with(".err"));
    errors.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
}

fn register(engine: &Engine, number: &str, way: &Way, port: u16) {
    let password = if number == "1002" { "the-second-secret" } else { "the-third-secret" };
    let file = format!("{}/tests/peers/register.xml", env!("CARGO_MANIFEST_DIR"));
    let port = port.to_string();
    let args = ["-sf", &file, "-i", "127.0.0.1", "-nostdin", "-s", number, "-au", number, "-ap", password];
    let more = ["-p", &port, "-m", "1", "-timeout", "30s", "-timeout_error", &way.at];
    let mut phone = Process::spawn("register", "sipp", "sip-tester", engine.dir(), args.iter().chain(&more));
    assert!(phone.wait_exit().success(), "{phone}; {}", engine.log());
}

/// One party; it ends after its call.
pub fn sipp(engine: &Engine, scenario: &'static str, way: &Way, port: u16, more: &[&str]) -> Process {
    let file = format!("{}/tests/peers/scenarios/{scenario}.xml", env!("CARGO_MANIFEST_DIR"));
    let (port, media_port) = (port.to_string(), ports::free(4).to_string());
    let (capture, errors) = (engine.dir().join("pcma20.pcap"), format!("{scenario}-{port}.err"));
    let mut args =
        vec!["-sf", &file, "-i", "127.0.0.1", "-nostdin", "-m", "1", "-p", &port, "-mp", &media_port];
    args.extend([
        "-timeout",
        "30s",
        "-timeout_error",
        "-t",
        way.mode,
        "-key",
        "capture",
        capture.to_str().unwrap(),
    ]);
    args.extend(["-trace_err", "-error_file", &errors]);
    args.extend(more);
    args.push(&way.at);
    Process::spawn(scenario, "sipp", "sip-tester", engine.dir(), args)
}

const FIELDS: [&str; 5] = ["sip_status", "hangup_cause", "bridge_cause", "ended_by", "media_verdict_worse"];
const THIRD: &str = r#"
  [[organisations.extensions]]
  number = "1003"
  name = "Third"
  password = "the-third-secret"
"#;
