//! The messages of a call in order of time, for a ladder diagram.

use std::fmt::Write as _;
use std::net::SocketAddr;

use sidetone_media::time::Micros;
use sidetone_model::time::Timestamp;
use sidetone_sip::message::Message;
use sidetone_sip::sdp::SessionDescription;

use super::embedded_sdp::described;

/// The first messages of a call, and the number of further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    /// In the order of the capture; at most 200.
    pub messages: Vec<LadderMessage>,
    /// The number of messages that were not kept.
    pub more: u64,
}

/// One SIP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderMessage {
    /// When it was captured.
    pub at: Timestamp,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// `INVITE sip:2000@192.0.2.20` or `200 OK (INVITE)`; at most 120 characters.
    pub summary: String,
    /// The media in its SDP: `audio 192.0.2.10:4000 PCMU telephone-event sendrecv`, one section after the
    /// other; at most 120 characters.
    pub sdp: Option<String>,
}

impl Ladder {
    /// Appends a message.
    pub(super) fn push(&mut self, at: Micros, (from, to): (SocketAddr, SocketAddr), message: &Message) {
        if self.messages.len() >= MESSAGES_MAX {
            self.more += 1;
            return;
        }
        let summary = match message {
            Message::Request(request) => format!("{} {}", request.method(), request.uri()),
            Message::Response(response) => {
                let method = response.headers().cseq().map(|cseq| format!(" ({})", cseq.method));
                format!("{} {}{}", response.status().as_u16(), response.reason(), method.unwrap_or_default())
            }
        };
        let sdp = described(message).map(|sdp| media(&sdp));
        let at = Timestamp::from_micros(at.0);
        self.messages.push(LadderMessage { at, from, to, summary: short(&summary), sdp });
    }
}

/// The media in an SDP.
fn media(sdp: &SessionDescription) -> String {
    let mut text = String::new();
    for media in &sdp.media {
        if text.len() > TEXT_LEN_MAX {
            break;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{}", media.kind.as_str());
        let _ = match sdp.rtp_address(media) {
            Some(address) => write!(text, " {address}"),
            None => write!(text, " port {}", media.port),
        };
        for codec in &media.codecs {
            let _ = write!(text, " {}", codec.name);
        }
        for format in &media.other_formats {
            let _ = write!(text, " {format}");
        }
        let _ = write!(text, " {}", media.direction.as_str());
    }
    short(&text)
}

/// The beginning of a text, without characters that a terminal or a page could interpret.
pub(super) fn short(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(TEXT_LEN_MAX).collect()
}

/// Messages kept of one call.
const MESSAGES_MAX: usize = 200;
/// Characters of one text.
const TEXT_LEN_MAX: usize = 120;
