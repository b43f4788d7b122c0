//! Phones behind a NAT and phones that move: the destination of the requests of their calls.

use std::time::Duration;

use sidetone_model::directory::{Network, Trunk};
use sidetone_sip::message::{Method, Request};
use sidetone_sip::registrar::Registration;
use sidetone_sip::ua::Invite;

use crate::tests::network::{Net, PHONE, Plan, SDP, acme, address, trunk};

pub(super) const CARRIER: &str = "203.0.113.1:5060";
const WORLD: &str = "+447700900123";

/// A switch with a carrier, and 1001's phone, whose requests arrive from this address. Its Contact is another one.
pub(super) fn net(seen_at: &str) -> Net {
    let from = Network { address: address(CARRIER).ip(), prefix_len: 32 };
    let mut net = Net::new(acme(vec![Trunk { accept_from: vec![from], ..trunk(1, CARRIER) }]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.phone_at = address(seen_at);
    net.register();
    net.heard.clear();
    net
}

/// The carrier calls 1001, whose phone answers.
fn call_in(net: &mut Net) {
    net.inject(CARRIER, of_carrier("INVITE", 1, "", SDP));
    net.pick_up();
    let told = net.told.last().unwrap();
    assert_eq!(told.status().as_u16(), 200);
}

/// The carrier hangs up the call that it made.
fn hang_up_by_carrier(net: &mut Net) {
    let tag = net.told.last().unwrap().to_tag().unwrap().into_owned();
    net.inject(CARRIER, of_carrier("ACK", 1, &format!(";tag={tag}"), ""));
    net.inject(CARRIER, of_carrier("BYE", 2, &format!(";tag={tag}"), ""));
}

pub(super) fn of_carrier(method: &str, cseq: u32, to_tag: &str, body: &str) -> String {
    format!(
        "{method} sip:+442071230000@198.51.100.1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bK{method}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:+447700900123@carrier>;tag=1\r\nTo: <sip:+442071230000@carrier>{to_tag}\r\n\
         Call-ID: in\r\nCSeq: {cseq} {method}\r\nContact: <sip:{CARRIER}>\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The Contact is not reachable: private on both sides, the public address with another port, or another address.
#[test]
fn ack_and_bye_of_a_called_phone_go_where_its_registration_came_from() {
    for seen_at in ["10.0.0.7:40000", "192.0.2.1:40000", "203.0.113.77:5060"] {
        let mut net = net(seen_at);
        call_in(&mut net);
        hang_up_by_carrier(&mut net);
        assert_eq!(net.heard, ["BYE"], "{seen_at}");
        assert!(net.elsewhere.is_empty(), "{seen_at}: {:?}", net.elsewhere);
        net.wait(Duration::from_secs(5));
        assert_eq!(net.records.len(), 1, "{seen_at}");
    }
}

/// Its Via has the source address, as an ALG writes it, and its Contact is an address that we could send to.
#[test]
fn requests_to_a_calling_phone_go_where_its_invite_came_from() {
    for contact in ["<sip:1001@10.1.1.1:5060>", "<sip:1001@203.0.113.9:5060>", "<sip:1001@192.0.2.1:5999>"] {
        let mut net = net(PHONE);
        let invite = Invite::new(
            format!("sip:{WORLD}@acme.test"),
            "<sip:1001@acme.test>",
            format!("<sip:{WORLD}@acme.test>"),
        );
        net.dial_by(invite.header("Contact", contact));
        assert_eq!(net.carrier_says(CARRIER, "BYE", 2, None), 200);
        assert_eq!(net.heard, ["200", "BYE"], "{contact}");
        assert!(net.elsewhere.is_empty(), "{contact}");
    }
}

#[test]
fn a_phone_that_registers_from_another_port_is_hung_up_there() {
    let other = "192.0.2.1:41000";
    let mut called = net("192.0.2.1:40000");
    call_in(&mut called);
    called.phone_at = address(other);
    called.register();
    called.heard.clear();
    hang_up_by_carrier(&mut called);
    assert_eq!((called.heard.as_slice(), called.elsewhere.len()), (["BYE".to_owned()].as_slice(), 0));

    let mut calling = net("192.0.2.1:40000");
    calling.dial(WORLD);
    calling.phone_at = address(other);
    calling.register();
    calling.heard.clear();
    assert_eq!(calling.carrier_says(CARRIER, "BYE", 2, None), 200);
    assert_eq!(calling.heard, ["BYE"]);
    assert!(calling.elsewhere.is_empty());
}

/// Another phone of the same extension does not take over its calls.
#[test]
fn a_second_phone_does_not_get_the_bye() {
    let mut net = net("192.0.2.1:40000");
    call_in(&mut net);
    let flow = net.flow_of("192.0.2.50:5060");
    let register = Request::builder(Method::Register, "sip:acme.test")
        .header("Call-ID", "second")
        .header("CSeq", "1 REGISTER")
        .header("Contact", "<sip:1001@192.0.2.50:5060>")
        .build()
        .unwrap();
    let registration = Registration::from_request(&register, flow).unwrap();
    net.switch.shared.registrar.register(net.now(), "1001@acme.test", registration).unwrap();
    assert_eq!(net.switch.bindings(), 2);
    hang_up_by_carrier(&mut net);
    assert_eq!(net.heard, ["BYE"]);
}
