//! One RTP stream: its verdict, its course over time, its figures.

use sidetone_model::media_quality::{Affected, LegQuality};
use sidetone_model::quality::Hundredths;
use sidetone_model::time::Timestamp;

use sidetone_report::{
    Course, Html, Limits, NO_VERDICT, chip, explanation, figures, grouped, is_wrong, plots, remarks, shown,
};

use crate::StreamReport;

use super::anchor::Anchor;
use super::row::Row;

/// The columns of the table of streams without signalling.
pub(super) const COLUMNS: &str = "<th class=\"n\">#</th><th>verdict</th><th>from</th><th>to</th><th>SSRC</th>\
    <th>codec</th><th class=\"n\">packets</th><th class=\"n\">lost</th><th class=\"n\">loss %</th>\
    <th class=\"n\">jitter ms</th><th class=\"n\">quality %</th><th class=\"n\">MOS</th>";

/// The row of a stream without signalling.
pub(super) fn line(file: usize, place: usize, stream: &StreamReport, section: usize) -> Row {
    let (mut before, mut after) = (Html::default(), Html::default());
    before.raw("<td class=\"n\">").text(place + 1).raw("</td>");
    after.element("<td>", &stream.src, "</td>").element("<td>", &stream.dst, "</td>");
    after.element("<td>", &stream.ssrc, "</td>").element("<td>", codec(stream), "</td>");
    after.element("<td class=\"n\">", grouped(stream.packets), "</td>");
    after.element("<td class=\"n\">", grouped(stream.lost), "</td>");
    for figure in [stream.loss_pct, stream.jitter_ms, stream.quality_pct, stream.mos] {
        after.element("<td class=\"n\">", decimal(figure), "</td>");
    }
    let anchor = Anchor { kind: 's', file, place }.to_string();
    Row::new(stream.verdict, anchor, section, before, after)
}

/// Writes streams that belong together, those with a fault first.
pub(super) fn together(
    html: &mut Html,
    file: usize,
    streams: &[(usize, Box<StreamReport>)],
    points_max: usize,
) {
    let mut order: Vec<&(usize, Box<StreamReport>)> = streams.iter().collect();
    order.sort_by_key(|(_, stream)| !is_wrong(stream.verdict));
    // The two directions of a call end together: the missing end of one is drawn as a gap.
    let until = streams.iter().filter_map(|(_, stream)| stream.quality().inbound.last_at).max();
    for (place, stream) in order {
        let quality = stream.quality();
        html.raw("<article id=\"")
            .text(Anchor { kind: 's', file, place: *place })
            .raw("\"><h4>Stream <small>");
        title(html, stream);
        html.raw("</small> ");
        chip(html, stream.verdict.unwrap_or(NO_VERDICT));
        html.raw("</h4>");
        if let Some(mirror) = stream.mirror {
            html.raw("<p class=\"note\">The other direction is <a href=\"#");
            html.text(Anchor { kind: 's', file, place: mirror }).raw("\">stream ").text(mirror + 1);
            html.raw("</a>.</p>");
        }
        explanation(html, &quality);
        remarks(html, &quality.rules);
        drawing(html, stream, &quality, Drawn { points_max, until, affected: None });
        html.raw("</article>");
    }
}

/// A stream on one line: its codec, its addresses, its SSRC.
pub(super) fn title(html: &mut Html, stream: &StreamReport) {
    html.text(codec(stream)).raw(", ").text(&stream.src).raw(" → ").text(&stream.dst);
    html.raw(", SSRC ").text(&stream.ssrc);
}

/// How a stream is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    /// Points of a plot.
    pub(super) points_max: usize,
    /// The end of its call, if known.
    pub(super) until: Option<Timestamp>,
    /// The seconds that the verdict of its direction refers to, if it is not the stream's own verdict.
    pub(super) affected: Option<Affected>,
}

/// Draws a stream over time, and lists its figures.
pub(super) fn drawing(html: &mut Html, stream: &StreamReport, quality: &LegQuality, how: Drawn) {
    let timeline = quality.inbound.timeline.as_ref();
    let course = timeline.and_then(|timeline| {
        Course::new(timeline, quality.affected.or(how.affected), how.until, how.points_max)
    });
    if let Some(course) = course {
        let thresholds = &stream.report.thresholds;
        let limits = Limits {
            jitter: Some(Hundredths(thresholds.jitter_ms.0)),
            late: Some(Hundredths(thresholds.late_ms.0)),
        };
        plots(html, &course, limits);
    }
    html.raw("<details><summary>Figures of this stream</summary>");
    figures(html, &quality.inbound);
    html.raw("</details>");
}

/// The codec, or the payload types where no SDP names one.
pub(super) fn codec(stream: &StreamReport) -> String {
    stream.codec.as_ref().map_or_else(|| stream.types_in_words(), |codec| shown(codec))
}

/// A figure that cannot be judged is shown as a dash.
pub(super) fn decimal(value: Option<Hundredths>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.2}", value.as_f64()))
}
