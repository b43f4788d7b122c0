//! Calls: one row each, and what is behind it.

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
         <th>started (UTC)</th><th>from</th><th>to</th><th>ended</th><th class=\"n\">billed s</th><th>codec</th>\
         <th class=\"n\">loss %</th><th class=\"n\">jitter ms</th><th class=\"n\">quality %</th>\
         <th class=\"n\">MOS</th></tr></thead><tbody>",
    );
    for (place, call) in calls {
        let verdict = call.media_verdict.unwrap_or(NO_VERDICT);
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
        html.element("</td><td>", call.codec_a.as_deref().unwrap_or_default(), "</td>");
        for figure in [call.loss_pct, call.jitter_ms, call.quality_pct, call.mos] {
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
    let quality = call.quality();
    html.raw("<details class=\"call\"").raw(if how.open { " open" } else { "" }).raw("><summary>");
    chip(html, call.media_verdict.unwrap_or(NO_VERDICT));
    html.raw(" <b>").text(shown(&call.from)).raw(" → ").text(shown(&call.to)).raw("</b> <span>");
    html.text(started(call)).raw(", ").text(ended(call)).raw("</span></summary><div id=\"");
    html.text(Anchor { kind: 'c', file, place }).raw("\">");
    said(html, &quality);
    html.element("<p class=\"note\">Call-ID ", shown(&call.call_id), "</p>");
    ladder(html, &call.ladder);
    if !quality.rules.is_empty() {
        html.raw("<h4>The rules, and how near they came</h4>");
        rules(html, &quality.rules, is_near);
        html.raw("<details><summary>All rules, in the order in which they are asked</summary>");
        rules(html, &quality.rules, any);
        html.raw("</details>");
    }
    html.raw("<details><summary>The caller's leg in figures</summary>");
    figures(html, &quality.addresses);
    figures(html, &quality.outbound);
    figures(html, &quality.inbound);
    html.raw("</details>");
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
