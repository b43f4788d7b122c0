//! Calls: one row each, and a section with details.

use sidetone_model::media_quality::{LegQuality, LegSide};

use sidetone_report::{
    Arrow, Html, NO_VERDICT, any, chip, explanation, figures, is_wrong, ladder, remarks, rules, shown,
};

use crate::{CallReport, Group, LadderMessage, StreamReport};

use super::anchor::Anchor;
use super::row::Row;
use super::stream::{Drawn, decimal, drawing, title};

/// The columns of the table of calls.
pub(super) const COLUMNS: &str = "<th class=\"n\">#</th><th>verdict</th><th>started (UTC)</th><th>from</th>\
    <th>to</th><th>ended</th><th class=\"n\">billed s</th><th>audio of</th><th>codec</th><th class=\"n\">loss %</th>\
    <th class=\"n\">jitter ms</th><th class=\"n\">quality %</th><th class=\"n\">MOS</th>";

/// The verdict that a call is listed by.
pub(super) fn verdict(call: &CallReport) -> Option<&'static str> {
    call.media_verdict_worse
}

/// The row of a call.
pub(super) fn line(file: usize, place: usize, call: &CallReport, section: usize) -> Row {
    let (mut before, mut after) = (Html::default(), Html::default());
    before.raw("<td class=\"n\">").text(place + 1).raw("</td>");
    after.element("<td>", started(call), "</td>").element("<td>", shown(&call.from), "</td>");
    after.element("<td>", shown(&call.to), "</td>").element("<td>", ended(call), "</td><td class=\"n\">");
    if call.answered_at.is_some() {
        after.text(call.billsec);
    }
    after.raw("</td>");
    // The worse direction: its figures beside its verdict.
    for worse in call.directions().iter().take(1) {
        after.element("<td>", worse.sender(), "</td>");
        after.element("<td>", shown(worse.codec.as_deref().unwrap_or_default()), "</td>");
        let of = &worse.figures;
        for figure in [of.loss_pct, of.jitter_ms, of.quality_pct, of.mos] {
            after.element("<td class=\"n\">", decimal(figure), "</td>");
        }
    }
    let anchor = Anchor { kind: 'c', file, place }.to_string();
    Row::new(verdict(call), anchor, section, before, after)
}

/// One direction of a call: the audio that came from one party.
struct Direction {
    name: &'static str,
    /// Whether the streams from the caller belong to it.
    from_caller: bool,
    verdict: Option<&'static str>,
    quality: LegQuality,
    /// Whether the quality is that of the whole leg, which has more figures.
    is_leg: bool,
}

/// One call: its directions, the bad one first and opened, then its messages and its rules.
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
    let arrows: Vec<Arrow> = call.ladder.messages.iter().map(arrow).collect();
    ladder(&mut html, &arrows, call.ladder.more);
    // If a direction is fine and another exists, the stream above already has its figures.
    let with_figures = directions.iter().filter(|direction| direction.is_leg).enumerate();
    for (_, direction) in
        with_figures.filter(|(number, direction)| *number == 0 || is_wrong(direction.verdict))
    {
        leg(&mut html, direction);
    }
    html.raw("</div></details>");
    html.into_string()
}

fn arrow(message: &LadderMessage) -> Arrow {
    Arrow {
        at: message.at,
        from: message.from.to_string(),
        to: message.to.to_string(),
        summary: message.summary.clone(),
        sdp: message.sdp.clone(),
    }
}

/// The measures of the rules on a leg, and its figures.
fn leg(html: &mut Html, direction: &Direction) {
    let quality = &direction.quality;
    if !quality.rules.is_empty() {
        html.element(
            "<details><summary>",
            direction.name,
            ": all rules, in the order in which they are asked</summary>",
        );
        rules(html, &quality.rules, any);
        html.raw("</details>");
    }
    html.element("<details><summary>", direction.name, ": the leg in figures</summary>");
    figures(html, &quality.addresses);
    figures(html, &quality.outbound);
    figures(html, &quality.inbound);
    html.raw("</details>");
}

/// The directions of a call, the bad one first.
fn directions(group: &Group, call: &CallReport) -> Vec<Direction> {
    let known = call.directions().into_iter().filter_map(|direction| {
        Some(Direction {
            name: name(direction.side == LegSide::A),
            from_caller: direction.side == LegSide::A,
            verdict: direction.verdict(),
            quality: call.quality_of(direction.side)?,
            is_leg: true,
        })
    });
    let mut directions: Vec<Direction> = known.collect();
    // A direction whose leg was not judged may still have streams: the worst of them represents it.
    for from_caller in [true, false] {
        if directions.iter().any(|direction| direction.from_caller == from_caller) {
            continue;
        }
        let own = group.streams.iter().filter(|(_, stream)| is_from_caller(stream) == from_caller);
        let worst = own.max_by_key(|(_, stream)| (is_wrong(stream.verdict), stream.packets));
        directions.extend(worst.map(|(_, stream)| Direction {
            name: name(from_caller),
            from_caller,
            verdict: stream.verdict,
            quality: stream.quality(),
            is_leg: false,
        }));
    }
    directions.sort_by_key(|direction| !is_wrong(direction.verdict));
    directions
}

fn name(from_caller: bool) -> &'static str {
    if from_caller { "Audio of the caller" } else { "Audio of the called party" }
}

fn is_from_caller(stream: &StreamReport) -> bool {
    stream.direction == Some("from_caller")
}

/// The display options of a direction.
#[derive(Clone, Copy)]
struct How {
    file: usize,
    points_max: usize,
    is_open: bool,
}

/// Writes a direction: why its verdict was given, and its streams.
fn direction(html: &mut Html, group: &Group, call: &CallReport, direction: &Direction, how: How) {
    html.raw("<details class=\"way\"").raw(if how.is_open { " open" } else { "" }).raw("><summary><h4>");
    html.raw(direction.name).raw(" ");
    chip(html, direction.verdict.unwrap_or(NO_VERDICT));
    html.raw("</h4></summary>");
    explanation(html, &direction.quality);
    remarks(html, &direction.quality.rules);
    let is_own = |stream: &StreamReport| is_from_caller(stream) == direction.from_caller;
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
        // The direction already contains it.
        if own.len() > 1 && stream.verdict != direction.verdict {
            explanation(html, &quality);
        }
        // With several streams, each shows its own seconds.
        let affected = direction.quality.affected.filter(|_| own.len() == 1);
        let how = Drawn { points_max: how.points_max, until: call.ended_at, affected };
        drawing(html, stream, &quality, how);
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
