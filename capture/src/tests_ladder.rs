//! Messages and packets of calls, line by line, for tests of calls that no scenario describes.

use std::net::SocketAddr;

use sidetone_media::time::Micros;

use super::{Frame, analyze, write};
use crate::{Analysis, CallReport};

/// The messages of one Call-ID between two hosts.
pub(super) struct Hop {
    pub(super) call_id: &'static str,
    /// The hosts of the caller's and the called party's side.
    pub(super) caller: &'static str,
    pub(super) called: &'static str,
    /// The tags of the caller and the called party.
    pub(super) tags: (&'static str, &'static str),
}

/// A message of a hop: milliseconds, whether it goes to the called party's side, start line, CSeq, body.
pub(super) type Line<'a> = (i64, bool, &'a str, (u32, &'a str), &'a str);

impl Hop {
    pub(super) fn new(call_id: &'static str, caller: &'static str, called: &'static str) -> Hop {
        Hop { call_id, caller, called, tags: ("a", "b") }
    }

    /// The same call with another tag of the called party.
    pub(super) fn with_tag(&self, called: &'static str) -> Hop {
        Hop { tags: (self.tags.0, called), ..*self }
    }

    pub(super) fn frames(&self, lines: &[Line<'_>]) -> Vec<Frame> {
        lines.iter().map(|line| self.frame(line)).collect()
    }

    fn frame(&self, (at_ms, to_called, line, (number, method), body): &Line<'_>) -> Frame {
        let is_request = line.starts_with(method);
        // A response has the From of its request.
        let of_caller = *to_called == is_request;
        let (from, to) = if of_caller { self.tags } else { (self.tags.1, self.tags.0) };
        let begins = *number == 1 && of_caller && is_request && *method != "ACK";
        let to = if begins { String::new() } else { format!(";tag={to}") };
        let text = format!(
            "{line}\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK{number}{method}\r\nFrom: <sip:a@x>;tag={from}\r\n\
             To: <sip:b@x>{to}\r\nCall-ID: {}\r\nCSeq: {number} {method}\r\nMax-Forwards: 70\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            self.call_id,
            body.len()
        );
        let host = |ip: &str| format!("{ip}:5060");
        let (caller, called) = (host(self.caller), host(self.called));
        let (from, to) = if *to_called { (&caller, &called) } else { (&called, &caller) };
        (at(*at_ms), address(from), address(to), text.into_bytes())
    }
}

/// The beginning and the end of an answered call: the answer at 0, the BYE at `end_ms`.
pub(super) fn answered<'a>(offer: &'a str, answer: &'a str, end_ms: i64) -> [Line<'a>; 4] {
    [
        (-500, true, INVITE, (1, "INVITE"), offer),
        (0, false, OK, (1, "INVITE"), answer),
        (1, true, ACK, (1, "ACK"), ""),
        (end_ms, true, BYE, (9, "BYE"), ""),
    ]
}

/// The same lines, `by_ms` later.
pub(super) fn later<const N: usize>(lines: [Line<'_>; N], by_ms: i64) -> [Line<'_>; N] {
    lines.map(|line| (line.0 + by_ms, line.1, line.2, line.3, line.4))
}

/// A description of a host with these sections.
pub(super) fn sdp(ip: &str, sections: &str) -> String {
    format!("v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\n{sections}")
}

/// A description of a host with PCMU on a port.
pub(super) fn audio(ip: &str, port: u16) -> String {
    sdp(ip, &format!("m=audio {port} RTP/AVP 0\r\n"))
}

/// PCMU between two addresses; every `lost`-th packet is missing.
pub(super) struct Rtp {
    pub(super) ssrc: u32,
    pub(super) ptime_ms: u32,
    pub(super) lost: Option<usize>,
}

impl Rtp {
    pub(super) fn new(ssrc: u32) -> Rtp {
        Rtp { ssrc, ptime_ms: 20, lost: None }
    }

    /// The packets of a span in milliseconds. Numbers and timestamps are those of a sender that began at 0.
    pub(super) fn frames(&self, (from, to): (&str, &str), span: (i64, i64)) -> Vec<Frame> {
        let ptime_ms = i64::from(self.ptime_ms);
        let numbers = (span.0 / ptime_ms)..(span.1 / ptime_ms);
        let kept =
            numbers.filter(|number| self.lost.is_none_or(|lost| !(*number as usize).is_multiple_of(lost)));
        let packets = kept.map(|number| {
            let mut packet = vec![0x80, 0];
            packet.extend((number as u16).to_be_bytes());
            packet.extend((number as u32 * self.ptime_ms * 8).to_be_bytes());
            packet.extend(self.ssrc.to_be_bytes());
            packet.resize(12 + self.ptime_ms as usize * 8, 0x55);
            (at(number * ptime_ms + 5), address(from), address(to), packet)
        });
        packets.collect()
    }
}

pub(super) fn both_ways(ends: (&str, &str), span: (i64, i64)) -> Vec<Frame> {
    [Rtp::new(1).frames(ends, span), Rtp::new(2).frames((ends.1, ends.0), span)].concat()
}

pub(super) fn analyzed(frames: &[Vec<Frame>]) -> Analysis {
    let mut frames = frames.concat();
    frames.sort_by_key(|frame| frame.0);
    analyze(&write(&frames))
}

/// The verdicts of both legs of each call.
pub(super) fn verdicts(analysis: &Analysis) -> Vec<(Option<&'static str>, Option<&'static str>)> {
    let callee = |call: &CallReport| call.callee().and_then(|report| report.verdict).map(|it| it.as_str());
    analysis.calls.iter().map(|call| (call.media_verdict, callee(call))).collect()
}

fn at(ms: i64) -> Micros {
    Micros(1_767_268_800_000_000 + ms * 1_000)
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(super) const INVITE: &str = "INVITE sip:b@x SIP/2.0";
pub(super) const OK: &str = "SIP/2.0 200 OK";
pub(super) const ACK: &str = "ACK sip:b@x SIP/2.0";
pub(super) const BYE: &str = "BYE sip:b@x SIP/2.0";
