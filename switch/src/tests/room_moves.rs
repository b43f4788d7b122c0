//! Rooms that are moved to another node, and callers who key the number of a room at another node.

use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::room::{Control, ControlRefused, Role, RoomName};
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{Method, Request};
use uuid::Uuid;

use crate::authentication::Sender;
use crate::machine::Input;
use crate::node_entry::NodeEntry;
use crate::queries::{ControlRoom, ExpectRoom, HandOverRoom, KeepRoom};
use crate::room_owner::RoomOwner;
use crate::room_state::{MemberState, RoomState};
use crate::tests::conference_adapter::room_id;
use crate::tests::network::{Net, Plan, address};
use crate::tests::room_owners::{INTERNAL, NEXT, NODE, entries, net, owner, room, wanted};

/// The number that asks for a room's number.
const ASKS: &str = "+442071230002";

pub(super) fn at(node: &str, fence: u64) -> RoomOwner {
    RoomOwner::There { fence, way: Flow::udp(INTERNAL, address(node)), address: address(node) }
}

/// A caller of the carrier dials that number.
fn asks(net: &mut Net) {
    assert_eq!(net.call_in(ASKS, "+447700900999", ""), 200);
}

pub(super) fn invites<'n>(net: &'n Net, node: &str) -> Vec<&'n Request> {
    net.carriers.get(&address(node)).map(|node| node.of(&Method::Invite)).unwrap_or_default()
}

pub(super) fn byes(net: &Net, node: &str) -> usize {
    net.carriers[&address(node)].of(&Method::Bye).len()
}

/// The assertion in the last INVITE to a node.
fn entry_at(net: &Net, node: &str) -> Option<NodeEntry> {
    let flow = Flow::udp(INTERNAL, address("10.0.0.1:5070"));
    entries(b"key").read(&flow, invites(net, node).last()?)
}

pub(super) fn member(seat: &str) -> MemberState {
    MemberState {
        seat: seat.into(),
        is_moderator: false,
        unasked: false,
        tries: 0,
        muted: false,
        by_all: false,
        mute_locked: false,
        deaf: false,
        on_hold: false,
        gain_db: 0,
        automatic_gain: false,
        whisper_to: None,
    }
}

pub(super) fn state(room: u128, members: Vec<MemberState>) -> RoomState {
    RoomState { room: room_id(room), locked: true, all_muted: false, recording: false, channels: 1, members }
}

#[test]
fn a_caller_who_keys_a_room_at_another_node_is_joined_to_it() {
    let mut net = net();
    net.carrier(NODE, [Plan::Accept]);
    asks(&mut net);
    net.key(1, "200#");
    assert_eq!(wanted(&mut net), [room()], "the caller waits for its node");
    assert_eq!(owner(&mut net, at(NODE, 9)), 0);
    let entry = entry_at(&net, NODE).unwrap();
    assert!(matches!(entry.sender, Sender::Trunk(_)), "{entry:?}");
    assert_eq!((entry.room, entry.fence, entry.seat), (room(), 9, None));
    assert!(net.heard_of_rooms().ends_with("1 leaves"), "it hears the other node alone");
    assert_eq!((net.switch.live_calls(), net.live_rooms().len()), (2, 0));
    assert!(net.switch.control.conferences.seats.is_empty());
    // The caller follows the room to the next node.
    net.carrier(NEXT, [Plan::Accept]);
    owner(&mut net, RoomOwner::Lost);
    owner(&mut net, at(NEXT, 12));
    assert_eq!((byes(&net, NODE), invites(&net, NEXT).len()), (1, 1));
    assert_eq!(net.switch.live_calls(), 2);
}

#[test]
fn a_caller_who_keys_a_room_at_this_node_is_seated_and_one_with_a_pin_is_asked_for_it() {
    let mut net = net();
    owner(&mut net, RoomOwner::Here(7));
    asks(&mut net);
    net.key(1, "200#");
    assert_eq!(net.live_rooms().len(), 1);
    assert_eq!(wanted(&mut net), [room()]);
    asks(&mut net);
    net.key(2, "300#");
    assert_eq!(wanted(&mut net), [room(), room_id(52)]);
    net.heard_of_rooms();
    net.ask(crate::queries::ReplaceRoomOwners(vec![(room_id(52), RoomOwner::Here(8))]));
    assert_eq!(net.heard_of_rooms(), "2 is told enter-pin");
    assert_eq!(wanted(&mut net), [room(), room_id(52)], "while it is asked");
    net.key(2, "1234#");
    assert_eq!(net.live_rooms().len(), 2);
}

#[test]
fn a_caller_who_keys_a_room_that_no_node_takes_is_told_so_and_hung_up() {
    // No node owns it in time.
    let mut net = net();
    asks(&mut net);
    net.key(1, "200#");
    net.wait(Duration::from_secs(6));
    assert!(net.heard_of_rooms().ends_with("1 is told goodbye"));
    assert_eq!((net.records.len(), wanted(&mut net)), (1, vec![]));
    assert_eq!(net.records[0].hangup_cause, Some(HangupCause::NormalTemporaryFailure));
    // The node of the room refuses the caller.
    net.carrier(NODE, [Plan::Refuse(503, Vec::new())]);
    asks(&mut net);
    net.key(2, "200#");
    owner(&mut net, at(NODE, 9));
    assert!(net.heard_of_rooms().ends_with("2 is told goodbye"));
    // The node of the room does not respond.
    net.carrier(NODE, []);
    net.carriers.remove(&address(NODE));
    asks(&mut net);
    net.key(4, "200#");
    net.wait(Duration::from_secs(12));
    assert_eq!(net.switch.live_calls(), 0);
}

/// 1001 is alone in the locked room, muted, and the room is handed over.
fn handed_over() -> (Net, RoomState) {
    let mut net = net();
    owner(&mut net, RoomOwner::Here(7));
    net.dial("200");
    for control in [Control::Mute(1), Control::Lock] {
        net.ask(ControlRoom(RoomName::Stored(room()), control)).unwrap();
    }
    let state = net.ask(HandOverRoom(room())).unwrap();
    assert_eq!(net.ask(HandOverRoom(room())), None, "it is under way");
    let refused = net.ask(ControlRoom(RoomName::Stored(room()), Control::Unlock));
    assert_eq!(refused, Err(ControlRefused::Busy));
    (net, state)
}

#[test]
fn a_room_goes_to_the_next_node_with_its_state_and_its_members() {
    let (mut net, state) = handed_over();
    assert_eq!((state.room, state.locked, state.members.len()), (room(), true, 1));
    assert!(state.members[0].muted && !state.members[0].is_moderator);
    assert_eq!(owner(&mut net, RoomOwner::Unowned), 0, "it goes on until the next owner is known");
    assert_eq!(net.live_rooms().len(), 1);
    net.carrier(NODE, [Plan::Accept]);
    owner(&mut net, at(NODE, 9));
    let entry = entry_at(&net, NODE).unwrap();
    assert_eq!((entry.fence, entry.seat.as_ref()), (9, Some(&state.members[0].seat)));
    assert_eq!((net.live_rooms().len(), net.switch.live_calls()), (0, 2));
    net.wait(Duration::from_secs(10));
    assert_eq!(net.heard, ["200"], "its member has noticed nothing");
    net.hang_up();
    assert_eq!((byes(&net, NODE), net.switch.live_calls()), (1, 0));
}

#[test]
fn a_member_whom_the_next_node_refuses_is_told_that_the_room_is_over() {
    let (mut net, _) = handed_over();
    net.carrier(NODE, [Plan::Refuse(503, Vec::new())]);
    owner(&mut net, at(NODE, 9));
    assert_eq!(net.live_rooms().len(), 1);
    net.heard_of_rooms();
    net.wait(Duration::from_secs(7));
    assert!(net.heard_of_rooms().contains("is told ended"));
    assert_eq!((net.heard.last().map(String::as_str), net.live_rooms().len()), (Some("BYE"), 0));
}

#[test]
fn a_room_stays_when_no_node_takes_it_or_the_next_owner_dies() {
    let (mut net, _) = handed_over();
    net.ask(KeepRoom(room()));
    net.wait(Duration::from_secs(10));
    net.ask(ControlRoom(RoomName::Stored(room()), Control::Unlock)).unwrap();
    // The next owner does not respond, because it has failed; this node owns the room again.
    net.ask(HandOverRoom(room())).unwrap();
    owner(&mut net, RoomOwner::Unowned);
    owner(&mut net, at(NODE, 9));
    net.wait(Duration::from_secs(3));
    owner(&mut net, RoomOwner::Lost);
    assert_eq!(wanted(&mut net), [room()]);
    owner(&mut net, RoomOwner::Here(12));
    net.wait(Duration::from_secs(20));
    assert_eq!((net.heard.clone(), net.live_rooms().len()), (vec!["200".to_owned()], 1));
    assert_eq!(net.switch.live_calls(), 1, "the call to the dead node is over");
    net.ask(ControlRoom(RoomName::Stored(room()), Control::Lock)).unwrap();
}

#[test]
fn a_room_without_an_owner_ends_before_its_lease_is_over() {
    let (mut net, _) = handed_over();
    owner(&mut net, RoomOwner::Unowned);
    net.wait(Duration::from_secs(3));
    assert_eq!((net.heard.last().map(String::as_str), net.live_rooms().len()), (Some("BYE"), 0));
    assert_eq!(owner(&mut net, RoomOwner::Unowned), 1, "it is counted");
}

/// The INVITE of another node for 1001, who had this seat.
fn comes_from_node(net: &mut Net, seat: &str, call_id: &str) {
    let uri = "sip:300@198.51.100.1:5070";
    let text = format!("extension {} {} 5 {seat}", Uuid::from_u128(11), room_id(52));
    let pass = entries(b"key").pass.sign(&[text.as_bytes(), call_id.as_bytes(), uri.as_bytes()]);
    let sdp =
        "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 8\r\n";
    let invite = format!(
        "INVITE {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {NODE};branch=z9hG4bK{call_id}\r\nMax-Forwards: 70\r\n\
         From: <sip:1001@10.0.0.2>;tag=1\r\nTo: <{uri}>\r\nCall-ID: {call_id}\r\nCSeq: 1 INVITE\r\n\
         Contact: <sip:{NODE}>\r\nX-Sidetone-Node: {text} {pass}\r\nContent-Type: application/sdp\r\n\
         Content-Length: {}\r\n\r\n{sdp}",
        sdp.len()
    );
    net.carriers.entry(address(NODE)).or_default();
    let flow = Flow::udp(INTERNAL, address(NODE));
    net.feed(Input::Datagram { flow, bytes: invite.into() });
    net.run();
}

#[test]
fn a_member_of_a_room_that_is_taken_over_has_its_seat_again_without_its_pin() {
    let mut net = net();
    let kept = [
        MemberState { is_moderator: true, whisper_to: Some("two".into()), ..member("one") },
        MemberState { muted: true, mute_locked: true, gain_db: -6, ..member("two") },
    ];
    assert!(net.ask(ExpectRoom(state(52, kept.to_vec()))));
    let own = |net: &mut Net, owner| net.ask(crate::queries::ReplaceRoomOwners(vec![(room_id(52), owner)]));
    own(&mut net, at(NEXT, 3));
    comes_from_node(&mut net, "one", "a");
    assert_ne!(net.told.last().map(|told| told.status().as_u16()), Some(200), "the owner is not known yet");
    own(&mut net, RoomOwner::Unowned);
    own(&mut net, RoomOwner::Here(5));
    assert_eq!(net.told.last().map(|told| told.status().as_u16()), Some(200));
    let live = net.live_rooms().remove(0);
    assert!(live.locked && live.members[0].role == Role::Moderator, "{live:#?}");
    assert_eq!(live.members[0].whisper_to, None, "whom it whispers to is not here yet");
    assert!(net.heard_of_rooms().contains("joins, hears Room, muted"), "and no other member hears it");
    comes_from_node(&mut net, "two", "b");
    let live = net.live_rooms().remove(0);
    let two = &live.members[1];
    assert!(two.muted && two.mute_locked && two.gain.gain_db == -6 && two.role == Role::Participant);
    assert_eq!(live.members[0].whisper_to, Some(two.id));
    assert!(!net.heard_of_rooms().contains("is told"), "no prompt, and no chime");
    // A caller who was not in the room is asked for the PIN.
    comes_from_node(&mut net, "three", "c");
    assert!(net.heard_of_rooms().ends_with("is told enter-pin"));
    assert_eq!(net.live_rooms()[0].members.len(), 2);
}

#[test]
fn a_whisperer_whose_listener_does_not_come_is_muted() {
    let mut net = net();
    let one = MemberState { whisper_to: Some("two".into()), ..member("one") };
    assert!(net.ask(ExpectRoom(state(52, vec![one, member("two")]))));
    net.ask(crate::queries::ReplaceRoomOwners(vec![(room_id(52), RoomOwner::Here(5))]));
    comes_from_node(&mut net, "one", "a");
    assert!(!net.live_rooms()[0].members[0].muted);
    net.wait(Duration::from_secs(9));
    let live = net.live_rooms().remove(0);
    assert!(live.members[0].muted && live.members[0].whisper_to.is_none(), "{live:#?}");
}

#[test]
fn a_caller_goes_with_its_room_from_node_to_node_and_back_here() {
    let mut net = net();
    net.carrier(NODE, [Plan::Accept]);
    owner(&mut net, at(NODE, 9));
    net.dial("200");
    for round in 0..4 {
        // To the next node: the name of the seat is the Call-ID of the caller's call to the former node.
        let before = invites(&net, NODE).last().unwrap().call_id().to_owned();
        net.carrier(NEXT, [Plan::Accept]);
        owner(&mut net, at(NEXT, 20 + round * 10));
        assert_eq!(entry_at(&net, NEXT).unwrap().seat, Some(before));
        assert_eq!(byes(&net, NODE), round as usize + 1);
        // To this node.
        let seat = invites(&net, NEXT).last().unwrap().call_id().to_owned();
        assert!(net.ask(ExpectRoom(state(51, vec![MemberState { muted: true, ..member(&seat) }]))));
        owner(&mut net, RoomOwner::Unowned);
        owner(&mut net, RoomOwner::Here(23 + round * 10));
        assert_eq!(byes(&net, NEXT), round as usize + 1);
        let live = net.live_rooms().remove(0);
        assert!(live.locked && live.members[0].muted, "{live:#?}");
        assert_eq!(net.switch.live_calls(), 1);
        // And to the first node again.
        net.ask(HandOverRoom(room())).unwrap();
        net.carrier(NODE, [Plan::Accept]);
        owner(&mut net, at(NODE, 25 + round * 10));
        assert_eq!((net.live_rooms().len(), net.switch.live_calls()), (0, 2));
    }
    assert_eq!(net.heard, ["200"], "through twelve moves");
    net.hang_up();
    assert_eq!(net.switch.live_calls(), 0);
}
