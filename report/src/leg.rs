//! One leg of a call: its values over time, the rules that nearly applied, the reports of the far end, and
//! all its figures.

use serde::Serialize;
use sidetone_model::media_quality::{FarEnd, LegQuality, LegSide, QualityValue, RoundTrip};
use sidetone_model::quality::Hundredths;
use sidetone_model::time::Timestamp;

use crate::figures::figures;
use crate::markup::{Html, shown};
use crate::plots::{Limits, plots};
use crate::rules::{any, remarks, rules};
use crate::timeline::Course;
use crate::verdict::labelled;

/// The name of a leg: its side, its party and its codec.
pub(crate) fn name(leg: &LegQuality) -> String {
    let side = if leg.leg == LegSide::A { "Caller" } else { "Called party" };
    let codec = leg.codec.as_deref().unwrap_or_default();
    let name = format!("{side} {} {codec}", leg.party.as_deref().unwrap_or("–"));
    shown(name.trim_end())
}

/// Writes a leg; `until` is the end of its call, if known.
pub(crate) fn leg(html: &mut Html, leg: &LegQuality, until: Option<Timestamp>) {
    html.raw("<section class=\"leg\"><h2>").text(name(leg)).raw(" ");
    labelled(html, leg.media_verdict);
    html.raw("</h2>");
    remarks(html, &leg.rules);
    let timeline = leg.inbound.timeline.as_ref();
    match timeline.and_then(|timeline| Course::new(timeline, leg.affected, until, POINTS_MAX)) {
        Some(course) => plots(html, &course, Limits { jitter: jitter_limit(leg), late: None }),
        None => {
            html.raw("<p class=\"note\">No packet of this party was measured over time.</p>");
        }
    }
    far_end(html, leg);
    if !leg.rules.is_empty() {
        html.raw("<details><summary>All rules, in the order in which they are asked</summary>");
        rules(html, &leg.rules, any);
        html.raw("</details>");
    }
    html.raw("<details><summary>All figures</summary>");
    figures(html, &leg.addresses);
    figures(html, &leg.outbound);
    figures(html, &leg.inbound);
    html.raw("</details></section>");
}

/// The figures that the far end reports for the packets that we sent.
fn far_end(html: &mut Html, leg: &LegQuality) {
    #[derive(Serialize)]
    struct Reported<'a> {
        far_end: Option<&'a FarEnd>,
        round_trip: Option<&'a RoundTripMs>,
    }
    #[derive(Serialize)]
    struct RoundTripMs {
        mean_ms: Option<Hundredths>,
        max_ms: Option<Hundredths>,
    }
    let (reports, trip) = (leg.outbound.far_end.as_ref(), leg.outbound.round_trip_ms.as_ref());
    html.raw("<h3>What the party reports by RTCP</h3>");
    if reports.is_none() && trip.is_none() {
        html.raw("<p class=\"note\">It sent no report about our packets.</p>");
        return;
    }
    let trip = trip.map(|RoundTrip { mean, max, .. }| RoundTripMs { mean_ms: *mean, max_ms: *max });
    figures(html, &Reported { far_end: reports, round_trip: trip.as_ref() });
}

/// The limit of jitter with which a rule compared.
fn jitter_limit(leg: &LegQuality) -> Option<Hundredths> {
    let measures = leg.rules.iter().flat_map(|rule| &rule.measures);
    let jitter = measures.filter(|measure| measure.name == "jitter_ms");
    jitter
        .filter_map(|measure| match measure.threshold {
            Some(QualityValue::Decimal(limit)) => Some(limit),
            Some(QualityValue::Integer(limit)) => Some(Hundredths(limit.saturating_mul(100))),
            Some(QualityValue::Flag(_) | QualityValue::Text(_)) | None => None,
        })
        .next()
}

/// Points of a plot: as many as fit into the width of a page.
const POINTS_MAX: usize = 600;
