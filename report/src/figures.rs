//! Figures by their names, with their units: all figures of the API's structure, so that the page misses
//! none.

use serde::Serialize;
use serde_json::Value;

use crate::markup::{Html, shown};
use crate::number::grouped;

/// Writes every figure of `measured` that is meaningful: counts of zero, and figures shown elsewhere, are
/// left out.
pub fn figures(html: &mut Html, measured: &impl Serialize) {
    let Ok(Value::Object(figures)) = serde_json::to_value(measured) else { return };
    html.raw("<dl class=\"figures\">");
    for (name, value) in &figures {
        figure(html, name, value);
    }
    html.raw("</dl>");
}

fn figure(html: &mut Html, name: &str, value: &Value) {
    let is_nothing = |value: &Value| value.as_u64() == Some(0) || value.is_null();
    if ELSEWHERE.contains(&name) || is_nothing(value) {
        return;
    }
    let (label, unit) = unit(name);
    let words = match value {
        Value::Object(parts) => {
            for (part, value) in parts {
                figure(html, &format!("{name} {part}"), value);
            }
            return;
        }
        Value::Array(parts) if parts.iter().all(is_nothing) => return,
        Value::Array(parts) => parts.iter().map(plain).collect::<Vec<_>>().join(" · "),
        other => plain(other),
    };
    html.element("<div><dt>", label.replace('_', " "), "</dt><dd>").text(shown(&words));
    if !unit.is_empty() {
        html.element(" <i>", unit, "</i>");
    }
    html.raw("</dd></div>");
}

fn plain(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        other => other.to_string(),
    }
}

/// The name without its unit, and the unit.
fn unit(name: &str) -> (&str, &'static str) {
    match name {
        "burst_share" | "pace_ratio" => return (name, "%"),
        "late_80" => return ("late for a buffer of 80 ms", "packets"),
        "late_200" => return ("late for a buffer of 200 ms", "packets"),
        _ => {}
    }
    UNITS
        .iter()
        .find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)))
        .filter(|(name, _)| !name.is_empty())
        .unwrap_or((name, ""))
}

const UNITS: [(&str, &str); 8] = [
    ("_ms", "ms"),
    ("_pct", "%"),
    ("_ppm", "ppm"),
    ("_dbov", "dBov"),
    ("_dbm", "dBm0"),
    ("_db", "dB"),
    ("_rate", "Hz"),
    ("_s", "s"),
];

/// Figures that are shown elsewhere on the page.
const ELSEWHERE: [&str; 4] = ["timeline", "ssrc", "payload_types", "datagrams"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_come_with_their_units_and_zeros_stay_away() {
        let mut html = Html::default();
        let measured = json!({
            "packets": 3000, "lost": 0, "jitter_ms": 0.1, "loss_runs": [0, 0], "lateness_packets": [2990, 10],
            "worst_10s": {"at_s": 12, "loss_pct": 4.5}, "loss_pct": 0.0, "timeline": {"a": 1},
        });
        figures(&mut html, &measured);
        assert_eq!(
            html.into_string(),
            "<dl class=\"figures\"><div><dt>packets</dt><dd>3,000</dd></div>\
             <div><dt>jitter</dt><dd>0.1 <i>ms</i></dd></div>\
             <div><dt>lateness packets</dt><dd>2,990 · 10</dd></div>\
             <div><dt>worst 10s at</dt><dd>12 <i>s</i></dd></div>\
             <div><dt>worst 10s loss</dt><dd>4.5 <i>%</i></dd></div>\
             <div><dt>loss</dt><dd>0.0 <i>%</i></dd></div></dl>"
        );
    }
}
