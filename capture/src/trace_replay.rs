//! Analyses a header-only trace: one call with one stream, judged as the live leg was judged.

use std::io::{self, Read};

use sidetone_media::session::Report;
use sidetone_media::time::Micros;
use sidetone_media::trace::{MAGIC, Replay, Replayed, TraceDamage};
use sidetone_model::media_quality::LegSide;
use sidetone_model::time::Timestamp;

use super::analysis::{
    Analysis, CallReport, EvidenceReport, Shared, Skipped, StreamFacts, StreamReport, verdict,
};
use super::call_leg::CallLeg;
use super::gzip::Plain;
use super::ladder::Ladder;
use super::outcome::{Broken, Outcome};
use super::times::Times;

/// The bytes that distinguish a trace from a capture, as many as `input` has.
pub(super) fn beginning(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(MAGIC.len());
    input.take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file that begins with these bytes is a trace.
pub(super) fn is_trace(beginning: &[u8]) -> bool {
    beginning == MAGIC
}

/// Reads the rest of a trace from `input` to its end, or as far as it can be read.
///
/// *Bounds*: the buffer holds one block, at most [`Replay::NEEDED_MAX`] bytes.
pub(super) fn read_trace(name: &str, input: &mut Plain<impl Read>, progress: &mut dyn FnMut(u64)) -> Outcome {
    let mut replay = Replay::on_wall_clock();
    let (mut buffer, mut bytes) = (MAGIC.to_vec(), MAGIC.len() as u64);
    let failed = loop {
        let before = buffer.len();
        match input.by_ref().take(CHUNK_LEN).read_to_end(&mut buffer) {
            Ok(0) => break None,
            Ok(len) => bytes += len as u64,
            Err(error) => {
                bytes += (buffer.len() - before) as u64;
                break Some(error);
            }
        }
        progress(input.taken());
        match replay.feed(&buffer) {
            Ok(used) => drop(buffer.drain(..used)),
            // The error is reported at the end, with what was read before.
            Err(_) => break None,
        }
    };
    let mut outcome = match replay.finish(buffer.len()) {
        Ok(replayed) => outcome(name, bytes, replayed),
        Err(damage) => Outcome { analysis: nothing(name, bytes), broken: Some(damage.into()) },
    };
    if let Some(error) = failed {
        outcome.broken = Some(error.into());
    }
    outcome
}

fn nothing(name: &str, bytes: u64) -> Analysis {
    Analysis {
        file: name.to_owned(),
        packets: 0,
        bytes,
        skipped: Skipped::default(),
        times: Times::default(),
        registrations: Vec::new(),
        calls: Vec::new(),
        streams: Vec::new(),
    }
}

fn outcome(name: &str, bytes: u64, mut replayed: Replayed) -> Outcome {
    let broken = match (replayed.damage.take(), replayed.missing) {
        (Some(damage), _) => Some(damage.into()),
        (None, None) => Some(Broken::TraceWithoutEnd),
        (None, Some(0)) => None,
        (None, Some(missing)) => Some(Broken::TraceWithGap { missing }),
    };
    let mut analysis = Analysis { packets: replayed.packets, ..nothing(name, bytes) };
    if replayed.begun.is_some() {
        analysis.streams.extend(replayed.report.ssrc.map(|ssrc| stream(&replayed, ssrc)));
        analysis.calls.push(call(replayed, (0..analysis.streams.len()).collect()));
    }
    Outcome { analysis, broken }
}

/// The leg as a call. A trace contains the addresses of the parties, but not their names.
fn call(replayed: Replayed, streams: Vec<usize>) -> CallReport {
    let Replayed { head, report, negotiated, answered, begun, ended, closed, .. } = replayed;
    let timestamp = |at: Micros| Timestamp::from_micros(at.0);
    let shared = Shared::new(&report.figures);
    let billed_us = answered.zip(ended).map_or(0, |(answered, ended)| ended.since(answered));
    let ours = report.own_advertised.map(|ip| ip.to_string()).unwrap_or_default();
    let theirs = party(&report).unwrap_or_default();
    // `b2` is another leg that was rung.
    let side = if head.leg.starts_with('b') { LegSide::B } else { LegSide::A };
    let (from, to) = match side {
        LegSide::A => (theirs, ours),
        LegSide::B => (ours, theirs),
    };
    CallReport {
        call_id: head.call,
        from,
        to,
        started_at: timestamp(begun.unwrap_or_default()),
        answered_at: answered.map(timestamp),
        ended_at: ended.filter(|_| closed).map(timestamp),
        billsec: billed_us.max(0) / 1_000_000,
        sip_status: None,
        hangup_cause: None,
        codec_a: report.codec.clone().or(negotiated),
        jitter_ms: shared.jitter_ms,
        loss_pct: shared.loss_pct,
        mean_interval_ms: shared.mean_interval_ms,
        quality_pct: shared.quality_pct,
        mos: shared.mos,
        media_verdict: verdict(&report),
        media_verdict_worse: verdict(&report),
        evidence: report.verdict.map(|_| EvidenceReport(report.evidence.clone())),
        failure: None,
        streams,
        ladder: Ladder::default(),
        leg: CallLeg { side, ..CallLeg::of_caller(Box::new(report)) },
        far_leg: None,
    }
}

fn stream(replayed: &Replayed, ssrc: u32) -> StreamReport {
    let report = &replayed.report;
    let address = report.source.or(report.advertised);
    let facts = StreamFacts {
        src: address.map(|address| address.to_string()).unwrap_or_default(),
        dst: report.own_advertised.map(|ip| ip.to_string()).unwrap_or_default(),
        ssrc,
        codec: report.codec.clone(),
        clock_rate: report.clock_rate.map(|clock| clock.hz()),
        is_clock_inferred: false,
        from_caller: Some(replayed.head.leg == "a"),
    };
    StreamReport::of(facts, Box::new(report.clone()))
}

/// The address of the party.
fn party(report: &Report) -> Option<String> {
    report.source.or(report.advertised).map(|address| address.ip().to_string())
}

impl From<TraceDamage> for Broken {
    fn from(damage: TraceDamage) -> Self {
        Broken::Trace(damage)
    }
}

const CHUNK_LEN: u64 = 1 << 16;
