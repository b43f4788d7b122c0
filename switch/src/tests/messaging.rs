//! Messages of phones to the switch: accepted messages, and the responses to others.

use sidetone_model::ids::ExtensionId;
use sidetone_sip::message::Method;
use sidetone_sip::ua::Extra;
use uuid::Uuid;

use crate::call_queries::phone_legs;
use crate::incoming_message::{MESSAGE_BYTES_MAX, Speaker};
use crate::machine::Input;
use crate::tests::network::{Net, Plan, acme, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const EVENTS: &str = "sip:events@acme.test";
const JSON: &str = "application/json";
const TAP: &str = r#"{"ack":true,"id":"1"}"#;

/// 1001 talks to an outside party.
fn talking() -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial("+447700900123");
    assert_eq!(net.heard, ["200"]);
    net.heard.clear();
    net
}

#[test]
fn an_info_of_a_leg_is_heard_and_answered_once() {
    let mut net = talking();
    net.inform(JSON, TAP);
    let [said] = net.said.clone().try_into().unwrap();
    let Speaker::Leg(call, leg) = said.by else { panic!("{said:?}") };
    let legs = phone_legs(&net.switch.control.calls, call).unwrap();
    assert_eq!(legs.iter().map(|phone| phone.id).collect::<Vec<_>>(), [leg]);
    assert_eq!(said.body, TAP);
    net.feed(Input::Answer(said.key, 200));
    net.feed(Input::Answer(said.key, 403));
    net.run();
    assert_eq!(net.heard, ["200 OK"]);
    net.hang_up();
    assert_eq!(net.records.len(), 1);
}

/// A message that the switch refuses does not end the call.
#[test]
fn an_info_that_says_something_else_is_told_so() {
    let long = format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
    for (content_type, body, expected) in [
        ("application/dtmf-relay", "Signal=", "400 Bad Request"),
        ("application/sdp", "v=0", "415 Unsupported Media Type"),
        ("text/html", "<b>hello</b>", "415 Unsupported Media Type"),
        (JSON, long.as_str(), "413 Request Entity Too Large"),
        (JSON, "", "200 OK"),
    ] {
        let mut net = talking();
        net.inform(content_type, body);
        assert_eq!((net.heard.as_slice(), net.said.len()), ([expected.to_owned()].as_slice(), 0));
        assert_eq!(net.switch.live_calls(), 1, "{content_type}");
    }
}

/// A key sent by INFO is passed on to the other party; that party's response has no effect.
#[test]
fn a_key_is_passed_on_to_the_other_party() {
    let mut net = talking();
    net.inform("application/dtmf-relay", "Signal=1\r\nDuration=160\r\n");
    assert_eq!(net.heard, ["200 OK"]);
    let passed = net.carriers.values().flat_map(|carrier| carrier.of(&Method::Info)).next().unwrap();
    assert_eq!(passed.header("Content-Type"), Some("application/dtmf-relay"));
    assert_eq!(passed.body().as_ref(), b"Signal=1\r\nDuration=160\r\n");
    assert!(net.said.is_empty());
}

#[test]
fn an_info_out_of_nowhere_is_not_heard() {
    let mut net = talking();
    let text = format!(
        "INFO sip:1001@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.66;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@acme.test>;tag=1\r\nTo: <sip:1002@acme.test>;tag=2\r\nCall-ID: 1\r\nCSeq: 2 INFO\r\n\
         Content-Type: {JSON}\r\nContent-Length: {}\r\n\r\n{TAP}",
        TAP.len()
    );
    net.inject("192.0.2.66:5060", text);
    assert!(net.said.is_empty());
    assert_eq!(net.switch.live_calls(), 1);
}

#[test]
fn a_message_to_the_events_identity_is_its_devices() {
    let mut net = Net::new(acme(Vec::new()));
    net.message(EVENTS, JSON, TAP);
    let [said] = net.said.clone().try_into().unwrap();
    assert_eq!(said.by, Speaker::Device(ExtensionId(Uuid::from_u128(11))));
    assert_eq!(said.body, TAP);
    net.feed(Input::Answer(said.key, 200));
    net.run();
    assert_eq!(net.heard, ["200 OK"]);
}

#[test]
fn a_message_to_anybody_else_or_of_another_kind_is_not_heard() {
    for (to, content_type, expected) in [
        ("sip:1002@acme.test", JSON, "404 Not Found"), // There is no such extension.
        ("sip:events@other.test", JSON, "404 Not Found"),
        ("sip:events@198.51.100.1", JSON, "404 Not Found"),
        (EVENTS, "text/plain", "415 Unsupported Media Type"),
        ("sip:EVENTS@acme.test", JSON, "404 Not Found"),
        ("sip:events@ACME.test", JSON, ""),
    ] {
        let mut net = Net::new(acme(Vec::new()));
        net.message(to, content_type, TAP);
        assert_eq!(net.heard.join(","), expected, "{to} {content_type}");
        assert_eq!(net.said.is_empty(), !expected.is_empty(), "{to} {content_type}");
    }
}

/// S5: a message without a digest is not accepted, whatever the From claims.
#[test]
fn s5_a_message_without_a_digest_is_not_heard() {
    let mut net = Net::new(acme(Vec::new()));
    for (n, headers) in
        ["", "Authorization: Digest username=\"1001\"\r\n", "X-Note-Ack: yes\r\n"].iter().enumerate()
    {
        let text = format!(
            "MESSAGE {EVENTS} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.66;branch=z9hG4bK{n}\r\nMax-Forwards: 70\r\n\
             From: <sip:1001@acme.test>;tag={n}\r\nTo: <{EVENTS}>\r\nCall-ID: {n}\r\nCSeq: 1 MESSAGE\r\n{headers}\
             Content-Type: {JSON}\r\nContent-Length: {}\r\n\r\n{TAP}",
            TAP.len()
        );
        net.inject("192.0.2.66:5060", text);
    }
    assert!(net.said.is_empty());
}

/// RFC 6086 §4.2.2: an INFO of an info package, none of which this node takes. A key or a message is what it is, though.
#[test]
fn an_info_package_is_refused_by_its_own_status() {
    for (content_type, expected) in
        [("application/x-other", "469 Bad Info Package"), ("application/dtmf-relay", "200 OK")]
    {
        let mut net = talking();
        let extra = Extra::new().header("Info-Package", "other").content(content_type, "Signal=1\r\n");
        net.phone.request_within(net.now(), net.leg.unwrap(), Method::Info, &extra).unwrap();
        net.run();
        assert_eq!(net.heard, [expected]);
        assert_eq!(net.switch.live_calls(), 1);
    }
}
