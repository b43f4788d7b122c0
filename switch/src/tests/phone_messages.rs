//! MESSAGE from phone to phone: the receiving devices, the response to the sender, and the limits.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::DirectorySnapshot;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Datagram, Message, Method, Request, Response, StatusCode, parse_datagram};
use sidetone_sip::ua::{Content, Draft};

use crate::incoming_message::MESSAGE_BYTES_MAX;
use crate::tests::directory::organisation;
use crate::tests::network::{Net, PASSWORD, acme, address, extension};

/// Two devices of 1002, at addresses that the test answers for.
const DEVICES: [&str; 2] = ["192.0.2.21:5060", "192.0.2.22:5060"];
const TEXT: &str = "Lunch at one?";

fn directory() -> DirectorySnapshot {
    let mut directory = acme(Vec::new());
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory.organisations.push(organisation(2, "other.test"));
    directory.extensions.push(extension(21, 2, "other.test", "2001"));
    directory
}

/// A switch where 1002 has this number of registered devices.
fn with_devices(count: usize) -> Net {
    let mut net = Net::new(directory());
    for at in &DEVICES[..count] {
        net.register_elsewhere("1002", at);
    }
    net.elsewhere.clear();
    net.heard.clear();
    net
}

impl Net {
    /// A device at that address registers an extension: the challenge is answered by hand.
    pub(super) fn register_elsewhere(&mut self, number: &str, at: &str) {
        let login =
            Client::new(number, PASSWORD, Realm::Exactly("acme.test".into()), StdRng::seed_from_u64(9));
        let before = (self.phone_at, std::mem::replace(&mut self.login, login));
        self.phone_at = address(at);
        let aor = format!("<sip:{number}@acme.test>");
        let draft = Draft::new(Method::Register, "sip:acme.test", aor.as_str(), aor.as_str());
        let draft = draft.header("Contact", format!("<sip:{number}@{at}>")).header("Expires", "600");
        let flow = self.flow_of("198.51.100.1:5060");
        self.phone.request(self.now(), flow, draft).unwrap();
        self.run();
        (self.phone_at, self.login) = before;
    }

    /// The messages that arrived at other addresses.
    fn delivered(&self) -> Vec<(String, Request)> {
        let requests = self.elsewhere.iter().filter_map(|(to, bytes)| match parse_datagram(bytes.clone()) {
            Ok(Datagram::Message(Message::Request(request))) if *request.method() == Method::Message => {
                Some((to.to_string(), request))
            }
            _ => None,
        });
        requests.collect()
    }

    /// The device at that address answers the last message that it got.
    fn device_answers(&mut self, at: &str, status: u16) {
        let (_, request) = self.delivered().into_iter().rev().find(|(to, _)| to == at).unwrap();
        let mut response = Response::reply_to(&request, StatusCode::new(status).unwrap());
        if status == 415 {
            response.push("Accept", "message/cpim").unwrap();
        }
        self.inject(at, String::from_utf8(response.to_bytes().to_vec()).unwrap());
    }
}

#[test]
fn a_message_reaches_every_device_and_the_first_acceptance_goes_back() {
    let mut net = with_devices(2);
    net.message("sip:1002@acme.test", "text/plain", TEXT);
    let delivered = net.delivered();
    let mut to: Vec<_> = delivered.iter().map(|(to, _)| to.as_str()).collect();
    to.sort_unstable();
    assert_eq!(to, DEVICES);
    let (_, message) = &delivered[0];
    assert_eq!(message.body(), TEXT.as_bytes());
    assert!(message.headers().is_content_type("text/plain"));
    assert!(
        message.header("From").unwrap().contains("Ada")
            && message.header("From").unwrap().contains("<sip:1001@acme.test>")
    );
    assert_eq!(message.header("To"), Some("<sip:1002@acme.test>"));
    assert!(net.heard.is_empty(), "the sender waits: {:?}", net.heard);
    net.device_answers(DEVICES[0], 486);
    assert!(net.heard.is_empty(), "the other device may accept");
    net.device_answers(DEVICES[1], 202);
    assert_eq!(net.heard, ["202 Accepted"]);
    net.wait(Duration::from_secs(60));
    assert_eq!(net.heard.len(), 1);
}

#[test]
fn the_refusal_of_the_device_goes_back_when_all_have_refused() {
    for (first, second, expected) in [
        (486, 415, "486 Busy Here"),
        (415, 415, "415 Unsupported Media Type"),
        (404, 603, "603 Decline"),
        (401, 401, "480 Temporarily Unavailable"),
        (503, 503, "500 Server Internal Error"),
    ] {
        let mut net = with_devices(2);
        net.message("sip:1002@acme.test", "text/plain", TEXT);
        net.device_answers(DEVICES[0], first);
        net.device_answers(DEVICES[1], second);
        assert_eq!(net.heard, [expected], "{first} and {second}");
    }
}

/// The sender always gets a response before its own timer F, even if the devices do not answer.
#[test]
fn devices_that_do_not_answer_end_in_480_after_20_seconds() {
    let mut net = with_devices(1);
    net.message("sip:1002@acme.test", "text/plain", TEXT);
    net.wait(Duration::from_millis(19_900));
    assert!(net.heard.is_empty(), "{:?}", net.heard);
    net.wait(Duration::from_millis(200));
    assert_eq!(net.heard, ["480 Temporarily Unavailable"]);
    // A late response has no effect, and no state is kept.
    net.device_answers(DEVICES[0], 200);
    net.wait(Duration::from_secs(60));
    assert_eq!((net.heard.len(), net.switch.shared.messages.kept()), (1, 0));
}

#[test]
fn who_cannot_be_reached_and_what_is_no_message_is_refused() {
    let long = "x".repeat(MESSAGE_BYTES_MAX + 1);
    for (to, body, expected) in [
        ("sip:1002@acme.test", TEXT, "480 Temporarily Unavailable"),
        ("sip:1009@acme.test", TEXT, "404 Not Found"),
        ("sip:2001@other.test", TEXT, "404 Not Found"),
        ("sip:2001@acme.test", TEXT, "404 Not Found"),
        ("sip:+442071230000@acme.test", TEXT, "404 Not Found"),
        ("sip:1002@acme.test", &long, "413 Request Entity Too Large"),
        ("sip:1002@acme.test", "", "400 Missing Content-Type Or Body"),
    ] {
        let mut net = Net::new(directory());
        net.message(to, "text/plain", body);
        assert_eq!(net.heard, [expected], "{to}");
        assert!(net.delivered().is_empty());
    }
}

#[test]
fn a_message_that_looks_like_a_note_of_the_engine_reaches_no_phone() {
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        let mut net = with_devices(1);
        net.message("sip:1002@acme.test", kind, r#"{"title":"Evacuate"}"#);
        assert_eq!(net.heard, ["415 Unsupported Media Type"], "{kind}");
        assert!(net.delivered().is_empty());
    }
}

#[test]
fn an_unknown_sender_is_challenged_and_reaches_no_phone() {
    let mut net = with_devices(1);
    let text = format!(
        "MESSAGE sip:1002@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.66;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@acme.test>;tag=1\r\nTo: <sip:1002@acme.test>\r\nCall-ID: 1\r\nCSeq: 1 MESSAGE\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{TEXT}",
        TEXT.len()
    );
    net.inject("192.0.2.66:5060", text);
    assert!(net.delivered().is_empty());
    assert_eq!(net.switch.shared.messages.kept(), 0);
}

/// A sender may send a burst of 20, and then one a second.
#[test]
fn a_sender_that_sends_too_many_is_told_when_to_try_again() {
    let mut net = with_devices(1);
    for _ in 0..20 {
        net.message("sip:1002@acme.test", "text/plain", TEXT);
    }
    assert_eq!((net.delivered().len(), net.heard.len()), (20, 0));
    net.message("sip:1002@acme.test", "text/plain", TEXT);
    assert_eq!(net.heard, ["480 Too Many Messages"]);
    assert_eq!(net.delivered().len(), 20);
    net.elsewhere.clear();
    net.wait(Duration::from_secs(2));
    net.elsewhere.clear();
    net.message("sip:1002@acme.test", "text/plain", TEXT);
    assert_eq!(net.delivered().len(), 1);
}

/// A message to the events identity is still an acknowledgement of a note.
#[test]
fn a_message_to_the_events_identity_goes_to_no_phone() {
    let mut net = with_devices(1);
    let content = Content::new("application/json", r#"{"ack":true,"id":"1"}"#);
    net.message("sip:events@acme.test", &content.content_type, std::str::from_utf8(&content.body).unwrap());
    assert_eq!((net.said.len(), net.delivered().len()), (1, 0));
}

/// The From must name the extension that authenticates, or be anonymous.
#[test]
fn a_message_in_the_name_of_another_extension_is_refused() {
    for (from, expected) in [
        ("<sip:1002@acme.test>", "403 Forbidden"),
        ("<sip:1001@acme.test>", "480 Temporarily Unavailable"),
        ("<sip:anonymous@anonymous.invalid>", "480 Temporarily Unavailable"),
    ] {
        let mut net = Net::new(acme(Vec::new()));
        net.register();
        net.heard.clear();
        let content = Content::new("text/plain", TEXT);
        let draft = Draft::message("sip:1001@acme.test", from, "<sip:1001@acme.test>", content);
        net.phone.request(net.now(), net.flow_of("198.51.100.1:5060"), draft).unwrap();
        net.run();
        net.wait(Duration::from_secs(25));
        assert_eq!(net.heard, [expected], "{from}");
    }
}
