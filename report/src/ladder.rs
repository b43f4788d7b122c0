//! The SIP messages of a call as arrows between the hosts that sent them.

use sidetone_model::time::Timestamp;

use crate::markup::{Html, shown};
use crate::number::grouped;

/// One SIP message: an arrow between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// When it was measured.
    pub at: Timestamp,
    /// The host that sent it.
    pub from: String,
    /// The host that received it.
    pub to: String,
    /// `INVITE sip:2000@192.0.2.20` or `200 OK (INVITE)`.
    pub summary: String,
    /// The media in its SDP, or its type of body.
    pub sdp: Option<String>,
}

/// Draws a ladder; draws nothing without messages. `more` is the number of messages that were not kept.
pub fn ladder(html: &mut Html, messages: &[Arrow], more: u64) {
    let Some(first) = messages.first() else { return };
    let lanes = lanes(messages);
    html.raw("<h4>SIP messages</h4><div class=\"scroll\">");
    let begin = first.at.as_micros();
    if lanes.len() > LANES_MAX {
        html.raw("<table class=\"list\"><thead><tr><th>time</th><th>from</th><th>to</th><th>message</th></tr></thead><tbody>");
        for message in messages {
            row_start(html, message, begin);
            html.element("<td>", &message.from, "</td>").element("<td>", &message.to, "</td><td>");
            words(html, message);
            html.raw("</td></tr>");
        }
    } else {
        // No wider than its hosts need: each lane adds a column.
        html.raw(match lanes.len() {
            0..=2 => "<table class=\"ladder two\"><thead>",
            3 => "<table class=\"ladder three\"><thead>",
            _ => "<table class=\"ladder\"><thead>",
        });
        head(html, &lanes, messages);
        html.raw("</thead><tbody>");
        for message in messages {
            row_start(html, message, begin);
            arrow(html, message, &lanes);
            html.raw("</tr>");
        }
    }
    html.raw("</tbody></table></div>");
    if more > 0 {
        html.element("<p class=\"note\">", grouped(more), " more messages are not shown.</p>");
    }
}

/// The hosts in the order of their first messages.
fn lanes(messages: &[Arrow]) -> Vec<&str> {
    let mut lanes: Vec<&str> = Vec::new();
    for address in messages.iter().flat_map(|message| [message.from.as_str(), message.to.as_str()]) {
        if !lanes.contains(&address) && lanes.len() <= LANES_MAX {
            lanes.push(address);
        }
    }
    lanes
}

/// The lanes are between the columns: each column has the name of the lane at its left edge, the last one
/// also of the lane at its right.
fn head(html: &mut Html, lanes: &[&str], messages: &[Arrow]) {
    html.raw("<tr><th></th>");
    let last = lanes.len().saturating_sub(1);
    for (place, lane) in lanes.iter().enumerate().take(last.max(1)) {
        html.raw("<th><div>");
        name(html, lane, messages);
        if place + 1 == last
            && let Some(end) = lanes.get(last)
        {
            name(html, end, messages);
        }
        html.raw("</div></th>");
    }
    html.raw("</tr>");
}

/// The name of a lane: its address, and below it its role in the call.
fn name(html: &mut Html, lane: &str, messages: &[Arrow]) {
    let sends = |message: &&Arrow| message.from == lane && message.summary.starts_with("INVITE ");
    let takes = |message: &&Arrow| message.to == lane && message.summary.starts_with("INVITE ");
    let (sent, taken) = (messages.iter().any(|one| sends(&one)), messages.iter().any(|one| takes(&one)));
    let (role, meaning) = match (sent, taken) {
        (true, false) => ("sends the INVITE", "the host that the call comes from in this capture"),
        (false, true) => ("receives the INVITE", "the host that the call goes to in this capture"),
        (true, true) => ("passes the INVITE on", "a switch or a proxy, or a host that sends a re-INVITE"),
        (false, false) => ("", "a host that sends or receives other messages of the call"),
    };
    html.raw("<span title=\"").text(lane).raw(": ").text(meaning).raw("\">").text(lane);
    html.element("<small>", role, "</small></span>");
}

fn row_start(html: &mut Html, message: &Arrow, begin: i64) {
    let offset_ms = (message.at.as_micros() - begin) / 1000;
    let sign = if offset_ms < 0 { "-" } else { "" };
    let offset_ms = offset_ms.unsigned_abs();
    html.raw("<tr><td class=\"at\">").text(sign).text(offset_ms / 1000).raw(".");
    html.text(format_args!("{:03}", offset_ms % 1000)).raw(" s</td>");
}

fn arrow(html: &mut Html, message: &Arrow, lanes: &[&str]) {
    let place = |address: &str| lanes.iter().position(|lane| *lane == address).unwrap_or(0);
    let (from, to) = (place(&message.from), place(&message.to));
    let (left, right) = (from.min(to), from.max(to));
    for _ in 0..left {
        html.raw("<td></td>");
    }
    let span = (right - left).max(1);
    html.raw("<td class=\"").raw(if from <= to { "right" } else { "left" });
    html.raw("\" colspan=\"").text(span).raw("\">");
    words(html, message);
    html.raw("</td>");
    for _ in left + span..lanes.len().saturating_sub(1) {
        html.raw("<td></td>");
    }
}

fn words(html: &mut Html, message: &Arrow) {
    html.element("<b>", shown(&message.summary), "</b>");
    if let Some(sdp) = &message.sdp {
        html.element("<small>", shown(sdp), "</small>");
    }
}

/// If there are more hosts, the messages are listed, because there is no space for arrows.
const LANES_MAX: usize = 4;
