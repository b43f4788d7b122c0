//! Values of the API as text and HTML. A value of an unexpected kind is shown as absent.

use maud::{Markup, html};
use serde_json::Value;
use sidetone_model::time::Timestamp;

/// A text; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The items of a page of the API, or of a list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value["items"].as_array().map_or(&[], Vec::as_slice)
}

/// A flag; false when it is absent.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value[key].as_bool().unwrap_or_default()
}

/// A text, or a dash.
pub(crate) fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

/// A name or a number of lower-case words and underscores, as words.
pub(crate) fn words(name: &str) -> String {
    name.replace(['_', '-', '.'], " ")
}

/// The values of a choice, each with its words.
pub(crate) fn named(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), words(name))).collect()
}

/// A message of the API as a sentence with a capital letter and a full stop.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let mut sentence: String =
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

/// An instant in UTC, which a module shows in the viewer's zone.
pub(crate) fn time(value: &Value) -> Markup {
    let Some(instant) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else {
        return html! { "–" };
    };
    let whole = instant.to_string();
    let shown = whole.get(..19).unwrap_or(&whole).replace('T', " ");
    html! { time datetime=(whole) title={ (shown) " UTC" } { (shown) } }
}

/// Seconds as `m:ss` or `h:mm:ss`.
pub(crate) fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A number as the API wrote it, with thousands grouped by a narrow space; a dash if there is none.
pub(crate) fn figure(value: &Value) -> String {
    let Value::Number(number) = value else { return "–".to_owned() };
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() && fraction != "0" {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// The share of `count` in `total`, in per cent with one decimal.
pub(crate) fn percent(count: i64, total: i64) -> String {
    let tenths = count * 1_000 / total.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// An amount of money with its currency; a dash if there is none.
pub(crate) fn money(amount: &Value, currency: &Value) -> String {
    match (amount.as_str(), currency.as_str()) {
        (Some(amount), Some(currency)) => format!("{amount} {currency}"),
        (Some(amount), None) => amount.to_owned(),
        _ => "–".to_owned(),
    }
}

/// The head of a table; `#` before a name aligns its column to the right, for numbers.
pub(crate) fn columns(names: &[&str]) -> Markup {
    html! {
        thead { tr { @for name in names {
            @if name.is_empty() { td {} } @else {
                th scope="col" class=[name.starts_with('#').then_some("n")] { (name.trim_start_matches('#')) }
            }
        } } }
    }
}

/// A duration in milliseconds with its unit; a dash if there is none.
pub(crate) fn millis(value: &Value) -> String {
    if value.is_number() { format!("{} ms", figure(value)) } else { figure(value) }
}

/// The verdict on the audio of a leg.
pub(crate) fn verdict(name: &str) -> Markup {
    if name.is_empty() {
        return html! { span class="soft" { "–" } };
    }
    let Some((class, label)) = sidetone_report::label(name) else {
        return html! { span class="chip none" { (words(name)) } };
    };
    html! { span class={ "chip " (class) } title=(name) { (label) } }
}

/// The verdicts, worst first, as the API names them.
pub(crate) const VERDICTS: [&str; 10] = [
    "no_inbound_media",
    "no_outbound_media",
    "wrong_advertised_address",
    "lossy_inbound",
    "jittery_inbound",
    "unpaced_sender",
    "ptime_mismatch",
    "degraded_audio",
    "unanswered",
    "ok",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_grouped() {
        for (value, expected) in [
            (json!(0), "0"),
            (json!(999), "999"),
            (json!(1_234_567), "1\u{202f}234\u{202f}567"),
            (json!(-1_234), "-1\u{202f}234"),
            (json!(4.5), "4.5"),
            (json!(20.0), "20"),
            (json!("7"), "–"),
            (Value::Null, "–"),
        ] {
            assert_eq!(figure(&value), expected, "{value}");
        }
    }

    #[test]
    fn shares_are_in_tenths() {
        assert_eq!([percent(1, 3), percent(3, 3), percent(0, 0)], ["33.3", "100.0", "0.0"]);
    }

    #[test]
    fn durations_and_times() {
        assert_eq!(
            [duration(0), duration(75), duration(3_725), duration(-1)],
            ["0:00", "1:15", "1:02:05", "0:00"]
        );
        assert_eq!(
            time(&json!("2026-01-31T12:00:00.000Z")).into_string(),
            "<time datetime=\"2026-01-31T12:00:00.000Z\" title=\"2026-01-31 12:00:00 UTC\">2026-01-31 12:00:00</time>"
        );
        assert_eq!(time(&json!("<b>")).into_string(), "–");
    }

    #[test]
    fn an_unknown_verdict_is_shown_as_words() {
        assert_eq!(verdict("odd_<i>").into_string(), "<span class=\"chip none\">odd &lt;i&gt;</span>");
    }
}
