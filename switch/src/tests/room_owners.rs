//! Rooms that one node of several owns, as a node sees them.

use std::time::Duration;

use sidetone_model::ids::RoomId;
use sidetone_sip::edge::NodePass;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Method, Request};
use uuid::Uuid;

use crate::authentication::Sender;
use crate::node_entry::NodeEntries;
use crate::queries::{ReplaceRoomOwners, TakeWantedRooms};
use crate::room_owner::RoomOwner;
use crate::room_owners::RoomOwners;
use crate::tests::conference_adapter::with_rooms;
use crate::tests::network::{Net, address};
use crate::tests::shared_bindings::sent;

const NODE: &str = "10.0.0.2:5070";
const INTERNAL: ListenerId = ListenerId(3);

fn entries(key: &[u8]) -> NodeEntries {
    NodeEntries { pass: NodePass::new(key), internal: INTERNAL }
}

fn net() -> Net {
    let mut net = Net::new(with_rooms());
    net.switch.room_owners = RoomOwners::new(Some(entries(b"key")));
    net
}

fn room() -> RoomId {
    RoomId(Uuid::from_u128(51))
}

fn there(fence: u64) -> RoomOwner {
    RoomOwner::There { fence, way: Flow::udp(INTERNAL, address(NODE)), address: address(NODE) }
}

fn owner(net: &mut Net, owner: RoomOwner) -> usize {
    net.ask(ReplaceRoomOwners(vec![(room(), owner)]))
}

fn wanted(net: &mut Net) -> Vec<RoomId> {
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
    // The lease has run out: the room is over at once.
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
    // Only with the key of the cluster, over the listener for nodes, and for this very dialog.
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
