//! The comparisons on the start page: verdicts over time, and the trunks, phones, networks and devices that are worse
//! than the rest.

use maud::{Markup, html};
use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::client::Client;
use crate::failure::Failure;
use crate::form::{query_value, segment};
use crate::show::{VERDICTS, columns, figure, or_dash, percent, text, time, verdict};

/// The bars of the whole hours since `from`: the number of judged legs, and of bad ones among them.
pub(crate) fn over_time(counts: &Value, from: Timestamp, hours: i64) -> Markup {
    let first = from.plus_micros(HOUR_US - 1).as_micros().div_euclid(HOUR_US);
    let hours = usize::try_from(hours).unwrap_or_default();
    let mut bars = vec![(0, 0); hours];
    for group in groups(counts) {
        let begins = text(group, "value").parse::<Timestamp>().map_or(i64::MIN, Timestamp::as_micros);
        let place = usize::try_from(begins.div_euclid(HOUR_US).saturating_sub(first)).ok();
        if let Some(bar) = place.and_then(|place| bars.get_mut(place)) {
            *bar = (number(group, "judged"), number(group, "bad"));
        }
    }
    let top = bars.iter().map(|(judged, _)| *judged).max().unwrap_or_default().max(1);
    let height = |legs: i64| (legs * 100 / top).max(1);
    html! {
        figure {
            figcaption {
                b { "Judged legs by hour" }
                span { i class="key" {} " judged" } span { i class="key area bad" {} " with a bad verdict" }
                span class="right soft" { "most " (figure(&top.into())) }
            }
            svg class="plot" viewBox={ "0 0 " (hours) " 100" } preserveAspectRatio="none" role="img"
                aria-label={ (figure(&counts["judged"])) " legs were judged, " (figure(&counts["bad"])) " of them bad" } {
                @for (place, (judged, bad)) in bars.iter().enumerate().filter(|(_, (judged, _))| *judged > 0) {
                    rect class="bar" x=(place) y=(100 - height(*judged)) width="0.9" height=(height(*judged)) {}
                    @if *bad > 0 {
                        rect class="bar bad-part" x=(place) y=(100 - height(*bad)) width="0.9"
                            height=(height(*bad)) {}
                    }
                }
            }
            div class="x soft" { span { (time(&from.to_string().into())) } span { "now" } }
        }
    }
}

/// A kind of group to compare: its plural name, and its names in the API.
pub(crate) struct Compared {
    pub(crate) kind: &'static str,
    pub(crate) permission: &'static str,
    /// The list with the groups' names; `None` if the value of a group is its name.
    pub(crate) list: Option<&'static str>,
    /// The value of `by`.
    pub(crate) by: &'static str,
    /// The filter of the call log.
    pub(crate) filter: &'static str,
}

/// One trunk, extension, network or device that is significantly worse than the others.
struct Worse {
    name: String,
    link: String,
    group: Value,
}

/// The groups marked as worse in the counts, with their names.
///
/// # Errors
/// The failure that the API reports; a group that was deleted, or is outside the scope, has an empty name.
async fn named(client: &Client, compared: &Compared, counts: &Value) -> Result<Vec<Worse>, Failure> {
    let filter = compared.filter;
    let mut found = Vec::new();
    for group in groups(counts).iter().filter(|group| group["worse"] == true).take(LISTED_MAX) {
        let value = text(group, "value");
        let Some(list) = compared.list else {
            let link = format!("/calls?{filter}={}", query_value(value));
            found.push(Worse { name: value.to_owned(), link, group: group.clone() });
            continue;
        };
        let id = segment(value);
        let name = match client.get(&format!("/{list}/{id}")).await {
            Ok(one) => [text(&one, "number"), text(&one, "name")].join(" ").trim().to_owned(),
            Err(failure) if matches!(failure.status.as_u16(), 403 | 404) => String::new(),
            Err(failure) => return Err(failure),
        };
        found.push(Worse { name, link: format!("/calls?{filter}={id}"), group: group.clone() });
    }
    Ok(found)
}

/// The table of the groups that are worse than the rest; `None` if there are none.
///
/// # Errors
/// The failure that the API reports.
pub(crate) async fn table(
    client: &Client,
    compared: &Compared,
    from: Timestamp,
) -> Result<Option<Markup>, Failure> {
    let Compared { kind, by, .. } = compared;
    let counts = client.get(&format!("/cdrs/verdicts?by={by}&from={from}&max_groups={LISTED_MAX}")).await?;
    let found = named(client, compared, &counts).await?;
    let shown = || {
        html! {
            div class="scroll" { table class="figures" {
                caption { (kind) }
                (columns(&["Name", "#Bad legs", "#Judged", "#Share", "#The others", ""]))
                tbody { @for worse in &found { (row(worse, from)) } }
            } }
        }
    };
    Ok((!found.is_empty()).then(shown))
}

fn row(worse: &Worse, from: Timestamp) -> Markup {
    let group = &worse.group;
    let (bad, judged) = (number(group, "bad"), number(group, "judged"));
    html! {
        tr {
            td { a href={ (worse.link) "&from=" (from) } { (or_dash(&worse.name)) } }
            td class="n" { (figure(&group["bad"])) }
            td class="n" { (figure(&group["judged"])) }
            td class="n" { (percent(bad, judged)) " %" }
            td class="n" { (figure(&group["rest_bad_pct"])) " %" }
            td { (most_common(group)) }
        }
    }
}

/// The most common bad verdict of a group.
fn most_common(group: &Value) -> Markup {
    let legs = |name: &str| number(&group["caller"], name) + number(&group["callee"], name);
    let bad = VERDICTS.into_iter().filter(|name| !matches!(*name, "ok" | "unanswered"));
    match bad.max_by_key(|name| legs(name)) {
        Some(name) if legs(name) > 0 => html! { "mostly " (verdict(name)) },
        _ => html! {},
    }
}

/// The legs of each verdict over all groups, either of callers or of called parties.
pub(crate) fn sums(counts: &Value, leg: &str) -> Vec<(&'static str, i64)> {
    let of = |name: &str| groups(counts).iter().map(|group| number(&group[leg], name)).sum();
    VERDICTS.into_iter().map(|name| (name, of(name))).filter(|(_, legs)| *legs > 0).collect()
}

fn groups(counts: &Value) -> &[Value] {
    counts["groups"].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or_default()
}

pub(super) const HOUR_US: i64 = 3_600 * 1_000_000;
/// Rows of a table.
const LISTED_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hours_are_drawn_where_they_were() {
        let counts = json!({"judged": 6, "bad": 1, "groups": [
            {"value": "1970-01-01T02:00:00Z", "judged": 4, "bad": 1},
            {"value": "1970-01-01T04:00:00Z", "judged": 2, "bad": 0},
            {"value": "1970-01-01T00:00:00Z", "judged": 9, "bad": 9},
            {"value": "never", "judged": 9, "bad": 9},
        ]});
        // The hour that contains the start time is left out, unless it begins exactly then.
        for from in [1, HOUR_US] {
            let drawn = over_time(&counts, Timestamp::from_micros(from), 4).into_string();
            let bars: Vec<&str> =
                drawn.split("<rect ").skip(1).map(|bar| bar.split(" width").next().unwrap()).collect();
            let expected = [
                "class=\"bar\" x=\"1\" y=\"0\"",
                "class=\"bar bad-part\" x=\"1\" y=\"75\"",
                "class=\"bar\" x=\"3\" y=\"50\"",
            ];
            assert_eq!(bars, expected, "from {from}");
        }
    }

    #[test]
    fn legs_are_added_over_hours() {
        let counts =
            json!({"groups": [{"caller": {"ok": 2, "lossy_inbound": 1}}, {"caller": {"ok": 3}}, {}]});
        assert_eq!(sums(&counts, "caller"), [("lossy_inbound", 1), ("ok", 5)]);
        assert_eq!(sums(&counts, "callee"), []);
        let group = json!({"caller": {"ok": 9, "lossy_inbound": 1}, "callee": {"lossy_inbound": 1, "jittery_inbound": 1}});
        assert!(most_common(&group).into_string().contains(">loss<"));
    }
}
