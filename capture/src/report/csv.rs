//! Rows for spreadsheets: one a stream, with what is known of its call in front, and one a registration.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use sidetone_model::csv::{write_header, write_object};

use crate::{CallReport, Group, Head, RegistrationReport, StreamReport};

/// Writes analyses as CSV (RFC 4180) that no spreadsheet takes for formulas.
///
/// The registrations of a capture come first. The streams of a call follow each other, call by call; then come those
/// without signalling. A call without a stream has a row as well: it is often the one that is looked for. The column
/// `kind` tells the rows apart. No more is in memory than one call.
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
    /// *Errors*: what the writer reports.
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
        let call = group.call.as_ref().map(|(place, call)| (*place, &**call));
        if group.streams.is_empty() {
            row(&mut self.text, file, call, None);
        }
        for (place, stream) in &group.streams {
            row(&mut self.text, file, call, Some((*place, stream)));
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

fn row(
    text: &mut String,
    file: &str,
    call: Option<(usize, &CallReport)>,
    stream: Option<(usize, &StreamReport)>,
) {
    let mut cells = Map::new();
    cells.insert("file".to_owned(), json!(file));
    cells.insert("kind".to_owned(), json!(if stream.is_some() { "stream" } else { "call" }));
    if let Some((place, call)) = call {
        let quality = call.quality();
        cells.insert("call".to_owned(), json!(place + 1));
        let of_call = json!({
            "call_id": call.call_id, "call_from": call.from, "call_to": call.to,
            "started_at": call.started_at, "answered_at": call.answered_at, "ended_at": call.ended_at,
            "billsec": call.billsec, "sip_status": call.sip_status, "hangup_cause": call.hangup_cause,
            "call_verdict": call.media_verdict, "call_reason": quality.reason, "call_blame": quality.blame,
            "call_sentence": quality.sentence, "call_verdict_worse": call.media_verdict_worse,
        });
        merge(&mut cells, of_call);
        if let Some(quality) = call.callee_quality() {
            let figures = quality.figures();
            let of_callee = json!({
                "callee_verdict": figures.verdict, "callee_reason": quality.reason, "callee_blame": quality.blame,
                "callee_sentence": quality.sentence, "callee_loss_pct": figures.loss_pct,
                "callee_jitter_ms": figures.jitter_ms, "callee_mean_interval_ms": figures.mean_interval_ms,
                "callee_quality_pct": figures.quality_pct, "callee_mos": figures.mos,
            });
            merge(&mut cells, of_callee);
        }
    }
    if let Some((place, stream)) = stream {
        let quality = stream.quality();
        cells.insert("stream".to_owned(), json!(place + 1));
        merge(&mut cells, json!(stream));
        let types: Vec<String> = stream.payload_types.iter().map(ToString::to_string).collect();
        let of_stream = json!({
            "payload_types": types.join(" "), "reason": quality.reason, "blame": quality.blame,
            "affected_first_s": quality.affected.map(|affected| affected.first_s),
            "affected_last_s": quality.affected.map(|affected| affected.last_s),
            "flags": quality.flags.join(" "), "sentence": quality.sentence,
            "clock_rate_inferred": stream.clock_rate.map(|_| stream.clock_rate_inferred),
        });
        merge(&mut cells, of_stream);
    }
    write_object(text, &COLUMNS, &Value::Object(cells));
}

/// The row of a registration: what it shares with calls and streams stands in their columns.
fn registration(text: &mut String, file: &str, one: &RegistrationReport) {
    let cells = json!({
        "file": file, "kind": "registration", "src": one.from, "dst": one.registrar,
        "first_at": one.first_at, "last_at": one.last_at, "sip_status": one.sip_status, "sentence": one.sentence,
        "aor": one.aor, "user_agent": one.user_agent, "tries": one.tries, "accepted": one.accepted,
        "result": one.result, "expires_s": one.expires_s,
    });
    write_object(text, &COLUMNS, &cells);
}

fn merge(cells: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        cells.extend(more);
    }
}

/// Bytes of one write.
const WRITE_BYTES: usize = 64 << 10;

/// The columns: the file, the call, its called party, the stream, why; then what was added later: new columns stand at
/// the end, so that those of a spreadsheet keep their places.
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
