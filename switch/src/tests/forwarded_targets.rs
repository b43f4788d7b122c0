//! Forwarding of an extension that a transfer, a program or a room calls.

use std::time::Duration;

use sidetone_model::call::{Direction, EndedBy, HangupCause};
use sidetone_model::call_request::{CallOrder, RequestedCall};
use sidetone_model::directory::DirectorySnapshot;
use sidetone_model::forwarding::{ForwardReason, Forwarding};
use sidetone_model::ids::CallId;
use sidetone_model::room::{Control, ControlRefused, DialKind, DialRequest, Role, RoomName};
use sidetone_sip::message::{Method, Request};
use sidetone_sip::registrar::Registration;

use crate::machine::Input;
use crate::queries::{CheckCall, ControlRoom, DialIntoRoom, PlaceCall};
use crate::tests::conference_adapter::{CARRIER, room_id, with_rooms};
use crate::tests::network::{Net, Plan, address, extension};
use crate::tests::transfers::{ANN, BOB, Desk, one_of};

/// The phones of 1002.
const SECOND: &str = "192.0.2.2:5060";

/// Rooms, and the extensions 1001, 1002 and 1003; 1002 has these settings.
fn directory(forwarding: Forwarding) -> DirectorySnapshot {
    let mut directory = with_rooms();
    directory.extensions.push(extension(12, 1, "acme.test", "1002"));
    directory.extensions.push(extension(13, 1, "acme.test", "1003"));
    directory.extensions[1].forwarding = forwarding;
    directory
}

fn to(target: &str) -> Option<String> {
    Some(target.to_owned())
}

/// Registers the phone of 1002, which answers calls by `plan`.
fn register(net: &mut Net, plan: Plan) {
    let flow = net.flow_of(SECOND);
    let register = Request::builder(Method::Register, "sip:acme.test")
        .header("Call-ID", "second")
        .header("CSeq", "1 REGISTER")
        .header("Contact", format!("<sip:1002@{SECOND}>"))
        .build()
        .unwrap();
    let registration = Registration::from_request(&register, flow).unwrap();
    net.switch.shared.registrar.register(net.now(), "1002@acme.test", registration).unwrap();
    net.carrier(SECOND, [plan]).options = Some(200);
}

fn calls_at<'a>(net: &'a Net, at: &str) -> Vec<&'a Request> {
    net.carriers.get(&address(at)).map(|carrier| carrier.of(&Method::Invite)).unwrap_or_default()
}

/// The settings under which a call to 1002 is forwarded to the number, the plan of its phone (`None`: no phone is
/// registered), the time until then, and the reason.
fn cases(target: &str) -> [(Forwarding, Option<Plan>, u64, ForwardReason); 5] {
    let none = Forwarding::default;
    let busy = || Forwarding { busy: to(target), ..none() };
    let no_answer = || Forwarding { no_answer: to(target), no_answer_seconds: 5, ..none() };
    [
        (Forwarding { always: to(target), ..none() }, Some(Plan::Accept), 0, ForwardReason::Always),
        (busy(), Some(Plan::Refuse(486, Vec::new())), 0, ForwardReason::Busy),
        (no_answer(), Some(Plan::Ring), 5, ForwardReason::NoAnswer),
        (no_answer(), Some(Plan::Refuse(480, Vec::new())), 0, ForwardReason::NoAnswer),
        (Forwarding { unregistered: to(target), ..none() }, None, 0, ForwardReason::Unregistered),
    ]
}

#[test]
fn the_target_of_a_transfer_forwards_the_call() {
    for (forwarding, plan, waited, reason) in cases(BOB) {
        let mut desk = Desk::with(directory(forwarding), [Plan::Accept]);
        plan.into_iter().for_each(|plan| register(&mut desk.net, plan));
        desk.refer_to("1002");
        desk.net.wait(Duration::from_secs(waited));
        assert_eq!(desk.net.heard, ["202 Accepted", "BYE"], "{reason:?}");
        let notified = desk.notified();
        assert_eq!(
            (notified[0].as_str(), notified.last().unwrap().as_str()),
            ("SIP/2.0 100 Trying", "SIP/2.0 200 OK"),
            "{reason:?}"
        );
        assert_eq!(notified.len(), if waited > 0 { 3 } else { 2 }, "181 is no ringing: {notified:?}");
        let onward = calls_at(&desk.net, CARRIER)[1].clone();
        assert!(onward.header("Diversion").unwrap().starts_with("<sip:1002@acme.test>"), "{reason:?}");
        let ann = desk.bridges().last().unwrap().1;
        assert!(ann == 2, "{reason:?}: {:?}", desk.bridges());
        desk.net.wait(Duration::from_secs(4));
        desk.carrier_hangs_up(1);
        let (first, second) = (one_of(&desk.net.records, ANN), one_of(&desk.net.records, BOB));
        assert_eq!(
            (second.forwarded_by.as_deref(), second.forward_reason, second.billsec),
            (Some("1002"), Some(reason), 4)
        );
        assert_eq!(second.extension_id, Some(extension(11, 1, "", "").id), "the party that transferred");
        assert_eq!(second.called.unwrap().extension_id, extension(12, 1, "", "").id);
        assert_eq!(first.transferred_to, Some(second.call_uuid));
        desk.end();
    }
}

/// The phone of 1002 redirects the transferred call.
#[test]
fn the_target_of_a_transfer_redirects_the_call() {
    let mut desk = Desk::with(directory(Forwarding::default()), [Plan::Accept]);
    let contact = vec![("Contact", format!("<sip:{BOB}@acme.test>"))];
    register(&mut desk.net, Plan::Refuse(302, contact));
    desk.refer_to("1002");
    assert_eq!(desk.notified().last().unwrap(), "SIP/2.0 200 OK");
    desk.end();
    let record = one_of(&desk.net.records, BOB);
    assert_eq!(record.forward_reason, Some(ForwardReason::Redirected));
}

#[test]
fn a_transfer_that_is_forwarded_in_a_circle_fails() {
    let circle = Forwarding { busy: to("1003"), ..Forwarding::default() };
    let mut directory = directory(circle);
    directory.extensions[2].forwarding.always = to("1002");
    let mut desk = Desk::with(directory, [Plan::Accept]);
    register(&mut desk.net, Plan::Refuse(486, Vec::new()));
    desk.refer_to("1002");
    assert_eq!(desk.net.heard, ["202 Accepted"], "Ann's call goes on");
    assert_eq!(desk.notified().last().unwrap(), "SIP/2.0 486 Busy Here");
    assert_eq!((calls_at(&desk.net, CARRIER).len(), calls_at(&desk.net, SECOND).len()), (1, 1));
    desk.end();
}

#[test]
fn a_transfer_that_is_forwarded_into_a_room_seats_the_transferred_party() {
    for (forwarding, plan, waited, reason) in cases("200") {
        let mut desk = Desk::with(directory(forwarding), [Plan::Accept]);
        plan.into_iter().for_each(|plan| register(&mut desk.net, plan));
        desk.refer_to("1002");
        desk.net.wait(Duration::from_secs(waited));
        assert_eq!(desk.net.heard, ["202 Accepted", "BYE"], "{reason:?}");
        assert_eq!(desk.notified().last().unwrap(), "SIP/2.0 200 OK", "{reason:?}");
        let room = desk.net.live_room(RoomName::Stored(room_id(51))).unwrap();
        assert_eq!((room.members.len(), room.members[0].number.as_str()), (1, ANN), "{reason:?}");
        assert_eq!(desk.net.switch.live_calls(), 1, "{reason:?}");
        desk.end();
    }
}

/// A call to 1002 that a program requested for 1001.
fn place(net: &mut Net, number: &str) -> CallId {
    let from = extension(11, 1, "", "").id;
    let requested = RequestedCall {
        from: "1001".into(),
        to: number.into(),
        ring_seconds: 30,
        ..RequestedCall::default()
    };
    let checked = net.ask(CheckCall(from, requested.clone())).unwrap();
    assert!(checked.warnings.is_empty(), "{:?}", checked.warnings);
    let call = checked.call;
    net.ask(PlaceCall(CallOrder { call, from, requested })).unwrap();
    net.run();
    call
}

fn site(directory: DirectorySnapshot) -> Net {
    let mut net = Net::new(directory);
    net.register();
    net.heard.clear();
    net.carrier(CARRIER, [Plan::Accept]);
    net
}

fn end(net: &mut Net) {
    net.feed(Input::EndCalls(HangupCause::NormalClearing));
    net.run();
    net.wait(Duration::from_secs(200));
    assert_eq!((net.switch.live_calls(), net.switch.legs()), (0, 0));
    assert!(net.switch.control.calls.is_empty() && net.switch.control.calls.has_no_outbound());
}

#[test]
fn the_target_of_a_requested_call_forwards_it() {
    for (forwarding, plan, waited, reason) in cases(BOB) {
        let mut net = site(directory(forwarding));
        plan.into_iter().for_each(|plan| register(&mut net, plan));
        let call = place(&mut net, "1002");
        assert!(calls_at(&net, CARRIER).is_empty() && calls_at(&net, SECOND).is_empty());
        net.pick_up();
        net.wait(Duration::from_secs(waited));
        assert_eq!(net.requests.last().unwrap(), "answered", "{reason:?}");
        assert_eq!(calls_at(&net, CARRIER)[0].uri(), format!("sip:{BOB}@{CARRIER}"));
        net.wait(Duration::from_secs(3));
        end(&mut net);
        let record = &net.records[0];
        assert_eq!((record.call_uuid, record.direction), (call, Direction::Outbound), "{reason:?}");
        assert_eq!((record.caller_number.as_deref(), record.billsec), (Some("1001"), 3));
        assert_eq!(
            (record.dialled_number.as_deref(), record.destination_number.as_deref()),
            (Some("1002"), Some(BOB))
        );
        assert_eq!((record.forwarded_by.as_deref(), record.forward_reason), (Some("1002"), Some(reason)));
        assert_eq!(record.extension_id, Some(extension(11, 1, "", "").id), "the extension of `from`");
        assert_eq!(net.requests.last().unwrap(), "completed");
    }
}

#[test]
fn a_requested_call_is_forwarded_into_a_room() {
    for (forwarding, plan, waited, reason) in cases("200") {
        let mut net = site(directory(forwarding));
        plan.into_iter().for_each(|plan| register(&mut net, plan));
        place(&mut net, "1002");
        net.pick_up();
        net.wait(Duration::from_secs(waited));
        let room = net.live_room(RoomName::Stored(room_id(51))).unwrap();
        assert_eq!((room.members.len(), room.members[0].number.as_str()), (1, "1001"), "{reason:?}");
        assert_eq!(net.requests.last().unwrap(), "answered");
        end(&mut net);
    }
}

/// The phones of the calling party ring themselves: neither their extension nor the phones forward the call.
#[test]
fn the_calling_party_of_a_request_is_not_forwarded() {
    let mut directory = directory(Forwarding::default());
    directory.extensions[0].forwarding =
        Forwarding { always: to(BOB), busy: to(BOB), ..Forwarding::default() };
    let mut net = site(directory);
    place(&mut net, ANN);
    assert_eq!(net.called.len(), 1);
    for (status, ended) in [(486, "failed busy"), (302, "failed")] {
        let contact = format!("<sip:{BOB}@acme.test>");
        let reply = sidetone_sip::ua::Reply::new(sidetone_sip::message::StatusCode::new(status).unwrap());
        net.refusal = Some(reply.header("Contact", contact));
        place(&mut net, ANN);
        assert!(net.requests.last().unwrap().starts_with(ended), "{:?}", net.requests);
        assert!(calls_at(&net, CARRIER).is_empty(), "{status}");
    }
    end(&mut net);
}

fn dial(net: &mut Net, target: &str) -> Result<String, ControlRefused> {
    let request = DialRequest {
        kind: DialKind::Extension,
        target: target.into(),
        role: Role::Moderator,
        confirm: false,
    };
    net.ask(DialIntoRoom(room_id(51), request)).map(|dialled| dialled.target)
}

fn seats(net: &mut Net) -> Vec<(String, Role)> {
    let room = net.live_room(RoomName::Stored(room_id(51)));
    room.into_iter().flat_map(|room| room.members).map(|member| (member.number, member.role)).collect()
}

/// The party that answers instead of the extension is asked to press 1, and becomes a participant.
#[test]
fn a_target_of_a_room_forwards_the_call_and_the_new_one_confirms() {
    for (forwarding, plan, waited, reason) in cases(BOB) {
        for confirms in [true, false] {
            let mut net = Net::new(directory(forwarding.clone()));
            net.carrier(CARRIER, [Plan::Accept]);
            plan.clone().into_iter().for_each(|plan| register(&mut net, plan));
            dial(&mut net, "1002").unwrap();
            net.wait(Duration::from_secs(waited));
            assert_eq!(calls_at(&net, CARRIER).len(), 1, "{reason:?}");
            assert_eq!(seats(&mut net), [], "{reason:?}");
            let ports = net.switch.control.calls.ids();
            let port = net.switch.control.calls.get(ports[0]).unwrap().call.ports().last().unwrap();
            if confirms {
                net.key(port.0, "1");
                assert_eq!(seats(&mut net), [(BOB.to_owned(), Role::Participant)], "{reason:?}");
                net.ask(ControlRoom(RoomName::Stored(room_id(51)), Control::End)).unwrap();
            } else {
                net.wait(Duration::from_secs(45));
                assert_eq!(net.switch.live_calls(), 0, "a mailbox is hung up");
            }
            end(&mut net);
            let record = &net.records[0];
            assert_eq!((record.forwarded_by.as_deref(), record.forward_reason), (Some("1002"), Some(reason)));
            assert_eq!(record.extension_id, Some(extension(12, 1, "", "").id));
        }
    }
}

/// A room does not call another room, nor itself.
#[test]
fn a_target_of_a_room_that_forwards_into_a_room_is_not_reached() {
    for (forwarding, plan, waited, reason) in cases("200") {
        let rings_on = reason == ForwardReason::NoAnswer && waited > 0;
        let mut net = Net::new(directory(forwarding));
        plan.into_iter().for_each(|plan| register(&mut net, plan));
        let _ = dial(&mut net, "1002");
        net.wait(Duration::from_secs(waited));
        assert_eq!(net.switch.live_calls(), usize::from(rings_on), "{reason:?}");
        net.wait(Duration::from_secs(60));
        assert_eq!((seats(&mut net).len(), net.switch.live_calls()), (0, 0), "{reason:?}");
        assert!(net.records.iter().all(|record| record.ended_by != Some(EndedBy::Caller)));
        end(&mut net);
    }
}

/// The room rings its default members again until they can be reached.
#[test]
fn a_default_member_is_rung_at_its_own_phones() {
    let mut directory = directory(Forwarding {
        always: to(BOB),
        busy: to(BOB),
        unregistered: to(BOB),
        ..Forwarding::default()
    });
    directory.rooms[0].members = vec![extension(12, 1, "", "").id];
    let mut net = site(directory);
    net.dial("200");
    assert!(net.heard_of_rooms().contains("news invite 1002 waiting unregistered"));
    assert!(calls_at(&net, CARRIER).is_empty());
    register(&mut net, Plan::Refuse(486, Vec::new()));
    net.wait(Duration::from_secs(40));
    assert!(!calls_at(&net, SECOND).is_empty());
    assert!(calls_at(&net, CARRIER).is_empty());
    end(&mut net);
}
