//! An analysis as a table for a person.

use std::fmt::Write;

use sidetone_model::media_quality::{LegQuality, RuleCheck};
use sidetone_model::quality::{Hundredths, MediaVerdict};

use super::parts::{Part, Parts};
use super::registrations::RegistrationReport;
use super::report::{CallDirection, CallReport, Head, StreamReport};

/// Renders an analysis as aligned text: a summary, the calls, the streams, and below each what was wrong.
///
/// Of each call and each stream its row is kept, and nothing else.
pub fn table(parts: Parts) -> String {
    let head = parts.head.clone();
    let (mut calls, mut streams) = (
        Grid::new(&[&CALL_COLUMNS[..], &FIGURE_COLUMNS].concat()),
        Grid::new(&[&STREAM_COLUMNS[..], &FIGURE_COLUMNS].concat()),
    );
    let mut owners: Vec<Option<Owner>> = Vec::new();
    let mut called = 0;
    for part in parts {
        match part {
            Part::Call(call) => {
                for place in &call.streams {
                    if owners.len() <= *place {
                        owners.resize(place + 1, None);
                    }
                    if let Some(owner) = owners.get_mut(*place) {
                        *owner = Some(Owner { call: called, has_callee: call.callee().is_some() });
                    }
                }
                push_call(&mut calls, called, &call);
                called += 1;
            }
            Part::Stream(stream) => {
                let place = streams.rows.len();
                let owner = owners.get(place).copied().flatten();
                // What a stream of a call has to say, its call says; unless it judges the caller alone.
                let told = owner.is_some_and(|owner| {
                    owner.has_callee
                        || stream.direction == Some("from_caller")
                        || stream.verdict == Some("ok")
                });
                let remarks = if told { Vec::new() } else { remarks(&stream.quality()) };
                streams.push(stream_cells(place, &stream, owner.map(|owner| owner.call)), remarks);
            }
        }
    }
    let mut registrations = Grid::new(&REGISTRATION_COLUMNS);
    for registration in &head.registrations {
        registrations.push(registration_cells(registration), vec![registration.sentence.clone()]);
    }
    let mut out = summary(&head, called, streams.rows.len());
    for grid in [registrations, calls, streams] {
        if !grid.rows.is_empty() {
            grid.write(&mut out);
        }
    }
    out
}

/// The call that a stream belongs to.
#[derive(Clone, Copy)]
struct Owner {
    call: usize,
    /// Whether the call says of the audio towards the caller what its stream could.
    has_callee: bool,
}

/// A row for each direction of a call, the worse one first; what the call itself is stands in the first one.
fn push_call(calls: &mut Grid, place: usize, call: &CallReport) {
    for (row, direction) in call.directions().into_iter().enumerate() {
        let mut remarks = call.quality_of(direction.side).as_ref().map(remarks).unwrap_or_default();
        if row > 0 && direction.figures.verdict == Some(MediaVerdict::Ok) {
            // That nothing is wrong is in the row; what nearly is stands below it.
            remarks.drain(..1);
        }
        let mut cells =
            if row == 0 { call_cells(place, call) } else { vec![String::new(); CALL_COLUMNS.len() - 2] };
        cells.extend(direction_cells(&direction));
        calls.push(cells, remarks);
    }
}

fn summary(head: &Head, calls: usize, streams: usize) -> String {
    let skipped = &head.skipped;
    let counts = [
        ("not IP", skipped.not_ip),
        ("truncated", skipped.truncated),
        ("later fragments", skipped.fragments),
        ("malformed SIP", skipped.malformed_sip),
        ("beyond the limits", skipped.over_limit),
    ];
    let mut out = format!(
        "{}: {} packets, {}; {}, {}",
        printable(&head.file),
        grouped(head.packets),
        size(head.bytes),
        counted(calls, "call"),
        counted(streams, "RTP stream"),
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

/// What is said below a row: why, and which rule nearly gave another verdict.
fn remarks(quality: &LegQuality) -> Vec<String> {
    let mut remarks = vec![quality.sentence.clone()];
    remarks.extend(quality.rules.iter().filter_map(RuleCheck::remark).take(NEAR_MISSES_MAX));
    remarks
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

/// Whose audio it is, its codec, its figures and its verdict.
fn direction_cells(direction: &CallDirection) -> Vec<String> {
    let of = &direction.figures;
    let mut cells = vec![direction.sender().to_owned(), direction.codec.clone().unwrap_or_default()];
    cells.extend([of.loss_pct, of.jitter_ms, of.mean_interval_ms, of.quality_pct, of.mos].map(figure));
    cells.push(direction.verdict().unwrap_or("not judged").to_owned());
    cells
}

fn stream_cells(place: usize, stream: &StreamReport, call: Option<usize>) -> Vec<String> {
    let name = match (call, stream.direction) {
        (Some(call), Some("from_caller")) => format!("{} (call {}, caller)", place + 1, call + 1),
        (Some(call), _) => format!("{} (call {}, to caller)", place + 1, call + 1),
        (None, _) => (place + 1).to_string(),
    };
    let codec = stream.codec.clone().unwrap_or_else(|| {
        stream.payload_types.iter().map(|number| format!("type {number}")).collect::<Vec<_>>().join(", ")
    });
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

/// A figure that cannot be judged is a dash.
fn figure(value: Option<Hundredths>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.2}", value.as_f64()))
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(count as u64)),
    }
}

/// Digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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

/// Text of a capture for a terminal: no control character reaches it, and no line grows without bound.
fn printable(text: &str) -> String {
    let mut out: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(CELL_WIDTH_MAX).collect();
    if text.chars().nth(CELL_WIDTH_MAX).is_some() {
        out.pop();
        out.push('…');
    }
    out
}

/// Rows of cells, each with a remark below it.
struct Grid {
    header: Vec<String>,
    rows: Vec<(Vec<String>, Vec<String>)>,
}

impl Grid {
    fn new(header: &[&str]) -> Self {
        Grid { header: header.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    fn push(&mut self, cells: Vec<String>, remarks: Vec<String>) {
        let cells = cells.iter().map(|cell| printable(cell)).collect();
        self.rows.push((cells, remarks));
    }

    /// Writes the rows; columns of numbers are aligned to the right.
    fn write(&self, out: &mut String) {
        let lines = || std::iter::once(&self.header).chain(self.rows.iter().map(|(cells, _)| cells));
        let column = |place: usize| lines().filter_map(move |cells| cells.get(place));
        let widths: Vec<usize> = (0..self.header.len())
            .map(|place| column(place).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        let numeric: Vec<bool> = (0..self.header.len())
            .map(|place| {
                let is_number =
                    |cell: &String| cell.chars().all(|c| c.is_ascii_digit() || ".,–-".contains(c));
                column(place).skip(1).all(is_number)
            })
            .collect();
        out.push('\n');
        let none = Vec::new();
        let remarks = std::iter::once(&none).chain(self.rows.iter().map(|(_, remarks)| remarks));
        for (cells, remarks) in lines().zip(remarks) {
            let mut line = String::new();
            for ((cell, width), numeric) in cells.iter().zip(&widths).zip(&numeric) {
                let _ = if *numeric {
                    write!(line, "{cell:>width$}  ")
                } else {
                    write!(line, "{cell:<width$}  ")
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
            for line in remarks.iter().flat_map(|remark| wrapped(remark)) {
                let _ = writeln!(out, "      {line}");
            }
        }
    }
}

/// A remark in lines that a terminal has room for, the first one marked.
fn wrapped(remark: &str) -> Vec<String> {
    let mut lines = vec!["↳".to_owned()];
    for word in remark.split_whitespace() {
        let word = printable(word);
        let is_full = |line: &String| line.chars().count() + 1 + word.chars().count() > REMARK_WIDTH;
        if lines.last().is_none_or(is_full) {
            lines.push(" ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&word);
        }
    }
    lines
}

const CALL_COLUMNS: [&str; 8] =
    ["call", "started (UTC)", "from", "to", "status", "billed", "audio of", "codec"];
const REGISTRATION_COLUMNS: [&str; 8] =
    ["registration", "started (UTC)", "from", "registrar", "tries", "status", "expires", "result"];
const STREAM_COLUMNS: [&str; 7] = ["stream", "from", "to", "SSRC", "codec", "packets", "lost"];
/// What follows the columns of both.
const FIGURE_COLUMNS: [&str; 6] = ["loss %", "jitter ms", "interval ms", "quality %", "MOS", "verdict"];
/// The width of a remark.
const REMARK_WIDTH: usize = 100;
/// Rules that hold as well, or nearly, and are told.
const NEAR_MISSES_MAX: usize = 3;
/// The widest cell; a Call-ID or a name may be of any length.
const CELL_WIDTH_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn numbers_read_easily() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (number, expected) in cases {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(size(1_310_000), "1.3 MB");
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }

    #[test]
    fn columns_are_aligned_and_remarks_stand_below() {
        let mut grid = Grid::new(&["name", "loss %", "verdict"]);
        grid.push(vec!["Ada".into(), "0.00".into(), "ok".into()], Vec::new());
        grid.push(vec!["Bartholomew".into(), "12.30".into(), "lossy_inbound".into()], vec!["because".into()]);
        grid.push(vec!["Cy".into(), "–".into(), "ok".into()], Vec::new());
        let mut out = String::new();
        grid.write(&mut out);
        expect![[r"

            name         loss %  verdict
            Ada            0.00  ok
            Bartholomew   12.30  lossy_inbound
                  ↳ because
            Cy                –  ok
        "]]
        .assert_eq(&out);
    }
}
