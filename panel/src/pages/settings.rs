//! Lists of the configuration in the database.

use axum::extract::{Path, RawQuery};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::segment;
use crate::layout::{Section, next_page};
use crate::me::Me;
use crate::pages::resources::resource;
use crate::show::{figure, items, or_dash, time, words};
use crate::visitor::Visitor;

/// A list: its path here and in the API, its title, the permission that it needs, and the fields that are shown.
type List = (&'static str, &'static str, &'static str, &'static [&'static str]);

const LISTS: [List; 13] = [
    (
        "extensions",
        "Extensions",
        "directory:read",
        &["number", "name", "srtp", "codec_string", "do_not_disturb", "updated_at"],
    ),
    ("numbers", "Numbers", "directory:read", &["number", "destination", "updated_at"]),
    ("teams", "Teams", "directory:read", &["name", "updated_at"]),
    ("agents", "Agents", "directory:read", &["name", "kind", "updated_at"]),
    (
        "organisations",
        "Organisations",
        "directory:read",
        &["name", "sip_domain", "currency", "balance", "credit", "recording_retention_days"],
    ),
    (
        "conference-rooms",
        "Rooms",
        "conferences:write",
        &["number", "name", "participant_pin", "record", "max_members"],
    ),
    ("users", "Users", "users:write", &["email", "name", "role", "disabled", "updated_at"]),
    (
        "api-keys",
        "Keys",
        "keys:write",
        &["name", "prefix", "last4", "preset", "rate_per_minute", "allow", "updated_at"],
    ),
    (
        "webhooks",
        "Webhooks",
        "webhooks:read",
        &["url", "active", "events", "failing_since", "disabled_reason"],
    ),
    (
        "sell-rates",
        "Prices",
        "billing:read",
        &["prefix", "per_minute", "currency", "increments", "from_time", "to_time"],
    ),
    (
        "cost-rates",
        "Carrier prices",
        "margin:read",
        &["prefix", "per_minute", "currency", "increments", "from_time", "to_time"],
    ),
    ("fx-rates", "Exchange rates", "margin:read", &["from", "to", "rate", "from_time"]),
    (
        "ai-prices",
        "AI prices",
        "billing:read",
        &["provider", "model", "kind", "currency", "output_per_million", "from_time"],
    ),
];

/// The lists that the visitor may read.
pub(crate) async fn overview(visitor: Visitor) -> Response {
    let body = html! {
        h1 { "Settings" }
        (tabs(&visitor.me, ""))
        div class="tiles" {
            @for (path, title, permission) in lists() {
                @if visitor.me.may(permission) { div class="card" {
                    a href={ "/settings/" (path) } { (title) } p class="soft" { (about(path)) } } }
            }
        }
    };
    visitor.page(Section::Settings, "Settings", Ok(body))
}

/// The path, title and permission of every list.
fn lists() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    LISTS.iter().map(|(path, title, permission, _)| (*path, *title, *permission)).chain([PROMPTS])
}

/// The purpose of a list, in a few words.
fn about(path: &str) -> &'static str {
    match path {
        "agents" => "Who takes calls, on which extension",
        "ai-prices" => "What virtual agents cost by token",
        "api-keys" => "What programs may do, and from where",
        "conference-rooms" => "Numbers, PINs and recording of rooms",
        "cost-rates" => "What carriers charge by the minute",
        "extensions" => "Phones, their names, forwarding and passwords",
        "fx-rates" => "From the currencies of carriers to those of customers",
        "numbers" => "Where calls from outside go",
        "organisations" => "SIP domain, currency, credit, how long recordings are kept",
        "prompts" => "What callers hear, as WAV files",
        "sell-rates" => "What calls cost by the minute",
        "teams" => "Who sees whose calls",
        "users" => "Who logs in, and their roles",
        "webhooks" => "Where events are sent, and what came of it",
        _ => "",
    }
}

/// One list.
pub(crate) async fn list(visitor: Visitor, Path(name): Path<String>, RawQuery(query): RawQuery) -> Response {
    let Some((path, title, _, fields)) = LISTS.iter().find(|(path, ..)| *path == name) else {
        return visitor.failed(Some(Section::Settings), &Failure::nothing_here());
    };
    let found = visitor.client.list(&format!("/{path}"), LISTED_MAX, query.as_deref()).await;
    let body = found.map(|found| {
        html! {
            h1 { (title) " " small { (figure(&found["total"])) } }
            (tabs(&visitor.me, path))
            (table(&visitor.me, path, &found, fields))
        }
    });
    visitor.page(Section::Settings, title, body)
}

/// The lists that the visitor may read, as links; `here` is the current one.
pub(crate) fn tabs(me: &Me, here: &str) -> Markup {
    html! {
        nav class="controls" aria-label="Lists" {
            @for (path, title, permission) in lists() {
                @if me.may(permission) {
                    a href={ "/settings/" (path) } aria-current=[(here == path).then_some("page")] { (title) }
                }
            }
            @if !me.extension_id.is_empty() {
                a href="/settings/own-extension" aria-current=[(here == "own-extension").then_some("page")] {
                    "Your extension"
                }
            }
        }
    }
}

fn table(me: &Me, path: &str, found: &Value, fields: &[&str]) -> Markup {
    let may_change = resource(path).is_some_and(|resource| resource.is_changed_by(me));
    let may_create = resource(path).is_some_and(|resource| resource.is_managed_by(me));
    html! {
        @if may_create { p { a class="button" href={ "/settings/" (path) "/new" } { "New" } } }
        @if items(found).is_empty() { p class="empty" { "The list is empty." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Entries" { table class="rows" {
                thead { tr { @for field in fields { th scope="col" { (words(field)) } } } }
                tbody { @for item in items(found) { tr data-row {
                    @for (place, field) in fields.iter().enumerate() {
                        td { @if place == 0 && may_change {
                            a href={ "/settings/" (path) "/" (segment(crate::show::text(item, "id"))) } {
                                (cell(field, &item[*field]))
                            }
                        } @else { (cell(field, &item[*field])) } }
                    }
                } } }
            } }
        }
        (next_page(&format!("/settings/{path}"), found))
    }
}

fn cell(field: &str, value: &Value) -> Markup {
    match value {
        // The API's value if no start was given.
        Value::String(start) if field == "from_time" && start.starts_with("1970-01-01T00:00:00") => {
            html! { "always" }
        }
        _ if ["_at", "_time", "_since"].iter().any(|end| field.ends_with(end)) => time(value),
        Value::Bool(flag) => html! { @if *flag { "yes" } @else { "no" } },
        Value::Array(parts) => {
            let shown: Vec<String> =
                parts.iter().map(|part| part.as_str().map_or_else(|| figure(part), str::to_owned)).collect();
            html! { (or_dash(&shown.join(", "))) }
        }
        Value::String(text) => html! { (or_dash(text)) },
        value => html! { (figure(value)) },
    }
}

/// The list of prompts, which has pages of its own: `prompts.rs`.
const PROMPTS: (&str, &str, &str) = ("prompts", "Prompts", "conferences:write");
/// Entries per page.
const LISTED_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_says_what_it_is_for() {
        for (path, ..) in lists() {
            assert_ne!(about(path), "", "{path}");
        }
    }
}
