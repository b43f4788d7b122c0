//! The call log.

use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::{Fields, query_value, segment};
use crate::layout::{Section, refusal};
use crate::pages::filters::{self, is_filter};
use crate::show::{duration, figure, items, money, or_dash, text, time, verdict};
use crate::visitor::Visitor;

/// A page of the log.
pub(crate) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Response {
    let asked = Fields::of_query(query.as_deref()).only(|name| is_filter(name) || PAGING.contains(&name));
    let mut of_api = asked.only(|name| name != "more");
    of_api.remove("cursor");
    let query = of_api.to_query();
    // An empty cursor requests the first page by cursor.
    let cursor = query_value(asked.get("cursor"));
    let found = visitor.client.get(&format!("/cdrs?{query}&cursor={cursor}")).await;
    match found {
        Ok(found) => {
            let body = match filters::form(&visitor.client, &visitor.me, &asked, None).await {
                Ok(form) => Ok(html! { (head(&found)) (form) (table(&visitor, &asked, &found)) }),
                Err(failure) => Err(failure),
            };
            visitor.page(Section::Calls, "Calls", body)
        }
        Err(failure) if failure.status == StatusCode::BAD_REQUEST => {
            refused(&visitor, &asked, &failure).await
        }
        Err(failure) => visitor.failed(Some(Section::Calls), &failure),
    }
}

/// The export of the API, with the filters of the page.
pub(crate) async fn export(visitor: Visitor, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let asked = Fields::of_query(query.as_deref()).only(|name| is_filter(name) || name == "format");
    let path = format!("/cdrs/export?{}", asked.to_query());
    visitor.file(Some(Section::Calls), &path, &headers).await
}

async fn refused(visitor: &Visitor, asked: &Fields, failure: &Failure) -> Response {
    match filters::form(&visitor.client, &visitor.me, asked, Some(failure)).await {
        Ok(form) => {
            let body = html! {
                h1 { "Calls" }
                (refusal(failure, is_filter))
                (form)
            };
            visitor.refused(Section::Calls, "Calls", failure, &body)
        }
        Err(failure) => visitor.failed(Some(Section::Calls), &failure),
    }
}

fn head(found: &Value) -> Markup {
    html! {
        h1 { "Calls " @if found["total"].is_number() { small { (figure(&found["total"])) } } }
    }
}

fn table(visitor: &Visitor, asked: &Fields, found: &Value) -> Markup {
    let shows_margin = visitor.me.may("margin:read");
    let rows = items(found);
    html! {
        @if rows.is_empty() {
            p class="empty" { "No call matches." }
        } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Call records" {
                table class="rows stack" {
                    thead { tr {
                        (column(asked, "started_at", "Started", ""))
                        (column(asked, "direction", "Direction", ""))
                        (column(asked, "caller_number", "From", ""))
                        (column(asked, "destination_number", "To", ""))
                        (column(asked, "billsec", "Duration", "n"))
                        th scope="col" { "Audio from caller" }
                        th scope="col" { "Audio from called" }
                        (column(asked, "mos", "MOS", "n"))
                        th scope="col" { "Ended by" }
                        (column(asked, "sell_amount", "Price", "n"))
                        @if shows_margin { th scope="col" class="n" { "Cost" } th scope="col" class="n" { "Margin" } }
                    } }
                    tbody { @for call in rows { (row(call, shows_margin)) } }
                }
            }
        }
        (foot(asked, found))
    }
}

fn row(call: &Value, shows_margin: bool) -> Markup {
    let is_missed = call["answered_at"].is_null();
    html! {
        tr data-row {
            td { a href={ "/calls/" (segment(text(call, "call_uuid"))) } { (time(&call["started_at"])) } }
            td { (text(call, "direction")) }
            td { (or_dash(text(call, "caller_number"))) }
            td { (or_dash(text(call, "destination_number"))) }
            td class="n" { @if is_missed { span class="soft" { "missed" } } @else { (seconds(call)) } }
            td { (verdict(text(call, "media_verdict"))) }
            td { (verdict(text(&call["media_b"], "media_verdict"))) }
            td class="n" { (figure(&call["mos"])) }
            td { (or_dash(text(call, "hangup_cause"))) }
            td class="n" { (money(&call["sell_amount"], &call["currency"])) }
            @if shows_margin {
                td class="n" { (money(&call["cost_amount"], &call["currency"])) }
                td class="n" { (money(&call["margin"], &call["currency"])) }
            }
        }
    }
}

fn seconds(call: &Value) -> String {
    duration(call["billsec"].as_i64().unwrap_or_default())
}

/// The head of a sortable column; a second click reverses the order.
fn column(asked: &Fields, key: &str, label: &str, class: &str) -> Markup {
    let sort = if asked.get("sort").is_empty() { "started_at" } else { asked.get("sort") };
    let is_sorted = sort == key;
    let is_ascending = asked.get("order") == "asc";
    let mut link = asked.only(|name| name != "cursor");
    link.set("sort", key);
    link.set("order", if is_sorted && !is_ascending { "asc" } else { "desc" });
    let direction = if is_ascending { "ascending" } else { "descending" };
    html! {
        th scope="col" class=(class) aria-sort=[is_sorted.then_some(direction)] {
            a href={ "/calls?" (link.to_query()) } { (label) }
        }
    }
}

fn foot(asked: &Fields, found: &Value) -> Markup {
    let filters = asked.only(is_filter).to_query();
    let mut next = asked.clone();
    next.set("cursor", text(found, "next_cursor"));
    let mut first = asked.clone();
    first.remove("cursor");
    html! {
        nav class="paging" aria-label="Pages of the log" {
            @if !asked.get("cursor").is_empty() { a href={ "/calls?" (first.to_query()) } { "First page" } }
            @if !text(found, "next_cursor").is_empty() {
                a rel="next" href={ "/calls?" (next.to_query()) } { "Next page" }
            }
            span class="right" {
                "Export " a href={ "/calls/export?" (filters) } { "CSV" } " "
                a href={ "/calls/export?format=ndjson&" (filters) } { "NDJSON" }
            }
        }
        p class="soft keys" { "Keys: " kbd { "/" } " search, " kbd { "j" } " and " kbd { "k" }
            " next and previous call, " kbd { "Enter" } " open" }
    }
}

/// Parameters of the page that are not filters.
const PAGING: [&str; 5] = ["cursor", "limit", "more", "order", "sort"];
