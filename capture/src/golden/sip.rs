//! The SIP of a golden call: the messages of a plain phone and a plain switch (RFC 3665 §3.1, §3.8).

use std::fmt::Write as _;

use super::capture_builder::{CaptureBuilder, Plane};

/// One call's signalling.
#[derive(Clone, Debug)]
pub(super) struct Dialog {
    /// Part of the Call-ID.
    pub(super) name: &'static str,
    /// The caller's offer and the switch's answer.
    pub(super) offer: Sdp,
    pub(super) answer: Sdp,
    /// How long it rings, with the answer's SDP in a 183 where there is early media.
    pub(super) rings_us: i64,
    pub(super) early_media: bool,
    pub(super) answered: bool,
    /// The time of the BYE, or of the CANCEL of an unanswered call, counted from the answer.
    pub(super) ends_us: i64,
}

/// One side's session description.
#[derive(Clone, Debug)]
pub(super) struct Sdp {
    /// The address in it, where it is not the sender's own.
    pub(super) ip: Option<[u8; 4]>,
    /// Payload types and their encodings.
    pub(super) codecs: &'static [(u8, &'static str)],
    pub(super) ptime_ms: Option<u32>,
    /// The direction attribute.
    pub(super) direction: &'static str,
}

impl Sdp {
    pub(super) const fn of(codecs: &'static [(u8, &'static str)]) -> Sdp {
        Sdp { ip: None, codecs, ptime_ms: Some(20), direction: "sendrecv" }
    }
}

impl Dialog {
    /// A call with `codecs` on both sides that is answered after two seconds and lasts `ends_us`.
    pub(super) fn plain(name: &'static str, codecs: &'static [(u8, &'static str)], ends_us: i64) -> Dialog {
        let (offer, answer) = (Sdp::of(codecs), Sdp { ptime_ms: None, ..Sdp::of(codecs) });
        Dialog { name, offer, answer, rings_us: 2_000_000, early_media: false, answered: true, ends_us }
    }

    /// Puts the messages on the capture.
    pub(super) fn play(&self, capture: &mut CaptureBuilder) {
        let rings_at = -self.rings_us;
        let offer = body(&self.offer, capture.caller.rtp);
        let answer = body(&self.answer, capture.switch.rtp);
        let early = if self.early_media { Some(&answer) } else { None };
        let ringing = if self.early_media { "183 Session Progress" } else { "180 Ringing" };
        let end = self.ends_us;
        let mut say = |at_us: i64, from_caller: bool, text: String| {
            capture.push(at_us, Plane::Sip, from_caller, text.into_bytes());
        };
        say(
            rings_at - 110_000,
            true,
            self.message("INVITE sip:2000@192.0.2.20 SIP/2.0", "INVITE", "", Some(&offer)),
        );
        say(rings_at - 109_000, false, self.message("SIP/2.0 100 Trying", "INVITE", "", None));
        say(rings_at, false, self.message(&format!("SIP/2.0 {ringing}"), "INVITE", TAG, early));
        if !self.answered {
            say(end, true, self.message("CANCEL sip:2000@192.0.2.20 SIP/2.0", "CANCEL", "", None));
            say(end + 1_000, false, self.message("SIP/2.0 200 OK", "CANCEL", TAG, None));
            say(end + 2_000, false, self.message("SIP/2.0 487 Request Terminated", "INVITE", TAG, None));
            say(end + 3_000, true, self.message("ACK sip:2000@192.0.2.20 SIP/2.0", "ACK", TAG, None));
            return;
        }
        say(0, false, self.message("SIP/2.0 200 OK", "INVITE", TAG, Some(&answer)));
        say(1_000, true, self.message("ACK sip:2000@192.0.2.20 SIP/2.0", "ACK", TAG, None));
        say(end, true, self.message("BYE sip:2000@192.0.2.20 SIP/2.0", "BYE", TAG, None));
        say(end + 1_000, false, self.message("SIP/2.0 200 OK", "BYE", TAG, None));
    }

    fn message(&self, start: &str, method: &str, to_tag: &str, sdp: Option<&String>) -> String {
        let number = if method == "BYE" { 2 } else { 1 };
        // The ACK to a 200 and a BYE are transactions of their own; a CANCEL has the branch of its INVITE.
        let branch = if method == "CANCEL" { "INVITE" } else { method };
        let mut text = format!(
            "{start}\r\nVia: SIP/2.0/UDP 192.0.2.10:5060;branch=z9hG4bK{branch}{number}\r\nMax-Forwards: 70\r\n\
             From: \"Caller\" <sip:1000@192.0.2.10>;tag=caller\r\nTo: <sip:2000@192.0.2.20>{to_tag}\r\n\
             Call-ID: {}@golden.invalid\r\nCSeq: {number} {method}\r\n",
            self.name
        );
        let contact = if start.starts_with("SIP/2.0") { "2000@192.0.2.20" } else { "1000@192.0.2.10" };
        let _ = write!(text, "Contact: <sip:{contact}>\r\n");
        if sdp.is_some() {
            text.push_str("Content-Type: application/sdp\r\n");
        }
        let body = sdp.map_or("", String::as_str);
        let _ = write!(text, "Content-Length: {}\r\n\r\n{body}", body.len());
        text
    }
}

pub(super) fn body(sdp: &Sdp, own: std::net::SocketAddr) -> String {
    let ip = sdp.ip.map_or(own.ip(), Into::into);
    let numbers: Vec<String> = sdp.codecs.iter().map(|(number, _)| number.to_string()).collect();
    let mut text = format!(
        "v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {} RTP/AVP {}\r\n",
        own.port(),
        numbers.join(" ")
    );
    for (number, encoding) in sdp.codecs {
        let _ = write!(text, "a=rtpmap:{number} {encoding}\r\n");
    }
    if let Some(ptime_ms) = sdp.ptime_ms {
        let _ = write!(text, "a=ptime:{ptime_ms}\r\n");
    }
    let _ = write!(text, "a={}\r\n", sdp.direction);
    text
}

const TAG: &str = ";tag=called";
