//! Parties of live calls who are moved to a room at another node: a call to that node replaces their peer, or their
//! seat here.

use std::time::Duration;

use sidetone_call::record::Facts;
use sidetone_model::call::{Direction, HangupCause, Transport};
use sidetone_model::ids::{CallId, RoomId};
use sidetone_model::time::Now;
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::call_limits::limits_of;
use crate::conference::{self, Sought};
use crate::io::{Awaited, CalleeSide, Callees, Forwards, Input, Party, Setup, Sides};
use crate::link::peer_of;
use crate::live::{LiveCall, NewCall};
use crate::room_places::Joined;
use crate::shared::Shared;
use crate::transfers::{GONE, Place, Transfer, cause_of, far_of, is_there};

/// Places the call that replaces the party `by` of a call. The other party is moved, and is hung up if the call fails.
/// `None` for a party that cannot be moved, and when no other node owns the room.
pub(super) fn move_there(
    now: Now,
    by: Place,
    joined: Joined,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<CallId> {
    let new = move_from(now, by, joined, control, shared)?;
    // The other party waits for the room alone, as during a transfer whose sender has hung up.
    if let Some(leg) = control.calls.key_of(by.0, by.1) {
        control.calls.remove_leg(leg);
        shared.ua.hang_up(now.instant, leg);
    }
    control.feed(now, by.0, Input::HungUp(by.1, HangupCause::NormalClearing), shared);
    Some(new)
}

/// Does the same, but the party `by` stays until the room's node has answered, and stays connected if the call fails.
pub(super) fn move_from(
    now: Now,
    by: Place,
    joined: Joined,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<CallId> {
    let moved = far_of(&control.calls, by)?;
    let new = call_node(now, moved, by, joined, control, shared)?;
    control.feed(now, by.0, Input::Referring(Some(by.1)), shared);
    Some(new)
}

/// Places the call for a party that keeps its seat here, or stays connected with its peer, until the room's node has
/// answered.
pub(super) fn move_seated(
    now: Now,
    seated: Place,
    joined: Joined,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<CallId> {
    call_node(now, seated, (seated.0, GONE), joined, control, shared)
}

/// Ends the calls to the node of a room for the parties of a call that are still connected with each other.
pub(super) fn give_up(call: CallId, control: &mut CallControl) {
    control.transfers.give_up_rooms(call);
}

/// Handles the failure of a call to the node of a room. A party that still has a seat or a peer keeps it.
pub(super) fn failed(
    now: Now,
    transfer: &Transfer,
    status: u16,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let Transfer { by, transferee, .. } = *transfer;
    control.feed(now, by.0, Input::Referring(None), shared);
    let leg = control.calls.leg_id(transferee.0, transferee.1);
    if let Some(leg) = leg.filter(|leg| control.conferences.has(*leg)) {
        return control.conferences.handle_input(now, conference::Input::Sought(leg, Sought::Nowhere));
    }
    let still_talks = |live: &LiveCall| {
        let parties = live.call.parties();
        !parties.is_merged() && parties.other(transferee.1).is_some()
    };
    if by == (transferee.0, GONE) && control.calls.get(by.0).is_some_and(still_talks) {
        return give_up(by.0, control);
    }
    if !is_there(&control.calls, by) {
        control.feed(now, transferee.0, Input::Dismiss(transferee.1, cause_of(status)), shared);
    }
}

/// The identity of a party for other nodes: its extension, or the trunk of its call.
pub(super) fn sender_of(control: &CallControl, (call, party): Place) -> Option<Sender> {
    let live = control.calls.get(call)?;
    if let Some(extension) = live.identity_of(party)?.extension {
        return Some(Sender::Extension(extension));
    }
    live.trunk_of(party).map(Sender::Trunk)
}

/// Places the call to the node of a room for a party of an answered call; the leg `by` is hung up at the answer.
fn call_node(
    now: Now,
    moved: Place,
    by: Place,
    joined: Joined,
    control: &mut CallControl,
    shared: &mut Shared,
) -> Option<CallId> {
    let is_by = by.1 != GONE && control.transfers.is_by(by);
    if control.transfers.is_of(moved) || is_by {
        return None;
    }
    let there = shared.rooms.there(joined.room)?;
    let live = control.calls.get(moved.0).filter(|live| live.call.parties().is_up())?;
    let peer = peer_of(live.call.parties(), moved.1)?;
    let (shown, group, transfers) = (live.identity_of(moved.1)?.clone(), live.call.group(), live.transfers);
    let facts = Facts {
        call: shared.ids.call(now.wall),
        called: None,
        trunk: None,
        direction: Direction::Internal,
        transport: Transport::Sip,
        started_at: now.wall,
        caller_number: shown.number.clone(),
        destination_number: Some(joined.dialled.clone()),
        dialled_number: None,
        forwarded: None,
        tariff: None,
        ..live.call.facts().clone()
    };
    let Shared { rooms, ids, directory, .. } = &mut *shared;
    let callee = rooms.callee(&joined, &shown, there, (&mut *ids, &**directory))?;
    let rung = CalleeSide {
        policy: CodecPolicy::ANY,
        srtp: SrtpRule::Off,
        callees: Callees::AtOnce(vec![callee.at]),
        forwards: Forwards::default(),
    };
    let awaited = Awaited { settled: peer.settled, policy: peer.policy, from: moved.0 };
    let mut limits = limits_of(control.limits, directory, &facts);
    limits.ring = limits.ring.min(ANSWERS_WITHIN);
    let call = facts.call;
    let (session_id, keys) = (ids.session(), ids.keys());
    let sides = Sides::ForPeer { awaited: Box::new(awaited), callee: rung };
    let setup = Setup { facts, limits, sides, session_id, group, keys };
    let transfer = Transfer {
        by,
        transferee: moved,
        consulted: None,
        subscription: None,
        picks_up: false,
        unparks: None,
        to_room: true,
    };
    control.transfers.begin(call, transfer);
    let new = NewCall {
        setup,
        caller: None,
        callees: vec![callee],
        hunt: None,
        goal: None,
        asked: None,
        diverted: Vec::new(),
        request: None,
    };
    control.begin(now, new, shared);
    control.calls.get_mut(call)?.transfers = transfers;
    shared.rooms.join(call, joined);
    Some(call)
}

/// Ends the calls to the nodes of a room that have not been answered.
pub(super) fn cancel(now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    let awaited = shared.rooms.joined(room).into_iter().map(|(call, _)| call);
    let awaited: Vec<CallId> = awaited.filter(|call| control.transfers.awaits(*call)).collect();
    for call in awaited {
        control.feed(now, call, Input::End(HangupCause::OriginatorCancel), shared);
    }
}

/// Seats the party for which a call to the node of a room was placed, because this node now owns the room. Returns
/// whether the call has such a party.
pub(super) fn seat_linked(
    now: Now,
    (call, callee): (CallId, usize),
    joined: Joined,
    control: &mut CallControl,
    shared: &mut Shared,
) -> bool {
    let far = far_of(&control.calls, (call, Party::Callee(callee)));
    let Some((linked, party)) = far.filter(|far| far.0 != call) else { return false };
    for (call, party) in [(call, Party::Callee(callee)), (linked, party)] {
        if let Some(live) = control.calls.get_mut(call) {
            live.linked.take(party);
        }
    }
    if let Some(live) = control.calls.get_mut(linked) {
        live.goal = Some(conference::Goal::Moved { room: joined.room });
        live.returns = joined.seat;
    }
    control.feed(now, linked, Input::SeatLinked(party), shared);
    control.feed(now, call, Input::End(HangupCause::NormalClearing), shared);
    true
}

/// How long the node of a room may take to answer the call for a party.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
