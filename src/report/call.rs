//! Calls: one row each, and what is behind it.

use sidetone_model::media_quality::LegQuality;

use crate::capture::{CallReport, Group, StreamReport};

use super::facts::{NO_VERDICT, chip, is_wrong};
use super::figures::figures;
use super::file::Line;
use super::ladder::ladder;
use super::markup::{Html, shown};
use super::rules::{any, remarks, rules};
use super::stream::{Anchor, Drawn, decimal, drawing, said, title};

/// The columns of the table of calls.
pub(super) const COLUMNS: &str = "<th class=\"n\">#</th><th>verdict</th><th>started (UTC)</th><th>from</th>\
    <th>to</th><th>ended</th><th class=\"n\">billed s</th><th>codec</th><th class=\"n\">loss %</th>\
    <th class=\"n\">jitter ms</th><th class=\"n\">quality %</th><th class=\"n\">MOS</th>";

/// The verdict that a call is listed by.
pub(super) fn verdict(call: &CallReport) -> Option<&str> {
    call.media_verdict
}

/// The row of a call.
pub(super) fn line(file: usize, place: usize, call: &CallReport, section: usize) -> Line {
    let (mut before, mut after) = (Html::default(), Html::default());
    before.raw("<td class=\"n\">").text(place + 1).raw("</td>");
    after.element("<td>", started(call), "</td>").element("<td>", shown(&call.from), "</td>");
    after.element("<td>", shown(&call.to), "</td>").element("<td>", ended(call), "</td><td class=\"n\">");
    if call.answered_at.is_some() {
        after.text(call.billsec);
    }
    after.element("</td><td>", call.codec_a.as_deref().unwrap_or_default(), "</td>");
    for figure in [call.loss_pct, call.jitter_ms, call.quality_pct, call.mos] {
        after.element("<td class=\"n\">", decimal(figure), "</td>");
    }
    let anchor = Anchor { kind: 'c', file, place }.to_string();
    Line::new(verdict(call), anchor, section, before, after)
}

/// One direction of a call.
struct Direction<'a> {
    name: &'static str,
    /// Whether the streams that the caller sent are its own.
    from_caller: bool,
    verdict: Option<&'a str>,
    quality: LegQuality,
}

/// One call: its directions, the bad one first and open, then its messages and its rules.
pub(super) fn section(
    file: usize,
    group: &Group,
    place: usize,
    call: &CallReport,
    points_max: usize,
) -> String {
    let mut html = Html::default();
    html.raw("<details class=\"call\"><summary>");
    chip(&mut html, verdict(call).unwrap_or(NO_VERDICT));
    html.raw(" <b>").text(shown(&call.from)).raw(" → ").text(shown(&call.to)).raw("</b> <span>");
    html.text(started(call)).raw(", ").text(ended(call)).raw("</span></summary><div id=\"");
    html.text(Anchor { kind: 'c', file, place }).raw("\">");
    html.element("<p class=\"note\">Call-ID ", shown(&call.call_id), "</p>");
    let directions = directions(group, call);
    let any_wrong = directions.iter().any(|direction| is_wrong(direction.verdict));
    for (number, direction) in directions.iter().enumerate() {
        let is_open = if any_wrong { is_wrong(direction.verdict) } else { number == 0 };
        let how = How { file, points_max, is_open };
        self::direction(&mut html, group, call, direction, how);
    }
    for elsewhere in &group.elsewhere {
        html.element("<p class=\"note\">Stream ", elsewhere.stream + 1, " is shown with call ");
        html.text(elsewhere.call + 1).raw(".</p>");
    }
    ladder(&mut html, &call.ladder);
    let quality = call.quality();
    if !quality.rules.is_empty() {
        html.raw("<details><summary>All rules, in the order in which they are asked</summary>");
        rules(&mut html, &quality.rules, any);
        html.raw("</details>");
    }
    html.raw("<details><summary>The caller's leg in figures</summary>");
    figures(&mut html, &quality.addresses);
    figures(&mut html, &quality.outbound);
    figures(&mut html, &quality.inbound);
    html.raw("</details></div></details>");
    html.into_string()
}

/// The directions of a call, the bad one first.
fn directions<'a>(group: &'a Group, call: &'a CallReport) -> Vec<Direction<'a>> {
    let mut directions = vec![Direction {
        name: "From the caller",
        from_caller: true,
        verdict: call.media_verdict,
        quality: call.quality(),
    }];
    // The worst of the streams that the caller was sent speaks for them.
    let returned = group.streams.iter().filter(|(_, stream)| stream.direction == Some("to_caller"));
    let worst = returned.max_by_key(|(_, stream)| (is_wrong(stream.verdict), stream.packets));
    directions.extend(worst.map(|(_, stream)| Direction {
        name: "To the caller",
        from_caller: false,
        verdict: stream.verdict,
        quality: stream.quality(),
    }));
    directions.sort_by_key(|direction| !is_wrong(direction.verdict));
    directions
}

/// How a direction is shown.
#[derive(Clone, Copy)]
struct How {
    file: usize,
    points_max: usize,
    is_open: bool,
}

/// Writes a direction: why it was judged so, and its streams.
fn direction(html: &mut Html, group: &Group, call: &CallReport, direction: &Direction<'_>, how: How) {
    html.raw("<details class=\"way\"").raw(if how.is_open { " open" } else { "" }).raw("><summary><h4>");
    html.raw(direction.name).raw(" ");
    chip(html, direction.verdict.unwrap_or(NO_VERDICT));
    html.raw("</h4></summary>");
    said(html, &direction.quality);
    remarks(html, &direction.quality.rules);
    let is_own = |stream: &StreamReport| (stream.direction == Some("from_caller")) == direction.from_caller;
    let own: Vec<_> = group.streams.iter().filter(|(_, stream)| is_own(stream)).collect();
    for (place, stream) in &own {
        html.raw("<article id=\"").text(Anchor { kind: 's', file: how.file, place: *place }).raw("\"><h5>");
        title(html, stream);
        if own.len() > 1 {
            html.raw(" ");
            chip(html, stream.verdict.unwrap_or(NO_VERDICT));
        }
        html.raw("</h5>");
        let quality = stream.quality();
        // What the direction says already is not said again.
        if own.len() > 1 && stream.verdict != direction.verdict {
            said(html, &quality);
        }
        drawing(html, stream, &quality, Drawn { points_max: how.points_max, until: call.ended_at });
        html.raw("</article>");
    }
    html.raw("</details>");
}

fn started(call: &CallReport) -> String {
    let started = call.started_at.to_string();
    started.get(..19).unwrap_or(&started).replace('T', " ")
}

fn ended(call: &CallReport) -> String {
    match (call.sip_status, &call.hangup_cause) {
        (Some(status), Some(cause)) => format!("{status} {cause}"),
        (Some(status), None) => format!("{status}, no end captured"),
        (None, Some(cause)) => cause.to_string(),
        (None, None) => "no end captured".to_owned(),
    }
}
