//! One RTP stream: its verdict, its course over time, its figures.

use sidetone_model::media_quality::LegQuality;
use sidetone_model::quality::Hundredths;

use crate::capture::{StreamReport, grouped};

use super::facts::chip;
use super::figures::figures;
use super::markup::{Html, shown};
use super::plots::{Limits, plots};
use super::rules::{is_near_miss, rules};
use super::timeline::Course;

/// Writes a stream below its call, or by itself.
pub(super) fn stream(html: &mut Html, stream: &StreamReport, anchor: Anchor, points_max: usize) {
    let quality = stream.quality();
    html.raw("<article id=\"").text(anchor).raw("\"><h4>").raw(heading(stream));
    html.raw(" <small>").text(codec(stream)).raw(", ").text(&stream.src).raw(" → ").text(&stream.dst);
    html.raw(", ").text(&stream.ssrc).raw("</small> ");
    chip(html, stream.verdict.unwrap_or(super::facts::NO_VERDICT));
    html.raw("</h4>");
    if let Some(mirror) = stream.mirror {
        html.raw("<p class=\"note\">The other direction is <a href=\"#");
        html.text(Anchor { place: mirror, ..anchor }).raw("\">stream ").text(mirror + 1).raw("</a>.</p>");
    }
    said(html, &quality);
    let timeline = quality.inbound.timeline.as_ref();
    if let Some(course) = timeline.and_then(|timeline| Course::new(timeline, quality.affected, points_max)) {
        let thresholds = &stream.report.thresholds;
        let limits = Limits {
            jitter: Some(Hundredths(thresholds.jitter_ms.0)),
            late: Some(Hundredths(thresholds.late_ms.0)),
        };
        plots(html, &course, limits);
    }
    if quality.rules.iter().any(is_near_miss) {
        html.raw("<h5>Near misses</h5>");
        rules(html, &quality.rules, is_near_miss);
    }
    figures(html, &quality.inbound);
    html.raw("</article>");
}

/// The explanation: the sentence, then who should act, when it was, and what else is remarkable.
pub(super) fn said(html: &mut Html, quality: &LegQuality) {
    html.element("<p class=\"sentence\">", &quality.sentence, "</p><p class=\"who\">");
    if let Some(reason) = &quality.reason {
        html.element("<span>reason <b>", reason, "</b></span>");
    }
    if let Some(blame) = quality.blame {
        html.element("<span>look first at <b>", blame.as_str(), "</b></span>");
    }
    if let Some(affected) = quality.affected {
        html.element("<span>affected: second <b>", affected.first_s, "</b> to <b>");
        html.text(affected.last_s).raw("</b></span>");
    }
    for flag in &quality.flags {
        html.element("<span class=\"flag\">", flag, "</span>");
    }
    html.raw("</p>");
}

fn heading(stream: &StreamReport) -> &'static str {
    match stream.direction {
        Some("from_caller") => "From the caller",
        Some(_) => "To the caller",
        None => "Stream",
    }
}

/// The codec, or the payload types where nobody named one.
pub(super) fn codec(stream: &StreamReport) -> String {
    match &stream.codec {
        Some(codec) => shown(codec),
        None => {
            let types: Vec<String> =
                stream.payload_types.iter().map(|number| format!("type {number}")).collect();
            types.join(", ")
        }
    }
}

/// Writes the streams that no call announced as a table.
pub(super) fn table(
    html: &mut Html,
    file: usize,
    rows: &[(usize, &StreamReport)],
    linked: &dyn Fn(usize) -> bool,
) {
    html.raw(
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>#</th><th>verdict</th><th>from</th>\
         <th>to</th><th>SSRC</th><th>codec</th><th class=\"n\">packets</th><th class=\"n\">lost</th>\
         <th class=\"n\">loss %</th><th class=\"n\">jitter ms</th><th class=\"n\">quality %</th>\
         <th class=\"n\">MOS</th></tr></thead><tbody>",
    );
    for (place, stream) in rows {
        let verdict = stream.verdict.unwrap_or(super::facts::NO_VERDICT);
        html.element("<tr data-v=\"", verdict, "\"><td class=\"n\">").text(place + 1).raw("</td><td>");
        if linked(*place) {
            html.element("<a href=\"#", Anchor { kind: 's', file, place: *place }, "\">");
            chip(html, verdict);
            html.raw("</a>");
        } else {
            chip(html, verdict);
        }
        html.element("</td><td>", &stream.src, "</td>").element("<td>", &stream.dst, "</td>");
        html.element("<td>", &stream.ssrc, "</td>").element("<td>", codec(stream), "</td>");
        html.element("<td class=\"n\">", grouped(stream.packets), "</td>");
        html.element("<td class=\"n\">", grouped(stream.lost), "</td>");
        for figure in [stream.loss_pct, stream.jitter_ms, stream.quality_pct, stream.mos] {
            html.element("<td class=\"n\">", decimal(figure), "</td>");
        }
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div>");
}

/// A figure that cannot be judged is a dash.
pub(super) fn decimal(value: Option<Hundredths>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.2}", value.as_f64()))
}

/// The name of a place on the page.
#[derive(Clone, Copy)]
pub(super) struct Anchor {
    pub(super) kind: char,
    pub(super) file: usize,
    pub(super) place: usize,
}

impl std::fmt::Display for Anchor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}-{}", self.kind, self.file + 1, self.place + 1)
    }
}
