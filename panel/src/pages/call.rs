//! One call: the verdict first, then measurements, conversation, messages and amounts.

use axum::extract::{Path, RawQuery};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::failure::Failure;
use crate::form::{Fields, segment};
use crate::layout::Section;
use crate::pages::call_figures::{legs, summary};
use crate::pages::report::ended_at;
use crate::pages::signalling::ladder;
use crate::show::{columns, duration, figure, items, money, or_dash, sentence, text, time, words};
use crate::visitor::Visitor;

/// The page of a call record.
pub(crate) async fn page(visitor: Visitor, Path(uuid): Path<String>) -> Response {
    let body = content(&visitor, &segment(&uuid)).await;
    visitor.page(Section::Calls, "Call", body)
}

/// A recording of the call.
pub(crate) async fn recording(
    visitor: Visitor,
    Path((uuid, recording)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let path = format!("/cdrs/{}/recordings/{}/audio", segment(&uuid), segment(&recording));
    visitor.file(Some(Section::Calls), &path, &headers).await
}

/// The packet trace of a leg.
pub(crate) async fn trace(
    visitor: Visitor,
    Path(uuid): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = Fields::of_query(query.as_deref()).only(|name| name == "leg");
    let path = format!("/cdrs/{}/trace?{}", segment(&uuid), asked.to_query());
    visitor.file(Some(Section::Calls), &path, &headers).await
}

/// The SIP messages of the call as text.
pub(crate) async fn signalling(visitor: Visitor, Path(uuid): Path<String>, headers: HeaderMap) -> Response {
    let path = format!("/cdrs/{}/signalling?format=text", segment(&uuid));
    visitor.file(Some(Section::Calls), &path, &headers).await
}

async fn content(visitor: &Visitor, uuid: &str) -> Result<Markup, Failure> {
    let client = &visitor.client;
    let paths = ["", "/quality", "/conversation", "/signalling"].map(|part| format!("/cdrs/{uuid}{part}"));
    let [record, quality, conversation, signalling] = &paths;
    let notes = format!("/calls/{uuid}/infos?limit=100");
    let (call, quality, recordings, notes, conversation, signalling) = tokio::try_join!(
        client.get(record),
        client.get(quality),
        recordings_of(visitor, uuid),
        client.find(&notes),
        client.find(conversation),
        client.find(signalling),
    )?;
    let traced = quality["legs"].as_array().map_or(&[][..], Vec::as_slice);
    let (from, to) = (text(&call, "caller_number"), text(&call, "destination_number"));
    Ok(html! {
        p class="crumbs" { a href="/calls" { "Calls" } " / " span class="soft" { (text(&call, "call_uuid")) } }
        h1 { (or_dash(from)) " → " (or_dash(to)) }
        (summary(&quality))
        (facts(&call))
        p { a class="button" href={ "/calls/" (uuid) "/report" } download { "Download report" } " "
            span class="soft" { "one file with this verdict, the plots and the SIP messages, without packets" } }
        (legs(&quality, ended_at(&call)))
        @for one in traced { (trace_link(uuid, one)) }
        (ladder(&format!("/calls/{uuid}"), &signalling))
        (recordings_part(uuid, items(&recordings)))
        (conversation_part(&conversation))
        (notes_part(items(&notes)))
        (price_part(&call, visitor.me.may("margin:read")))
    })
}

/// The recordings of a call; null for users who may not listen to them.
async fn recordings_of(visitor: &Visitor, uuid: &str) -> Result<Value, Failure> {
    match visitor.me.may("recordings:listen") {
        true => visitor.client.find(&format!("/cdrs/{uuid}/recordings")).await,
        false => Ok(Value::Null),
    }
}

fn facts(call: &Value) -> Markup {
    let plain = [
        ("Direction", "direction"),
        ("Number dialled", "dialled_number"),
        ("Ended by", "hangup_cause"),
        ("Far end's cause", "bridge_cause"),
        ("Who ended it", "ended_by"),
        ("Forwarded by", "forwarded_by"),
        ("Forwarded to", "forwarded_to"),
        ("Codec of the caller", "codec_a"),
        ("Codec of the called party", "codec_b"),
        ("Device of the caller", "user_agent_a"),
        ("Network of the caller", "network_a"),
        ("Device of the called party", "user_agent_b"),
        ("Network of the called party", "network_b"),
        ("Reference", "reference"),
    ];
    html! {
        dl class="facts card" {
            div { dt { "Started" } dd { (time(&call["started_at"])) } }
            div { dt { "Answered" } dd { (time(&call["answered_at"])) } }
            div { dt { "Ended" } dd { (time(&call["ended_at"])) } }
            div { dt { "Duration" } dd { (duration(call["billsec"].as_i64().unwrap_or_default())) } }
            @for (label, key) in plain {
                @if !text(call, key).is_empty() { div { dt { (label) } dd { (text(call, key)) } } }
            }
            @if call["fax"] == true { div { dt { "Fax" } dd { "yes (T.38)" } } }
            @if call["sip_status"].is_number() { div { dt { "SIP status" } dd { (call["sip_status"].to_string()) } } }
            @for (label, key) in [("Transferred from", "transferred_from"), ("Transferred to", "transferred_to")] {
                @let other = text(call, key);
                @if !other.is_empty() {
                    div { dt { (label) } dd { a href={ "/calls/" (segment(other)) } { (other) } } }
                }
            }
        }
    }
}

fn trace_link(uuid: &str, leg: &Value) -> Markup {
    let side = text(leg, "leg");
    html! {
        @if leg["trace"].is_object() && matches!(side, "a" | "b") {
            p { a href={ "/calls/" (uuid) "/trace?leg=" (side) } download { "Packet trace of the " @if side == "a" { "caller's leg" } @else { "called party's leg" } }
                " (" (figure(&leg["trace"]["bytes"])) " bytes)" }
        }
    }
}

fn recordings_part(uuid: &str, recordings: &[Value]) -> Markup {
    html! {
        @if !recordings.is_empty() {
            h2 { "Recordings" }
            @for recording in recordings {
                div class="card" {
                    p { (time(&recording["started_at"])) ", "
                        (duration(recording["seconds"].as_i64().unwrap_or_default())) }
                    @if text(recording, "error").is_empty() {
                        audio controls preload="none" aria-label="Recording"
                            src={ "/calls/" (uuid) "/recordings/" (segment(text(recording, "id"))) } {}
                    } @else {
                        p class="problem" { (sentence(text(recording, "error"))) }
                    }
                }
            }
        }
    }
}

fn conversation_part(conversation: &Value) -> Markup {
    let turns = conversation["turns"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        @if conversation.is_object() {
            h2 { "Conversation" }
            @if !text(conversation, "summary").is_empty() { p { (text(conversation, "summary")) } }
            ol class="turns" {
                @for turn in turns {
                    li {
                        p class="soft" {
                            b { (or_dash(first_of(&[text(turn, "speaker"), text(turn, "role")]))) }
                            " " (time(&turn["at"]))
                            @if !text(turn, "tool_name").is_empty() { " " code { (text(turn, "tool_name")) } }
                        }
                        @if !text(turn, "text").is_empty() { p { (text(turn, "text")) } }
                    }
                }
            }
        }
    }
}

fn first_of<'t>(texts: &[&'t str]) -> &'t str {
    texts.iter().find(|text| !text.is_empty()).copied().unwrap_or_default()
}

fn notes_part(notes: &[Value]) -> Markup {
    html! {
        @if !notes.is_empty() {
            h2 { "Notes to phones" }
            div class="scroll" tabindex="0" role="region" aria-label="Notes to phones" { table {
                (columns(&["Sent", "Note", "Status", "Acknowledged by"]))
                tbody { @for note in notes { (note_row(note)) } }
            } }
        }
    }
}

fn note_row(note: &Value) -> Markup {
    let recipients = note["recipients"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        tr {
            td { (time(&note["sent_at"])) }
            td { b { (text(note, "title")) } br; (text(note, "body")) }
            td { (words(text(note, "status")))
                @if !text(note, "error").is_empty() { br; span class="problem" { (sentence(text(note, "error"))) } } }
            td {
                @for receipt in recipients.iter().filter(|receipt| !receipt["acked_at"].is_null()) {
                    (or_dash(text(receipt, "name"))) " " (time(&receipt["acked_at"])) br;
                }
            }
        }
    }
}

fn price_part(call: &Value, shows_margin: bool) -> Markup {
    html! {
        h2 { "Price" }
        dl class="facts" {
            div { dt { "Billing" } dd { (text(call, "billing_mode")) } }
            div { dt { "Price" } dd { (money(&call["sell_amount"], &call["currency"])) } }
            @if shows_margin {
                div { dt { "Cost" } dd { (money(&call["cost_amount"], &call["currency"])) } }
                div { dt { "Margin" } dd { (money(&call["margin"], &call["currency"])) } }
                @if !text(call, "fx_rate").is_empty() {
                    div {
                        dt { "Carrier's charge" }
                        dd { (money(&call["cost_amount_original"], &call["cost_currency"])) }
                    }
                    div { dt { "Exchange rate" } dd { (text(call, "fx_rate")) } }
                }
            }
        }
    }
}
