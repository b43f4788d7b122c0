//! The deliveries of a webhook with their attempts; also sends a delivery again.

use axum::extract::{Path, RawQuery};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::{Fields, query_value, segment};
use crate::layout::{Section, refusal};
use crate::show::{columns, figure, flag, items, millis, named, or_dash, sentence, text, time, words};
use crate::visitor::{Change, Visitor, see};

/// The deliveries of one webhook.
pub(crate) async fn list(visitor: Visitor, Path(id): Path<String>, RawQuery(query): RawQuery) -> Response {
    let asked = Fields::of_query(query.as_deref()).only(|name| ["cursor", "status"].contains(&name));
    let webhook = match visitor.client.get(&format!("/webhooks/{}", segment(&id))).await {
        Ok(webhook) => webhook,
        Err(failure) => return visitor.failed(Some(Section::Settings), &failure),
    };
    // An empty cursor requests the first page by cursor; an empty status means none.
    let (status, cursor) = (asked.only(|name| name == "status").to_query(), query_value(asked.get("cursor")));
    let path = format!("/webhooks/{}/deliveries?limit={LISTED_MAX}&cursor={cursor}&{status}", segment(&id));
    let found = visitor.client.get(&path).await;
    let head = html! {
        (crumbs(&id, None))
        h1 { "Deliveries " @if let Ok(found) = &found { small { (figure(&found["total"])) } } }
        p { (text(&webhook, "url")) " " (webhook_state(&webhook)) }
    };
    match found {
        Ok(found) => {
            let body = html! { (head) (filter(&id, &asked, None)) (table(&id, &found)) (paging(&id, &asked, &found)) };
            visitor.page(Section::Settings, "Deliveries", Ok(body))
        }
        Err(failure) if failure.status == StatusCode::BAD_REQUEST => {
            let body = html! {
                (head) (refusal(&failure, |name| name == "status")) (filter(&id, &asked, Some(&failure)))
            };
            visitor.refused(Section::Settings, "Deliveries", &failure, &body)
        }
        Err(failure) => visitor.failed(Some(Section::Settings), &failure),
    }
}

/// The newest deliveries, for the page of the webhook. If the list cannot be read, the reason is shown
/// instead.
pub(crate) async fn newest(visitor: &Visitor, id: &str) -> Markup {
    let path = format!("/webhooks/{}/deliveries?limit={NEWEST_MAX}&cursor=", segment(id));
    let found = visitor.client.get(&path).await;
    html! {
        h2 { "Newest deliveries" }
        @match &found {
            Ok(found) => {
                (table(id, found))
                @if !items(found).is_empty() { p { a href=(address(id)) { "All deliveries" } } }
            }
            Err(failure) => p class="problem" { (sentence(&failure.message)) },
        }
    }
}

/// One delivery with its payload.
pub(crate) async fn one(visitor: Visitor, Path((id, delivery)): Path<(String, String)>) -> Response {
    shown(&visitor, &id, &delivery, None).await
}

/// Sends a delivery again.
pub(crate) async fn redeliver(
    Path((id, delivery)): Path<(String, String)>,
    Change { visitor, .. }: Change,
) -> Response {
    let path = format!("{}/redeliver", path_of(&id, &delivery));
    match visitor.client.send(Method::POST, &path, None).await {
        Ok(_) => see(&format!("{}/{}", address(&id), segment(&delivery))),
        Err(failure) if [401, 403, 404].contains(&failure.status.as_u16()) => {
            visitor.failed(Some(Section::Settings), &failure)
        }
        Err(failure) => shown(&visitor, &id, &delivery, Some(&failure)).await,
    }
}

async fn shown(visitor: &Visitor, id: &str, delivery: &str, refused: Option<&Failure>) -> Response {
    let found = match visitor.client.get(&path_of(id, delivery)).await {
        Ok(found) => found,
        Err(failure) => return visitor.failed(Some(Section::Settings), &failure),
    };
    let title = format!("Delivery of {}", text(&found, "type"));
    let body = html! {
        (crumbs(id, Some(address(id))))
        h1 { (title) " " (state(text(&found, "status"))) }
        @if let Some(failure) = refused { (refusal(failure, |_| false)) }
        @if visitor.me.may("webhooks:write") {
            form class="inline" method="post"
                action={ (address(id)) "/" (segment(text(&found, "id"))) "/redeliver" } {
                (visitor.token()) button type="submit" { "Send again" }
            }
        }
        (facts(&found))
        (attempts_part(&found))
        h2 { "Payload" }
        pre class="sip" tabindex="0" role="region" aria-label="Payload" { (pretty(&found["payload"])) }
    };
    match refused {
        Some(failure) => visitor.refused(Section::Settings, &title, failure, &body),
        None => visitor.page(Section::Settings, &title, Ok(body)),
    }
}

fn facts(delivery: &Value) -> Markup {
    html! {
        dl class="facts card" {
            div { dt { "Event" } dd { (text(delivery, "event_id")) } }
            div { dt { "Delivery" } dd { (text(delivery, "id")) } }
            div { dt { "Queued" } dd { (time(&delivery["created_at"])) } }
            div { dt { "Last change" } dd { (time(&delivery["updated_at"])) } }
            div { dt { "Next attempt" } dd { (time(&delivery["next_attempt_at"])) } }
        }
    }
}

/// The stored attempts, newest first.
fn attempts_part(delivery: &Value) -> Markup {
    let attempts = attempts(delivery);
    html! {
        h2 { "Attempts " small { (attempts.len()) } }
        @if attempts.is_empty() { p class="soft" { "There was no attempt." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Attempts" { table {
                (columns(&["When", "#Status code", "#Duration", "Error", "Answer"]))
                tbody { @for attempt in attempts.iter().rev() { tr {
                    td { (time(&attempt["at"])) }
                    td class="n" { (status_code(attempt)) }
                    td class="n" { (millis(&attempt["duration_ms"])) }
                    td { (or_dash(text(attempt, "error"))) }
                    td { @if text(attempt, "answer").is_empty() { "–" } @else {
                        details { summary { "Show" } pre class="sip" { (text(attempt, "answer")) } }
                    } }
                } } }
            } }
        }
    }
}

fn table(id: &str, found: &Value) -> Markup {
    html! {
        @if items(found).is_empty() { p class="empty" { "There is no delivery." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Deliveries" { table class="rows" {
                (columns(&["Event", "State", "Queued", "#Attempts", "Last attempt", "#Status code", "Error", "Next attempt"]))
                tbody { @for delivery in items(found) { (row(id, delivery)) } }
            } }
        }
    }
}

fn row(id: &str, delivery: &Value) -> Markup {
    let attempts = attempts(delivery);
    let last = attempts.last().unwrap_or(&Value::Null);
    html! {
        tr data-row {
            td { a href={ (address(id)) "/" (segment(text(delivery, "id"))) } { (or_dash(text(delivery, "type"))) } }
            td { (state(text(delivery, "status"))) }
            td { (time(&delivery["created_at"])) }
            td class="n" { (attempts.len()) }
            td { (time(&last["at"])) }
            td class="n" { (status_code(last)) }
            td title=(text(last, "error")) { (or_dash(text(last, "error"))) }
            td { (time(&delivery["next_attempt_at"])) }
        }
    }
}

fn filter(id: &str, asked: &Fields, failure: Option<&Failure>) -> Markup {
    let problem = failure.and_then(|failure| failure.of_field("status"));
    let status = asked.get("status");
    let is_known = status.is_empty() || STATUSES.contains(&status);
    html! {
        form class="filters card" method="get" action=(address(id)) {
            div class="fields" { div class="field" {
                label for="status" { "State" }
                select id="status" name="status" aria-describedby=[problem.map(|_| "status-problem")]
                    aria-invalid=[problem.map(|_| "true")] {
                    option value="" { "any" }
                    @for (known, label) in named(&STATUSES) {
                        option value=(known) selected[known == status] { (label) }
                    }
                    @if !is_known { option value=(status) selected { (status) } }
                }
                @if let Some(problem) = problem { p class="problem" id="status-problem" { (sentence(problem)) } }
            } }
            div class="actions" { button type="submit" { "Show deliveries" } a href=(address(id)) { "Clear" } }
        }
    }
}

fn paging(id: &str, asked: &Fields, found: &Value) -> Markup {
    let (mut first, mut next) = (asked.clone(), asked.clone());
    first.remove("cursor");
    next.set("cursor", text(found, "next_cursor"));
    html! {
        nav class="paging" aria-label="Pages of the list" {
            @if !asked.get("cursor").is_empty() { a href={ (address(id)) "?" (first.to_query()) } { "First page" } }
            @if !text(found, "next_cursor").is_empty() {
                a rel="next" href={ (address(id)) "?" (next.to_query()) } { "Next page" }
            }
        }
    }
}

/// The link back; `deliveries` is the URL of the list, if that is not this page itself.
fn crumbs(id: &str, deliveries: Option<String>) -> Markup {
    html! {
        p class="crumbs" {
            a href="/settings" { "Settings" } " / " a href="/settings/webhooks" { "webhooks" }
            " / " a href={ "/settings/webhooks/" (segment(id)) } { "webhook" }
            @if let Some(deliveries) = deliveries { " / " a href=(deliveries) { "deliveries" } }
        }
    }
}

fn webhook_state(webhook: &Value) -> Markup {
    let reason = text(webhook, "disabled_reason");
    html! {
        @if !flag(webhook, "active") {
            span class="chip none" { "switched off" @if !reason.is_empty() { " (" (words(reason)) ")" } }
        } @else if webhook["failing_since"].is_string() {
            span class="chip warn" { "failing" } " since " (time(&webhook["failing_since"]))
        }
    }
}

fn state(status: &str) -> Markup {
    let class = match status {
        "delivered" => "good",
        "failed" => "bad",
        "retrying" => "warn",
        _ => "none",
    };
    html! { span class={ "chip " (class) } { (words(status)) } }
}

/// The status code of an attempt's answer; unlike amounts, codes are not grouped.
fn status_code(attempt: &Value) -> String {
    attempt["status_code"].as_u64().map_or_else(|| "–".to_owned(), |code| code.to_string())
}

fn attempts(delivery: &Value) -> &[Value] {
    delivery["attempts"].as_array().map_or(&[], Vec::as_slice)
}

/// A JSON value with a field on each line.
fn pretty(payload: &Value) -> String {
    serde_json::to_string_pretty(payload).unwrap_or_default()
}

fn address(id: &str) -> String {
    format!("/settings/webhooks/{}/deliveries", segment(id))
}

fn path_of(id: &str, delivery: &str) -> String {
    format!("/webhooks/{}/deliveries/{}", segment(id), segment(delivery))
}

/// The states of deliveries that the API filters by.
const STATUSES: [&str; 6] = ["pending", "delivering", "retrying", "delivered", "failed", "cancelled"];
/// Deliveries per page.
const LISTED_MAX: u32 = 50;
/// Deliveries on the page of the webhook.
const NEWEST_MAX: u32 = 10;
