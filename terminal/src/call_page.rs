//! The page of one call: the verdict sentences of both directions, the figures side by side, the losses over time,
//! and the SIP messages.

use serde_json::Value;

use crate::clean::clean;
use crate::json::{dash, figure, flag, list, number, or_dash, raw, text, verdict_tone, words};
use crate::ladder::{LadderMessage, ladder_lines};
use crate::screen::{Line, Tone};

/// The data that the page of a call shows.
#[derive(Clone, Debug, Default)]
pub struct CallFacts {
    /// `1001 -> 1002, answered, 0:42`.
    pub heading: String,
    /// The quality of both legs, in the form of the API and `analyze --format json`; null without media.
    pub quality: Value,
    /// The messages, the earliest first.
    pub ladder: Vec<LadderMessage>,
    /// The reason shown for a call without messages.
    pub no_ladder: String,
    /// Whether the legs are streams without signalling, so that the calling side is unknown.
    pub is_unannounced: bool,
}

/// The lines of a call's page.
pub fn call_page(facts: &CallFacts) -> Vec<Line> {
    let quality = &facts.quality;
    let legs = list(quality, "legs");
    let mut lines = vec![Line::of(Tone::Strong, facts.heading.clone()), Line::default()];
    if facts.is_unannounced {
        legs.iter().for_each(|leg| lines.extend(side(&format!("From {}", or_dash(text(leg, "party"))), leg)));
    } else {
        lines.extend(side("From the caller", quality));
        let callee = quality.get("callee").filter(|callee| callee.is_object());
        lines.extend(callee.into_iter().flat_map(|callee| side("From the called party", callee)));
    }
    if quality.is_null() {
        lines.push(Line::of(Tone::Dim, "No audio was measured yet."));
    }
    lines.push(Line::default());
    lines.extend(figures(legs, facts.is_unannounced));
    lines.extend(legs.iter().filter_map(|leg| losses(leg, facts.is_unannounced)));
    lines.push(Line::default());
    let ladder = ladder_lines(&facts.ladder);
    if ladder.is_empty() {
        lines.push(Line::of(Tone::Dim, facts.no_ladder.clone()));
    }
    lines.extend(ladder);
    lines
}

/// The verdict on one direction, its sentence, and who should act on it.
fn side(title: &str, of: &Value) -> Vec<Line> {
    let verdict = raw(of, "media_verdict");
    let label = if verdict.is_empty() { "not judged".to_owned() } else { words(verdict) };
    let mut lines = vec![Line::of(Tone::Plain, format!("{title}: ")).and(verdict_tone(verdict), label)];
    if !raw(of, "sentence").is_empty() {
        lines.extend(folded(raw(of, "sentence")).into_iter().map(|part| Line::of(Tone::Plain, part)));
    }
    let who = match raw(of, "blame") {
        "network" => "Who should act: the operator of the network between the party and this node.",
        "remote" => "Who should act: the owner of the party's device, or of its own network.",
        "us" => {
            "Who should act: the operator of this node: its host, its addresses, or what sends through it."
        }
        _ => return lines,
    };
    lines.push(Line::of(Tone::Dim, format!("  {who}")));
    lines
}

/// A sentence in lines of a page, indented by two cells, with each word passed through [`clean()`]: a sentence with
/// its remarks is longer than that function's limit for one text.
fn folded(sentence: &str) -> Vec<String> {
    let mut lines = vec![String::from(" ")];
    for word in sentence.split(' ').take(WORDS_MAX) {
        let word = clean(word);
        let is_full =
            lines.last().is_some_and(|line| line.chars().count() + word.chars().count() > FOLD_WIDTH);
        if is_full {
            lines.push(String::from(" "));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&word);
        }
    }
    lines
}

/// A figure: its label, its unit, its decimal places, and its path in a leg.
type Figure = (&'static str, &'static str, usize, &'static [&'static str]);

const FIGURES: [Figure; 17] = [
    ("MOS", "", 2, &["inbound", "mos"]),
    ("MOS by the E-model", "", 2, &["inbound", "mos_e_model"]),
    ("Packets without flaw", "%", 2, &["inbound", "quality_pct"]),
    ("Lost", "%", 2, &["inbound", "loss_pct"]),
    ("Lost", "packets", 0, &["inbound", "lost"]),
    ("Longest loss", "ms", 0, &["inbound", "longest_loss_ms"]),
    ("Late for a buffer of 80 ms", "packets", 0, &["inbound", "late_80"]),
    ("Peak jitter", "ms", 1, &["inbound", "jitter_ms"]),
    ("Mean interval", "ms", 2, &["inbound", "mean_interval_ms"]),
    ("Longest gap", "ms", 1, &["inbound", "max_gap_ms"]),
    ("Packets received", "", 0, &["inbound", "packets"]),
    ("Level", "dBov", 1, &["inbound", "audio", "level_dbov"]),
    ("Packets sent", "", 0, &["outbound", "packets"]),
    ("Round trip, mean", "ms", 1, &["outbound", "round_trip_ms", "mean"]),
    ("Far end: lost", "%", 2, &["outbound", "far_end", "loss_pct"]),
    ("Far end: jitter", "ms", 1, &["outbound", "far_end", "jitter_max_ms"]),
    ("Rejected packets of others", "", 0, &["inbound", "rejected_source"]),
];

/// The figures of the legs side by side; a figure that no leg has is omitted.
fn figures(legs: &[Value], is_unannounced: bool) -> Vec<Line> {
    if legs.is_empty() {
        return Vec::new();
    }
    let mut head = format!("{:<28}", "");
    for leg in legs.iter().take(LEGS_MAX) {
        let name = if is_unannounced { text(leg, "party") } else { name(leg) };
        head.push_str(&format!(" {:>26}", clipped(&name)));
    }
    let mut lines = vec![Line::of(Tone::Strong, head)];
    for (label, unit, digits, path) in FIGURES {
        if legs.iter().all(|leg| number(leg, path).is_none()) {
            continue;
        }
        let mut line = format!("{label:<28}");
        for leg in legs.iter().take(LEGS_MAX) {
            line.push_str(&format!(" {:>26}", figure(number(leg, path), digits)));
        }
        lines.push(Line::of(Tone::Plain, line).and(Tone::Dim, format!(" {unit}")));
    }
    lines
}

/// `Caller 1001 PCMA`.
fn name(leg: &Value) -> String {
    let side = if raw(leg, "leg") == "b" { "Called" } else { "Caller" };
    format!("{side} {} {}", or_dash(text(leg, "party")), text(leg, "codec")).trim_end().to_owned()
}

fn clipped(name: &str) -> String {
    name.chars().take(26).collect()
}

/// The lost and late packets of the last minutes, one bar for each step of the timeline. `_` is a step without
/// losses, and a blank a step in which no audio was expected.
fn losses(leg: &Value, is_unannounced: bool) -> Option<Line> {
    let timeline = leg.get("inbound")?.get("timeline")?;
    let names: Vec<&str> = list(timeline, "columns").iter().filter_map(Value::as_str).collect();
    let at = |name: &str| names.iter().position(|column| *column == name);
    let (lost, late, received) = (at("lost")?, at("late")?, at("received")?);
    let expected = at("audio_expected");
    let steps = list(timeline, "seconds");
    let bars: String = steps
        .iter()
        .skip(steps.len().saturating_sub(BARS_MAX))
        .map(|step| {
            let of = |place: usize| step.get(place).and_then(Value::as_f64).unwrap_or_default();
            let (bad, all) = (of(lost) + of(late), of(lost) + of(received));
            if expected.is_some_and(|place| of(place) == 0.0) && bad == 0.0 { ' ' } else { bar(bad, all) }
        })
        .collect();
    let step_s = number(timeline, &["step_s"]).unwrap_or(1.0);
    let is_faulty = bars.chars().any(|bar| !matches!(bar, '_' | ' '));
    let tone = if is_faulty { Tone::Bad } else { Tone::Good };
    let side = match raw(leg, "leg") {
        _ if is_unannounced => or_dash(text(leg, "party")),
        "b" => "called".to_owned(),
        _ => "caller".to_owned(),
    };
    let label = format!("Lost or late, {side}, {step_s:.0} s ");
    (!bars.is_empty()).then(|| Line::of(Tone::Plain, format!("{label:<29}")).and(tone, bars))
}

fn bar(bad: f64, all: f64) -> char {
    match bad / all.max(1.0) {
        share if share <= 0.0 => '_',
        share if share < 0.02 => '▂',
        share if share < 0.05 => '▃',
        share if share < 0.1 => '▄',
        share if share < 0.25 => '▅',
        share if share < 0.5 => '▆',
        _ => '█',
    }
}

/// The figures that the row of a live call shows: the worse verdict, the lower MOS, the higher loss and jitter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    pub(crate) verdict: String,
    pub(crate) mos: Option<f64>,
    pub(crate) loss_pct: Option<f64>,
    pub(crate) jitter_ms: Option<f64>,
}

impl Summary {
    pub(crate) fn of(quality: &Value) -> Self {
        let legs = list(quality, "legs");
        let each = |name: &'static str| legs.iter().filter_map(move |leg| number(leg, &["inbound", name]));
        let verdict = match raw(quality, "media_verdict_worse") {
            "" => raw(quality, "media_verdict"),
            worse => worse,
        };
        Summary {
            verdict: verdict.to_owned(),
            mos: each("mos").reduce(f64::min),
            loss_pct: each("loss_pct").reduce(f64::max),
            jitter_ms: each("jitter_ms").reduce(f64::max),
        }
    }

    /// The cells of the verdict, MOS, loss and jitter.
    pub(crate) fn cells(&self) -> Vec<String> {
        vec![
            if self.verdict.is_empty() { dash() } else { words(&self.verdict) },
            figure(self.mos, 2),
            figure(self.loss_pct, 2),
            figure(self.jitter_ms, 1),
        ]
    }
}

/// The unusual states of a live call: on hold, parked, recorded.
pub(crate) fn states(call: &Value) -> String {
    let mut states = vec![words(raw(call, "state"))];
    if !raw(call, "held_by").is_empty() {
        states.push("on hold".to_owned());
    }
    if call.get("parked").is_some_and(Value::is_object) {
        states.push("parked".to_owned());
    }
    if call.get("recording").is_some_and(|recording| recording.is_object() && !flag(recording, "paused")) {
        states.push("recorded".to_owned());
    }
    states.join(", ")
}

/// Maximum number of words of a sentence with its remarks.
const WORDS_MAX: usize = 400;
/// Width of a line of a sentence, in cells.
const FOLD_WIDTH: usize = 96;
/// Maximum number of legs with a column.
const LEGS_MAX: usize = 4;
/// Maximum number of timeline steps that are shown.
const BARS_MAX: usize = 60;
