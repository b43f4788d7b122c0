//! One live room: its members, and the controls of moderators.

use axum::extract::Path;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use sidetone_model::time::Timestamp;

use crate::assets;
use crate::clock::now;
use crate::failure::Failure;
use crate::form::segment;
use crate::layout::Section;
use crate::pages::live::{KINDS, states};
use crate::show::{columns, flag, or_dash, text, time};
use crate::visitor::{Change, Visitor, see};

/// The page of a live room.
pub(crate) async fn page(visitor: Visitor, Path(room): Path<String>) -> Response {
    let since = now();
    let body = visitor.client.get(&format!("/conferences/{}", segment(&room))).await;
    visitor.page(Section::Live, "Live room", body.map(|room| content(&visitor, &room, since)))
}

/// Changes the room.
pub(crate) async fn control(
    Path((room, what)): Path<(String, String)>,
    Change { visitor, .. }: Change,
) -> Response {
    let room = segment(&room);
    let (name, body) = match what.as_str() {
        "record-on" => ("record", Some(json!({"on": true}))),
        "record-off" => ("record", Some(json!({"on": false}))),
        known @ ("end" | "lock" | "mute-all" | "unlock") => (known, None),
        _ => return visitor.failed(Some(Section::Live), &Failure::nothing_here()),
    };
    let path = format!("/conferences/{room}/{name}");
    let done = visitor.client.send(Method::POST, &path, body.as_ref()).await;
    let next = if name == "end" { "/live".to_owned() } else { format!("/live/rooms/{room}") };
    after(&visitor, done, &next)
}

/// Dials a party into the room: an extension, or an external number that begins with `+`.
pub(crate) async fn dial(Path(room): Path<String>, Change { visitor, fields }: Change) -> Response {
    let room = segment(&room);
    let live = match visitor.client.get(&format!("/conferences/{room}")).await {
        Ok(live) => live,
        Err(failure) => return visitor.failed(Some(Section::Live), &failure),
    };
    let target = fields.get("target").trim();
    let body = json!({
        "kind": if target.starts_with('+') { "external" } else { "extension" },
        "target": target,
        "role": fields.get("role"),
        "confirm": !fields.get("confirm").is_empty(),
    });
    let path = format!("/conference-rooms/{}/dial", segment(text(&live, "room_id")));
    let done = visitor.client.send(Method::POST, &path, Some(&body)).await;
    after(&visitor, done, &format!("/live/rooms/{room}"))
}

/// Changes a member of the room.
pub(crate) async fn member(
    Path((room, member, what)): Path<(String, String, String)>,
    Change { visitor, .. }: Change,
) -> Response {
    if !["kick", "mute", "unmute"].contains(&what.as_str()) {
        return visitor.failed(Some(Section::Live), &Failure::nothing_here());
    }
    let room = segment(&room);
    let path = format!("/conferences/{room}/members/{}/{what}", segment(&member));
    let done = visitor.client.send(Method::POST, &path, None).await;
    after(&visitor, done, &format!("/live/rooms/{room}"))
}

fn after(visitor: &Visitor, done: Result<Value, Failure>, next: &str) -> Response {
    match done {
        Ok(_) => see(next),
        Err(failure) => visitor.failed(Some(Section::Live), &failure),
    }
}

fn content(visitor: &Visitor, room: &Value, since: Timestamp) -> Markup {
    let members = room["members"].as_array().map_or(&[][..], Vec::as_slice);
    let may_control = flag(room, "can_control");
    let path = format!("/live/rooms/{}", segment(text(room, "room")));
    html! {
        script type="module" src=(assets::address("live.mjs")) {}
        p class="crumbs" { a href="/live" { "Live" } }
        div id="live-room" data-live="conference.updated" data-since=(since) data-kinds=(KINDS) {
            h1 { (or_dash(text(room, "room_name"))) " " small { "since " (time(&room["started_at"])) } }
            p { (states(room)) }
            @if may_control { (room_controls(visitor, room, &path)) }
            div class="scroll" tabindex="0" role="region" aria-label="Members" { table class="stack" {
                (columns(&["Member", "Role", "Joined", "State", ""]))
                tbody { @for member in members { (member_row(visitor, member, may_control, &path)) } }
            } }
        }
    }
}

fn room_controls(visitor: &Visitor, room: &Value, path: &str) -> Markup {
    let choose = |key: &str, on: (&'static str, &'static str), off: (&'static str, &'static str)| {
        if flag(room, key) { on } else { off }
    };
    let buttons = [
        choose("locked", ("unlock", "Unlock"), ("lock", "Lock")),
        choose("all_muted", ("mute-all", "Unmute all"), ("mute-all", "Mute all")),
        choose("recording", ("record-off", "Stop recording"), ("record-on", "Record")),
    ];
    html! {
        div class="controls" {
            @for (what, label) in buttons { (button(visitor, &format!("{path}/{what}"), label, "plain")) }
            // Merged calls have no stored room, and no party can be dialled into them.
            @if !text(room, "room_id").is_empty() { (dial_form(visitor, path)) }
            details class="ask" { summary { "End the room" }
                (button(visitor, &format!("{path}/end"), "End it now", "danger")) }
        }
    }
}

fn dial_form(visitor: &Visitor, path: &str) -> Markup {
    html! {
        details class="ask" { summary { "Call a party" }
            form method="post" action={ (path) "/dial" } class="inline" {
                (visitor.token())
                label { "Extension, or number such as +442079460123"
                    input name="target" required maxlength="16" autocomplete="off"; }
                label { "Role" select name="role" {
                    @for role in ["participant", "moderator"] { option value=(role) { (role) } } } }
                label { input type="checkbox" name="confirm" value="1"; " asks to press 1, so that no mailbox joins" }
                button type="submit" { "Call" }
            } }
    }
}

fn member_row(visitor: &Visitor, member: &Value, may_control: bool, path: &str) -> Markup {
    let mute = if flag(member, "muted") { ("unmute", "Unmute") } else { ("mute", "Mute") };
    let path = format!("{path}/members/{}", member["id"].as_u64().unwrap_or_default());
    html! {
        tr {
            td { b { (or_dash(text(member, "name"))) } " " span class="soft" { (text(member, "number")) } }
            td { (text(member, "role")) }
            td { (time(&member["joined_at"])) }
            td {
                @if flag(member, "talking") { span class="chip good" { "talking" } " " }
                @if flag(member, "muted") { span class="chip warn" { "muted" } " " }
                @if flag(member, "deaf") { span class="chip warn" { "deaf" } " " }
                @if flag(member, "on_hold") { span class="chip warn" { "on hold" } " " }
                @if flag(member, "waiting") { span class="chip none" { "waiting" } " " }
            }
            td { @if may_control { div class="controls" {
                (button(visitor, &format!("{path}/{}", mute.0), mute.1, "plain"))
                details class="ask" { summary { "Remove" }
                    (button(visitor, &format!("{path}/kick"), "Remove now", "danger")) }
            } } }
        }
    }
}

fn button(visitor: &Visitor, action: &str, label: &str, class: &str) -> Markup {
    html! {
        form method="post" action=(action) class="inline" {
            (visitor.token()) button type="submit" class=(class) { (label) }
        }
    }
}
