//! Live calls and live rooms, kept up to date by the stream of events.

use axum::extract::Path;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::assets;
use crate::clock::now;
use crate::failure::Failure;
use crate::form::segment;
use crate::layout::Section;
use crate::show::{columns, figure, flag, items, or_dash, text, time, verdict, words};
use crate::visitor::{Change, Visitor, see};

/// The live calls and rooms.
pub(crate) async fn page(visitor: Visitor) -> Response {
    let body = content(&visitor).await;
    visitor.page(Section::Live, "Live", body)
}

/// Ends a call.
pub(crate) async fn hang_up(Path(uuid): Path<String>, Change { visitor, .. }: Change) -> Response {
    let ended = visitor.client.send(Method::DELETE, &format!("/calls/{}", segment(&uuid)), None).await;
    after(&visitor, ended)
}

/// Sends a note to the phones of a call.
pub(crate) async fn note(Path(uuid): Path<String>, Change { visitor, fields }: Change) -> Response {
    let note = json!({
        "title": fields.get("title"),
        "level": fields.get("level"),
        "ack": !fields.get("ack").is_empty(),
    });
    let path = format!("/calls/{}/info", segment(&uuid));
    let sent = visitor.client.send(Method::POST, &path, Some(&note)).await;
    after(&visitor, sent)
}

fn after(visitor: &Visitor, done: Result<Value, Failure>) -> Response {
    match done {
        Ok(_) => see("/live"),
        Err(failure) => visitor.failed(Some(Section::Live), &failure),
    }
}

async fn content(visitor: &Visitor) -> Result<Markup, Failure> {
    let since = now();
    let calls = visitor.client.get(&format!("/calls?limit={LISTED_MAX}")).await?;
    let shows_rooms = visitor.me.may("conferences:read");
    let rooms = if shows_rooms {
        visitor.client.get(&format!("/conferences?limit={LISTED_MAX}")).await?
    } else {
        Value::Null
    };
    let events = if shows_rooms { "call.*,conference.updated" } else { "call.*" };
    Ok(html! {
        script type="module" src=(assets::address("live.mjs")) {}
        div id="live-calls" data-live=(events) data-since=(since) data-kinds=(KINDS) { (calls_part(visitor, &calls)) }
        @if shows_rooms { div id="live-rooms" data-live=(events) { (rooms_part(&rooms)) } }
    })
}

fn calls_part(visitor: &Visitor, calls: &Value) -> Markup {
    html! {
        h1 { "Live calls " small { (figure(&calls["total"])) } }
        @if items(calls).is_empty() { p class="empty" { "No call is up." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Live calls" { table class="stack" {
                (columns(&["Started", "Direction", "From", "To", "State", "Parties and their audio", ""]))
                tbody { @for call in items(calls) { (call_row(visitor, call)) } }
            } }
            (of_total(calls))
        }
    }
}

fn call_row(visitor: &Visitor, call: &Value) -> Markup {
    let legs = call["legs"].as_array().map_or(&[][..], Vec::as_slice);
    let path = segment(text(call, "uuid"));
    html! {
        tr data-row {
            td { a href={ "/live/calls/" (path) } { (time(&call["started_at"])) } }
            td { (text(call, "direction")) }
            td { (or_dash(text(call, "caller"))) }
            td { (or_dash(text(call, "destination"))) }
            td {
                (words(text(call, "state")))
                @if !text(call, "held_by").is_empty() { " " span class="chip warn" { "on hold" } }
                @if call["recording"].is_object() { " " span class="chip bad" { "recording" } }
            }
            td { @for leg in legs {
                div { (text(leg, "role")) ": " (or_dash(text(leg, "name"))) " "
                    span class="soft" { (text(leg, "codec")) }
                    @if text(leg, "state") == "answered" { " " (audio(leg)) } }
            } }
            td { @if visitor.me.may("calls:control") { (controls(visitor, &path)) } }
        }
    }
}

/// The current audio quality from a party: the latest report; good until there is one.
fn audio(leg: &Value) -> Markup {
    match text(leg, "media_verdict") {
        "" => verdict("ok"),
        reported => verdict(reported),
    }
}

/// Hang up, and a note to the phones; each requires a confirmation.
pub(crate) fn controls(visitor: &Visitor, path: &str) -> Markup {
    html! {
        div class="controls" {
            details class="ask" { summary { "Note" }
                form method="post" action={ "/live/calls/" (path) "/note" } class="inline" {
                    (visitor.token())
                    label { "Title" input name="title" maxlength="200" required; }
                    label { "Level" select name="level" {
                        @for level in ["info", "warning", "alert"] { option value=(level) { (level) } } } }
                    label { input type="checkbox" name="ack" value="1"; " acknowledge" }
                    button type="submit" { "Send" }
                } }
            details class="ask" { summary { "Hang up" }
                form method="post" action={ "/live/calls/" (path) "/hang-up" } class="inline" {
                    (visitor.token()) button type="submit" class="danger" { "Hang up now" }
                } }
        }
    }
}

fn rooms_part(rooms: &Value) -> Markup {
    html! {
        h2 { "Live rooms" }
        @if items(rooms).is_empty() { p class="empty" { "No room is live." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Live rooms" { table {
                (columns(&["Room", "#Members", "Talking", "Since", "State"]))
                tbody { @for room in items(rooms) { (room_row(room)) } }
            } }
            (of_total(rooms))
        }
    }
}

/// How many are shown, if not all.
fn of_total(list: &Value) -> Markup {
    let shown = items(list).len();
    let total = list["total"].as_u64().filter(|total| *total > shown as u64);
    html! { @if let Some(total) = total { p class="soft" { (shown) " of " (total) " are shown." } } }
}

fn room_row(room: &Value) -> Markup {
    let members = room["members"].as_array().map_or(&[][..], Vec::as_slice);
    let talking: Vec<&str> = members
        .iter()
        .filter(|member| flag(member, "talking"))
        .map(
            |member| {
                if text(member, "name").is_empty() { text(member, "number") } else { text(member, "name") }
            },
        )
        .collect();
    html! {
        tr data-row {
            td { a href={ "/live/rooms/" (segment(text(room, "room"))) } { (or_dash(text(room, "room_name"))) } }
            td class="n" { (members.len()) }
            td { (or_dash(&talking.join(", "))) }
            td { (time(&room["started_at"])) }
            td { (states(room)) }
        }
    }
}

/// The states of a room that differ from the default.
pub(crate) fn states(room: &Value) -> Markup {
    html! {
        @for (key, label) in [("locked", "locked"), ("recording", "recording"), ("all_muted", "all muted")] {
            @if flag(room, key) { span class="chip warn" { (label) } " " }
        }
    }
}

/// The kinds of events after which the page is loaded again.
pub(crate) const KINDS: &str = "call.ringing call.answered call.ended call.conferenced call.media_warning \
                                conference.updated stream.gap";
/// Calls and rooms that are listed.
const LISTED_MAX: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audio_of_each_party_is_shown_as_it_is_now() {
        let shown = |leg: Value| audio(&leg).into_string();
        assert!(shown(json!({})).contains(">ok<"));
        assert!(shown(json!({"media_verdict": "lossy_inbound"})).contains(">loss<"));
    }

    #[test]
    fn a_list_that_is_not_whole_says_so() {
        let rooms = |total: u64| json!({ "total": total, "items": [{ "room": "1", "room_name": "Board" }] });
        assert!(rooms_part(&rooms(7)).into_string().contains("1 of 7 are shown."));
        assert!(!rooms_part(&rooms(1)).into_string().contains("are shown"));
    }
}
