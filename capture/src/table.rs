//! Renders an analysis as a table for people.

use std::collections::HashMap;
use std::fmt::Write;

use sidetone_model::media_quality::{LegQuality, RuleCheck};
use sidetone_model::quality::Hundredths;
use sidetone_report::grouped;

use super::analysis::{CallDirection, CallReport, Head, StreamReport};
use super::grid::{Grid, Look, MIN_WIDTH, Row, printable, wrapped};
use super::groups::{Group, Groups};
use super::parts::Parts;
use super::registrations::RegistrationReport;

/// A table under construction: a summary, the calls, the streams, and below each of them the remarks.
///
/// Only the row of each call and each stream is kept.
#[derive(Debug)]
pub struct Table {
    look: Look,
    shown_calls: usize,
    calls: Grid,
    streams: Grid,
    /// The sentences of earlier rows, with the name of the row.
    shown_sentences: HashMap<String, String>,
}

/// Renders an analysis as aligned text, every row on one line.
pub fn table(parts: Parts) -> String {
    let mut groups = Groups::from(parts);
    let mut table = Table::new(Look::default());
    for group in groups.by_ref() {
        table.push(&group);
    }
    table.finish(&groups.head, groups.calls, groups.streams)
}

impl Table {
    /// A table without rows.
    pub fn new(look: Look) -> Self {
        Table {
            look,
            shown_calls: 0,
            calls: Grid::new(&[&CALL_COLUMNS[..], &FIGURE_COLUMNS].concat()),
            streams: Grid::new(&[&STREAM_COLUMNS[..], &FIGURE_COLUMNS].concat()),
            shown_sentences: HashMap::new(),
        }
    }

    /// Takes a call with its streams, or streams without signalling.
    pub fn push(&mut self, group: &Group) {
        if let Some((place, call)) = &group.call {
            self.push_call(*place, call);
        }
        for (place, stream) in &group.streams {
            let call = group.call.as_ref().map(|(place, _)| *place);
            // The remarks of a stream are shown with its call, unless the call's remarks are about the caller
            // only.
            let is_with_call = group.call.as_ref().is_some_and(|(_, call)| {
                call.callee().is_some()
                    || stream.direction == Some("from_caller")
                    || stream.verdict == Some("ok")
            });
            let remarks = if is_with_call {
                Vec::new()
            } else {
                self.remarks(&stream.quality(), stream.verdict, || format!("stream {}", place + 1))
            };
            self.streams.push(Row::new(stream_cells(*place, stream, call), remarks, stream.verdict));
        }
    }

    /// Adds a row for each direction of a call, the worse one first; the fields of the call itself are in the
    /// first one.
    fn push_call(&mut self, place: usize, call: &CallReport) {
        self.shown_calls += 1;
        for (row, direction) in call.directions().into_iter().enumerate() {
            let quality = call.quality_of(direction.side);
            let verdict = direction.verdict();
            let remarks = match &quality {
                // The row already shows "ok"; the rules that nearly apply are shown below it.
                Some(quality) if row > 0 && verdict == Some("ok") => near(quality),
                Some(quality) => self.remarks(quality, verdict, || format!("call {}", place + 1)),
                None => Vec::new(),
            };
            let mut cells =
                if row == 0 { call_cells(place, call) } else { vec![String::new(); CALL_COLUMNS.len() - 2] };
            cells.extend(direction_cells(&direction));
            self.calls.push(Row::new(cells, remarks, verdict));
        }
    }

    /// Returns the text; `calls` and `streams` are the numbers in the capture, which may be more than are
    /// shown.
    pub fn finish(self, head: &Head, calls: usize, streams: usize) -> String {
        let mut out = summary(head, (self.shown_calls, calls), (self.streams.len(), streams));
        if let Some(width) = self.look.width {
            let lines = wrapped(&out, width.max(MIN_WIDTH), "", "  ");
            out = lines.join("\n") + "\n";
        }
        let mut registrations = Grid::new(&REGISTRATION_COLUMNS);
        for one in &head.registrations {
            let verdict = if one.is_failed() { "failed" } else { "ok" };
            let remarks = vec![one.sentence.clone()];
            registrations.push(Row::new(registration_cells(one), remarks, Some(verdict)));
        }
        for grid in [registrations, self.calls, self.streams] {
            if grid.len() > 0 {
                grid.write(self.look, &mut out);
            }
        }
        out
    }

    /// The remarks below a row: why, and which rule nearly gave another verdict. A sentence of an earlier row
    /// is not repeated.
    fn remarks(
        &mut self,
        quality: &LegQuality,
        verdict: Option<&str>,
        name: impl FnOnce() -> String,
    ) -> Vec<String> {
        let mut remarks = Vec::new();
        match self.shown_sentences.get(&quality.sentence) {
            Some(_) if matches!(verdict, None | Some("ok")) => {}
            Some(earlier) => remarks.push(format!("as {earlier}")),
            None => {
                remarks.push(quality.sentence.clone());
                if self.shown_sentences.len() < SENTENCES_MAX {
                    self.shown_sentences.insert(quality.sentence.clone(), name());
                }
            }
        }
        remarks.extend(near(quality));
        remarks
    }
}

fn summary(head: &Head, calls: (usize, usize), streams: (usize, usize)) -> String {
    let skipped = &head.skipped;
    let counts = [
        ("not IP", skipped.not_ip),
        ("truncated", skipped.truncated),
        ("later fragments", skipped.fragments),
        ("malformed SIP", skipped.malformed_sip),
        ("beyond the limits", skipped.over_limit),
        ("without a time", head.times.untimed),
    ];
    let shown = |(shown, all): (usize, usize), noun: &str| {
        if shown == all {
            counted(all, noun)
        } else {
            format!("{} of {}", grouped(shown as u64), counted(all, noun))
        }
    };
    let mut out = format!(
        "{}: {} packets, {}; {}, {}",
        printable(&head.file),
        grouped(head.packets),
        size(head.bytes),
        shown(calls, "call"),
        shown(streams, "RTP stream"),
    );
    if !head.registrations.is_empty() {
        let failed = head.registrations.iter().filter(|registration| registration.is_failed()).count();
        let _ = write!(
            out,
            "; {}, {failed} of them not accepted",
            counted(head.registrations.len(), "registration")
        );
    }
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        // Writing to a string cannot fail.
        let _ = write!(out, "; {} {name}", grouped(count));
    }
    out.push('\n');
    out
}

fn registration_cells(registration: &RegistrationReport) -> Vec<String> {
    let RegistrationReport { aor, from, registrar, first_at, tries, result, sip_status, expires_s, .. } =
        registration;
    let started = first_at.to_string();
    vec![
        aor.clone(),
        started.get(..19).unwrap_or(&started).replace('T', " "),
        from.clone(),
        registrar.clone(),
        grouped((*tries).into()),
        sip_status.map_or_else(|| "–".to_owned(), |status| status.to_string()),
        expires_s.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds} s")),
        (*result).to_owned(),
    ]
}

fn call_cells(place: usize, call: &CallReport) -> Vec<String> {
    let started = call.started_at.to_string();
    let ended = match (call.sip_status, &call.hangup_cause) {
        (Some(status), Some(cause)) => format!("{status} {cause}"),
        (Some(status), None) => format!("{status}, no end captured"),
        (None, Some(cause)) => cause.to_string(),
        (None, None) => "no end captured".to_owned(),
    };
    vec![
        (place + 1).to_string(),
        started.get(..19).unwrap_or(&started).replace('T', " "),
        call.from.clone(),
        call.to.clone(),
        ended,
        if call.answered_at.is_some() { format!("{} s", call.billsec) } else { String::new() },
    ]
}

/// The sender, its codec, its figures and its verdict.
fn direction_cells(direction: &CallDirection) -> Vec<String> {
    let of = &direction.figures;
    let mut cells = vec![direction.sender().to_owned(), direction.codec.clone().unwrap_or_default()];
    cells.extend([of.loss_pct, of.jitter_ms, of.mean_interval_ms, of.quality_pct, of.mos].map(figure));
    cells.push(direction.verdict().unwrap_or("not judged").to_owned());
    cells
}

/// The rules that also apply, or nearly do.
fn near(quality: &LegQuality) -> Vec<String> {
    quality.rules.iter().filter_map(RuleCheck::remark).take(NEAR_MISSES_MAX).collect()
}

fn stream_cells(place: usize, stream: &StreamReport, call: Option<usize>) -> Vec<String> {
    let name = match (call, stream.direction) {
        (Some(call), Some("from_caller")) => format!("{} (call {}, caller)", place + 1, call + 1),
        (Some(call), _) => format!("{} (call {}, to caller)", place + 1, call + 1),
        (None, _) => (place + 1).to_string(),
    };
    let codec = stream.codec.clone().unwrap_or_else(|| stream.types_in_words());
    let mut cells = vec![
        name,
        stream.src.clone(),
        stream.dst.clone(),
        stream.ssrc.clone(),
        codec,
        grouped(stream.packets),
        grouped(stream.lost),
    ];
    let figures =
        [stream.loss_pct, stream.jitter_ms, stream.mean_interval_ms, stream.quality_pct, stream.mos];
    cells.extend(figures.map(figure));
    cells.push(stream.verdict.unwrap_or_default().to_owned());
    cells
}

/// A figure that cannot be judged is shown as a dash.
fn figure(value: Option<Hundredths>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.2}", value.as_f64()))
}

/// `no calls`, `1 call`, `1,234 calls`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(count as u64)),
    }
}

fn size(bytes: u64) -> String {
    let bytes_f = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes_f / 1e6),
        _ => format!("{:.1} GB", bytes_f / 1e9),
    }
}

const CALL_COLUMNS: [&str; 8] =
    ["call", "started (UTC)", "from", "to", "status", "billed", "audio of", "codec"];
const REGISTRATION_COLUMNS: [&str; 8] =
    ["registration", "started (UTC)", "from", "registrar", "tries", "status", "expires", "result"];
const STREAM_COLUMNS: [&str; 7] = ["stream", "from", "to", "SSRC", "codec", "packets", "lost"];
/// The columns at the end of both tables.
const FIGURE_COLUMNS: [&str; 6] = ["loss %", "jitter ms", "interval ms", "quality %", "MOS", "verdict"];
/// Largest number of rules shown in addition to the verdict.
const NEAR_MISSES_MAX: usize = 3;
/// Sentences that are remembered, to find repetitions.
const SENTENCES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use sidetone_media::simulate::Scenario;

    use super::super::{EngineOptions, Source, compose_calls, read_parts};
    use super::*;

    fn rendered(text: &str, calls: u32, look: Look) -> String {
        let mut file = Vec::new();
        compose_calls(&text.parse::<Scenario>().unwrap(), calls, &mut file).unwrap();
        let read = read_parts(EngineOptions::default(), "x", Source::Stream(&mut &file[..]), &mut |_, _| {});
        let mut groups = Groups::from(read.parts);
        let mut table = Table::new(look);
        groups.by_ref().for_each(|group| table.push(&group));
        table.finish(&groups.head, groups.calls, groups.streams)
    }

    #[test]
    fn numbers_read_easily() {
        assert_eq!(size(1_310_000), "1.3 MB");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [30, 40, 60, 80, 100, 120, 150, 200] {
            for scenario in ["lossy duration=3s", "clean duration=3s", "no-inbound", "no-inbound returned=no"]
            {
                let text = rendered(scenario, 2, Look { width: Some(width), colour: false });
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(widest <= width, "{scenario} at {width}: {widest}\n{text}");
            }
        }
    }

    #[test]
    fn a_sentence_is_shown_once() {
        let text = rendered("no-inbound duration=5s noise=0", 3, Look::default());
        let shown: Vec<&str> = text.lines().filter(|line| line.contains('↳')).collect();
        assert_eq!(shown.iter().filter(|line| line.contains("as call 1")).count(), 4, "{text}");
        let clean = rendered("clean duration=5s noise=0", 3, Look::default());
        assert_eq!(clean.matches("as call").count(), 0, "{clean}");
    }
}
