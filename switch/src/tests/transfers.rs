//! Transfers by REFER: blind and attended, their notifications, and events that cross them.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_media::dtmf::KeySource;
use sidetone_model::call::{Direction, EndedBy, HangupCause};
use sidetone_model::cdr::Cdr;
use sidetone_model::directory::{DirectorySnapshot, Network};
use sidetone_model::ids::CallId;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Method, Request, StatusCode};
use sidetone_sip::ua::{Extra, Invite, LegKey, Reply};

use crate::io::{MediaCommand, PortId};
use crate::machine::Input;
use crate::tests::network::{Net, OfRooms, Plan, SDP, SWITCH, acme, address, extension, trunk};

const CARRIER: &str = "203.0.113.1:5060";
pub(super) const ANN: &str = "+447700900001";
pub(super) const BOB: &str = "+447700900002";

/// 1001 talks to Ann.
pub(super) struct Desk {
    pub(super) net: Net,
    /// The leg of 1001 to Ann.
    leg: LegKey,
}

impl Desk {
    /// The carrier accepts the first call, and answers later ones by these plans.
    pub(super) fn new(then: impl IntoIterator<Item = Plan>) -> Desk {
        Desk::with(acme(vec![trunk(1, CARRIER)]), then)
    }

    /// The same with another directory.
    pub(super) fn with(directory: DirectorySnapshot, then: impl IntoIterator<Item = Plan>) -> Desk {
        let mut net = Net::new(directory);
        net.taking = Some(StatusCode::OK);
        net.carrier(CARRIER, [Plan::Accept]);
        net.dial(ANN);
        net.carrier(CARRIER, then);
        net.heard.clear();
        let leg = net.leg.unwrap();
        Desk { net, leg }
    }

    pub(super) fn refer(&mut self, extra: Extra) {
        let now = self.net.now();
        self.net.phone.request_within(now, self.leg, Method::Refer, &extra).unwrap();
        self.net.run();
    }

    pub(super) fn refer_to(&mut self, number: &str) {
        self.refer(Extra::new().header("Refer-To", format!("<sip:{number}@acme.test>")));
    }

    /// Refers Ann to the far end of the phone's other leg.
    fn refer_to_leg(&mut self, other: LegKey) {
        let (call_id, local, remote) = self.net.phone.dialog_of(other).unwrap();
        let replaces = format!("{call_id};to-tag={remote};from-tag={local}");
        let replaces = replaces.replace('@', "%40").replace(';', "%3B").replace('=', "%3D");
        self.refer(Extra::new().header("Refer-To", format!("<sip:{BOB}@acme.test?Replaces={replaces}>")));
    }

    /// The status lines that the phone was notified of.
    pub(super) fn notified(&self) -> Vec<String> {
        let notifies = self.net.noted.iter().filter(|request| *request.method() == Method::Notify);
        notifies.map(|request| String::from_utf8_lossy(request.body()).trim_end().to_owned()).collect()
    }

    fn last_notify(&self) -> &Request {
        self.net.noted.last().unwrap()
    }

    /// The requests of a method that the carrier received.
    pub(super) fn at_carrier(&self, method: &Method) -> Vec<&Request> {
        self.net.carriers[&address(CARRIER)].of(method)
    }

    /// The bridges that were made last, from port to port.
    pub(super) fn bridges(&self) -> Vec<(u64, u64)> {
        let bridges = self.net.of_rooms.iter().filter_map(|output| match output {
            OfRooms::Media(port, MediaCommand::Bridge { peer, .. }) => Some((port.0, peer.0)),
            _ => None,
        });
        bridges.collect()
    }

    /// The carrier's side of its call number `place` hangs up.
    pub(super) fn carrier_hangs_up(&mut self, place: usize) {
        let text = in_dialog(self.at_carrier(&Method::Invite)[place], "BYE", 7, "");
        self.net.inject(CARRIER, text);
    }

    /// The carrier answers its call number `place`.
    pub(super) fn carrier_answers(&mut self, place: usize) {
        self.carrier_answers_with(place, SDP);
    }

    fn carrier_answers_with(&mut self, place: usize, sdp: &str) {
        let invite = self.at_carrier(&Method::Invite)[place].clone();
        let header = |name| invite.header(name).unwrap().to_owned();
        let text = format!(
            "SIP/2.0 200 OK\r\nVia: {}\r\nFrom: {}\r\nTo: {};tag=carrier\r\nCall-ID: {}\r\nCSeq: {}\r\n\
             Contact: <sip:{CARRIER}>\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            header("Via"),
            header("From"),
            header("To"),
            header("Call-ID"),
            header("CSeq"),
            sdp.len()
        );
        self.net.inject(CARRIER, text);
    }

    /// Sets the carrier's plans for the next calls.
    pub(super) fn carrier_plans(&mut self, then: impl IntoIterator<Item = Plan>) {
        self.net.carrier(CARRIER, then);
    }

    pub(super) fn end(&mut self) {
        self.net.feed(Input::EndCalls(HangupCause::NormalClearing));
        self.net.run();
        self.net.wait(Duration::from_secs(200));
        assert_eq!((self.net.switch.live_calls(), self.net.switch.legs()), (0, 0));
        assert!(self.net.switch.control.transfers.is_empty());
        assert!(self.net.switch.control.calls.is_empty());
    }
}

/// A request of the carrier inside the dialog of an INVITE that it answered.
pub(super) fn in_dialog(invite: &Request, method: &str, cseq: u32, more: &str) -> String {
    let header = |name| invite.header(name).unwrap().to_owned();
    let target = header("Contact");
    let target = target.split(['<', '>']).nth(1).unwrap();
    let (us, them, call) = (header("To"), header("From"), header("Call-ID"));
    let (head, body) = more.split_once("\r\n\r\n").unwrap_or((more, ""));
    let head =
        if head.is_empty() || head.ends_with("\r\n") { head.to_owned() } else { format!("{head}\r\n") };
    format!(
        "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bK{method}{cseq}{}\r\n\
         Max-Forwards: 70\r\nFrom: {us};tag=carrier\r\nTo: {them}\r\nCall-ID: {call}\r\nCSeq: {cseq} {method}\r\n\
         Contact: <sip:{CARRIER}>\r\n{head}Content-Length: {}\r\n\r\n{body}",
        call.len() + invite.cseq().unwrap().number as usize,
        body.len()
    )
}

pub(super) fn one_of(records: &[Cdr], number: &str) -> Cdr {
    records.iter().find(|record| record.destination_number.as_deref() == Some(number)).unwrap().clone()
}

#[test]
fn a_blind_transfer_joins_the_far_end_with_the_number() {
    let mut desk = Desk::new([Plan::Accept]);
    desk.refer_to(BOB);
    assert_eq!(desk.net.heard, ["202 Accepted", "BYE"]);
    assert_eq!(desk.notified(), ["SIP/2.0 100 Trying", "SIP/2.0 200 OK"]);
    let last = desk.last_notify();
    assert_eq!(last.header("Subscription-State"), Some("terminated;reason=noresource"));
    assert_eq!(
        (last.header("Event"), last.header("Content-Type")),
        (Some("refer"), Some("message/sipfrag;version=2.0"))
    );
    // Ann's port is relayed to Bob's and back; neither was closed or offered another.
    assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]), "{:?}", desk.bridges());
    assert_eq!(desk.at_carrier(&Method::Invite).len(), 2);
    assert_eq!((desk.net.switch.live_calls(), desk.net.records.len()), (2, 0));

    desk.net.wait(Duration::from_secs(20));
    desk.carrier_hangs_up(0);
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 1, "Bob's leg ends with Ann's");
    let (first, second) = (one_of(&desk.net.records, ANN), one_of(&desk.net.records, BOB));
    let line = Some(extension(11, 1, "", "").id);
    for record in [&first, &second] {
        assert_eq!((record.extension_id, record.direction, record.billsec), (line, Direction::Outbound, 20));
        assert_eq!(record.hangup_cause, Some(HangupCause::NormalClearing));
    }
    assert_eq!((first.transferred_from, first.transferred_to), (None, Some(second.call_uuid)));
    assert_eq!((second.transferred_from, second.transferred_to), (Some(first.call_uuid), None));
    assert_eq!((first.ended_by, second.ended_by), (Some(EndedBy::Callee), Some(EndedBy::Caller)));
    desk.end();
}

#[test]
fn an_attended_transfer_joins_both_far_ends() {
    let mut desk = Desk::new([Plan::Accept]);
    desk.net.dial(BOB);
    let second = desk.net.leg.unwrap();
    desk.net.heard.clear();
    desk.refer_to_leg(second);
    assert_eq!(desk.net.heard, ["202 Accepted", "BYE", "BYE"]);
    assert_eq!(desk.notified(), ["SIP/2.0 200 OK"]);
    assert!(desk.bridges().ends_with(&[(2, 4), (4, 2)]), "{:?}", desk.bridges());
    desk.net.wait(Duration::from_secs(5));
    desk.carrier_hangs_up(1);
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 1);
    let (first, second) = (one_of(&desk.net.records, ANN), one_of(&desk.net.records, BOB));
    assert_eq!(
        (first.transferred_to, second.transferred_from),
        (Some(second.call_uuid), Some(first.call_uuid))
    );
    assert_eq!((first.billsec, second.billsec), (5, 5));
    desk.end();
}

/// After a transfer the other party is in another call.
#[test]
fn keys_reach_the_other_party_of_a_transferred_call() {
    let mut desk = Desk::new([Plan::Accept]);
    desk.refer_to(BOB);
    let invites: Vec<Request> = desk.at_carrier(&Method::Invite).into_iter().cloned().collect();
    for (from, to, kind, body) in [
        (0, 1, "application/dtmf-relay", "Signal=7\r\nDuration=160\r\n"),
        (0, 1, "application/dtmf", "7"),
        (1, 0, "application/dtmf-relay", "Signal=8\r\nDuration=160\r\n"),
        (1, 0, "application/dtmf", "8"),
    ] {
        desk.net.told.clear();
        let cseq = 10 + desk.at_carrier(&Method::Info).len() as u32;
        let more = format!("Content-Type: {kind}\r\n\r\n{body}");
        desk.net.inject(CARRIER, in_dialog(&invites[from], "INFO", cseq, &more));
        let statuses: Vec<u16> = desk.net.told.iter().map(|told| told.status().as_u16()).collect();
        assert_eq!(statuses, [200], "{from} {kind}");
        let passed = desk.at_carrier(&Method::Info).last().copied().cloned().unwrap();
        assert_eq!((passed.call_id(), passed.header("Content-Type")), (invites[to].call_id(), Some(kind)));
        assert_eq!(passed.body().as_ref(), body.as_bytes(), "{from} {kind}");
    }
    desk.end();
}

/// Ann has telephone events and Bob has not: her keys reach him by INFO.
#[test]
fn keys_of_a_transferred_party_are_converted() {
    let events = SDP.replace("AVP 0", "AVP 0 101") + "a=rtpmap:101 telephone-event/8000\r\n";
    let mut net = Net::new(acme(vec![trunk(1, CARRIER)]));
    net.taking = Some(StatusCode::OK);
    net.carrier(CARRIER, [Plan::Ring]);
    let to = format!("sip:{ANN}@acme.test");
    let invite = Invite::new(to.as_str(), "<sip:1001@acme.test>", format!("<{to}>"));
    let flow = Flow::udp(ListenerId(0), address(SWITCH));
    let leg = net.phone.invite(net.now(), flow, invite.content("application/sdp", events.clone())).unwrap();
    net.leg = Some(leg);
    net.run();
    let leg = net.leg.unwrap();
    let mut desk = Desk { net, leg };
    desk.carrier_answers_with(0, &events);
    desk.refer_to(BOB);
    desk.carrier_answers(1);
    let (ann, watches) = (PortId(2), KeySource::Events { payload_type: 101, clock_hz: 8_000 });
    let watch = |output: &OfRooms| match output {
        OfRooms::Media(port, MediaCommand::WatchKeys(source)) if *port == ann => Some(*source),
        _ => None,
    };
    assert_eq!(desk.net.of_rooms.iter().filter_map(watch).next_back(), Some(Some(watches)));
    desk.net.feed(Input::Key(ann, '5', 200));
    desk.net.run();
    let bob = desk.at_carrier(&Method::Invite)[1].call_id().to_owned();
    let passed = desk.at_carrier(&Method::Info).last().copied().cloned().unwrap();
    assert_eq!(passed.call_id(), bob);
    assert_eq!(passed.body().as_ref(), b"Signal=5\r\nDuration=200\r\n");
    desk.end();
}

/// The phone refers while its second call still rings.
#[test]
fn a_transfer_to_a_call_that_rings_waits_for_its_answer() {
    let mut desk = Desk::new([Plan::Ring]);
    desk.net.dial(BOB);
    let second = desk.net.leg.unwrap();
    desk.net.heard.clear();
    desk.refer_to_leg(second);
    assert_eq!(
        (desk.net.heard.join(" "), desk.notified().join(" ")),
        ("202 Accepted".into(), "SIP/2.0 100 Trying".into())
    );
    desk.carrier_answers(1);
    assert_eq!(desk.notified().last().unwrap(), "SIP/2.0 200 OK");
    assert!(desk.bridges().ends_with(&[(2, 4), (4, 2)]), "{:?}", desk.bridges());
    desk.net.run();
    assert_eq!(desk.net.heard, ["202 Accepted", "200", "BYE", "BYE"]);
    desk.end();
}

#[test]
fn a_failed_transfer_leaves_the_call_as_it_was() {
    for (plan, waited, told) in [
        (Plan::Refuse(486, Vec::new()), 0, "SIP/2.0 486 Busy Here"),
        (Plan::Refuse(603, Vec::new()), 0, "SIP/2.0 603 Decline"),
        // The ringing time of the target ends the transfer.
        (Plan::Ring, 61, "SIP/2.0 480 Temporarily Unavailable"),
    ] {
        let mut desk = Desk::new([plan]);
        desk.refer_to(BOB);
        desk.net.wait(Duration::from_secs(waited));
        assert_eq!(desk.net.heard, ["202 Accepted"], "{told}");
        assert_eq!(desk.notified().last().unwrap(), told);
        let second = desk.net.records[0].clone();
        assert_eq!((desk.net.records.len(), second.billsec), (1, 0), "Bob's call has a record");
        assert!(second.transferred_from.is_some());
        // The phone may try again, and hang up as ever.
        desk.net.carrier(CARRIER, [Plan::Ring]);
        desk.refer_to(BOB);
        assert_eq!(desk.last_notify().header("Event").unwrap().split('=').next(), Some("refer;id"));
        desk.end();
        assert_eq!(one_of(&desk.net.records, ANN).transferred_to, None);
    }
}

/// A phone that hangs up as soon as its REFER is accepted: Ann waits for the result.
#[test]
fn the_party_that_transfers_may_leave_before_the_answer() {
    let mut desk = Desk::new([Plan::Ring]);
    desk.refer_to(BOB);
    desk.net.leg = Some(desk.leg);
    desk.net.hang_up();
    assert_eq!((desk.at_carrier(&Method::Bye).len(), desk.net.records.len()), (0, 0), "Ann waits");
    desk.net.wait(Duration::from_secs(8));
    desk.carrier_answers(1);
    assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]), "{:?}", desk.bridges());
    desk.net.wait(Duration::from_secs(2));
    desk.carrier_hangs_up(1);
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 1);
    assert_eq!(one_of(&desk.net.records, ANN).billsec, 10);
    desk.end();

    // Bob does not answer, and the party that transferred Ann has hung up: Ann's call is ended.
    let mut desk = Desk::new([Plan::Ring]);
    desk.refer_to(BOB);
    desk.net.leg = Some(desk.leg);
    desk.net.hang_up();
    desk.net.wait(Duration::from_secs(61));
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 1);
    assert_eq!(desk.net.switch.live_calls(), 0);
    desk.end();
}

#[test]
fn the_transferred_party_may_hang_up_before_the_answer() {
    let mut desk = Desk::new([Plan::Ring]);
    desk.refer_to(BOB);
    desk.carrier_hangs_up(0);
    assert_eq!(desk.at_carrier(&Method::Cancel).len(), 1, "Bob need not ring any more");
    assert_eq!(desk.net.heard, ["202 Accepted", "BYE"]);
    desk.net.wait(Duration::from_secs(5));
    assert_eq!(one_of(&desk.net.records, ANN).ended_by, Some(EndedBy::Callee));
    desk.end();
}

#[test]
fn a_phone_that_takes_no_notification_transfers_all_the_same() {
    // No response, a refusal, and a subscription that it does not want (RFC 4488).
    for (taking, extra) in [
        (None, Extra::new()),
        (Some(StatusCode::NO_TRANSACTION), Extra::new()),
        (Some(StatusCode::OK), Extra::new().header("Refer-Sub", "false")),
    ] {
        let mut desk = Desk::new([Plan::Ring]);
        desk.net.taking = taking;
        let wants = extra == Extra::new();
        desk.refer(extra.header("Refer-To", format!("<sip:{BOB}@acme.test>")));
        desk.net.wait(Duration::from_secs(40));
        desk.carrier_answers(1);
        assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]));
        assert_eq!(desk.notified().is_empty(), !wants);
        desk.end();
    }
}

#[test]
fn what_may_not_be_transferred_is_refused() {
    let to = |target: &str| Extra::new().header("Refer-To", target);
    let bob = format!("<sip:{BOB}@acme.test>");
    for (extra, answer) in [
        (Extra::new(), "400 One Refer-To Expected"),
        (to("<sip:acme.test>"), "400 No Number In Refer-To"),
        (to(&bob).header("Refer-To", &bob), "400 One Refer-To Expected"),
        (to("<sip:1@acme.test?Replaces=abc>"), "400 Bad Replaces"),
        (to("<sip:1@acme.test?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2>"), "404 No Such Dialog"),
        (to("<sip:1@acme.test;method=BYE>"), "603 Only Calls Can Be Referred To"),
        (to("<mailto:bob@acme.test>"), "416 Unsupported Scheme In Refer-To"),
        (to("<sip:nobody@acme.test>"), "404 Not Found"),
        (to("<sip:1001@acme.test>"), "480 Temporarily Unavailable"),
    ] {
        let mut desk = Desk::new([Plan::Ring]);
        desk.refer(extra.clone());
        assert_eq!(desk.net.heard, [answer], "{extra:?}");
        assert_eq!((desk.net.noted.len(), desk.net.switch.live_calls()), (0, 1));
        desk.end();
    }
    // One at a time.
    let mut desk = Desk::new([Plan::Ring]);
    desk.refer_to(BOB);
    desk.refer_to(BOB);
    assert_eq!(desk.net.heard, ["202 Accepted", "491 Transfer Is Under Way"]);
    desk.end();
    // The length of a chain of transfers is limited.
    let mut desk = Desk::new([Plan::Ring]);
    let call: CallId = desk.net.news[0].call().uuid;
    desk.net.switch.control.calls.get_mut(call).unwrap().transfers = 5;
    desk.refer_to(BOB);
    assert_eq!(desk.net.heard, ["482 Too Many Transfers"]);
    desk.end();
}

#[test]
fn a_trunk_and_a_stranger_transfer_nothing() {
    let mut desk = Desk::new([Plan::Accept]);
    let refer =
        |invite: &Request| in_dialog(invite, "REFER", 9, &format!("Refer-To: <sip:{BOB}@acme.test>\r\n"));
    let text = refer(desk.at_carrier(&Method::Invite)[0]);
    desk.net.inject(CARRIER, text);
    assert_eq!(desk.net.told.last().unwrap().status(), StatusCode::DECLINE);
    assert_eq!(desk.net.switch.live_calls(), 1);
    // A request from another address has the tags of the phone's dialog: it is challenged.
    let (call_id, local, remote) = desk.net.phone.dialog_of(desk.leg).unwrap();
    let text = format!(
        "REFER sip:x@198.51.100.1:5060 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.66:5060;branch=z9hG4bKx\r\n\
         Max-Forwards: 70\r\nFrom: <sip:1001@acme.test>;tag={local}\r\nTo: <sip:{ANN}@acme.test>;tag={remote}\r\n\
         Call-ID: {call_id}\r\nCSeq: 900 REFER\r\nRefer-To: <sip:{BOB}@acme.test>\r\nContent-Length: 0\r\n\r\n"
    );
    desk.net.inject("192.0.2.66:5060", text);
    let (to, bytes) = desk.net.elsewhere.last().unwrap();
    assert_eq!(*to, address("192.0.2.66:5060"));
    assert!(String::from_utf8_lossy(bytes).starts_with("SIP/2.0 401 "));
    assert_eq!(desk.net.switch.live_calls(), 1);
    desk.end();
}

/// Ann, whom the phone held, hears Bob; later she holds, and Bob gets an offer.
#[test]
fn hold_and_resume_pass_between_linked_calls() {
    let mut desk = Desk::new([Plan::Accept]);
    desk.net.leg = Some(desk.leg);
    desk.net.offer_anew(&format!("{SDP}a=sendonly\r\n"));
    let offers = |desk: &Desk| {
        let invites = desk.at_carrier(&Method::Invite);
        let direction = |request: &&Request| {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            ["sendonly", "recvonly", "inactive"]
                .into_iter()
                .find(|word| body.contains(word))
                .unwrap_or("sendrecv")
        };
        invites.iter().map(direction).collect::<Vec<_>>()
    };
    assert_eq!(offers(&desk), ["sendrecv", "sendonly"]);
    desk.refer_to(BOB);
    assert_eq!(offers(&desk), ["sendrecv", "sendonly", "sendrecv", "sendrecv"], "Bob is called, Ann resumed");
    let body = format!("Content-Type: application/sdp\r\n\r\n{SDP}a=sendonly\r\n");
    let text = in_dialog(desk.at_carrier(&Method::Invite)[0], "INVITE", 11, &body);
    desk.net.inject(CARRIER, text);
    assert_eq!(desk.net.told.last().unwrap().status(), StatusCode::OK);
    let ack = in_dialog(desk.at_carrier(&Method::Invite)[0], "ACK", 11, "");
    desk.net.inject(CARRIER, ack);
    assert_eq!(*offers(&desk).last().unwrap(), "sendonly", "{:?}", offers(&desk));
    let body = format!("Content-Type: application/sdp\r\n\r\n{SDP}");
    let text = in_dialog(desk.at_carrier(&Method::Invite)[0], "INVITE", 12, &body);
    desk.net.inject(CARRIER, text);
    assert_eq!(*offers(&desk).last().unwrap(), "sendrecv", "{:?}", offers(&desk));
    desk.end();
}

/// A party that vanishes after the transfer: its silence is noticed, and the other is hung up too.
#[test]
fn a_linked_party_that_vanishes_ends_both_calls() {
    let mut desk = Desk::new([Plan::Accept]);
    desk.refer_to(BOB);
    desk.net.silent(2, Duration::from_secs(5));
    desk.net.wait(Duration::from_secs(61));
    assert_eq!(desk.at_carrier(&Method::Options).len(), 1);
    desk.net.wait(Duration::from_secs(60));
    assert_eq!(desk.net.switch.live_calls(), 0, "no answer to the probe");
    assert_eq!(one_of(&desk.net.records, ANN).bridge_cause, Some(HangupCause::MediaTimeout));
    assert_eq!(one_of(&desk.net.records, ANN).ended_by, Some(EndedBy::System));
    desk.end();
}

/// The value of Replaces by which another phone takes over the phone's leg.
fn replaces_of(desk: &Desk, leg: LegKey) -> String {
    let (call_id, local, remote) = desk.net.phone.dialog_of(leg).unwrap();
    format!("{call_id};to-tag={remote};from-tag={local}")
}

fn invite_with(replaces: String) -> Invite {
    Invite::new("sip:1001@acme.test", "<sip:1001@acme.test>", "<sip:1001@acme.test>")
        .header("Replaces", replaces)
}

/// Another device of 1001 takes over its call to Ann.
#[test]
fn an_invite_with_replaces_takes_over_a_call() {
    let mut desk = Desk::new([Plan::Accept]);
    let replaces = replaces_of(&desk, desk.leg);
    desk.net.dial_by(invite_with(replaces));
    assert_eq!(desk.net.heard, ["200", "BYE"], "the replaced leg is hung up");
    assert!(desk.bridges().ends_with(&[(2, 3), (3, 2)]), "{:?}", desk.bridges());
    assert_eq!(desk.at_carrier(&Method::Bye).len(), 0);
    desk.net.wait(Duration::from_secs(3));
    desk.net.hang_up();
    assert_eq!((desk.at_carrier(&Method::Bye).len(), desk.net.records.len()), (1, 2));
    let (first, second) = (&desk.net.records[0], &desk.net.records[1]);
    let (first, second) = if first.transferred_to.is_some() { (first, second) } else { (second, first) };
    assert_eq!(
        (first.transferred_to, second.transferred_from),
        (Some(second.call_uuid), Some(first.call_uuid))
    );
    assert_eq!(second.destination_number.as_deref(), Some(ANN));
    desk.end();
}

#[test]
fn an_invite_with_replaces_is_refused_as_rfc_3891_says() {
    let mut desk = Desk::new([Plan::Accept]);
    let own = replaces_of(&desk, desk.leg);
    let cases = [
        ("a@b;to-tag=1;from-tag=2".to_owned(), "481 "),
        (format!("{own};early-only"), "486 Busy Here"),
        ("nothing".to_owned(), "400 Bad Replaces"),
        // The tags are swapped.
        (own.replace("to-tag", "x").replace("from-tag", "to-tag").replace(";x", ";from-tag"), "481 "),
    ];
    for (replaces, answer) in cases {
        desk.net.heard.clear();
        desk.net.dial_by(invite_with(replaces.clone()));
        assert!(
            desk.net.heard.len() == 1 && desk.net.heard[0].starts_with(answer),
            "{replaces}: {:?}",
            desk.net.heard
        );
    }
    assert_eq!(desk.net.switch.live_calls(), 1);
    desk.end();
}

/// Call pickup: a call from outside rings at one device of 1001, and another answers it.
#[test]
fn an_invite_with_replaces_picks_up_a_ringing_call() {
    for gives_up in [false, true] {
        let mut from_carrier = trunk(1, CARRIER);
        from_carrier.accept_from = vec![Network { address: address(CARRIER).ip(), prefix_len: 32 }];
        let mut net = Net::new(acme(vec![from_carrier]));
        net.carrier(CARRIER, [Plan::Accept]);
        net.register();
        net.heard.clear();
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
        let (leg, key) = net.ringing.take().unwrap();
        let now = net.now();
        net.phone.respond(now, &key, Reply::new(StatusCode::RINGING)).unwrap();
        net.run();
        let mut desk = Desk { net, leg };
        let replaces = replaces_of(&desk, leg);
        desk.net.is_disk_slow = gives_up;
        desk.net.dial_by(invite_with(replaces));
        if gives_up {
            // The caller cancels while the answer is being written.
            desk.net.inject(
                CARRIER,
                format!(
                    "CANCEL sip:+442071230000@acme.test SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER};branch=z9hG4bKin\r\n\
                     Max-Forwards: 70\r\nFrom: <sip:{ANN}@carrier.test>;tag=in\r\nTo: <sip:+442071230000@acme.test>\r\n\
                     Call-ID: inbound\r\nCSeq: 1 CANCEL\r\nContent-Length: 0\r\n\r\n"
                ),
            );
            desk.net.is_disk_slow = false;
            desk.net.write();
        } else {
            assert_eq!(desk.net.heard, ["200"]);
            assert_eq!(desk.net.told.last().unwrap().status(), StatusCode::OK, "the caller is answered");
            assert!(desk.net.phone.dialog_of(leg).is_none(), "the ringing device is cancelled");
            let bridges = desk.bridges();
            assert!(bridges.contains(&(1, 3)) && bridges.contains(&(3, 1)), "{bridges:?}");
            desk.net.wait(Duration::from_secs(1));
            desk.net.hang_up();
        }
        desk.end();
        assert_eq!(desk.net.records.len(), 2);
    }
}

/// Random events in any order: no state is left, and each call has one record.
#[test]
fn random_transfers_leave_nothing() {
    for seed in 0..100 {
        let mut rng = StdRng::seed_from_u64(seed);
        let plans: Vec<Plan> = (0..6)
            .map(|_| match rng.random_range(0..5) {
                0 | 1 => Plan::Accept,
                2 | 3 => Plan::Ring,
                _ => Plan::Refuse(486, Vec::new()),
            })
            .collect();
        let mut desk = Desk::new(plans);
        let mut legs = vec![desk.leg];
        desk.net.is_disk_slow = rng.random_ratio(1, 4);
        for _ in 0..rng.random_range(2..9) {
            let leg = legs[rng.random_range(0..legs.len())];
            let now = desk.net.now();
            let invites = desk.at_carrier(&Method::Invite).len();
            match rng.random_range(0..9) {
                0 => {
                    let extra = Extra::new().header("Refer-To", format!("<sip:{BOB}@acme.test>"));
                    // Fails without a dialog.
                    let _ = desk.net.phone.request_within(now, leg, Method::Refer, &extra);
                }
                1 => {
                    desk.net.dial(BOB);
                    legs.extend(desk.net.leg);
                }
                2 | 3 if legs.len() > 1 => {
                    let other = legs[rng.random_range(0..legs.len())];
                    if desk.net.phone.dialog_of(other).is_some() && desk.net.phone.dialog_of(leg).is_some() {
                        desk.leg = leg;
                        desk.refer_to_leg(other);
                    }
                }
                4 => desk.net.phone.hang_up(now, leg),
                5 => desk.carrier_hangs_up(rng.random_range(0..invites)),
                6 => desk.carrier_answers(rng.random_range(0..invites)),
                7 => desk.net.wait(Duration::from_secs(rng.random_range(0..40))),
                _ => desk.net.write(),
            }
            if rng.random_ratio(1, 2) {
                desk.net.run();
            }
        }
        desk.net.run();
        desk.net.is_disk_slow = false;
        desk.net.write();
        desk.end();
        let mut calls: Vec<CallId> = desk.net.records.iter().map(|record| record.call_uuid).collect();
        let count = calls.len();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(calls.len(), count, "seed {seed}");
        assert!(!desk.net.ports.0.contains(&PortId(0)), "seed {seed}");
    }
}

/// RFC 3515 §2.4.4: the party that transfers gets the result, though the call ends by the hang-up of the other.
#[test]
fn a_transferee_that_hangs_up_ends_the_transfer_with_a_result() {
    let mut desk = Desk::new([Plan::Ring]);
    desk.refer_to(BOB);
    desk.carrier_hangs_up(0);
    assert_eq!(desk.notified().last().unwrap(), "SIP/2.0 487 Request Terminated");
    assert_eq!(
        desk.last_notify().header("Subscription-State").unwrap().split(';').next(),
        Some("terminated")
    );
    assert_eq!(desk.at_carrier(&Method::Cancel).len(), 1);
    desk.net.wait(Duration::from_secs(200));
    assert_eq!((desk.net.switch.live_calls(), desk.net.switch.legs()), (0, 0));
}
