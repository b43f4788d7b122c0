//! The SIP messages stored with a call: without credentials, and bounded.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, OrganisationId};
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// The SIP messages of all dialogs of a call, in the order in which this node received and sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallSignalling {
    /// The messages, the earliest first.
    pub messages: Vec<SipMessage>,
    /// How many messages between the start and the end of the call were left out, because a call keeps 64 KiB at most.
    pub left_out: u64,
}

/// One SIP message of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SipMessage {
    /// When it was received or sent.
    pub at: Timestamp,
    /// The same instant in microseconds since 1970-01-01 UTC.
    pub at_us: i64,
    /// Whether this node received or sent it.
    pub direction: SipDirection,
    /// The transport: `UDP`, `TCP`, `TLS`, `WS` or `WSS`.
    pub transport: String,
    /// This node's address and port; null when it is not known any more.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub local: Option<String>,
    /// The other host's address and port.
    pub remote: String,
    /// How many retransmissions of it followed.
    pub repeats: u64,
    /// How many messages between the message before and this one were left out.
    pub left_out_before: u64,
    /// The method of a request; of a response, the method of its CSeq.
    pub method: String,
    /// The status of a response; null for a request.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub status: Option<u16>,
    /// The start line: `INVITE sip:200@pbx.example.com SIP/2.0`.
    pub summary: String,
    /// Its Call-ID, which is that of its dialog.
    pub call_id: String,
    /// Its CSeq.
    pub cseq: String,
    /// Its From.
    pub from: String,
    /// Its To.
    pub to: String,
    /// The Content-Type of its body; null without a body.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub body_type: Option<String>,
    /// The bytes of its body.
    pub body_bytes: u64,
    /// The message. Credentials and keys are replaced by `[removed]`; the bodies of SDP are in it, others are not.
    pub text: String,
}

/// The direction of a message, seen from this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum SipDirection {
    /// Received by this node.
    Received,
    /// Sent by this node.
    Sent,
}

/// The kept messages of calls.
pub trait SignallingLog: Send + Sync {
    /// Returns the messages of a call that the caller may see: those in memory on this node, or those in the database.
    /// `None` if none were kept.
    ///
    /// # Errors
    /// [`Internal`](crate::problem::Problem::Internal) when the database fails.
    fn of_call(&self, organisation: OrganisationId, call: CallId) -> PortFuture<'_, Option<CallSignalling>>;
}

impl SipMessage {
    /// The label of an arrow in a ladder: `INVITE`, `200 OK (INVITE)`.
    pub fn label(&self) -> String {
        match self.status {
            None => self.method.clone(),
            Some(_) => {
                let status = self.summary.split_once(' ').map_or(self.summary.as_str(), |(_, status)| status);
                format!("{status} ({})", self.method)
            }
        }
    }
}

impl CallSignalling {
    /// The other hosts, in the order of their first messages.
    pub fn remotes(&self) -> Vec<&str> {
        let mut remotes: Vec<&str> = Vec::new();
        for message in &self.messages {
            if !remotes.contains(&message.remote.as_str()) {
                remotes.push(&message.remote);
            }
        }
        remotes
    }

    /// The messages as a text: a ladder in the style of sngrep with this node at the left and a column for each
    /// other host, then every message. Control characters are replaced, so that a terminal does not interpret them.
    pub fn to_text(&self) -> String {
        let remotes = self.remotes();
        let mut text = format!("{:<15} {:<10}", "", "here");
        for remote in remotes.iter().take(COLUMNS_MAX) {
            let _ = write!(text, "{remote:^WIDTH$}");
        }
        text.push('\n');
        for message in &self.messages {
            if message.left_out_before > 0 {
                let _ = writeln!(text, "{:<15} … {} messages left out", "", message.left_out_before);
            }
            arrow(&mut text, message, &remotes);
        }
        for message in &self.messages {
            let (sent, remote) = (message.direction == SipDirection::Sent, &message.remote);
            let (to, local) = (if sent { "to" } else { "from" }, message.local.as_deref().unwrap_or("?"));
            let way = if sent { "sent" } else { "received" };
            let _ = write!(
                text,
                "\n{} {way} {to} {remote} by {local}, {}",
                clock(message.at_us),
                message.transport
            );
            if message.repeats > 0 {
                let _ = write!(text, ", repeated {} times", message.repeats);
            }
            let _ = writeln!(text, "\n{}", plain(&message.text).trim_end());
        }
        text
    }
}

/// One line: the time, and an arrow from or to the column of the other host.
fn arrow(text: &mut String, message: &SipMessage, remotes: &[&str]) {
    let column =
        remotes.iter().position(|remote| *remote == message.remote).unwrap_or(0).min(COLUMNS_MAX - 1);
    let mut label = plain(&message.label()).replace('\n', " ");
    if message.repeats > 0 {
        let _ = write!(label, " x{}", message.repeats + 1);
    }
    let width = (column + 1) * WIDTH - WIDTH / 2 + 4;
    let label: String = label.chars().take(width.saturating_sub(6)).collect();
    let line = format!(" {label} ");
    let (head, tail) = match message.direction {
        SipDirection::Sent => ("|-", "->|"),
        SipDirection::Received => ("|<-", "-|"),
    };
    let _ = writeln!(text, "{:<15} {head}{line:-^width$}{tail}", clock(message.at_us));
}

/// The UTC time of day with microseconds.
fn clock(at_us: i64) -> String {
    let of_day = at_us.rem_euclid(86_400_000_000);
    let (seconds, micros) = (of_day / 1_000_000, of_day % 1_000_000);
    format!("{:02}:{:02}:{:02}.{micros:06}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Text that is safe to show in a terminal: lines end with LF, and other control characters are replaced.
fn plain(text: &str) -> String {
    let shown =
        |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// The width of a column in characters.
const WIDTH: usize = 28;
/// Hosts with a separate column; further ones share the last.
const COLUMNS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at_us: i64, direction: SipDirection, remote: &str, summary: &str) -> SipMessage {
        let status = summary.strip_prefix("SIP/2.0 ").and_then(|rest| rest.get(..3)?.parse().ok());
        SipMessage {
            at: Timestamp::from_micros(at_us),
            at_us,
            direction,
            transport: "UDP".to_owned(),
            local: Some("192.0.2.1:5060".to_owned()),
            remote: remote.to_owned(),
            repeats: 0,
            left_out_before: 0,
            method: "INVITE".to_owned(),
            status,
            summary: summary.to_owned(),
            call_id: "x".to_owned(),
            cseq: "1 INVITE".to_owned(),
            from: "<sip:100@a>".to_owned(),
            to: "<sip:200@a>".to_owned(),
            body_type: None,
            body_bytes: 0,
            text: format!("{summary}\r\nSubject: a\u{1b}[2Jb\r\n\r\n"),
        }
    }

    #[test]
    fn a_ladder_is_drawn_with_a_column_for_each_host() {
        use SipDirection::{Received, Sent};
        let noon = 12 * 3_600 * 1_000_000;
        let mut repeated = message(noon + 5, Sent, "192.0.2.8:5060", "INVITE sip:200@b SIP/2.0");
        repeated.repeats = 2;
        let mut last = message(noon + 1_500_000, Received, "192.0.2.8:5060", "SIP/2.0 200 OK");
        last.left_out_before = 7;
        let invite = message(noon, Received, "192.0.2.7:5060", "INVITE sip:200@a SIP/2.0");
        let kept = CallSignalling { messages: vec![invite, repeated, last], left_out: 7 };
        let text = kept.to_text();
        let ladder: Vec<&str> = text.lines().take(5).collect();
        assert!(ladder[0].contains("192.0.2.7:5060") && ladder[0].contains("192.0.2.8:5060"), "{text}");
        assert!(ladder[1].starts_with("12:00:00.000000 |<-") && ladder[1].contains(" INVITE "), "{text}");
        assert!(ladder[2].contains(" INVITE x3 ") && ladder[2].ends_with("->|"), "{text}");
        assert!(ladder[2].len() > ladder[1].len(), "the second host is further right: {text}");
        assert!(ladder[3].contains("7 messages left out"), "{text}");
        assert!(
            ladder[4].starts_with("12:00:01.500000") && ladder[4].contains(" 200 OK (INVITE) "),
            "{text}"
        );
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "a terminal shows it as it is");
    }
}
