//! Forwarding by an extension's settings, and do not disturb.

use std::time::Duration;

use sidetone_model::call::{Direction, EndedBy, HangupCause};
use sidetone_model::directory::{Destination, DirectorySnapshot, Extension, Network};
use sidetone_model::forwarding::{ForwardReason, Forwarding};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::Reply;

use crate::machine::Input;
use crate::tests::network::{Net, Plan, SDP, acme, address, extension, trunk};

const CARRIER: &str = "203.0.113.1:5060";
const ANN: &str = "+447700900001";
const BOB: &str = "+447700900002";
/// The number that Ann calls.
const DID: &str = "+442071230000";

/// 1001 with these settings, and 1002 and 1003 whose phones are not registered.
fn directory(change: impl FnOnce(&mut [Extension])) -> DirectorySnapshot {
    let mut from_carrier = trunk(1, CARRIER);
    from_carrier.accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
    let mut directory = acme(vec![from_carrier]);
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory.extensions.push(extension(13, 1, "acme.test", "1003"));
    change(&mut directory.extensions);
    directory
}

fn to(target: &str) -> Option<String> {
    Some(target.to_owned())
}

/// A switch with a carrier that accepts calls; the phone of 1001 is registered.
fn net(change: impl FnOnce(&mut [Extension])) -> Net {
    let mut net = Net::new(directory(change));
    net.carrier(CARRIER, [Plan::Accept]);
    net.register();
    net.heard.clear();
    net
}

/// Ann calls the number of 1001 from outside.
fn ann_calls(net: &mut Net) {
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
}

fn statuses(net: &Net) -> Vec<u16> {
    net.told.iter().map(|response| response.status().as_u16()).collect()
}

fn end(net: &mut Net) {
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    assert!(net.switch.control.calls.is_empty());
}

/// Checks the call to Bob that 1001 forwarded, and its record.
fn forwarded_to_bob(net: &mut Net, word: &str, cause: u16, reason: ForwardReason) {
    assert_eq!(statuses(net).last(), Some(&200), "{word}");
    assert!(statuses(net).contains(&181), "{word}: {:?}", statuses(net));
    let onward = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
    assert_eq!(onward.uri(), format!("sip:{BOB}@{CARRIER}"));
    assert_eq!(
        onward.header("Diversion"),
        Some(format!("<sip:1001@acme.test>;reason={word};counter=1").as_str())
    );
    let history: Vec<&str> = onward.header_all("History-Info").collect();
    assert_eq!(history[0], format!("<sip:1001@acme.test?Reason=SIP%3Bcause%3D{cause}>;index=1"));
    assert_eq!(history[1], format!("<sip:{BOB}@acme.test>;index=1.1;mp=1"));
    net.wait(Duration::from_secs(7));
    end(net);
    let record = &net.records[0];
    let line = extension(11, 1, "", "").id;
    assert_eq!((record.direction, record.extension_id), (Direction::Inbound, Some(line)), "{word}");
    assert_eq!(record.trunk_id, Some(trunk(1, CARRIER).id), "{word}");
    assert_eq!(record.caller_number.as_deref(), Some(ANN));
    assert_eq!((record.destination_number.as_deref(), record.dialled_number.as_deref()), (Some(DID), None));
    assert_eq!((record.forwarded_by.as_deref(), record.forward_reason), (Some("1001"), Some(reason)));
    assert_eq!(record.forwarded_to.as_deref(), Some(BOB), "{word}");
    assert_eq!(record.sip_status, Some(200), "{word}");
    assert!(record.billsec >= 7, "{word}: {}", record.billsec);
}

#[test]
fn every_call_goes_to_the_number_without_ringing_a_phone() {
    let mut net = net(|lines| lines[0].forwarding.always = to(BOB));
    ann_calls(&mut net);
    assert!(net.called.is_empty());
    forwarded_to_bob(&mut net, "unconditional", 302, ForwardReason::Always);
}

#[test]
fn a_busy_phone_forwards() {
    for status in [486, 600, 603] {
        let mut net = net(|lines| lines[0].forwarding.busy = to(BOB));
        net.refusal = Some(Reply::new(StatusCode::new(status).unwrap()));
        ann_calls(&mut net);
        assert_eq!(net.called.len(), 1);
        forwarded_to_bob(&mut net, "user-busy", 486, ForwardReason::Busy);
    }
}

#[test]
fn do_not_disturb_counts_as_busy() {
    let mut net = net(|lines| {
        lines[0].forwarding.busy = to(BOB);
        lines[0].do_not_disturb = true;
    });
    ann_calls(&mut net);
    assert!(net.called.is_empty());
    forwarded_to_bob(&mut net, "do-not-disturb", 480, ForwardReason::DoNotDisturb);
}

#[test]
fn a_phone_that_is_not_answered_forwards() {
    let mut net = net(|lines| {
        lines[0].forwarding.no_answer = to(BOB);
        lines[0].forwarding.no_answer_seconds = 12;
    });
    ann_calls(&mut net);
    net.wait(Duration::from_secs(11));
    assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty());
    net.wait(Duration::from_secs(2));
    assert_eq!(net.called.len(), 1);
    forwarded_to_bob(&mut net, "no-answer", 408, ForwardReason::NoAnswer);
    let mut net = self::net(|lines| lines[0].forwarding.no_answer = to(BOB));
    net.refusal = Some(Reply::new(StatusCode::TEMPORARILY_UNAVAILABLE));
    ann_calls(&mut net);
    forwarded_to_bob(&mut net, "no-answer", 408, ForwardReason::NoAnswer);
}

/// Without a registered phone, and with one that no longer responds.
#[test]
fn an_extension_without_a_phone_forwards() {
    let mut net = Net::new(directory(|lines| lines[0].forwarding.unregistered = to(BOB)));
    net.carrier(CARRIER, [Plan::Accept]);
    ann_calls(&mut net);
    forwarded_to_bob(&mut net, "unavailable", 503, ForwardReason::Unregistered);
    let mut net = self::net(|lines| lines[0].forwarding.unregistered = to(BOB));
    net.is_phone_gone = true;
    ann_calls(&mut net);
    net.wait(Duration::from_secs(33));
    forwarded_to_bob(&mut net, "unavailable", 503, ForwardReason::Unregistered);
}

#[test]
fn do_not_disturb_refuses_calls_and_says_so() {
    let mut net = net(|lines| lines[0].do_not_disturb = true);
    ann_calls(&mut net);
    assert!(net.called.is_empty());
    let told = net.told.last().unwrap();
    assert_eq!((told.status().as_u16(), told.reason().as_ref()), (480, "Do Not Disturb"));
    assert_eq!(told.header("Reason"), Some("Q.850;cause=21;text=\"CALL_REJECTED\""));
    let record = &net.records[0];
    assert_eq!(
        (record.hangup_cause, record.ended_by),
        (Some(HangupCause::CallRejected), Some(EndedBy::System))
    );
    assert_eq!((record.sip_status, record.forward_reason), (None, None));
    assert_eq!(record.called.unwrap().extension_id, extension(11, 1, "", "").id, "the call counts as missed");
    // It may still place calls.
    net.dial(BOB);
    assert_eq!(net.heard, ["200"]);
    end(&mut net);
}

/// 1001 → 1002 → 1003 → Bob: the headers have every forwarder, the record the last one; the call is one to 1001.
#[test]
fn forwarding_goes_on_over_several_extensions() {
    let mut net = net(|lines| {
        lines[0].forwarding.always = to("1002");
        lines[1].forwarding.unregistered = to("1003");
        lines[2].forwarding.busy = to(BOB);
        lines[2].do_not_disturb = true;
    });
    ann_calls(&mut net);
    let onward = net.carriers[&address(CARRIER)].of(&Method::Invite)[0].clone();
    let diversions: Vec<&str> = onward.header_all("Diversion").collect();
    assert_eq!(
        diversions,
        [
            "<sip:1003@acme.test>;reason=do-not-disturb;counter=1",
            "<sip:1002@acme.test>;reason=unavailable;counter=1",
            "<sip:1001@acme.test>;reason=unconditional;counter=1",
        ]
    );
    end(&mut net);
    let record = &net.records[0];
    assert_eq!(record.extension_id, Some(extension(11, 1, "", "").id));
    assert_eq!(record.called.unwrap().extension_id, extension(13, 1, "", "").id);
    assert_eq!((record.forwarded_by.as_deref(), record.forwarded_to.as_deref()), (Some("1003"), Some(BOB)));
    assert_eq!((record.destination_number.as_deref(), record.dialled_number.as_deref()), (Some(DID), None));
}

/// The caller always gets the status for an unavailable extension, regardless of the reason.
#[test]
fn forwarding_that_leads_nowhere_fails() {
    type Change = fn(&mut [Extension]);
    let cases: [(&str, Change, HangupCause); 4] = [
        (
            "in a circle",
            |lines| {
                lines[0].forwarding.always = to("1002");
                lines[1].forwarding.always = to("1003");
                lines[2].forwarding.always = to("1001");
            },
            HangupCause::RedirectionToNewDestination,
        ),
        (
            "to its own phone number",
            |lines| lines[0].forwarding.always = to("+442071230000"),
            HangupCause::RedirectionToNewDestination,
        ),
        ("to no number", |lines| lines[0].forwarding.always = to("4711"), HangupCause::UnallocatedNumber),
        ("to nobody", |lines| lines[0].forwarding.always = to("1002"), HangupCause::UserNotRegistered),
    ];
    for (name, change, cause) in cases {
        let mut net = net(change);
        ann_calls(&mut net);
        net.wait(Duration::from_secs(1));
        assert_eq!(statuses(&net)[0], 480, "{name}");
        assert!(net.carriers[&address(CARRIER)].of(&Method::Invite).is_empty(), "{name}");
        let record = &net.records[0];
        assert_eq!((record.hangup_cause, record.direction), (Some(cause), Direction::Inbound), "{name}");
        assert!(record.forward_reason.is_some(), "{name}");
        end(&mut net);
    }
}

/// The phone continues to ring when no target accepts the call, and can still answer.
#[test]
fn a_phone_rings_on_if_the_call_cannot_be_forwarded() {
    let mut net = net(|lines| lines[0].forwarding.no_answer = to("1003"));
    ann_calls(&mut net);
    net.wait(Duration::from_secs(40));
    assert!(net.ringing.is_some());
    net.pick_up();
    assert_eq!(statuses(&net).last(), Some(&200));
    end(&mut net);
    assert_eq!(net.records[0].forward_reason, None);
    let mut net = self::net(|lines| lines[0].forwarding.no_answer = to("1003"));
    ann_calls(&mut net);
    net.wait(Duration::from_secs(61));
    assert_eq!(statuses(&net).last(), Some(&480));
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::NoAnswer));
    end(&mut net);
}

/// The answer of the phone crosses the CANCEL at the end of its ringing time.
#[test]
fn a_late_answer_of_the_first_phone_is_hung_up() {
    let mut net = net(|lines| lines[0].forwarding.no_answer = to(BOB));
    net.carrier(CARRIER, [Plan::Ring]);
    ann_calls(&mut net);
    let (leg, key) = net.ringing.take().unwrap();
    net.is_phone_gone = true;
    net.wait(Duration::from_millis(20_500));
    net.is_phone_gone = false;
    let reply = Reply::new(StatusCode::OK).content("application/sdp", SDP);
    net.phone.respond(net.now(), &key, reply).unwrap();
    net.leg = Some(leg);
    net.run();
    net.wait(Duration::from_secs(2));
    assert!(net.heard.contains(&"BYE".to_owned()), "{:?}", net.heard);
    assert_ne!(statuses(&net).last(), Some(&200));
    end(&mut net);
}

/// An inbound call that another extension takes is still one to the number that it arrived on.
#[test]
fn an_inbound_call_keeps_its_number() {
    let mut directory = directory(|lines| lines[1].forwarding.always = to("1001"));
    directory.numbers[0].destination = Destination::Extension(extension(12, 1, "", "").id);
    let mut net = Net::new(directory);
    net.register();
    ann_calls(&mut net);
    net.pick_up();
    end(&mut net);
    let record = &net.records[0];
    assert_eq!(
        (record.direction, record.extension_id),
        (Direction::Inbound, Some(extension(12, 1, "", "").id))
    );
    assert_eq!((record.destination_number.as_deref(), record.dialled_number.as_deref()), (Some(DID), None));
    assert_eq!(
        (record.forwarded_by.as_deref(), record.forwarded_to.as_deref()),
        (Some("1002"), Some("1001"))
    );
}

/// A forwarded internal call still belongs to its caller; the record names the forwarder.
#[test]
fn a_call_inside_remains_that_of_its_caller() {
    let mut net = net(|lines| lines[1].forwarding = Forwarding { always: to(BOB), ..Forwarding::default() });
    net.dial("1002");
    assert_eq!(net.heard, ["181", "200"]);
    end(&mut net);
    let record = &net.records[0];
    assert_eq!(
        (record.direction, record.extension_id),
        (Direction::Outbound, Some(extension(11, 1, "", "").id))
    );
    assert_eq!(record.called.unwrap().extension_id, extension(12, 1, "", "").id);
    assert_eq!(
        (record.destination_number.as_deref(), record.forwarded_to.as_deref()),
        (Some(BOB), Some(BOB))
    );
    assert_eq!(
        (record.caller_number.as_deref(), record.forwarded_by.as_deref()),
        (Some("1001"), Some("1002"))
    );
    let mut net = self::net(|lines| lines[1].forwarding.unregistered = to("1001"));
    net.refusal = Some(Reply::new(StatusCode::BUSY_HERE));
    net.dial("1002");
    assert_eq!(net.heard, ["181", "486 Busy Here"]);
    assert_eq!(net.called[0].header("Diversion"), Some("<sip:1002@acme.test>;reason=unavailable;counter=1"));
    let record = &net.records[0];
    assert_eq!(
        (record.direction, record.extension_id),
        (Direction::Internal, Some(extension(11, 1, "", "").id))
    );
    assert_eq!(record.forward_reason, Some(ForwardReason::Unregistered));
    end(&mut net);
}
