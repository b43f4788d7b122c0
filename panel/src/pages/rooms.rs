//! Stored rooms and their sessions.

use axum::extract::{Path, RawQuery};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::segment;
use crate::layout::{Section, next_page};
use crate::show::{columns, duration, figure, flag, items, or_dash, sentence, text, time, words};
use crate::visitor::Visitor;

/// The rooms.
pub(crate) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Response {
    let found = visitor.client.list("/conference-rooms", ROOMS_MAX, query.as_deref()).await;
    visitor.page(Section::Rooms, "Rooms", found.map(|found| rooms(&found, visitor.me.is_of_team)))
}

/// A room with its sessions.
pub(crate) async fn one(visitor: Visitor, Path(room): Path<String>) -> Response {
    let body = content(&visitor, &segment(&room)).await;
    visitor.page(Section::Rooms, "Room", body)
}

/// The recording of a session.
pub(crate) async fn recording(
    visitor: Visitor,
    Path((room, session)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let path = format!("/conference-rooms/{}/sessions/{}/recording/audio", segment(&room), segment(&session));
    visitor.file(Some(Section::Rooms), &path, &headers).await
}

fn rooms(found: &Value, is_of_team: bool) -> Markup {
    html! {
        h1 { "Rooms " small { (figure(&found["total"])) } }
        @if is_of_team {
            p class="empty" {
                "Rooms belong to the organisation. Those with a member of your team are on "
                a href="/live" { "Live" } "." }
        } @else if items(found).is_empty() { p class="empty" { "There is no room." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Rooms" { table {
                (columns(&["Room", "Number", "#Members now", "PIN", "Recorded"]))
                tbody { @for room in items(found) { tr data-row {
                    td { a href={ "/rooms/" (segment(text(room, "id"))) } { (or_dash(text(room, "name"))) } }
                    td { (text(room, "number")) }
                    td class="n" { (figure(&room["live_members"])) }
                    td { (or_dash(text(room, "participant_pin"))) }
                    td { @if flag(room, "record") { "yes" } @else { "no" } }
                } } }
            } }
        }
        (next_page("/rooms", found))
    }
}

async fn content(visitor: &Visitor, room: &str) -> Result<Markup, Failure> {
    let found = visitor.client.get(&format!("/conference-rooms/{room}")).await?;
    let sessions = visitor.client.get(&format!("/conference-rooms/{room}/sessions?limit=50")).await?;
    let may_listen = visitor.me.may("recordings:listen");
    let is_live = found["live_members"].as_u64().is_some_and(|members| members > 0);
    Ok(html! {
        p class="crumbs" { a href="/rooms" { "Rooms" } }
        h1 { (or_dash(text(&found, "name"))) " " small { (text(&found, "number")) } }
        @if is_live { p { a href={ "/live/rooms/svc-room-" (room) } { "The room is live" } } }
        p { a href={ "/calls?room_id=" (room) } { "Calls of this room" } }
        h2 { "Sessions" }
        @if items(&sessions).is_empty() { p class="empty" { "There was no session." } }
        @for session in items(&sessions) { (session_part(room, session, may_listen)) }
    })
}

fn session_part(room: &str, session: &Value, may_listen: bool) -> Markup {
    let members = session["members"].as_array().map_or(&[][..], Vec::as_slice);
    let invites = session["invites"].as_array().map_or(&[][..], Vec::as_slice);
    let seconds = |value: &Value| duration(value.as_i64().unwrap_or_default());
    html! {
        section class="card" {
            h2 { (time(&session["started_at"])) " "
                small class="soft" {
                    (seconds(&session["duration_seconds"])) ", at most " (figure(&session["peak_members"])) " members"
                } }
            @if may_listen && flag(session, "has_recording") {
                audio controls preload="none" aria-label="Recording of the session"
                    src={ "/rooms/" (room) "/sessions/" (segment(text(session, "id"))) "/recording" } {}
            }
            @if !text(session, "recording_error").is_empty() {
                p class="problem" { (sentence(text(session, "recording_error"))) }
            }
            div class="scroll" tabindex="0" role="region" aria-label="Members of the session" { table {
                (columns(&["Member", "Role", "Joined", "Left", "#Talked"]))
                tbody { @for member in members { tr {
                    td { a href={ "/live/calls/" (segment(text(member, "call_uuid"))) } {
                        (or_dash(text(member, "name"))) } " " span class="soft" { (text(member, "number")) } }
                    td { (text(member, "role")) } td { (time(&member["joined_at"])) } td { (time(&member["left_at"])) }
                    td class="n" { (seconds(&member["talk_seconds"])) }
                } } }
            } }
            @if !invites.is_empty() {
                p class="soft" { "Rung: " @for invite in invites {
                    (or_dash(text(invite, "name"))) " (" (words(text(invite, "state"))) ") " } }
            }
        }
    }
}

/// Rooms on a page.
const ROOMS_MAX: u32 = 100;
