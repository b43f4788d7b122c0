//! Registered phones, and the state of trunks.

use axum::extract::RawQuery;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::segment;
use crate::layout::{Section, next_page};
use crate::pages::home::is_down;
use crate::show::{columns, figure, flag, items, millis, or_dash, text, time, words};
use crate::visitor::Visitor;

/// The currently registered phones.
pub(crate) async fn registrations(visitor: Visitor, RawQuery(query): RawQuery) -> Response {
    let found = visitor.client.list("/registrations", LISTED_MAX, query.as_deref()).await;
    visitor.page(Section::Phones, "Phones", found.map(|found| phones(&found)))
}

/// The trunks with their state.
pub(crate) async fn trunks(visitor: Visitor, RawQuery(query): RawQuery) -> Response {
    let body = trunk_states(&visitor, query.as_deref()).await;
    visitor.page(Section::Trunks, "Trunks", body)
}

fn phones(found: &Value) -> Markup {
    html! {
        h1 { "Registered phones " small { (figure(&found["total"])) } }
        @if items(found).is_empty() { p class="empty" { "No phone is registered." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Registered phones" { table class="rows stack" {
                (columns(&PHONE_COLUMNS))
                tbody { @for phone in items(found) { tr data-row {
                    td { a href={ "/calls?extension_id=" (segment(text(phone, "extension_id"))) } {
                        (or_dash(text(phone, "number")))
                    } }
                    td { (or_dash(text(phone, "name"))) }
                    td { (state(text(phone, "state"))) }
                    td { (text(phone, "source")) }
                    td { (text(phone, "transport")) }
                    td title=(text(phone, "user_agent")) { (or_dash(text(phone, "user_agent"))) }
                    td class="n" { (millis(&phone["round_trip_ms"])) }
                    td { (time(&phone["registered_at"])) }
                    td { (time(&phone["expires_at"])) }
                } } }
            } }
        }
        (next_page("/phones", found))
    }
}

const PHONE_COLUMNS: [&str; 9] =
    ["Extension", "Name", "State", "From", "Transport", "Device", "#Round trip", "Since", "Expires"];

fn state(name: &str) -> Markup {
    let class = match name {
        "reachable" | "registered" => "good",
        "failed" | "unreachable" => "bad",
        _ => "none",
    };
    html! { span class={ "chip " (class) } { (words(name)) } }
}

async fn trunk_states(visitor: &Visitor, query: Option<&str>) -> Result<Markup, Failure> {
    let found = visitor.client.list("/trunks", TRUNKS_MAX, query).await?;
    let mut parts = Vec::new();
    for trunk in items(&found) {
        let path = format!("/trunks/{}/status", segment(text(trunk, "id")));
        // A process without calls has trunks, but not their state.
        parts.push(trunk_part(trunk, &visitor.client.find(&path).await?));
    }
    Ok(html! {
        h1 { "Trunks " small { (figure(&found["total"])) } }
        @if parts.is_empty() { p class="empty" { "There is no trunk." } }
        @for part in parts { (part) }
        (next_page("/trunks", &found))
    })
}

fn trunk_part(trunk: &Value, status: &Value) -> Markup {
    let addresses = status["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let refusals = status["refusals"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        section class="card" {
            h2 { (or_dash(text(trunk, "name"))) " "
                @if is_down(status) { span class="chip bad" { "down" } }
                @if flag(trunk, "register") && status["registration"].is_object() {
                    " " (state(text(&status["registration"], "state")))
                } }
            p class="soft" { (text(trunk, "address")) " · calls " (figure(&status["calls"])) " · "
                a href={ "/calls?trunk_id=" (segment(text(trunk, "id"))) } { "Calls of this trunk" } }
            @if !addresses.is_empty() { div class="scroll" tabindex="0" role="region" aria-label="Addresses" { table {
                (columns(&["Address", "Server", "State", "#Outbound calls", "#Round trip", "Checked"]))
                tbody { @for address in addresses { tr {
                    td { (text(address, "address")) } td { (text(address, "server")) }
                    td { (state(text(address, "state"))) }
                    td class="n" { (figure(&address["outbound_calls"])) }
                    td class="n" { (millis(&address["round_trip_ms"])) }
                    td { (time(&address["checked_at"])) }
                } } }
            } } }
            @if !refusals.is_empty() { h2 { "Last refusals" } div class="scroll" tabindex="0" role="region" aria-label="Last refusals" { table {
                (columns(&["When", "Request", "Address", "#Status", "Reason"]))
                tbody { @for refusal in refusals { tr {
                    td { (time(&refusal["at"])) } td { (text(refusal, "method")) } td { (text(refusal, "address")) }
                    td class="n" { (figure(&refusal["status"])) } td { (text(refusal, "reason")) }
                } } }
            } } }
        }
    }
}

/// Phones per page.
const LISTED_MAX: u32 = 100;
/// Trunks per page; the state of each is queried.
const TRUNKS_MAX: u32 = 25;
