//! The SIP messages of a call as arrows between this node and the other hosts; each can be opened to show its
//! text.

use maud::{Markup, html};
use serde_json::Value;

use crate::show::{or_dash, text, time};

/// Draws the messages; draws nothing if there are none. `path` is the page's own path, under which the text
/// is offered.
pub(crate) fn ladder(path: &str, signalling: &Value) -> Markup {
    let messages = signalling["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let remotes = remotes(messages);
    let begin = messages.first().map_or(0, micros);
    html! {
        @if !messages.is_empty() {
            h2 { "SIP messages" }
            p { a href={ (path) "/signalling" } { "All messages as text" } }
            div class="scroll" {
                div class={ "messages lanes" (remotes.len()) } {
                    div class="message" {
                        span {}
                        @for (place, remote) in remotes.iter().enumerate() {
                            @if place == 1 { b { "this node" } }
                            b { (remote) }
                        }
                        @if remotes.len() == 1 { b { "this node" } }
                    }
                    @for message in messages { (row(message, begin, &remotes)) }
                }
            }
        }
    }
}

/// The other hosts in the order of their first messages; further ones share the last lane.
fn remotes(messages: &[Value]) -> Vec<&str> {
    let mut remotes = Vec::new();
    for message in messages {
        let remote = text(message, "remote");
        if !remotes.contains(&remote) && remotes.len() < LANES_MAX {
            remotes.push(remote);
        }
    }
    remotes
}

fn row(message: &Value, begin: i64, remotes: &[&str]) -> Markup {
    let remote = text(message, "remote");
    let lane = remotes.iter().position(|known| *known == remote).unwrap_or(LANES_MAX - 1);
    let is_sent = text(message, "direction") == "sent";
    // The first host is to the left of this node, the others are to its right.
    let points_right = is_sent == (lane > 0);
    let repeats = message["repeats"].as_u64().unwrap_or_default();
    let left_out = message["left_out_before"].as_u64().unwrap_or_default();
    html! {
        @if left_out > 0 { p class="soft" { (left_out) " messages are left out here." } }
        details {
            summary class="message" {
                span class="at" { (offset(micros(message) - begin)) }
                span class={ "arrow lane" (lane) @if points_right { " to-right" } @else { " to-left" } } {
                    b { (label(message)) }
                    @if repeats > 0 { " ×" (repeats + 1) }
                    @if text(message, "body_type").starts_with("application/sdp") { span class="soft" { " SDP" } }
                }
            }
            p class="soft" {
                (time(&message["at"])) ", " @if is_sent { "sent to " } @else { "received from " } (or_dash(remote))
                " over " (text(message, "transport")) " by " (or_dash(text(message, "local")))
                @if repeats > 0 { ", repeated " (repeats) " times" }
            }
            pre class="sip" { (text(message, "text")) }
        }
    }
}

/// `INVITE`, or `200 OK (INVITE)`.
fn label(message: &Value) -> String {
    let (summary, method) = (text(message, "summary"), text(message, "method"));
    match summary.strip_prefix("SIP/2.0 ") {
        Some(status) => format!("{status} ({method})"),
        None => or_dash(method).to_owned(),
    }
}

fn micros(message: &Value) -> i64 {
    message["at_us"].as_i64().unwrap_or_default()
}

/// The time since the first message in seconds, to the millisecond.
fn offset(micros: i64) -> String {
    let millis = micros.max(0) / 1_000;
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

/// Hosts that have a lane of their own.
const LANES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(at_us: i64, direction: &str, remote: &str, summary: &str) -> Value {
        json!({"at_us": at_us, "direction": direction, "remote": remote, "summary": summary, "method": "INVITE",
            "transport": "UDP", "text": "Subject: <b>\"x\"</b>", "repeats": at_us / 1000, "left_out_before": 0})
    }

    #[test]
    fn arrows_point_from_the_sender_and_texts_are_escaped() {
        let messages = json!({"messages": [
            message(0, "received", "a:1", "INVITE sip:x SIP/2.0"),
            message(2_000, "sent", "b:2", "INVITE sip:y SIP/2.0"),
            message(1_500_000, "received", "b:2", "SIP/2.0 200 <OK>"),
            message(1_600_000, "sent", "a:1", "SIP/2.0 200 OK"),
        ]});
        let page = ladder("/calls/1", &messages).into_string();
        let arrows: Vec<&str> =
            page.split("class=\"arrow ").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(arrows, ["lane0 to-right", "lane1 to-right", "lane1 to-left", "lane0 to-left"]);
        assert!(page.contains("lanes2") && page.contains("1.500 s") && page.contains(" ×3"), "{page}");
        assert!(page.contains("200 &lt;OK&gt; (INVITE)"), "{page}");
        assert!(!page.contains("<b>\"x\"") && page.contains("Subject: &lt;b&gt;"), "{page}");
        assert_eq!(ladder("/calls/1", &Value::Null).into_string(), "");
    }

    #[test]
    fn more_hosts_than_lanes_share_the_last() {
        let messages: Vec<Value> =
            (0..9).map(|host| message(0, "sent", &format!("h:{host}"), "INVITE x SIP/2.0")).collect();
        let page = ladder("/calls/1", &json!({"messages": messages})).into_string();
        assert!(page.contains("lanes4") && page.matches("lane3 to-right").count() == 6, "{page}");
    }
}
