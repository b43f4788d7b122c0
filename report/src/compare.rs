//! The figures of both legs side by side.

use serde_json::Value;
use sidetone_model::media_quality::LegQuality;

use crate::markup::Html;

/// A figure of a leg: its label, its unit, and its path in the structure of the API.
type Figure = (&'static str, &'static str, &'static [&'static str]);

/// Writes the main figures in a table with a column for each leg; a figure that no leg has is left out.
pub(crate) fn compare(html: &mut Html, legs: &[(String, &LegQuality)]) {
    // Looked up by the names of the API's structure, because a figure may have one of several types.
    let values: Vec<Value> =
        legs.iter().map(|(_, leg)| serde_json::to_value(leg).unwrap_or_default()).collect();
    html.raw(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of both legs\">\
         <table class=\"figures\"><thead><tr><th scope=\"col\">Measured</th>",
    );
    for (name, _) in legs {
        html.element("<th scope=\"col\" class=\"n\">", name, "</th>");
    }
    html.raw("<th scope=\"col\">Unit</th></tr></thead><tbody>");
    for (label, unit, path) in FIGURES {
        let figures: Vec<Option<String>> = values.iter().map(|leg| figure(leg, path)).collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        html.raw("<tr><th scope=\"row\">").raw(label).raw("</th>");
        for figure in &figures {
            html.element("<td class=\"n\">", figure.as_deref().unwrap_or("–"), "</td>");
        }
        html.raw("<td class=\"soft\">").raw(unit).raw("</td></tr>");
    }
    html.raw("</tbody></table></div>");
}

/// The number at a path, its whole part grouped by narrow spaces.
fn figure(leg: &Value, path: &[&str]) -> Option<String> {
    let value = path.iter().try_fold(leg, |value, key| value.get(key))?;
    let text = value.as_number()?.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut shown = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    if !matches!(fraction, "" | "0") {
        shown.push('.');
        shown.push_str(fraction);
    }
    Some(shown)
}

const FIGURES: [Figure; 20] = [
    ("MOS", "", &["inbound", "mos"]),
    ("MOS by the E-model", "", &["inbound", "mos_e_model"]),
    ("Packets without flaw", "%", &["inbound", "quality_pct"]),
    ("Lost", "%", &["inbound", "loss_pct"]),
    ("Lost", "packets", &["inbound", "lost"]),
    ("Longest loss", "ms", &["inbound", "longest_loss_ms"]),
    ("Late for a buffer of 80 ms", "packets", &["inbound", "late_80"]),
    ("Peak jitter", "ms", &["inbound", "jitter_ms"]),
    ("Mean interval", "ms", &["inbound", "mean_interval_ms"]),
    ("Longest gap", "ms", &["inbound", "max_gap_ms"]),
    ("Lateness, 95 percent under", "ms", &["inbound", "lateness_p95_ms"]),
    ("Packets received", "", &["inbound", "packets"]),
    ("Level", "dBov", &["inbound", "audio", "level_dbov"]),
    ("Silent audio", "%", &["inbound", "audio", "silent_share_pct"]),
    ("Packets sent", "", &["outbound", "packets"]),
    ("Round trip, mean", "ms", &["outbound", "round_trip_ms", "mean"]),
    ("Far end: lost", "%", &["outbound", "far_end", "loss_pct"]),
    ("Far end: jitter", "ms", &["outbound", "far_end", "jitter_max_ms"]),
    ("Rejected packets of others", "", &["inbound", "rejected_source"]),
    ("SRTP not authenticated", "packets", &["inbound", "srtp_failed"]),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_grouped_and_what_is_no_number_is_left_out() {
        let leg = json!({"a": {"b": 1234567, "c": -1234.5, "d": 4.0, "e": "<b>", "f": null}});
        let shown = |key: &str| figure(&leg, &["a", key]);
        assert_eq!(shown("b").as_deref(), Some("1\u{202f}234\u{202f}567"));
        assert_eq!(shown("c").as_deref(), Some("-1\u{202f}234.5"));
        assert_eq!(shown("d").as_deref(), Some("4"));
        assert_eq!((shown("e"), shown("f"), shown("g")), (None, None, None));
    }
}
