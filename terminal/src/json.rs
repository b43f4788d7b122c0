//! API values as texts. A value of an unexpected type is shown as absent.

use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::clean::clean;
use crate::screen::Tone;

/// A text, made safe for a terminal; empty if it is absent.
pub(crate) fn text(value: &Value, key: &str) -> String {
    clean(raw(value, key))
}

/// A text without cleaning, only for comparisons and paths.
pub(crate) fn raw<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list.
pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A flag; false when it is absent.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// A number below several keys.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(value, |value, key| value.get(key))?.as_f64()
}

/// A number with at most this many decimal places; a dash if it is absent.
pub(crate) fn figure(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(dash, |number| {
        let text = format!("{number:.digits$}");
        let is_whole = text.contains('.') && number.fract() == 0.0 && number.abs() >= 100.0;
        if is_whole { format!("{number:.0}") } else { text }
    })
}

/// The timestamp in a text.
pub(crate) fn instant(value: &Value, key: &str) -> Option<Timestamp> {
    raw(value, key).parse().ok()
}

/// The time from one instant to another as `m:ss` or `h:mm:ss`; never negative.
pub(crate) fn duration(from: Option<Timestamp>, to: Timestamp) -> String {
    let Some(from) = from else { return dash() };
    let seconds = (to.as_micros().saturating_sub(from.as_micros()) / 1_000_000).max(0);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// The name of a state or a verdict as words.
pub(crate) fn words(name: &str) -> String {
    clean(name).replace('_', " ")
}

/// A text, or a dash.
pub(crate) fn or_dash(text: String) -> String {
    if text.is_empty() { dash() } else { text }
}

/// The text shown for a missing value.
pub(crate) fn dash() -> String {
    "-".to_owned()
}

/// The tone of a verdict.
pub(crate) fn verdict_tone(verdict: &str) -> Tone {
    match verdict {
        "ok" => Tone::Good,
        "" | "unanswered" => Tone::Dim,
        "no_inbound_media" | "no_outbound_media" | "wrong_advertised_address" | "lossy_inbound" => Tone::Bad,
        _ => Tone::Warn,
    }
}

/// The class of a verdict in lists that begin with the worst: without audio, impaired, ok, not judged.
pub(crate) fn verdict_class(verdict: &str) -> u8 {
    match verdict {
        "no_inbound_media" | "no_outbound_media" | "wrong_advertised_address" => 0,
        "ok" => 2,
        "" | "unanswered" => 3,
        _ => 1,
    }
}
