//! The start page: the calls of the last day or week, the groups that are worse than the rest, and what is
//! live now.

use axum::extract::{MatchedPath, RawQuery, State};
use axum::http::header::ACCEPT;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use sidetone_model::time::Timestamp;
use tower::ServiceExt;

use crate::clock::now;
use crate::failure::Failure;
use crate::form::Fields;
use crate::layout::Section;
use crate::pages::worst::{self, Compared};
use crate::show::{columns, figure, items, or_dash, percent, sentence, text, verdict};
use crate::state::Panel;
use crate::visitor::Visitor;

/// The start page for browsers; other clients get that of the API.
pub(crate) async fn page(
    visitor: Result<Visitor, Response>,
    State(panel): State<Panel>,
    RawQuery(query): RawQuery,
    mut request: Request<axum::body::Body>,
) -> Response {
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accepted.is_some_and(|accept| accept.contains("text/html")) {
        // The log shows the route of the API.
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
    let from = first_start(now(), days);
    let client = &visitor.client;
    let [trunk, phone, network, device] = &COMPARED;
    let (calls, hours) = (
        format!("/cdrs?limit=1&from={from}"),
        format!("/cdrs/verdicts?by=hour&from={from}&max_groups={HOURS_MAX}"),
    );
    // Each list waits for the database independently.
    let (
        engine,
        calls,
        hours,
        live,
        rooms,
        trunks,
        worst_trunks,
        worst_phones,
        worst_networks,
        worst_devices,
    ) = tokio::try_join!(
        engine(visitor),
        client.get(&calls),
        client.get(&hours),
        client.find("/calls?limit=1"),
        live_rooms(visitor),
        trunks_down(visitor),
        worst_of(visitor, trunk, from),
        worst_of(visitor, phone, from),
        worst_of(visitor, network, from),
        worst_of(visitor, device, from),
    )?;
    let total = calls["total"].as_i64().unwrap_or_default();
    let worst =
        [(trunk, worst_trunks), (phone, worst_phones), (network, worst_networks), (device, worst_devices)];
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
            @if let Some(down) = &trunks {
                @let label = if down.is_partial { format!("Trunks down, of the first {TRUNKS_MAX}") } else { "Trunks down".to_owned() };
                (tile(&label, &json!(down.names.len()), "/trunks"))
            }
            @if engine.is_known {
                div class="card" { "Engine, disk, database"
                    b { @if engine.troubles.is_empty() { "in order" } @else { "impaired" } } }
            }
        }
        (alerts(&engine, trunks.as_ref()))
        @if total > 0 {
            (worst::over_time(&hours, from, days * 24))
            div class="pair" {
                (table("Audio from the caller", "media_verdict", from, &worst::sums(&hours, "caller"), total))
                (table("Audio from the called party", "media_verdict_b", from, &worst::sums(&hours, "callee"), total))
            }
            (worse_than_the_rest(&worst))
        }
    })
}

/// Problems of the engine, and trunks that are down.
fn alerts(engine: &EngineState, trunks: Option<&TrunksDown>) -> Markup {
    html! {
        @if !engine.troubles.is_empty() {
            div class="alert" { @for trouble in &engine.troubles { p { (sentence(trouble)) } } }
        }
        @if let Some(down) = trunks.filter(|down| !down.names.is_empty()) {
            div class="alert" { p { "Not reachable: " (down.names.join(", ")) "." } }
        }
    }
}

/// A table for each kind with groups that are worse than the rest; one sentence names the other kinds.
fn worse_than_the_rest(worst: &[(&Compared, Option<Option<Markup>>)]) -> Markup {
    let compared = || worst.iter().filter_map(|(compared, found)| Some((compared.kind, found.as_ref()?)));
    let none: Vec<&str> = compared().filter(|(_, found)| found.is_none()).map(|(kind, _)| kind).collect();
    html! {
        @if compared().next().is_some() { h2 { "Worse than the rest" } }
        @for part in compared().filter_map(|(_, found)| found.as_ref()) { (part) }
        @if !none.is_empty() {
            p class="soft" {
                (sentence(&none.join(", "))) " None has a share of bad legs that is significantly above that of the others." }
        }
    }
}

/// The start of the period of the page. The 7 days begin at a whole hour, because the counts of whole hours are in
/// memory and the bars show whole hours.
fn first_start(now: Timestamp, days: i64) -> Timestamp {
    let from = now.plus_micros(-days * DAY_US);
    if days == 1 {
        return from.whole_millis();
    }
    let next_hour = from.plus_micros(worst::HOUR_US - 1);
    Timestamp::from_micros(next_hour.as_micros() - next_hour.as_micros().rem_euclid(worst::HOUR_US))
}

/// The state that the engine reports in `/readyz`.
#[derive(Default)]
struct EngineState {
    /// Whether this process has an engine.
    is_known: bool,
    /// Problems that stop the engine from working, or that it works around.
    troubles: Vec<String>,
}

async fn engine(visitor: &Visitor) -> Result<EngineState, Failure> {
    Ok(match visitor.client.readiness().await {
        Ok(ready) => {
            let degraded = ready["degraded"].as_array().into_iter().flatten().filter_map(Value::as_str);
            EngineState { is_known: true, troubles: degraded.map(str::to_owned).collect() }
        }
        Err(failure) if failure.status == StatusCode::NOT_FOUND => EngineState::default(),
        Err(failure) => EngineState { is_known: true, troubles: vec![failure.message] },
    })
}

/// The trunks that are down.
struct TrunksDown {
    /// Names of trunks without an address that answers, and of trunks whose registration failed.
    names: Vec<String>,
    /// Whether there are more trunks than were queried for their state.
    is_partial: bool,
}

/// The number of live rooms; null for users who may not see rooms.
async fn live_rooms(visitor: &Visitor) -> Result<Value, Failure> {
    match visitor.me.may("conferences:read") {
        true => visitor.client.find("/conferences?limit=1").await,
        false => Ok(Value::Null),
    }
}

/// The groups that are worse than the rest; `None` for users who may not see such groups.
async fn worst_of(
    visitor: &Visitor,
    compared: &Compared,
    from: Timestamp,
) -> Result<Option<Option<Markup>>, Failure> {
    match visitor.me.may(compared.permission) {
        true => worst::table(&visitor.client, compared, from).await.map(Some),
        false => Ok(None),
    }
}

async fn trunks_down(visitor: &Visitor) -> Result<Option<TrunksDown>, Failure> {
    if !visitor.me.may("trunks:write") {
        return Ok(None);
    }
    let client = &visitor.client;
    let found = client.find(&format!("/trunks?limit={TRUNKS_MAX}")).await?;
    let mut down = Vec::new();
    for trunk in items(&found) {
        let path = format!("/trunks/{}/status", crate::form::segment(text(trunk, "id")));
        let status = client.find(&path).await?;
        if is_down(&status) {
            down.push(or_dash(text(trunk, "name")).to_owned());
        }
    }
    let is_partial = found["total"].as_u64().is_some_and(|total| total > u64::from(TRUNKS_MAX));
    Ok(Some(TrunksDown { names: down, is_partial }))
}

/// Whether no address of a trunk answers, or its registration failed.
pub(crate) fn is_down(status: &Value) -> bool {
    let addresses = status["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let none_answers =
        !addresses.is_empty() && addresses.iter().all(|address| text(address, "state") == "unreachable");
    none_answers || text(&status["registration"], "state") == "failed"
}

fn tile(label: &str, value: &Value, link: &str) -> Markup {
    html! { div class="card" { a href=(link) { (label) } b { (figure(value)) } } }
}

fn table(title: &str, filter: &str, from: Timestamp, found: &[(&str, i64)], total: i64) -> Markup {
    html! {
        @if !found.is_empty() { section {
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
        } }
    }
}

fn per_mille(count: i64, total: i64) -> i64 {
    (count * 1_000 / total.max(1)).clamp(1, 1_000)
}

/// The kinds of groups that are compared.
const COMPARED: [Compared; 4] = [
    Compared {
        kind: "trunks",
        permission: "trunks:write",
        list: Some("trunks"),
        by: "trunk",
        filter: "trunk_id",
    },
    Compared {
        kind: "phones",
        permission: "directory:read",
        list: Some("extensions"),
        by: "extension",
        filter: "extension_id",
    },
    Compared { kind: "networks", permission: "directory:read", list: None, by: "network", filter: "network" },
    Compared {
        kind: "devices",
        permission: "directory:read",
        list: None,
        by: "user_agent",
        filter: "user_agent",
    },
];
/// The hours of 7 days, and the one that began before them.
const HOURS_MAX: u32 = 169;
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
    fn kinds_without_a_difference_are_one_sentence() {
        let [trunks, phones, networks, devices] = &COMPARED;
        let table = html! { table { caption { "Phones" } } };
        let shown = worse_than_the_rest(&[
            (trunks, None),
            (phones, Some(Some(table))),
            (networks, Some(None)),
            (devices, Some(None)),
        ])
        .into_string();
        assert!(shown.contains("<caption>Phones</caption>"), "{shown}");
        assert!(shown.contains(">Networks, devices. None has a share"), "{shown}");
        assert!(!shown.to_lowercase().contains("trunks"), "the user may not see them: {shown}");
        assert_eq!(worse_than_the_rest(&[(trunks, None)]).into_string(), "");
    }

    #[test]
    fn seven_days_begin_with_a_whole_hour() {
        let first = |days, now: &str| first_start(now.parse().unwrap(), days).to_string();
        assert_eq!(first(1, "2026-11-28T10:20:30.456789Z"), "2026-11-27T10:20:30.456Z");
        assert_eq!(first(7, "2026-11-28T10:20:30.456789Z"), "2026-11-21T11:00:00.000Z");
        assert_eq!(first(7, "2026-11-28T10:00:00Z"), "2026-11-21T10:00:00.000Z");
    }

    #[test]
    fn bars_are_visible_and_end_at_the_edge() {
        assert_eq!((per_mille(1, 100_000), per_mille(5, 5)), (1, 1_000));
    }
}
