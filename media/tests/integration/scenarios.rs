//! The labelled streams of the shared folder: every figure and every verdict, through a session as in calls.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value as Json;
use sidetone_media::rtp::Packet;
use sidetone_media::session::{
    Description, Hundredths, PayloadKind, Report, Session, SessionConfig, Thresholds,
};
use sidetone_media::time::Micros;
use sidetone_media::verdict::{Facts, judge};

use crate::support;

#[test]
fn every_scenario_gives_its_figures_and_verdict() {
    let Some(folder) = support::shared("spec/scenarios") else { return };
    let text = std::fs::read_to_string(folder.join("scenarios.json")).unwrap();
    let scenarios: Vec<Json> = serde_json::from_str(&text).unwrap();
    let mut wrong = Vec::new();
    for scenario in &scenarios {
        let id = scenario["id"].as_str().unwrap();
        let rows = read_rows(&folder.join(format!("{id}.csv.gz")));
        let report = play(scenario, &rows);
        wrong.extend(differences(scenario, &report).into_iter().map(|text| format!("{id}: {text}")));
    }
    assert_eq!(scenarios.len(), 85);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

struct Row {
    at: Micros,
    kind: PayloadKind,
    packet: Packet,
}

fn read_rows(path: &Path) -> Vec<Row> {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().skip(1).map(read_row).collect()
}

fn read_row(line: &str) -> Row {
    let cells: Vec<&str> = line.split(',').collect();
    let [at, sequence, timestamp, payload_type, kind, marker, ssrc, payload_len] = cells[..] else {
        panic!("a row of eight cells: {line}");
    };
    Row {
        at: Micros(at.parse().unwrap()),
        kind: match kind {
            "audio" => PayloadKind::Audio,
            "comfort_noise" | "cn" => PayloadKind::ComfortNoise,
            "telephone_event" | "event" => PayloadKind::Event,
            other => panic!("unknown kind {other}"),
        },
        packet: Packet {
            ssrc: ssrc.parse().unwrap(),
            timestamp: timestamp.parse().unwrap(),
            payload_len: payload_len.parse().unwrap(),
            sequence: sequence.parse().unwrap(),
            payload_type: payload_type.parse().unwrap(),
            marker: marker == "1",
        },
    }
}

/// Plays the scenario's leg like a switch: described, answered, received, sent, closed.
fn play(scenario: &Json, rows: &[Row]) -> Report {
    let context = &scenario["context"];
    let number = |name: &str| context[name].as_f64().unwrap();
    let rejected = number("rejected_source_packets") as u16;
    let config = SessionConfig { symmetric: rejected == 0, ..SessionConfig::default() };
    let mut session = Session::new(config);
    let description = describe(scenario, rows);
    let expects = number("rx_expected_ms") > 0.0;
    let held = Description { receive: false, send: false, ..description.clone() };
    let start = rows.first().map_or(Micros(0), |row| Micros(row.at.0.min(0)));
    session.describe(start, if expects { description.clone() } else { held.clone() });
    if context["answered"].as_bool().unwrap() {
        session.answer(start);
    }
    session.sent(start, number("tx_packets") as u32, support::party());
    let hold = context["signalled_hold_gap"].as_bool().unwrap();
    let mut datagram = Vec::new();
    let mut before = None;
    for row in rows {
        if hold && before.is_some_and(|before| row.at.since(before) > 5_000_000) {
            session.describe(before.unwrap() + 1_000, held.clone());
            session.describe(row.at - 1_000, description.clone());
        }
        before = Some(row.at);
        support::write_rtp(&row.packet, &mut datagram);
        session.receive(row.at, support::party(), &datagram);
    }
    for n in 0..rejected {
        let packet = Packet { sequence: n, payload_len: 160, ..Packet::default() };
        support::write_rtp(&packet, &mut datagram);
        session.receive(Micros(i64::from(n) * 20_000), support::addr("10.0.0.2:4000"), &datagram);
    }
    let silence_ms = if rows.is_empty() { number("rx_expected_ms").max(200.0) } else { number("tail_ms") };
    session.close(before.unwrap_or(start) + (silence_ms * 1000.0) as i64)
}

fn describe(scenario: &Json, rows: &[Row]) -> Description {
    let clock_hz = scenario["clock_rate"].as_u64().unwrap() as u32;
    let numbers: BTreeMap<u8, PayloadKind> =
        rows.iter().map(|row| (row.packet.payload_type, row.kind)).collect();
    let payloads = numbers.iter().map(|(number, kind)| support::payload(*number, "any", *kind, clock_hz));
    Description {
        payloads: payloads.collect(),
        ptime_ms: scenario["advertised_ptime_ms"].as_u64().map(|ms| ms as u32),
        ..support::pcmu()
    }
}

fn differences(scenario: &Json, report: &Report) -> Vec<String> {
    let expected = &scenario["expected"];
    let figures = &report.figures;
    let mut wrong = Vec::new();
    let verdict = report.verdict.map_or("absent", |verdict| verdict.as_str());
    if expected["media_verdict"] != verdict {
        wrong.push(format!("verdict {verdict} instead of {}", expected["media_verdict"]));
    }
    let by_context = judge(figures, &facts(&scenario["context"], scenario), &Thresholds::default());
    if by_context.rule.is_none_or(|rule| expected["media_verdict"] != rule.as_str()) {
        wrong.push(format!(
            "verdict {:?} by context instead of {}",
            by_context.rule, expected["media_verdict"]
        ));
    }
    let counters = [
        ("received", figures.received),
        ("expected", figures.expected),
        ("lost", figures.lost),
        ("duplicates", figures.duplicates),
        ("reordered", figures.reordered),
        ("flaws", figures.flaws),
        ("ssrc_changes", figures.ssrc_changes),
        ("timestamp_resets", figures.timestamp_resets),
    ];
    for (name, actual) in counters {
        if expected.get(name).is_some_and(|value| value.as_u64() != Some(actual)) {
            wrong.push(format!("{name} {actual} instead of {}", expected[name]));
        }
    }
    let decimals = [
        ("loss_pct", figures.loss_pct),
        ("jitter_ms", figures.jitter_ms),
        ("jitter_mean_ms", figures.jitter_mean_ms),
        ("mean_interval_ms", figures.mean_interval_ms),
        ("quality_pct", figures.quality_pct),
        ("mos", figures.mos),
    ];
    for (name, actual) in decimals {
        let wanted = expected.get(name).and_then(Json::as_f64);
        let near = match (wanted, actual.map(Hundredths::as_f64)) {
            (Some(wanted), Some(actual)) => (wanted - actual).abs() <= 0.02 + 1e-9,
            (wanted, actual) => wanted.is_none() && actual.is_none(),
        };
        if !near {
            wrong.push(format!("{name} {actual:?} instead of {wanted:?}"));
        }
    }
    wrong
}

/// The scenario's context unchanged, also where a session could not reach it.
fn facts(context: &Json, scenario: &Json) -> Facts {
    let us = |name: &str| (context[name].as_f64().unwrap() * 1000.0) as i64;
    Facts {
        answered: context["answered"].as_bool().unwrap(),
        receive_expected_us: us("rx_expected_ms"),
        send_expected_us: us("tx_expected_ms"),
        received_after_answer: scenario["expected"]["received"].as_u64().unwrap_or(0),
        sent_after_answer: context["tx_packets"].as_u64().unwrap(),
        rejected_source: context["rejected_source_packets"].as_u64().unwrap(),
        tail_us: us("tail_ms"),
        ptime_ms: scenario["advertised_ptime_ms"].as_u64().unwrap() as u32,
        ..Facts::default()
    }
}
