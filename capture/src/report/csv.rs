//! Rows for spreadsheets: one per stream, preceded by the data of its call, and one per registration.

use std::io::{self, Write};

use serde_json::{Value, json};
use sidetone_model::csv::{write_header, write_values};
use sidetone_model::media_quality::InboundMedia;

use crate::explained::without_stream_figures;
use crate::{CallReport, Group, Head, RegistrationReport, StreamReport};

/// Writes analyses as CSV (RFC 4180), with values that no spreadsheet interprets as formulas.
///
/// The registrations of a capture come first, then the streams call by call, then the streams without signalling. A
/// call without a stream has a row as well, because it is often the one that the reader looks for. The column `kind`
/// distinguishes the rows. At most one call is in memory.
#[derive(Debug)]
pub struct Csv<W> {
    out: W,
    text: String,
}

impl<W: Write> Csv<W> {
    /// Starts with the column names.
    pub fn new(out: W) -> Self {
        let mut text = String::new();
        write_header(&mut text, &COLUMNS);
        Csv { out, text }
    }

    /// Begins a capture: writes the rows of its registrations.
    ///
    /// *Errors*: write errors.
    pub fn begin(&mut self, head: &Head) -> io::Result<()> {
        for one in &head.registrations {
            registration(&mut self.text, &head.file, one);
            self.flush_some()?;
        }
        Ok(())
    }

    /// Writes the rows of a call with its streams, or of streams without signalling.
    ///
    /// *Errors*: write errors.
    pub fn group(&mut self, file: &str, group: &Group) -> io::Result<()> {
        let mut of_call = Row::new(file);
        if let Some((place, call)) = &group.call {
            of_call.call(*place, call);
        }
        if group.streams.is_empty() {
            of_call.fill(json!({ "kind": "call" }));
            of_call.write(&mut self.text);
        }
        for (place, stream) in &group.streams {
            let mut row = of_call.clone();
            row.stream(*place, stream);
            row.write(&mut self.text);
        }
        self.flush_some()
    }

    /// Ends the output, and returns the writer.
    ///
    /// *Errors*: write errors.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_some(&mut self) -> io::Result<()> {
        if self.text.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}

/// The values of one row, by column.
#[derive(Clone)]
struct Row(Vec<Value>);

impl Row {
    fn new(file: &str) -> Self {
        let mut row = Row(vec![Value::Null; COLUMNS.len()]);
        row.fill(json!({ "file": file }));
        row
    }

    /// Adds the values of an object; a value without a column is ignored.
    fn fill(&mut self, object: Value) {
        let Value::Object(object) = object else { return };
        for (name, value) in object {
            let column = COLUMNS.iter().position(|column| *column == name);
            if let Some(slot) = column.and_then(|column| self.0.get_mut(column)) {
                *slot = value;
            }
        }
    }

    fn write(&self, text: &mut String) {
        write_values(text, self.0.iter());
    }

    fn call(&mut self, place: usize, call: &CallReport) {
        let quality = call.quality();
        self.fill(json!({
            "call": place + 1, "call_id": call.call_id, "call_from": call.from, "call_to": call.to,
            "started_at": call.started_at, "answered_at": call.answered_at, "ended_at": call.ended_at,
            "billsec": call.billsec, "sip_status": call.sip_status, "hangup_cause": call.hangup_cause,
            "call_verdict": call.media_verdict, "call_reason": quality.reason, "call_blame": quality.blame,
            "call_sentence": quality.sentence, "call_verdict_worse": call.media_verdict_worse,
        }));
        let Some(quality) = call.callee_quality() else { return };
        let figures = quality.figures();
        self.fill(json!({
            "callee_verdict": figures.verdict, "callee_reason": quality.reason, "callee_blame": quality.blame,
            "callee_sentence": quality.sentence, "callee_loss_pct": figures.loss_pct,
            "callee_jitter_ms": figures.jitter_ms, "callee_mean_interval_ms": figures.mean_interval_ms,
            "callee_quality_pct": figures.quality_pct, "callee_mos": figures.mos,
        }));
    }

    /// Adds a stream: the figures of its quality by their names, then the stream's own.
    fn stream(&mut self, place: usize, stream: &StreamReport) {
        let quality = stream.quality();
        let inbound = InboundMedia { timeline: None, ..quality.inbound };
        self.fill(json!(without_stream_figures(inbound)));
        let types: Vec<String> = stream.payload_types.iter().map(ToString::to_string).collect();
        self.fill(json!({
            "kind": "stream", "stream": place + 1, "direction": stream.direction, "src": stream.src,
            "dst": stream.dst, "ssrc": stream.ssrc, "payload_types": types.join(" "), "codec": stream.codec,
            "clock_rate": stream.clock_rate, "packets": stream.packets, "expected": stream.expected,
            "lost": stream.lost, "loss_pct": stream.loss_pct, "duplicates": stream.duplicates,
            "reordered": stream.reordered, "jitter_ms": stream.jitter_ms,
            "jitter_mean_ms": stream.jitter_mean_ms, "mean_interval_ms": stream.mean_interval_ms,
            "max_gap_ms": stream.max_gap_ms, "ptime_ms": stream.ptime_ms, "quality_pct": stream.quality_pct,
            "mos": stream.mos, "verdict": stream.verdict, "reason": quality.reason, "blame": quality.blame,
            "affected_first_s": quality.affected.map(|affected| affected.first_s),
            "affected_last_s": quality.affected.map(|affected| affected.last_s),
            "flags": quality.flags.join(" "), "sentence": quality.sentence,
            "clock_rate_inferred": stream.clock_rate.map(|_| stream.clock_rate_inferred),
        }));
    }
}

/// The row of a registration. Fields that it shares with calls and streams are in the same columns as theirs.
fn registration(text: &mut String, file: &str, one: &RegistrationReport) {
    let mut row = Row::new(file);
    row.fill(json!({
        "kind": "registration", "src": one.from, "dst": one.registrar,
        "first_at": one.first_at, "last_at": one.last_at, "sip_status": one.sip_status, "sentence": one.sentence,
        "aor": one.aor, "user_agent": one.user_agent, "tries": one.tries, "accepted": one.accepted,
        "result": one.result, "expires_s": one.expires_s,
    }));
    row.write(text);
}

/// Bytes of one write.
const WRITE_BYTES: usize = 64 << 10;

/// The columns: the file, the call, its called party, the stream, the reasons, then later additions. New columns are
/// appended, so that existing spreadsheets keep working.
const COLUMNS: [&str; 75] = [
    "file",
    "call",
    "call_id",
    "call_from",
    "call_to",
    "started_at",
    "answered_at",
    "ended_at",
    "billsec",
    "sip_status",
    "hangup_cause",
    "call_verdict",
    "call_reason",
    "call_blame",
    "call_sentence",
    "call_verdict_worse",
    "callee_verdict",
    "callee_reason",
    "callee_blame",
    "callee_sentence",
    "callee_loss_pct",
    "callee_jitter_ms",
    "callee_mean_interval_ms",
    "callee_quality_pct",
    "callee_mos",
    "stream",
    "direction",
    "src",
    "dst",
    "ssrc",
    "payload_types",
    "codec",
    "clock_rate",
    "packets",
    "expected",
    "lost",
    "loss_pct",
    "longest_loss_packets",
    "longest_loss_ms",
    "burst_share",
    "duplicates",
    "reordered",
    "jitter_ms",
    "jitter_mean_ms",
    "mean_interval_ms",
    "max_gap_ms",
    "ptime_ms",
    "pace_ratio",
    "late_80",
    "late_200",
    "clock_skew_ppm",
    "ssrc_changes",
    "ts_resets",
    "cn_packets",
    "dtmf_events",
    "first_at",
    "last_at",
    "quality_pct",
    "mos",
    "mos_e_model",
    "verdict",
    "reason",
    "blame",
    "affected_first_s",
    "affected_last_s",
    "flags",
    "sentence",
    "kind",
    "clock_rate_inferred",
    "aor",
    "user_agent",
    "tries",
    "accepted",
    "result",
    "expires_s",
];
