//! Offers before the answer of a call, in UPDATE (RFC 3311 §5.1) and PRACK (RFC 3262 §5).

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::directory::Network;
use sidetone_sip::message::{Method, Request, Response, StatusCode};
use sidetone_sip::registrar::Registration;
use sidetone_sip::ua::{Extra, Invite};

use crate::machine::Input;
use crate::tests::network::{Net, Plan, SDP, acme, address, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const BOB: &str = "+447700900002";

/// 1001 calls Bob, whose carrier sends early media in a reliable 183. With `takes`, 1001 accepts offers before the
/// answer.
fn ringing(takes: bool) -> Net {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Reliable]);
    net.register();
    net.heard.clear();
    let uri = format!("sip:{BOB}@acme.test");
    let mut invite = Invite::new(&uri, "<sip:1001@acme.test>", format!("<{uri}>"));
    if takes {
        invite = invite.header("Require", "100rel").header("Allow", "INVITE, PRACK, UPDATE");
    }
    net.dial_by(invite);
    net.wait(Duration::from_millis(100));
    assert_eq!(net.heard, ["183"]);
    net
}

fn at_carrier<'a>(net: &'a Net, method: &Method) -> Vec<&'a Request> {
    net.carriers[&address(CARRIER)].of(method)
}

fn text_of(request: &Request) -> String {
    String::from_utf8_lossy(request.body()).into_owned()
}

/// An offer of 1001 in UPDATE.
fn phone_updates(net: &mut Net, sdp: &str) {
    let extra = Extra::new().content("application/sdp", sdp.to_owned());
    net.phone.request_within(net.now(), net.leg.unwrap(), Method::Update, &extra).unwrap();
    net.run();
}

/// An offer of the carrier in UPDATE; returns the status of the response.
fn carrier_updates(net: &mut Net, cseq: u32, sdp: &str) -> u16 {
    net.carrier_says(CARRIER, "UPDATE", cseq, Some(sdp))
}

/// The carrier answers the INVITE, without a session description.
fn carrier_answers(net: &mut Net) {
    let invite = at_carrier(net, &Method::Invite)[0].clone();
    let mut response = Response::reply_to(&invite, StatusCode::OK);
    response.set_to_tag("carrier").unwrap();
    response.push("Contact", format!("<sip:{CARRIER}>")).unwrap();
    net.inject(CARRIER, String::from_utf8(response.to_bytes().to_vec()).unwrap());
}

fn end(net: &mut Net) {
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    assert!(net.switch.control.calls.is_empty());
}

#[test]
fn an_offer_of_the_caller_reaches_the_callee_before_the_answer() {
    let mut net = ringing(true);
    let held = format!("{SDP}a=sendonly\r\n");
    for (place, (sdp, held)) in [(held.as_str(), true), (SDP, false)].into_iter().enumerate() {
        phone_updates(&mut net, sdp);
        let offers = at_carrier(&net, &Method::Update);
        assert_eq!((offers.len(), text_of(offers[place]).contains("sendonly")), (place + 1, held));
    }
    assert_eq!(net.heard, ["183", "200 OK", "200 OK"]);
    carrier_answers(&mut net);
    assert_eq!(net.heard.last().unwrap(), "200");
    assert_eq!(at_carrier(&net, &Method::Invite).len(), 1, "nothing is left to negotiate");
    net.wait(Duration::from_secs(4));
    net.hang_up();
    net.wait(Duration::from_secs(1));
    assert_eq!((net.records[0].billsec, net.records[0].sip_status), (4, Some(200)));
    end(&mut net);
}

#[test]
fn an_offer_of_the_callee_reaches_a_caller_that_takes_it() {
    let held = format!("{SDP}a=sendonly\r\n");
    let mut net = ringing(true);
    assert_eq!(carrier_updates(&mut net, 7, &held), 200);
    assert_eq!(net.noted.len(), 1);
    assert!(text_of(&net.noted[0]).contains("sendonly"));
    carrier_answers(&mut net);
    assert_eq!(net.heard.last().unwrap(), "200");
    end(&mut net);
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::NormalClearing));

    // A caller without reliable responses accepts no offer; a mere change of address is not passed on to it.
    let mut net = ringing(false);
    assert_eq!(carrier_updates(&mut net, 7, &held), 488);
    let moved = SDP.replace("m=audio 4000", "m=audio 4444");
    assert_ne!(moved, SDP);
    assert_eq!(carrier_updates(&mut net, 8, &moved), 200);
    assert!(net.noted.is_empty());
    carrier_answers(&mut net);
    assert_eq!(net.heard.last().unwrap(), "200");
    end(&mut net);
}

/// Two offers cross; one without a response is given up.
#[test]
fn offers_before_the_answer_that_cross_are_refused() {
    let mut net = ringing(true);
    net.carriers.get_mut(&address(CARRIER)).unwrap().updates = [Plan::Silence].into();
    phone_updates(&mut net, &format!("{SDP}a=sendonly\r\n"));
    assert_eq!(carrier_updates(&mut net, 7, SDP), 491);
    phone_updates(&mut net, SDP);
    assert!(net.heard.last().unwrap().starts_with("500"), "the first has no answer: {:?}", net.heard);
    net.wait(Duration::from_secs(33));
    net.carriers.get_mut(&address(CARRIER)).unwrap().updates = [Plan::Accept].into();
    phone_updates(&mut net, SDP);
    assert_eq!(net.heard.last().unwrap(), "200 OK", "the first was given up: {:?}", net.heard);
    carrier_answers(&mut net);
    assert_eq!(net.heard.last().unwrap(), "200", "the session is as it was");
    end(&mut net);

    // A refusal is passed on, and the call continues to ring.
    let mut net = ringing(true);
    net.carriers.get_mut(&address(CARRIER)).unwrap().updates = [Plan::Refuse(488, Vec::new())].into();
    phone_updates(&mut net, &format!("{SDP}a=sendonly\r\n"));
    assert!(net.heard.last().unwrap().starts_with("488"));
    assert_eq!(net.switch.live_calls(), 1);
    end(&mut net);
}

/// The caller hangs up while its offer waits.
#[test]
fn an_offer_that_waits_when_the_call_ends_leaves_nothing() {
    let mut net = ringing(true);
    net.carriers.get_mut(&address(CARRIER)).unwrap().updates = [Plan::Silence].into();
    phone_updates(&mut net, &format!("{SDP}a=sendonly\r\n"));
    net.hang_up();
    net.wait(Duration::from_secs(40));
    assert_eq!(net.switch.live_calls(), 0);
    end(&mut net);
    assert_eq!(net.records.len(), 1);
}

/// Ann calls 1001 from outside, with reliable responses; her PRACK has an offer.
#[test]
fn an_offer_in_a_prack_is_answered_in_its_response() {
    const SECOND: &str = "192.0.2.2:5060";
    let mut from_carrier = trunk(1, CARRIER);
    from_carrier.accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    let mut net = Net::new(acme(vec![from_carrier]));
    net.carrier(CARRIER, [Plan::Accept]);
    let register = Request::builder(Method::Register, "sip:acme.test")
        .header("Call-ID", "second")
        .header("CSeq", "1 REGISTER")
        .header("Contact", format!("<sip:1001@{SECOND}>"))
        .build()
        .unwrap();
    let registration = Registration::from_request(&register, net.flow_of(SECOND)).unwrap();
    net.switch.shared.registrar.register(net.now(), "1001@acme.test", registration).unwrap();
    net.carrier(SECOND, [Plan::Reliable]).options = Some(200);
    let ann = |method: &str, cseq: u32, tag: &str, more: &str, sdp: &str| {
        format!(
            "{method} sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bK{method}{cseq}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:+447700900001@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>{tag}\r\n\
             Call-ID: inbound\r\nCSeq: {cseq} {method}\r\nContact: <sip:{CARRIER}>\r\nAllow: INVITE, UPDATE\r\n{more}\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        )
    };
    net.inject(CARRIER, ann("INVITE", 1, "", "Require: 100rel\r\n", SDP));
    let early = net.told.last().unwrap().clone();
    assert_eq!((early.status().as_u16(), early.body().is_empty()), (183, false));
    let tag = format!(";tag={}", early.to_tag().unwrap());
    let rack = format!("RAck: {} 1 INVITE\r\n", early.rseq().unwrap());
    let held = format!("{SDP}a=sendonly\r\n");
    net.inject(CARRIER, ann("PRACK", 2, &tag, &rack, &held));
    let answer = net.told.last().unwrap();
    assert_eq!((answer.status(), answer.cseq().unwrap().method), (StatusCode::OK, Method::Prack));
    assert!(String::from_utf8_lossy(answer.body()).contains("recvonly"));
    let offers = net.carriers[&address(SECOND)].of(&Method::Update);
    assert_eq!((offers.len(), text_of(offers[0]).contains("sendonly")), (1, true));
    // An offer without a session description.
    net.inject(CARRIER, ann("UPDATE", 3, &tag, "", "hold"));
    assert_eq!(net.told.last().unwrap().status().as_u16(), 488);
    end(&mut net);
}

/// After the answer: an offer that is passed on collides with one of the other party. The first party gets the refusal,
/// and both may offer again.
#[test]
fn an_offer_that_clashes_in_a_call_blocks_no_other() {
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(BOB);
    net.wait(Duration::from_secs(1));
    net.carrier(CARRIER, [Plan::Refuse(491, Vec::new()), Plan::Accept]);
    net.heard.clear();
    let held = format!("{SDP}a=sendonly\r\n");
    phone_updates(&mut net, &held);
    assert!(net.heard[0].starts_with("491"), "{:?}", net.heard);
    net.wait(Duration::from_secs(5));
    phone_updates(&mut net, &held);
    assert_eq!(net.heard.last().unwrap(), "200 OK");
    assert!(text_of(at_carrier(&net, &Method::Invite).last().unwrap()).contains("sendonly"));
    end(&mut net);
}

/// The callee refuses the call while an offer of the caller waits for it; its answer is hung up with the call.
#[test]
fn an_offer_to_a_callee_that_refuses_the_call_is_refused() {
    let mut net = ringing(true);
    net.carriers.get_mut(&address(CARRIER)).unwrap().updates = [Plan::Silence].into();
    phone_updates(&mut net, &format!("{SDP}a=sendonly\r\n"));
    let invite = at_carrier(&net, &Method::Invite)[0].clone();
    let mut busy = Response::reply_to(&invite, StatusCode::BUSY_HERE);
    busy.set_to_tag("carrier").unwrap();
    net.inject(CARRIER, String::from_utf8(busy.to_bytes().to_vec()).unwrap());
    assert!(net.heard.iter().any(|heard| heard.starts_with("488")), "{:?}", net.heard);
    assert!(net.heard.iter().any(|heard| heard.starts_with("486")), "{:?}", net.heard);
    end(&mut net);
}
