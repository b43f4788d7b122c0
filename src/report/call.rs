//! Calls: one row each, and what is behind it.

use sidetone_model::media_quality::{LegQuality, LegSide};
use sidetone_model::quality::MediaVerdict;

use crate::capture::{Analysis, CallReport};

use super::facts::{NO_VERDICT, chip};
use super::figures::figures;
use super::ladder::ladder;
use super::markup::{Html, shown};
use super::rules::{any, is_near, rules};
use super::stream::{Anchor, decimal, said, stream};

/// Writes the table of calls; those in `linked` have a section further below.
pub(super) fn table(
    html: &mut Html,
    file: usize,
    calls: &[(usize, &CallReport)],
    linked: &dyn Fn(usize) -> bool,
) {
    html.raw(
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th class=\"n\">#</th><th>verdict</th>\
         <th>started (UTC)</th><th>from</th><th>to</th><th>ended</th><th class=\"n\">billed s</th><th>audio of</th><th>codec</th>\
         <th class=\"n\">loss %</th><th class=\"n\">jitter ms</th><th class=\"n\">quality %</th>\
         <th class=\"n\">MOS</th></tr></thead><tbody>",
    );
    for (place, call) in calls {
        // The worse direction: its verdict, and its figures beside it.
        let Some(worse) = call.directions().into_iter().next() else { continue };
        let verdict = worse.verdict().unwrap_or(NO_VERDICT);
        html.element("<tr data-v=\"", verdict, "\"><td class=\"n\">").text(place + 1).raw("</td><td>");
        if linked(*place) {
            html.element("<a href=\"#", Anchor { kind: 'c', file, place: *place }, "\">");
            chip(html, verdict);
            html.raw("</a>");
        } else {
            chip(html, verdict);
        }
        html.element("</td><td>", started(call), "</td>").element("<td>", shown(&call.from), "</td>");
        html.element("<td>", shown(&call.to), "</td>").element("<td>", ended(call), "</td><td class=\"n\">");
        if call.answered_at.is_some() {
            html.text(call.billsec);
        }
        html.element("</td><td>", worse.sender(), "</td>");
        html.element("<td>", shown(worse.codec.as_deref().unwrap_or_default()), "</td>");
        let of = &worse.figures;
        for figure in [of.loss_pct, of.jitter_ms, of.quality_pct, of.mos] {
            html.element("<td class=\"n\">", decimal(figure), "</td>");
        }
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div>");
}

/// Writes one call with its explanation on top.
pub(super) fn section(
    html: &mut Html,
    file: usize,
    place: usize,
    analysis: &Analysis,
    call: &CallReport,
    owners: &[Option<usize>],
    how: How,
) {
    html.raw("<details class=\"call\"").raw(if how.open { " open" } else { "" }).raw("><summary>");
    chip(html, call.media_verdict_worse.unwrap_or(NO_VERDICT));
    html.raw(" <b>").text(shown(&call.from)).raw(" → ").text(shown(&call.to)).raw("</b> <span>");
    html.text(started(call)).raw(", ").text(ended(call)).raw("</span></summary><div id=\"");
    html.text(Anchor { kind: 'c', file, place }).raw("\">");
    let legs: Vec<LegQuality> =
        call.directions().iter().filter_map(|one| call.quality_of(one.side)).collect();
    for quality in &legs {
        if legs.len() > 1 {
            html.element("<h4>Audio of the ", name(quality.leg), " ");
            chip(html, quality.media_verdict.map_or(NO_VERDICT, MediaVerdict::as_str));
            html.raw("</h4>");
        }
        said(html, quality);
    }
    html.element("<p class=\"note\">Call-ID ", shown(&call.call_id), "</p>");
    ladder(html, &call.ladder);
    for (place, quality) in legs.iter().enumerate() {
        // Of a direction that is well beside another, the stream below has the figures.
        if place == 0 || quality.media_verdict != Some(MediaVerdict::Ok) {
            leg(html, quality);
        }
    }
    for number in &call.streams {
        // A stream that several calls used one after the other is drawn in the first.
        let owner = owners.get(*number).copied().flatten();
        match (analysis.streams.get(*number), owner == Some(place)) {
            (Some(found), true) => {
                stream(html, found, Anchor { kind: 's', file, place: *number }, how.points_max);
            }
            (Some(_), false) => {
                html.element("<p class=\"note\">Stream ", number + 1, " is shown with call ");
                html.text(owner.map_or(0, |owner| owner + 1)).raw(".</p>");
            }
            (None, _) => {}
        }
    }
    html.raw("</div></details>");
}

/// What the rules measured on a leg, and its figures.
fn leg(html: &mut Html, quality: &LegQuality) {
    let name = name(quality.leg);
    if !quality.rules.is_empty() {
        html.element("<h4>The rules, and how near they came: audio of the ", name, "</h4>");
        rules(html, &quality.rules, is_near);
        html.raw("<details><summary>All rules, in the order in which they are asked</summary>");
        rules(html, &quality.rules, any);
        html.raw("</details>");
    }
    html.element("<details><summary>The leg of the ", name, " in figures</summary>");
    figures(html, &quality.addresses);
    figures(html, &quality.outbound);
    figures(html, &quality.inbound);
    html.raw("</details>");
}

fn name(side: LegSide) -> &'static str {
    match side {
        LegSide::A => "caller",
        LegSide::B => "called party",
    }
}

/// How a call is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Whether it can be seen without a click.
    pub(super) open: bool,
    /// Points of a plot.
    pub(super) points_max: usize,
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
