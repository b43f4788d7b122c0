//! The start: how the calls of the last day or week went, and what is live now.

use axum::extract::{MatchedPath, RawQuery, State};
use axum::http::Request;
use axum::http::header::ACCEPT;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use sidetone_model::time::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};
use tower::ServiceExt;

use crate::client::Client;
use crate::failure::Failure;
use crate::form::Fields;
use crate::layout::Section;
use crate::show::{VERDICTS, columns, figure, items, or_dash, text, verdict};
use crate::state::Panel;
use crate::visitor::Visitor;

/// The start page for browsers; a program gets the API's own.
pub(crate) async fn page(
    visitor: Result<Visitor, Response>,
    State(panel): State<Panel>,
    RawQuery(query): RawQuery,
    mut request: Request<axum::body::Body>,
) -> Response {
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accepted.is_some_and(|accept| accept.contains("text/html")) {
        // The route of the API is the one that is logged.
        request.extensions_mut().remove::<MatchedPath>();
        let Ok(response) = panel.api.oneshot(request).await;
        return response;
    }
    match visitor {
        Err(response) => response,
        Ok(visitor) => {
            let days = Fields::of_query(query.as_deref()).get("days").to_owned();
            let days = if days == "7" { 7 } else { 1 };
            let body = content(&visitor, days).await;
            visitor.page(Section::Home, "Home", body)
        }
    }
}

async fn content(visitor: &Visitor, days: i64) -> Result<Markup, Failure> {
    let from = now().plus_micros(-days * DAY_US).whole_millis();
    let client = &visitor.client;
    let total = count(client, &format!("from={from}")).await?;
    let from_caller = shares(client, "media_verdict", from, total).await?;
    let from_called = shares(client, "media_verdict_b", from, total).await?;
    let live = if_served(client.get("/calls?limit=1").await)?;
    let rooms = match visitor.me.may("conferences:read") {
        true => if_served(client.get("/conferences?limit=1").await)?,
        false => Value::Null,
    };
    let trunks = if visitor.me.may("trunks:write") { Some(trunks_down(client).await?) } else { None };
    let period = if days == 7 { "7 days" } else { "24 hours" };
    Ok(html! {
        h1 { "Last " (period) }
        p {
            a href="/?days=1" aria-current=[(days == 1).then_some("true")] { "24 hours" } " · "
            a href="/?days=7" aria-current=[(days == 7).then_some("true")] { "7 days" }
        }
        div class="tiles" {
            (tile("Calls", &json!(total), &format!("/calls?from={from}")))
            (tile("Live calls", &live["total"], "/live"))
            @if rooms.is_object() { (tile("Live rooms", &rooms["total"], "/live")) }
            @if let Some(down) = &trunks { (tile("Trunks down", &json!(down.len()), "/trunks")) }
        }
        @if let Some(down) = trunks.filter(|down| !down.is_empty()) {
            div class="alert" { p { "Not reachable: " (down.join(", ")) "." } }
        }
        (table("Audio from the caller", "media_verdict", from, &from_caller, total))
        (table("Audio from the called party", "media_verdict_b", from, &from_called, total))
    })
}

/// The calls of each verdict, without verdicts that no call has.
async fn shares(
    client: &Client,
    filter: &str,
    from: Timestamp,
    total: i64,
) -> Result<Vec<(&'static str, i64)>, Failure> {
    let mut found = Vec::new();
    // Nothing to ask about.
    if total == 0 {
        return Ok(found);
    }
    for name in VERDICTS {
        let count = count(client, &format!("from={from}&{filter}={name}")).await?;
        if count > 0 {
            found.push((name, count));
        }
    }
    Ok(found)
}

async fn count(client: &Client, query: &str) -> Result<i64, Failure> {
    Ok(client.get(&format!("/cdrs?limit=1&{query}")).await?["total"].as_i64().unwrap_or_default())
}

/// The names of trunks with no address that answers, and of those whose registration failed.
async fn trunks_down(client: &Client) -> Result<Vec<String>, Failure> {
    let found = if_served(client.get(&format!("/trunks?limit={TRUNKS_MAX}")).await)?;
    let mut down = Vec::new();
    for trunk in items(&found) {
        let path = format!("/trunks/{}/status", crate::form::segment(text(trunk, "id")));
        let status = if_served(client.get(&path).await)?;
        if is_down(&status) {
            down.push(or_dash(text(trunk, "name")).to_owned());
        }
    }
    Ok(down)
}

/// Whether no address of a trunk answers, or its registration failed.
pub(crate) fn is_down(status: &Value) -> bool {
    let addresses = status["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let none_answers =
        !addresses.is_empty() && addresses.iter().all(|address| text(address, "state") == "unreachable");
    none_answers || text(&status["registration"], "state") == "failed"
}

/// A part that this process does not have is null.
fn if_served(found: Result<Value, Failure>) -> Result<Value, Failure> {
    match found {
        Err(failure) if failure.status.as_u16() == 404 => Ok(Value::Null),
        found => found,
    }
}

fn tile(label: &str, value: &Value, link: &str) -> Markup {
    html! { div class="card" { a href=(link) { (label) } b { (figure(value)) } } }
}

fn table(title: &str, filter: &str, from: Timestamp, found: &[(&str, i64)], total: i64) -> Markup {
    html! {
        @if !found.is_empty() {
            h2 { (title) }
            div class="scroll" { table class="figures" {
                (columns(&["Verdict", "#Calls", "#Share", ""]))
                tbody { @for (name, count) in found {
                    tr {
                        td { a href={ "/calls?" (filter) "=" (name) "&from=" (from) } { (verdict(name)) } }
                        td class="n" { (figure(&json!(count))) }
                        td class="n" { (percent(*count, total)) " %" }
                        td { svg class="plot share" viewBox="0 0 1000 10" preserveAspectRatio="none"
                            aria-hidden="true" {
                            rect class="bar" width=(per_mille(*count, total)) height="10" {}
                        } }
                    }
                } }
            } }
        }
    }
}

fn per_mille(count: i64, total: i64) -> i64 {
    (count * 1_000 / total.max(1)).clamp(1, 1_000)
}

fn percent(count: i64, total: i64) -> String {
    let tenths = count * 1_000 / total.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[expect(clippy::disallowed_methods, reason = "a page of the last day begins a day before it is asked for")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or_default())
}

const DAY_US: i64 = 86_400 * 1_000_000;
/// Trunks whose state is read for this page.
const TRUNKS_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trunk_is_down_when_nothing_answers() {
        let address = |state: &str| json!({"addresses": [{"state": state}], "registration": null});
        assert!(is_down(&address("unreachable")));
        assert!(!is_down(&address("unknown")) && !is_down(&address("reachable")) && !is_down(&Value::Null));
        assert!(is_down(&json!({"addresses": [], "registration": {"state": "failed"}})));
    }

    #[test]
    fn shares_are_in_tenths() {
        assert_eq!([percent(1, 3), percent(3, 3), percent(0, 0)], ["33.3", "100.0", "0.0"]);
        assert_eq!((per_mille(1, 100_000), per_mille(5, 5)), (1, 1_000));
    }
}
