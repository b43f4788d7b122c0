//! Both parties of a call are moved into a room at another node, and rooms with both parties of a call are moved to
//! another node.

use std::time::Duration;

use sidetone_model::ids::CallId;
use sidetone_sip::message::Method;

use crate::io::MediaCommand;
use crate::node_entry::NodeEntry;
use crate::queries::{ExpectRoom, HandOverRoom};
use crate::room_owner::RoomOwner;
use crate::tests::conference_adapter::{CARRIER, WORLD};
use crate::tests::network::{Net, OfRooms, Plan, address};
use crate::tests::operations::refused;
use crate::tests::room_moves::{at, byes, invites, member, state};
use crate::tests::room_owners::{INTERNAL, NEXT, NODE, entries, net, owner, room, wanted};
use sidetone_sip::flow::Flow;

/// 1001 talks to an outside number.
fn talks(net: &mut Net) -> CallId {
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    assert_eq!(net.heard, ["200"]);
    net.live().remove(0).uuid
}

/// Both are moved into the room, which NODE owns.
fn moved(plans: [Plan; 2]) -> (Net, CallId) {
    let mut net = net();
    net.carrier(NODE, plans);
    owner(&mut net, at(NODE, 9));
    let call = talks(&mut net);
    assert_eq!(net.move_to(call, None, 51), Ok(call));
    (net, call)
}

/// The assertions in the INVITEs to a node.
fn entries_at(net: &Net, node: &str) -> Vec<NodeEntry> {
    let flow = Flow::udp(INTERNAL, address("10.0.0.1:5070"));
    invites(net, node).into_iter().map(|invite| entries(b"key").read(&flow, invite).unwrap()).collect()
}

/// The open ports that are bridged to others, by the last command to each.
fn bridged(net: &Net) -> Vec<(u64, u64)> {
    let mut bridges = std::collections::BTreeMap::new();
    for output in &net.of_rooms {
        match output {
            OfRooms::Media(port, MediaCommand::Bridge { peer, .. }) => {
                bridges.insert(port.0, peer.0);
            }
            OfRooms::Media(port, MediaCommand::Unbridge | MediaCommand::Join { .. }) => {
                bridges.remove(&port.0);
            }
            _ => {}
        }
    }
    let legs = net.switch.control.calls.iter().flat_map(|live| live.call.parties().legs());
    let open: Vec<u64> = legs.filter(|(_, leg)| leg.is_open()).map(|(_, leg)| leg.port().0).collect();
    bridges.into_iter().filter(|(port, _)| open.contains(port)).collect()
}

/// The party at the carrier hangs up.
fn carrier_hangs_up(net: &mut Net) {
    assert_eq!(net.carrier_says(CARRIER, "BYE", 7, None), 200);
}

#[test]
fn both_parties_are_moved_into_a_room_at_another_node() {
    let (mut net, call) = moved([Plan::Accept, Plan::Accept]);
    let entries = entries_at(&net, NODE);
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| (entry.room, entry.fence) == (room(), 9)), "{entries:?}");
    assert_eq!((net.heard.clone(), net.live().len()), (vec!["200".to_owned()], 3));
    assert_eq!(
        bridged(&net),
        [(1, 3), (2, 4), (3, 1), (4, 2)],
        "each party hears its seat, and not the other"
    );
    // They are in the room: a program must use the operations of the room.
    assert_eq!(refused(net.hold(call, None)), "conflict");
    assert_eq!(refused(net.move_to(call, None, 51)), "conflict");
    net.wait(Duration::from_secs(20));
    // Each party leaves separately.
    net.hang_up();
    assert_eq!((byes(&net, NODE), net.live().len()), (1, 2));
    assert_eq!(bridged(&net), [(2, 4), (4, 2)]);
    carrier_hangs_up(&mut net);
    assert_eq!((byes(&net, NODE), net.switch.live_calls()), (2, 0));
    assert_eq!(net.records.len(), 3);
    let first = net.records.iter().find(|record| record.call_uuid == call).unwrap();
    assert!(first.transferred_to.is_some() && first.billsec >= 20, "{first:#?}");
    let from = net.records.iter().filter(|record| record.transferred_from == Some(call));
    assert_eq!(from.count(), 2, "each leg to the node names the call");
}

#[test]
fn a_seat_that_ends_at_the_node_hangs_up_its_party_alone() {
    let (mut net, _) = moved([Plan::Accept, Plan::Accept]);
    assert_eq!(net.carrier_says(NODE, "BYE", 7, None), 200);
    assert_eq!((net.heard.clone(), net.live().len()), (vec!["200".to_owned(), "BYE".to_owned()], 2));
    assert_eq!(bridged(&net), [(2, 4), (4, 2)]);
    carrier_hangs_up(&mut net);
    assert_eq!((byes(&net, NODE), net.switch.live_calls(), net.records.len()), (1, 0, 3));
}

#[test]
fn parties_whom_the_node_does_not_take_go_on_talking() {
    let refuses = || Plan::Refuse(503, Vec::new());
    let (mut net, call) = moved([refuses(), refuses()]);
    assert_eq!((net.heard.clone(), net.live().len()), (vec!["200".to_owned()], 1));
    assert_eq!(bridged(&net), [(1, 2), (2, 1)]);
    // They are moved later.
    net.carrier(NODE, [Plan::Accept, Plan::Accept]);
    assert_eq!(net.move_to(call, None, 51), Ok(call));
    assert_eq!((net.live().len(), bridged(&net).len()), (3, 4));
    net.hang_up();
    carrier_hangs_up(&mut net);
    assert_eq!(net.switch.live_calls(), 0);
}

#[test]
fn the_party_whom_the_node_does_not_take_after_the_other_is_hung_up() {
    let (mut net, _) = moved([Plan::Accept, Plan::Refuse(503, Vec::new())]);
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Bye).len(), 1, "nobody hears the called party");
    assert_eq!((net.heard.clone(), net.live().len()), (vec!["200".to_owned()], 2));
    assert_eq!(bridged(&net), [(1, 3), (3, 1)]);
    net.hang_up();
    assert_eq!((byes(&net, NODE), net.switch.live_calls()), (1, 0));
}

#[test]
fn a_silent_node_lets_both_talk_and_a_party_who_leaves_meanwhile_ends_the_attempts() {
    let (mut net, _) = moved([Plan::Silence, Plan::Silence]);
    net.wait(Duration::from_secs(8));
    assert_eq!((net.heard.clone(), net.live().len()), (vec!["200".to_owned()], 1));
    assert_eq!(bridged(&net), [(1, 2), (2, 1)]);
    let (mut net, _) = moved([Plan::Silence, Plan::Silence]);
    net.hang_up();
    net.wait(Duration::from_secs(40));
    assert_eq!(net.switch.live_calls(), 0);
    assert_eq!(net.carriers[&address(CARRIER)].of(&Method::Bye).len(), 1);
}

#[test]
fn both_go_with_the_room_from_node_to_node_and_back_here() {
    let (mut net, call) = moved([Plan::Accept, Plan::Accept]);
    for round in 0..3 {
        // To the next node: each INVITE names the party's former seat.
        let before: Vec<_> =
            invites(&net, NODE).iter().rev().take(2).map(|invite| invite.call_id().to_owned()).collect();
        net.carrier(NEXT, [Plan::Accept, Plan::Accept]);
        owner(&mut net, at(NEXT, 20 + round * 10));
        let mut seats: Vec<_> =
            entries_at(&net, NEXT).into_iter().rev().take(2).map(|entry| entry.seat.unwrap()).collect();
        let mut expected = before.clone();
        seats.sort();
        expected.sort();
        assert_eq!(seats, expected);
        assert_eq!(byes(&net, NODE), 2 * (round as usize + 1));
        // To this node: both have their seats again.
        let members: Vec<_> =
            invites(&net, NEXT).iter().rev().take(2).map(|one| member(one.call_id())).collect();
        assert!(net.ask(ExpectRoom(state(51, members))));
        owner(&mut net, RoomOwner::Unowned);
        owner(&mut net, RoomOwner::Here(23 + round * 10));
        assert_eq!(byes(&net, NEXT), 2 * (round as usize + 1));
        let live = net.live_rooms().remove(0);
        assert_eq!((live.members.len(), live.locked), (2, true), "{live:#?}");
        assert_eq!((net.switch.live_calls(), bridged(&net)), (1, vec![]));
        // And to the first node again.
        let state = net.ask(HandOverRoom(room())).unwrap();
        assert_eq!(state.members.len(), 2);
        net.carrier(NODE, [Plan::Accept, Plan::Accept]);
        owner(&mut net, at(NODE, 25 + round * 10));
        assert_eq!((net.live_rooms().len(), net.switch.live_calls()), (0, 3));
        assert_eq!(bridged(&net).len(), 4);
    }
    assert_eq!(net.heard, ["200"], "through nine moves");
    net.hang_up();
    carrier_hangs_up(&mut net);
    assert_eq!(net.switch.live_calls(), 0);
    assert_eq!(net.records.iter().filter(|record| record.call_uuid == call).count(), 1);
}

#[test]
fn a_room_with_both_parties_of_a_call_is_handed_over() {
    let mut net = net();
    owner(&mut net, RoomOwner::Here(7));
    let call = talks(&mut net);
    assert_eq!(net.move_to(call, None, 51), Ok(call));
    assert_eq!(net.live_rooms()[0].members.len(), 2);
    let state = net.ask(HandOverRoom(room())).unwrap();
    // The next node accepts one of them; the other one hears that the room is over.
    net.carrier(NODE, [Plan::Accept, Plan::Refuse(503, Vec::new())]);
    owner(&mut net, at(NODE, 9));
    let seats: Vec<_> = entries_at(&net, NODE).into_iter().map(|entry| entry.seat.unwrap()).collect();
    assert_eq!(seats, state.members.iter().map(|member| member.seat.clone()).collect::<Vec<_>>());
    assert_eq!(net.live_rooms()[0].members.len(), 1);
    net.wait(Duration::from_secs(8));
    assert_eq!((net.live_rooms().len(), net.live().len()), (0, 2));
    assert_eq!(wanted(&mut net), []);
    net.hang_up();
    assert_eq!(net.switch.live_calls(), 0, "{:?}", net.heard);
}
