//! Star codes by which a phone parks a party or picks up a waiting one.

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::call_operation::RecordStep;
use sidetone_model::directory::{DirectorySnapshot, Network};
use sidetone_model::ids::{ExtensionId, TeamId};
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::{Invite, LegKey, Reply};
use uuid::Uuid;

use crate::machine::Input;
use crate::star_pickup::{Wanted, find};
use crate::tests::directory::organisation;
use crate::tests::network::{Net, Plan, SDP, SWITCH, acme, address, extension, trunk};
use crate::tests::transfers::{ANN, Desk, one_of};

const CARRIER: &str = "203.0.113.1:5060";

fn id(number: u128) -> ExtensionId {
    ExtensionId(Uuid::from_u128(number))
}

fn team(number: u128) -> Option<TeamId> {
    Some(TeamId(Uuid::from_u128(number)))
}

fn slots(net: &mut Net) -> Vec<u16> {
    net.live().into_iter().filter_map(|call| Some(call.parked?.slot)).collect()
}

/// 1001 of a team, 1002 of the same, 1003 of another, 1004 of none, and 2001 of another organisation.
fn with_teams() -> DirectorySnapshot {
    let mut from_carrier = trunk(1, CARRIER);
    from_carrier.accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    let mut directory = acme(vec![from_carrier]);
    directory.extensions[0].team_id = team(1);
    for (number, (text, of)) in [(12, ("1002", team(1))), (13, ("1003", team(2))), (14, ("1004", None))] {
        let more = extension(number, 1, "acme.test", text);
        directory.extensions.push(sidetone_model::directory::Extension { team_id: of, ..more });
    }
    directory.organisations.push(organisation(2, "other.test"));
    directory.extensions.push(extension(21, 2, "other.test", "2001"));
    directory
}

fn desk() -> Desk {
    Desk::with(with_teams(), [Plan::Accept])
}

fn may(net: &Net, by: u128, wanted: &Wanted) -> bool {
    find(id(by), wanted, &net.switch.control, &net.switch.shared.directory).is_some()
}

#[test]
fn a_phone_parks_by_refer_and_takes_the_party_back() {
    for (code, slot, said) in [("*68", 1, "01"), ("*6807", 7, "07"), ("*68*12#", 12, "12")] {
        let mut desk = desk();
        desk.refer_to(code);
        assert_eq!(desk.net.heard, ["202 Accepted", "BYE"], "{code}");
        assert_eq!(desk.notified(), [format!("SIP/2.0 200 Parked At *69{said}")]);
        assert_eq!(slots(&mut desk.net), [slot]);
        assert!(desk.at_carrier(&Method::Bye).is_empty());
        desk.net.heard.clear();
        desk.net.dial(&format!("*69{said}"));
        assert_eq!(desk.net.heard, ["200"], "{code}");
        assert!(slots(&mut desk.net).is_empty());
        assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]), "{:?}", desk.bridges());
        // It is a linked call as after a pick-up over HTTP, and can be recorded.
        let calls: Vec<_> = desk.net.live().iter().map(|call| call.uuid).collect();
        assert!(desk.net.record(calls[0], RecordStep::Start(Uuid::from_u128(7).into())).is_ok());
        desk.net.wait(Duration::from_secs(10));
        desk.carrier_hangs_up(0);
        desk.end();
        let first = desk.net.records.iter().find(|record| record.call_uuid == calls[0]).unwrap();
        assert_eq!((first.transferred_to, first.billsec), (Some(calls[1]), 10));
    }
}

/// A refused code leaves the call as it was.
#[test]
fn what_cannot_be_parked_is_refused() {
    let mut desk = desk();
    for (code, refusal) in [
        ("*68100", "404 No Such Parking Slot"),
        ("*680", "404 No Such Parking Slot"),
        ("*68bob", "404 No Such Parking Slot"),
    ] {
        desk.net.heard.clear();
        desk.refer_to(code);
        assert_eq!(desk.net.heard, [refusal], "{code}");
    }
    assert!(slots(&mut desk.net).is_empty());
    assert_eq!(desk.net.live().len(), 1);
    // Where they are switched off, the code is a number of the dial plan.
    let mut directory = with_teams();
    directory.organisations[0].star_codes = false;
    let mut desk = Desk::with(directory, [Plan::Accept]);
    desk.refer_to("*68");
    assert_eq!((desk.net.heard.clone(), slots(&mut desk.net)), (vec!["404 Not Found".to_owned()], vec![]));
    for code in ["*68", "*6901", "*8"] {
        desk.net.heard.clear();
        desk.net.dial(code);
        assert_eq!(desk.net.heard, ["404 Not Found"], "{code}");
    }
    desk.end();
}

/// An INVITE to the code for parking has no party to park: it is refused immediately, and no carrier is called.
#[test]
fn a_call_to_the_code_for_parking_is_refused() {
    for (code, refusal, cause) in [
        ("*68", "403 Transfer A Call To This Number To Park It", HangupCause::CallRejected),
        ("*6807", "403 Transfer A Call To This Number To Park It", HangupCause::CallRejected),
        ("*68100", "404 No Such Parking Slot", HangupCause::UnallocatedNumber),
    ] {
        let mut net = Net::new(with_teams());
        net.carrier(CARRIER, [Plan::Accept]);
        net.register();
        net.heard.clear();
        net.dial(code);
        assert_eq!(net.heard, [refusal], "{code}");
        assert_eq!(net.reasons.len(), 1, "the Reason header says why: {:?}", net.reasons);
        assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty());
        assert!(net.live().is_empty());
        assert_eq!(one_of(&net.records, code).hangup_cause, Some(cause));
    }
}

/// An extension picks up parties parked by its team or by itself; never a party of another organisation.
#[test]
fn a_parked_party_is_taken_by_its_team_and_in_its_organisation_alone() {
    let mut desk = desk();
    desk.refer_to("*6807");
    let slot = Wanted::Slot(7);
    let taking: Vec<u128> =
        [11, 12, 13, 14, 21].into_iter().filter(|by| may(&desk.net, *by, &slot)).collect();
    assert_eq!(taking, [11, 12, 14]);
    assert!(!may(&desk.net, 11, &Wanted::Slot(8)) && !may(&desk.net, 14, &Wanted::Any));
    desk.net.heard.clear();
    desk.net.dial("*6908");
    assert_eq!(desk.net.heard, ["404 Not Found"]);
    desk.net.dial("*69100");
    assert_eq!(desk.net.heard, ["404 Not Found", "404 Not Found"]);
    assert_eq!(slots(&mut desk.net), [7]);
    desk.end();
    assert_eq!(one_of(&desk.net.records, "*6908").hangup_cause, Some(HangupCause::UnallocatedNumber));
}

/// A phone that shares no codec with the waiting caller is refused, and the caller keeps waiting.
#[test]
fn a_phone_that_cannot_take_the_call_is_refused() {
    let mut net = Net::new(with_teams());
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    ring(&mut net);
    net.heard.clear();
    let (legs, calls) = (net.switch.legs(), net.live().len());
    let speex = SDP.replace("RTP/AVP 0\r\n", "RTP/AVP 97\r\na=rtpmap:97 speex/16000\r\n");
    assert_ne!(speex, SDP);
    let invite = Invite::new("sip:*8@acme.test", "<sip:1001@acme.test>", "<sip:*8@acme.test>");
    let flow = Flow::udp(ListenerId(0), address(SWITCH));
    let invite = invite.content("application/sdp", speex);
    net.leg = Some(net.phone.invite(net.now(), flow, invite).unwrap());
    net.run();
    net.wait(Duration::from_secs(40));
    assert_eq!(net.heard, ["488 Not Acceptable Here"]);
    assert_eq!((net.switch.legs(), net.live().len()), (legs, calls), "the caller still waits");
    assert!(net.switch.control.transfers.is_empty());
}

/// A call from outside rings at one device of 1001.
fn ring(net: &mut Net) -> LegKey {
    net.inject(
        CARRIER,
        format!(
            "INVITE sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{ANN}@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>\r\n\
             Call-ID: inbound\r\nCSeq: 1 INVITE\r\nContact: <sip:{CARRIER}>\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{SDP}",
            SDP.len()
        ),
    );
    let (rings, key) = net.ringing.take().unwrap();
    let now = net.now();
    net.phone.respond(now, &key, Reply::new(StatusCode::RINGING)).unwrap();
    net.run();
    rings
}

/// A call from outside rings at one device of 1001, and another one picks it up.
#[test]
fn a_ringing_call_is_taken_by_the_extension_or_the_longest() {
    for code in ["*8", "*81001"] {
        let mut net = Net::new(with_teams());
        net.carrier(CARRIER, [Plan::Accept]);
        net.register();
        net.heard.clear();
        let rings = ring(&mut net);
        for wanted in [Wanted::Any, Wanted::At("1001".into())] {
            let taking: Vec<u128> =
                [11, 12, 13, 14, 21].into_iter().filter(|by| may(&net, *by, &wanted)).collect();
            assert_eq!(taking, [11, 12, 14], "{wanted:?}");
        }
        assert!(!may(&net, 12, &Wanted::At("1003".into())) && !may(&net, 12, &Wanted::At("2001".into())));
        net.dial(code);
        assert_eq!(net.heard, ["200"], "{code}");
        assert_eq!(net.told.last().unwrap().status(), StatusCode::OK, "the caller is answered");
        assert!(net.phone.dialog_of(rings).is_none(), "the ringing device is cancelled");
        assert_eq!(net.live().len(), 2);
        net.wait(Duration::from_secs(5));
        net.feed(Input::EndCalls(HangupCause::NormalClearing));
        net.run();
        net.wait(Duration::from_secs(200));
        assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
        assert!(net.switch.control.transfers.is_empty());
        assert_eq!(net.records.len(), 2);
    }
}
