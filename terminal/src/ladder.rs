//! The SIP messages of a call as arrows between the hosts that sent them.

use serde_json::Value;
use unicode_width::UnicodeWidthChar as _;

use crate::clean::clean;
use crate::json::{list, number, raw, text};
use crate::screen::{Line, Tone};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderMessage {
    /// When it was received, sent or captured, in microseconds of any clock.
    pub at_us: i64,
    /// The address of its sender.
    pub from: String,
    /// The address of its receiver.
    pub to: String,
    /// The label of the arrow: `INVITE`, `200 OK (INVITE)`.
    pub label: String,
    /// The text below the arrow, such as the media in its SDP; often empty.
    pub note: String,
}

/// The messages in a response to `GET /cdrs/{uuid}/signalling`.
pub(crate) fn messages(answer: &Value) -> Vec<LadderMessage> {
    list(answer, "messages").iter().take(MESSAGES_MAX).map(message).collect()
}

fn message(value: &Value) -> LadderMessage {
    let own = match raw(value, "local") {
        "" => "this node".to_owned(),
        _ => text(value, "local"),
    };
    let other = text(value, "remote");
    let (from, to) = if raw(value, "direction") == "sent" { (own, other) } else { (other, own) };
    let (start_line, method) = (text(value, "summary"), text(value, "method"));
    let mut label = match start_line.strip_prefix("SIP/2.0 ") {
        Some(status) => format!("{status} ({method})"),
        None => start_line.trim_end_matches(" SIP/2.0").to_owned(),
    };
    let repeats = number(value, &["repeats"]).unwrap_or_default();
    if repeats >= 1.0 {
        label = format!("{label} x{:.0}", repeats + 1.0);
    }
    let note = match number(value, &["left_out_before"]) {
        Some(count) if count >= 1.0 => format!("{count:.0} messages before it were left out"),
        _ => String::new(),
    };
    let at_us = value.get("at_us").and_then(Value::as_i64).unwrap_or_default();
    LadderMessage { at_us, from, to, label, note }
}

/// Draws messages: one line for each, with the seconds since the first, and an arrow between the columns of its
/// hosts. Hosts from the seventh on share the last column. Without messages there is no line.
pub fn ladder_lines(messages: &[LadderMessage]) -> Vec<Line> {
    let Some(first) = messages.first() else { return Vec::new() };
    let mut hosts: Vec<&str> = Vec::new();
    for host in messages.iter().flat_map(|message| [message.from.as_str(), message.to.as_str()]) {
        if !hosts.contains(&host) && hosts.len() < HOSTS_MAX {
            hosts.push(host);
        }
    }
    let mut head = " ".repeat(TIME_WIDTH);
    for host in &hosts {
        head.push_str(&fitted(&clean(host), LANE_WIDTH));
    }
    let mut lines = vec![Line::of(Tone::Strong, head.trim_end())];
    for message in messages {
        let place = |host: &str| hosts.iter().position(|known| *known == host).unwrap_or(hosts.len() - 1);
        let seconds = (message.at_us.saturating_sub(first.at_us)) as f64 / 1e6;
        let arrow = arrow(place(&message.from), place(&message.to), hosts.len(), &clean(&message.label));
        lines.push(Line::of(Tone::Dim, format!("{seconds:>9.3}  ")).and(tone(&message.label), arrow));
        if !message.note.is_empty() {
            let note = format!("{}{}", " ".repeat(TIME_WIDTH + 2), clean(&message.note));
            lines.push(Line::of(Tone::Dim, note));
        }
    }
    lines
}

/// Highlights error responses, and distinguishes requests from other responses.
fn tone(label: &str) -> Tone {
    match label.as_bytes() {
        [b'4'..=b'6', b'0'..=b'9', b'0'..=b'9', b' ', ..] => Tone::Bad,
        [b'1'..=b'3', b'0'..=b'9', b'0'..=b'9', b' ', ..] => Tone::Good,
        _ => Tone::Plain,
    }
}

/// The lanes of all hosts, and the arrow from one to another.
fn arrow(from: usize, to: usize, hosts: usize, label: &str) -> String {
    let (left, right) = (from.min(to), from.max(to));
    if left == right {
        return format!("{}| {label} (to itself)", lanes(left));
    }
    let room = (right - left) * LANE_WIDTH - 1;
    let label = cut(label, room.saturating_sub(6));
    let line = room - 2 - width(&label) - 2;
    let (before, behind) = ("-".repeat(line / 2), "-".repeat(line - line / 2));
    let (tail, head) = if from < to { ("-", ">") } else { ("<", "-") };
    let mut text = format!("{}|{tail}{before} {label} {behind}{head}|", lanes(left));
    for _ in right + 1..hosts {
        text.push_str(&" ".repeat(LANE_WIDTH - 1));
        text.push('|');
    }
    text
}

/// The lanes before this one.
fn lanes(count: usize) -> String {
    fitted("|", LANE_WIDTH).repeat(count)
}

/// A text padded with blanks to this width, or cut.
fn fitted(text: &str, cells: usize) -> String {
    let text = cut(text, cells - 1);
    let blank = " ".repeat(cells - width(&text));
    text + &blank
}

/// The beginning of a text that fits into this many cells.
fn cut(text: &str, cells: usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or_default();
        used <= cells
    };
    text.chars().take_while(fits).collect()
}

fn width(text: &str) -> usize {
    text.chars().map(|letter| letter.width().unwrap_or_default()).sum()
}

/// Cells of the time and of the space after it.
const TIME_WIDTH: usize = 11;
/// Cells from one lane to the next.
const LANE_WIDTH: usize = 32;
/// Hosts that have their own lane.
const HOSTS_MAX: usize = 6;
/// Messages of one call that are shown.
const MESSAGES_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(messages: &[LadderMessage]) -> Vec<String> {
        ladder_lines(messages).iter().map(Line::text).collect()
    }

    #[test]
    fn messages_of_the_api_become_arrows_between_hosts() {
        let message = |at_us: i64, direction: &str, remote: &str, summary: &str| {
            json!({ "at_us": at_us, "direction": direction, "local": "192.0.2.1:5060", "remote": remote,
                "method": "INVITE", "summary": summary, "repeats": 0, "left_out_before": 0 })
        };
        let mut repeated = message(1_020_000, "sent", "192.0.2.8:5060", "INVITE sip:2@b SIP/2.0");
        repeated["repeats"] = json!(2);
        repeated["left_out_before"] = json!(7);
        let answer = json!({ "messages": [
            message(1_000_000, "received", "192.0.2.7:5060", "INVITE sip:2@a\u{1b}[2J SIP/2.0"),
            repeated,
            message(2_500_000, "received", "192.0.2.8:5060", "SIP/2.0 486 Busy Here"),
        ] });
        let lines = shown(&messages(&answer));
        assert_eq!(
            lines,
            [
                "           192.0.2.7:5060                  192.0.2.1:5060                  192.0.2.8:5060",
                "    0.000  |----- INVITE sip:2@a·[2J ----->|                               |",
                "    0.020  |                               |------ INVITE sip:2@b x3 ----->|",
                "             7 messages before it were left out",
                "    1.500  |                               |<-- 486 Busy Here (INVITE) ----|",
            ]
        );
        assert!(ladder_lines(&[]).is_empty());
    }

    #[test]
    fn no_label_and_no_number_of_hosts_breaks_the_lanes() {
        for label in [String::new(), "x".repeat(300), "東京".repeat(60)] {
            for (from, to) in [("a", "b"), ("b", "a"), ("a", "a")] {
                let message = LadderMessage {
                    at_us: 0,
                    from: from.to_owned(),
                    to: to.to_owned(),
                    label: label.clone(),
                    note: String::new(),
                };
                let lines = shown(&[message]);
                assert_eq!(lines.len(), 2);
                let is_arrow = from != to;
                assert!(!is_arrow || width(&lines[1]) == TIME_WIDTH + LANE_WIDTH + 1, "{lines:?}");
            }
        }
        let many: Vec<LadderMessage> = (0..9)
            .map(|host: i64| LadderMessage {
                at_us: host,
                from: host.to_string(),
                to: (host + 1).to_string(),
                label: "ACK".to_owned(),
                note: String::new(),
            })
            .collect();
        assert_eq!(shown(&many).len(), 10);
    }
}
