//! Descriptions with an address to which no packet can be sent: a host name, or one of the other address family.

use sidetone_model::call::HangupCause;
use sidetone_sip::message::Method;

use crate::tests::nat::{self, of_carrier};
use crate::tests::network::{Net, PHONE, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";

#[test]
fn an_answer_that_no_audio_reaches_ends_the_call_with_488() {
    let refused = "488 Not Acceptable Here";
    for (host, contact, expected) in [
        ("IN IP4 media.example", CARRIER, refused),
        ("IN IP4 192.0.2.1", CARRIER, "200"),
        ("IN IP6 2001:db8::1", CARRIER, refused),
        ("IN IP6 ::ffff:192.0.2.1", CARRIER, "200"),
        // Behind a translator of addresses.
        ("IN IP6 2001:db8::1", "[2001:db8::1]:5060", "200"),
    ] {
        let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
        net.carrier(CARRIER, [Plan::Ring]);
        net.dial("+447700900001");
        net.heard.clear();
        let invite = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
        let header = |name| invite.header(name).unwrap().to_owned();
        let body = SDP.replace("IN IP4 192.0.2.1\r\nt", &format!("{host}\r\nt"));
        let text = format!(
            "SIP/2.0 200 OK\r\nVia: {}\r\nFrom: {}\r\nTo: {};tag=carrier\r\nCall-ID: {}\r\nCSeq: {}\r\n\
             Contact: <sip:{contact}>\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            header("Via"),
            header("From"),
            header("To"),
            header("Call-ID"),
            header("CSeq"),
            body.len()
        );
        net.inject(CARRIER, text);
        assert_eq!(net.heard, [expected], "{host}");
        let byes = net.carriers[&address(CARRIER)].of(&Method::Bye).len();
        assert_eq!(byes, usize::from(expected != "200"), "{host}");
        let causes: Vec<_> = net.records.iter().map(|record| record.hangup_cause).collect();
        let expected = (expected != "200").then_some(Some(HangupCause::IncompatibleDestination));
        assert_eq!(causes, expected.into_iter().collect::<Vec<_>>(), "{host}");
    }
}

#[test]
fn an_offer_that_no_audio_reaches_is_refused_with_the_reason() {
    for (connection, contact, expected) in [
        ("IN IP4 media.example", CARRIER, Some("host name")),
        ("IN IP6 2001:db8::1", CARRIER, Some("IPv6, but SIP arrives over IPv4")),
        ("IN IP6 ::ffff:192.0.2.1", CARRIER, None),
        ("IN IP6 ::", CARRIER, None),
        ("IN IP6 2001:db8::1", "[2001:db8::1]:5060", None),
    ] {
        let mut net = nat::net(PHONE);
        let body = SDP.replace("IN IP4 192.0.2.1\r\nt", &format!("{connection}\r\nt"));
        let invite = of_carrier("INVITE", 1, "", &body);
        let invite = invite.replace(&format!("<sip:{CARRIER}>"), &format!("<sip:{contact}>"));
        net.inject(CARRIER, invite);
        assert_eq!(net.called.len(), usize::from(expected.is_none()), "{connection}");
        let refusal = net.told.iter().find(|response| response.status().as_u16() == 488);
        let warning = refusal.map(|refusal| refusal.headers().header("Warning").unwrap());
        assert_eq!(warning.is_some(), expected.is_some(), "{connection}: {warning:?}");
        assert!(warning.unwrap_or("301 ").starts_with("301 "), "{connection}: {warning:?}");
        assert!(expected.is_none_or(|text| warning.unwrap().contains(text)), "{connection}: {warning:?}");
    }
}
