//! What an INVITE asks for besides its target: an end of the ringing, privacy, and bodies that may be ignored.

use std::time::Duration;

use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_sip::message::Method;
use sidetone_sip::ua::Invite;

use crate::tests::network::{Net, Plan, SDP, acme, address, extension, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const DESK: &str = "192.0.2.21:5060";
const WORLD: &str = "+447700900123";

fn invite(number: &str) -> Invite {
    let to = format!("sip:{number}@acme.test");
    Invite::new(to.as_str(), "<sip:1001@acme.test>", format!("<{to}>"))
}

/// RFC 3261 §13.3.1: Expires of an INVITE limits the ringing; a longer one does not extend it.
#[test]
fn an_invite_expires_before_its_answer() {
    for (expires, seconds, heard) in
        [("5", 6, "487 Request Terminated"), ("0", 59, "180"), ("600", 61, "480 Temporarily Unavailable")]
    {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Ring]);
        net.dial_by(invite(WORLD).header("Expires", expires));
        net.wait(Duration::from_secs(seconds));
        assert_eq!(net.heard.last().unwrap(), heard, "{expires}");
        if expires == "5" {
            assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Cancel).len(), 1);
            let record = &net.records[0];
            let ended = (record.hangup_cause, record.ended_by);
            assert_eq!(ended, (Some(HangupCause::OriginatorCancel), Some(EndedBy::Caller)));
        }
    }
}

/// RFC 3323, RFC 3325: the called extension does not see the caller. The record has the true one.
#[test]
fn a_caller_that_asks_for_privacy_is_not_shown_to_an_extension() {
    let mut directory = acme(Vec::new());
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    let mut net = Net::new(directory);
    net.carrier(DESK, [Plan::Accept]).options = Some(200);
    net.register_elsewhere("1002", DESK);
    for (header, anonymous) in [("none", false), ("id", true), ("header;id", true)] {
        net.dial_by(invite("1002").header("Privacy", header));
        let invite = net.carriers[&address(DESK)].of(&Method::Invite).last().copied().unwrap().clone();
        let from = invite.from().unwrap().uri.to_string();
        assert_eq!(from == "sip:anonymous@anonymous.invalid", anonymous, "{header}: {from}");
        let text = String::from_utf8_lossy(&invite.to_bytes()).into_owned();
        assert_eq!(text.contains("1001"), !anonymous, "{text}");
        net.hang_up();
        assert_eq!(net.records.pop().unwrap().caller_number.as_deref(), Some("1001"));
    }
}

/// The carrier calls 1001 with this body; returns status and Accept-Encoding.
fn call_in(headers: &str, body: &str) -> (u16, Option<String>) {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    let text = format!(
        "INVITE sip:+442071230000@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin\r\n\
         Max-Forwards: 70\r\nFrom: <sip:+441632960000@203.0.113.1>;tag=1\r\nTo: <sip:+442071230000@198.51.100.1>\r\n\
         Call-ID: in\r\nCSeq: 1 INVITE\r\nContact: <sip:{CARRIER}>\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    net.inject(CARRIER, text);
    if net.ringing.is_some() {
        net.pick_up();
    }
    let told = net.told.last().unwrap();
    (told.status().as_u16(), told.header("Accept-Encoding").map(str::to_owned))
}

/// RFC 3261 §8.2.3.
#[test]
fn a_body_is_understood_ignored_or_refused() {
    let sdp = "Content-Type: application/sdp\r\n";
    let other = "Content-Type: application/x-other\r\n";
    let identity = || Some("identity".to_owned());
    let cases = [
        (sdp.to_owned(), SDP, (200, None)),
        (format!("{sdp}Content-Encoding: identity\r\n"), SDP, (200, None)),
        (format!("{sdp}Content-Encoding: gzip\r\n"), "zipped", (415, identity())),
        (other.to_owned(), "x", (415, None)),
        (format!("{other}Content-Disposition: x;handling=required\r\n"), "x", (415, None)),
        (format!("{other}Content-Disposition: x; Handling=\"optional\"\r\n"), "x", (200, None)),
    ];
    for (headers, body, expected) in cases {
        assert_eq!(call_in(&headers, body), expected, "{headers}");
    }
}
