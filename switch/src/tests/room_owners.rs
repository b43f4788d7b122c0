//! Rooms that one node of several owns, from the view of one node.

use std::time::Duration;

use sidetone_model::ids::RoomId;
use sidetone_sip::edge::NodePass;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Method, Request};
use uuid::Uuid;

use crate::authentication::Sender;
use crate::node_entry::{NodeEntries, NodeEntry};
use crate::queries::{EndCall, ReplaceRoomOwners, TakeWantedRooms};
use crate::room_owner::RoomOwner;
use crate::tests::conference_adapter::{CARRIER, WORLD, with_rooms};
use crate::tests::network::{Net, Plan, address};
use crate::tests::requested::request;
use crate::tests::shared_bindings::sent;

pub(super) const NODE: &str = "10.0.0.2:5070";
pub(super) const NEXT: &str = "10.0.0.3:5070";
pub(super) const INTERNAL: ListenerId = ListenerId(3);

pub(super) fn entries(key: &[u8]) -> NodeEntries {
    NodeEntries { pass: NodePass::new(key), internal: INTERNAL }
}

pub(super) fn net() -> Net {
    Net::with_room(with_rooms(), 1_000, Some(entries(b"key")))
}

pub(super) fn room() -> RoomId {
    RoomId(Uuid::from_u128(51))
}

fn there(fence: u64) -> RoomOwner {
    RoomOwner::There { fence, way: Flow::udp(INTERNAL, address(NODE)), address: address(NODE) }
}

pub(super) fn owner(net: &mut Net, owner: RoomOwner) -> usize {
    net.ask(ReplaceRoomOwners(vec![(room(), owner)]))
}

pub(super) fn wanted(net: &mut Net) -> Vec<RoomId> {
    net.ask(TakeWantedRooms).0.into_iter().map(|(_, room)| room).collect()
}

fn has(net: &Net, status: &str) -> bool {
    net.heard.iter().any(|heard| heard.starts_with(status))
}

/// The INVITE to the other node.
fn joined(net: &Net) -> Option<Request> {
    sent(net, NODE, &Method::Invite).into_iter().next()
}

#[test]
fn a_caller_waits_until_the_room_has_an_owner_and_is_seated_at_this_one() {
    let mut net = net();
    net.dial("200");
    assert!(!has(&net, "200"), "{:?}", net.heard);
    assert_eq!(wanted(&mut net), [room()]);
    assert_eq!(owner(&mut net, RoomOwner::Here(7)), 0);
    assert!(has(&net, "200"), "{:?}", net.heard);
    assert_eq!(net.live_rooms().len(), 1);
    assert_eq!(wanted(&mut net), [room()], "while it is live");
    // The lease has expired: the room ends immediately.
    assert_eq!(owner(&mut net, RoomOwner::Unowned), 1);
    assert_eq!(net.live_rooms().len(), 0);
}

#[test]
fn a_caller_whose_room_gets_no_owner_is_refused() {
    let mut net = net();
    net.dial("200");
    net.wait(Duration::from_secs(6));
    assert!(has(&net, "503"), "{:?}", net.heard);
    assert_eq!(wanted(&mut net), []);
    assert_eq!(net.records.len(), 1);
}

#[test]
fn the_callers_of_one_organisation_have_a_share_of_the_places_to_wait() {
    let mut net = net();
    for _ in 0..250 {
        net.dial("200");
    }
    assert!(!has(&net, "503"), "{:?}", net.heard);
    net.dial("200");
    assert!(has(&net, "503"), "{:?}", net.heard);
}

#[test]
fn a_caller_of_a_room_elsewhere_is_joined_to_its_node_with_a_pass() {
    let mut net = net();
    owner(&mut net, there(9));
    net.dial("200");
    let invite = joined(&net).unwrap();
    assert_eq!(invite.uri(), format!("sip:200@{NODE}"));
    let flow = Flow::udp(INTERNAL, address("10.0.0.1:5070"));
    let entry = entries(b"key").read(&flow, &invite).unwrap();
    assert_eq!((entry.room, entry.fence), (room(), 9));
    assert_eq!(entry.sender, Sender::Extension(Uuid::from_u128(11).into()));
    // Valid only with the key of the cluster, over the listener for nodes, and for this dialog.
    assert_eq!(entries(b"other").read(&flow, &invite), None);
    assert_eq!(entries(b"key").read(&Flow::udp(ListenerId(0), flow.remote), &invite), None);
    let mut replayed = invite.clone();
    replayed.set("Call-ID", "another").unwrap();
    assert_eq!(entries(b"key").read(&flow, &replayed), None);
    let mut forged = invite.clone();
    let text = invite.header("X-Sidetone-Node").unwrap().replacen(" 9 ", " 10 ", 1);
    forged.set("X-Sidetone-Node", text).unwrap();
    assert_eq!(entries(b"key").read(&flow, &forged), None);
}

/// The caller is connected to the first owner, which fails; the second one answers with `plan`.
fn follows(plan: Plan) -> Net {
    let mut net = net();
    net.carrier(NODE, [Plan::Accept]);
    net.carrier(NEXT, [plan]);
    owner(&mut net, there(9));
    net.dial("200");
    assert_eq!(net.heard, ["200"]);
    assert_eq!(owner(&mut net, RoomOwner::Lost), 0);
    assert_eq!(wanted(&mut net), [room()], "its caller here wants it");
    let way = Flow::udp(INTERNAL, address(NEXT));
    owner(&mut net, RoomOwner::There { fence: 12, way, address: address(NEXT) });
    assert_eq!(net.carriers[&address(NODE)].of(&Method::Bye).len(), 1);
    let invite = net.carriers[&address(NEXT)].of(&Method::Invite)[0];
    let entry = entries(b"key").read(&Flow::udp(INTERNAL, address("10.0.0.1:5070")), invite).unwrap();
    assert_eq!((entry.room, entry.fence), (room(), 12));
    assert_eq!(entry.sender, Sender::Extension(Uuid::from_u128(11).into()));
    net
}

#[test]
fn a_caller_follows_its_room_to_the_next_owner() {
    let mut net = follows(Plan::Accept);
    assert_eq!(net.switch.live_calls(), 2, "the caller's, and that to the owner");
    // The next owner also fails, and this node needs an owner for the room.
    owner(&mut net, RoomOwner::Lost);
    assert_eq!(wanted(&mut net), [room()]);
    net.hang_up();
    assert_eq!(net.carriers[&address(NEXT)].of(&Method::Bye).len(), 1);
    assert_eq!((net.switch.live_calls(), wanted(&mut net)), (0, vec![]));
}

#[test]
fn a_caller_whom_the_next_owner_refuses_is_hung_up() {
    let net = follows(Plan::Refuse(503, Vec::new()));
    assert_eq!(net.switch.live_calls(), 0);
}

/// The entry in the INVITE to the node that owns the room.
fn entry_at_node(net: &Net) -> Option<NodeEntry> {
    let invites = net.carriers[&address(NODE)].of(&Method::Invite);
    let invite = invites.first()?;
    entries(b"key").read(&Flow::udp(INTERNAL, address("10.0.0.1:5070")), invite)
}

#[test]
fn the_call_of_a_program_reaches_a_room_at_another_node() {
    let mut net = net();
    net.register();
    net.carrier(NODE, [Plan::Accept]);
    owner(&mut net, there(9));
    let call = net.place(request("200"));
    assert_eq!(entry_at_node(&net), None, "the phone has not answered");
    net.pick_up();
    net.run();
    let entry = entry_at_node(&net).unwrap();
    assert_eq!((entry.room, entry.fence), (room(), 9));
    assert_eq!(entry.sender, Sender::Extension(Uuid::from_u128(11).into()));
    assert_eq!(net.live_rooms().len(), 0, "it is not live here");
    assert!(net.ask(EndCall(call)));
    net.run();
    assert_eq!(net.carriers[&address(NODE)].of(&Method::Bye).len(), 1);
    assert_eq!((net.records.len(), net.switch.live_calls()), (1, 0));
}

#[test]
fn a_party_is_moved_into_a_room_at_another_node_alone() {
    let mut net = net();
    net.carrier(NODE, [Plan::Accept]);
    net.carrier(CARRIER, [Plan::Accept]);
    owner(&mut net, there(9));
    net.dial(WORLD);
    let live = net.live().remove(0);
    // The carrier's party is moved there, on behalf of the extension; the phone is hung up.
    let leg = live.legs.iter().find(|leg| leg.number.as_deref() == Some(WORLD)).unwrap().uuid;
    assert_eq!(net.move_to(live.uuid, Some(leg), 51), Ok(live.uuid));
    let entry = entry_at_node(&net).unwrap();
    assert_eq!((entry.room, entry.sender), (room(), Sender::Extension(Uuid::from_u128(11).into())));
    assert_eq!(net.heard, ["200", "BYE"]);
    assert_eq!(net.live().len(), 2, "the carrier's, and that to the owner");
    assert_eq!(net.live_rooms().len(), 0);
}
