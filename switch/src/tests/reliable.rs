//! Reliable provisional responses (RFC 3262) on both sides of a call.

use std::time::Duration;

use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::directory::Network;
use sidetone_sip::message::{Method, Name, StatusCode};
use sidetone_sip::ua::{Invite, Reply};

use crate::machine::Input;
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const BOB: &str = "+447700900002";

fn net(plan: Plan) -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [plan]);
    net.register();
    net.heard.clear();
    net
}

/// 1001 dials Bob and requires reliable provisional responses.
fn dial(net: &mut Net) {
    let uri = format!("sip:{BOB}@acme.test");
    let invite = Invite::new(&uri, "<sip:1001@acme.test>", format!("<{uri}>"));
    net.dial_by(invite.header("Require", "100rel"));
}

fn end(net: &mut Net) {
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    // Probes of the phone come every 25 to 60 s, and last for 5 s.
    let is_quiet = |net: &mut Net| {
        net.wait(Duration::from_secs(6));
        net.switch.transactions() == (0, 0)
    };
    assert!((0..4).any(|_| is_quiet(net)), "{:?}", net.switch.transactions());
}

/// The phone acknowledges the 180, so that it is not retransmitted and the call continues to ring.
#[test]
fn a_caller_that_requires_them_gets_them() {
    let mut net = net(Plan::Ring);
    dial(&mut net);
    net.wait(Duration::from_secs(40));
    assert_eq!(net.heard, ["180"]);
    assert_eq!(net.switch.live_calls(), 1);
    net.hang_up();
    net.wait(Duration::from_secs(5));
    assert_eq!(net.records[0].ended_by, Some(EndedBy::Caller));
    end(&mut net);
}

/// A caller that sends no PRACK gets 504 after 32 s, and the callee must not ring for ever.
#[test]
fn a_caller_that_acknowledges_nothing_is_given_up() {
    let mut carrier = trunk(1, CARRIER);
    carrier.accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    let mut net = Net::new(acme(vec![carrier]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    net.inject(
        CARRIER,
        format!(
            "INVITE sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{BOB}@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>\r\n\
             Call-ID: inbound\r\nCSeq: 1 INVITE\r\nContact: <sip:{CARRIER}>\r\nRequire: 100rel\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{SDP}",
            SDP.len()
        ),
    );
    let (_, key) = net.ringing.take().unwrap();
    net.phone.respond(net.now(), &key, Reply::new(StatusCode::RINGING)).unwrap();
    net.wait(Duration::from_secs(33));
    let rang = net.told.iter().filter(|told| told.status() == StatusCode::RINGING);
    assert!(rang.clone().all(|told| told.header("Require") == Some("100rel") && told.rseq().is_some()));
    assert_eq!(rang.count(), 7, "the first one and six repetitions");
    assert_eq!(net.told.last().unwrap().status().as_u16(), 504);
    assert_eq!(net.switch.live_calls(), 0);
    let record = &net.records[0];
    assert_eq!(record.hangup_cause, Some(HangupCause::RecoveryOnTimerExpire));
    assert_eq!(record.ended_by, Some(EndedBy::System));
    end(&mut net);
}

/// A carrier's early media comes in a reliable 183; the 200 has no SDP.
#[test]
fn a_callee_that_sends_them_gets_its_prack() {
    let mut net = net(Plan::Reliable);
    net.dial(BOB);
    assert_eq!(net.heard, ["183"]);
    let carrier = &net.carriers[&address(CARRIER)];
    assert!(carrier.of(&Method::Invite)[0].headers().lists(Name::Supported, "100rel"));
    let pracks = carrier.of(&Method::Prack);
    assert_eq!(pracks.len(), 1);
    let cseq = carrier.of(&Method::Invite)[0].cseq().unwrap().number;
    assert_eq!(pracks[0].header("RAck"), Some(format!("4711 {cseq} INVITE").as_str()));
    assert_eq!(pracks[0].to_tag().unwrap(), "carrier");
    end(&mut net);
}

/// RFC 3261 §13.2.1: the first reliable response to an INVITE without an offer would have to contain ours.
#[test]
fn a_caller_without_an_offer_gets_no_reliable_response_before_ours() {
    let mut net = net(Plan::Ring);
    let uri = format!("sip:{BOB}@acme.test");
    let invite = Invite::new(&uri, "<sip:1001@acme.test>", format!("<{uri}>")).header("Require", "100rel");
    net.leg = Some(net.phone.invite(net.now(), net.flow_of("198.51.100.1:5060"), invite).unwrap());
    net.run();
    net.wait(Duration::from_secs(5));
    assert!(net.heard.is_empty(), "{:?}", net.heard);
    assert_eq!(net.switch.live_calls(), 1);
    net.hang_up();
    net.wait(Duration::from_secs(5));
    assert_eq!(net.records[0].ended_by, Some(EndedBy::Caller));
    end(&mut net);
}
