//! Compares this crate with the reference model of the shared folder on random streams: every integer must be
//! equal.
//!
//! The model treats every step of the number below 3,000 as loss. Here a step with too little time for that
//! loss is a jump. The driver below adds that rule to the model, and counts the streams in which it matters.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support;
use crate::support::random::{Arrived, stream};
use serde_json::{Value as Json, json};
use sidetone_media::rtp::PayloadKind;
use sidetone_media::session::{Figures, Hundredths, Session, SessionConfig, Thresholds};
use sidetone_media::time::Micros;
use sidetone_media::verdict::{Facts, judge};

/// Reads one stream per line as JSON rows, and prints the model's state and figures.
const DRIVER: &str = r#"
import json, runpy, sys
model = runpy.run_path(sys.argv[1])
i32 = model['i32']
class Leg(model['Leg']):
    renumbered = 0
    latest_step = 0
    def pkt(s, t, seq, ts, pt, kind, marker, ssrc, plen):
        ahead = (seq - s.maxseq) & 0xffff
        if ssrc == s.ssrc and kind == 0 and 2 <= ahead < 3000:
            ticks = i32(ts - s.lts)
            needed = ((s.latest_step * s.q) >> 16) * (ahead - 1) // 2
            soon = s.lk == 0 and s.lseq == s.maxseq and 0 < ticks == s.latest_step
            soon = soon and (ticks * s.q) >> 16 < needed and 0 <= t - s.lt < needed
            if seq == s.bad:
                s.jumps += 1; s.close(); s.open(seq); s.account(t, seq, ts, pt, kind, marker, plen, 0)
                return
            if soon:
                s.bad = (seq + 1) & 0xffff; s.renumbered += 1
                return
        super().pkt(t, seq, ts, pt, kind, marker, ssrc, plen)
    def account(s, t, seq, ts, pt, kind, marker, plen, d):
        is_pair = kind == 0 == s.lk and not s.resync and d != 0 and seq == (s.lseq + 1) & 0xffff
        if is_pair and i32(ts - s.lts) > 0:
            s.latest_step = i32(ts - s.lts)
        super().account(t, seq, ts, pt, kind, marker, plen, d)
for line in sys.stdin:
    leg = Leg()
    for row in json.loads(line):
        leg.pkt(*row)
    figures = leg.fin()
    state = {k: v for k, v in vars(leg).items() if isinstance(v, int)}
    state.update(late_80=leg.players[0].late, late_200=leg.players[1].late)
    state.update(pdv=leg.pdv, runs=leg.runs, step_count=leg.steps.get(leg.step, 0), pairs=sum(leg.steps.values()))
    state['verdict'] = model['verdict'](leg, figures, {})
    print(json.dumps({'state': state, 'figures': figures}))
"#;

#[test]
fn the_reference_model_agrees() {
    let Some(model) = support::shared("spec/media-model.py") else { return };
    let streams: Vec<Vec<Arrived>> = (0..STREAMS).map(|seed| stream(seed, 200 + seed as u32 * 7)).collect();
    let mut input = String::new();
    for stream in &streams {
        let rows: Vec<Json> = stream.iter().map(row).collect();
        writeln!(input, "{}", Json::from(rows)).unwrap();
    }
    let python = Command::new("python3")
        .args(["-c", DRIVER])
        .arg(model)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else {
        eprintln!("SKIPPED: python3 is not there, so the reference model cannot run");
        return;
    };
    let mut stdin = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), streams.len());
    let mut renumbered = Vec::new();
    for (seed, (stream, answer)) in streams.iter().zip(&answers).enumerate() {
        compare(seed, &play(stream), answer);
        if answer["state"]["renumbered"].as_u64() > Some(0) {
            renumbered.push(seed);
        }
    }
    // The rule must affect some streams, but not most of them.
    assert!((1..=25).contains(&renumbered.len()), "{renumbered:?}");
    eprintln!("the numbers of {} streams jump in too little time for loss: {renumbered:?}", renumbered.len());
}

fn row(arrived: &Arrived) -> Json {
    let kind = match arrived.kind {
        PayloadKind::Audio => 0,
        PayloadKind::ComfortNoise => 1,
        PayloadKind::Event | PayloadKind::Other => 2,
    };
    let packet = &arrived.packet;
    json!([
        arrived.at.0,
        packet.sequence,
        packet.timestamp,
        packet.payload_type,
        kind,
        u8::from(packet.marker),
        packet.ssrc,
        packet.payload_len
    ])
}

fn play(stream: &[Arrived]) -> Figures {
    let mut session = Session::new(SessionConfig::default());
    let mut description = support::pcmu();
    for payload in &mut description.payloads {
        // The model does not compute payload durations of constant-bit-rate codecs.
        payload.bytes_per_ms = None;
    }
    session.describe(Micros(0), description);
    let mut datagram = Vec::new();
    for arrived in stream {
        support::write_rtp(&arrived.packet, &mut datagram);
        session.receive(arrived.at, support::party(), &datagram);
    }
    session.close(Micros(0)).figures
}

fn compare(seed: usize, figures: &Figures, answer: &Json) {
    let (state, wanted) = (&answer["state"], &answer["figures"]);
    let sums = &figures.sums;
    let under = ["lost", "under", "flaw"].map(|name| state[name].as_u64().unwrap()).iter().sum::<u64>();
    assert_eq!(figures.flaws, under, "seed {seed}: flaws");
    let counts = [
        ("recv", figures.received as i64),
        ("expected_done", figures.expected as i64),
        ("lost", figures.lost as i64),
        ("dup", figures.duplicates as i64),
        ("reord", figures.reordered as i64),
        ("jumps", figures.sequence_jumps as i64),
        ("ssrc_chg", figures.ssrc_changes as i64),
        ("ts_reset", figures.timestamp_resets as i64),
        ("pauses", figures.pauses as i64),
        ("intr", figures.interruptions as i64),
        ("recv_audio", figures.audio as i64),
        ("cn", figures.comfort_noise as i64),
        ("tel", figures.events as i64),
        ("Jpk", sums.jitter_peak_us),
        ("nJ", sums.jitter_count as i64),
        ("nJhi", sums.jitter_high_count as i64),
        ("Jsum", sums.jitter_sum_us),
        ("sumgap", sums.gap_sum_us),
        ("ngap", sums.gap_count as i64),
        ("summedia", sums.media_sum_us),
        ("short", sums.short_gap_count as i64),
        ("cl_n", sums.clump_count as i64),
        ("cl_sum", sums.clump_sum_us),
        ("cl_sq", sums.clump_square_sum),
        ("nw", sums.pace_windows as i64),
        ("nwbad", sums.pace_windows_off as i64),
        ("late", sums.late_count as i64),
        ("late_80", figures.late_80 as i64),
        ("late_200", figures.late_200 as i64),
        ("step", sums.step_ticks),
        ("step_count", sums.step_count as i64),
        ("pairs", sums.pair_count as i64),
    ];
    for (name, actual) in counts {
        assert_eq!(state[name].as_i64(), Some(actual), "seed {seed}: {name}");
    }
    let lateness: Vec<i64> = figures.lateness.iter().map(|count| i64::from(*count)).collect();
    assert_eq!(state["pdv"], json!(lateness), "seed {seed}: lateness");
    for (length, count) in (1..).zip(figures.loss_runs) {
        let model = state["runs"].get(format!("{length}")).and_then(Json::as_u64).unwrap_or(0);
        assert_eq!(model, u64::from(count), "seed {seed}: runs of {length}");
    }
    assert_eq!(wanted["judge"], figures.enough, "seed {seed}");
    let decimals = [
        ("loss_pct", figures.loss_pct),
        ("jitter_ms", figures.jitter_ms),
        ("jmean", figures.jitter_mean_ms),
        ("mean_interval_ms", figures.mean_interval_ms),
        ("quality_pct", figures.quality_pct),
        ("mos", figures.mos),
    ];
    for (name, actual) in decimals {
        let (wanted, actual) = (wanted[name].as_f64(), actual.map(Hundredths::as_f64));
        let near = match (wanted, actual) {
            (Some(wanted), Some(actual)) => (wanted - actual).abs() < 0.011,
            (wanted, actual) => wanted == actual,
        };
        assert!(near, "seed {seed}: {name} {actual:?} instead of {wanted:?}");
    }
    let facts = Facts {
        answered: true,
        receive_expected_us: 60_000_000,
        send_expected_us: 60_000_000,
        received_after_answer: figures.received,
        sent_after_answer: 1000,
        ptime_ms: 20,
        ..Facts::default()
    };
    let verdict = judge(figures, &facts, &Thresholds::default()).rule.map(|rule| rule.as_str());
    assert_eq!(state["verdict"].as_str(), verdict, "seed {seed}");
}

const STREAMS: u64 = 250;
