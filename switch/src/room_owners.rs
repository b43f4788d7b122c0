//! Rooms in a cluster: each room is at one node, its owner. Callers at the other nodes are connected to the owner.
//!
//! A caller waits, unanswered, until the owner of the room is known. A single node owns every room.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sidetone_model::call::{HangupCause, Transport};
use sidetone_model::call_operation::{CallOperation, MoveOrder};
use sidetone_model::ids::{CallId, OrganisationId, RoomId};
use sidetone_model::room::Control;
use sidetone_model::time::Now;
use sidetone_sip::message::StatusCode;
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::conference::Goal;
use crate::conference_commands;
use crate::incoming::{self, Invitation};
use crate::io::{Input, Party};
use crate::leg::Leg;
use crate::live::LiveCall;
use crate::node_entry::NodeEntry;
use crate::operations;
use crate::placement::{Onward, Placement, Refused};
use crate::room_handover::{self, Handovers};
use crate::room_moves::{self, move_there};
use crate::room_owner::{RoomOwner, WantedRooms};
use crate::room_places::Joined;
use crate::shared::Shared;

/// The callers who wait for the owner of a room.
#[derive(Default)]
pub(super) struct RoomOwners {
    /// *Bounds*: [`WAITING_MAX`], and [`WAITING_OF_ORGANISATION_MAX`] of one organisation.
    waiting: Vec<Waiting>,
    /// Number of rooms ended because no node owned them, since the last query.
    lost: usize,
    /// The rooms that are handed over to other nodes.
    pub(super) handovers: Handovers,
}

/// A caller who waits until the owner of the room is known.
struct Waiting {
    room: RoomId,
    until: Instant,
    caller: RoomCaller,
}

/// A caller who has dialled a number, possibly that of a room.
pub(super) struct RoomCaller {
    pub(super) sender: Sender,
    pub(super) dialled: String,
    /// The assertion of another node that connects the caller to this one.
    pub(super) entry: Option<NodeEntry>,
    pub(super) invitation: Invitation,
    pub(super) placement: Placement,
}

impl RoomOwners {
    /// When the next wait of a caller, or the next handover, times out.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.until).chain(self.handovers.next_timeout()).min()
    }

    /// Whether one more caller of an organisation may wait.
    fn may_wait(&self, organisation: OrganisationId) -> bool {
        let own = |waiting: &&Waiting| waiting.caller.placement.facts.organisation == organisation;
        self.waiting.len() < WAITING_MAX
            && self.waiting.iter().filter(own).count() < WAITING_OF_ORGANISATION_MAX
    }
}

/// Begins the call of an admitted INVITE: to a room at its owner, or to another target.
pub(super) fn begin(
    now: Now,
    mut caller: RoomCaller,
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    if let Some(entry) = &caller.entry {
        let Placement { facts, caller_policy, srtp, .. } = &mut caller.placement;
        // The node of the caller has negotiated codecs and encryption, and writes the call's record.
        (facts.transport, *caller_policy, srtp.0) = (Transport::Node, CodecPolicy::ANY, SrtpRule::Off);
        if !matches!(&caller.placement.onward, Onward::Room(Goal::Room(room)) if *room == entry.room) {
            return refuse(now, caller, control, shared);
        }
    }
    let room = match caller.placement.onward {
        Onward::Room(Goal::Room(room)) if shared.rooms.are_shared() => room,
        _ => return start(now, caller, control, shared),
    };
    let claimed = caller.entry.as_ref().map(|entry| entry.fence);
    match (shared.rooms.owner(room), claimed) {
        // The other node has seen a later owner.
        (RoomOwner::Here(fence), Some(claimed)) if claimed > fence => refuse(now, caller, control, shared),
        (RoomOwner::Here(_), _) => start(now, caller, control, shared),
        // The other node has seen a later owner. It may be this node, which is not notified yet.
        (RoomOwner::There { fence, .. }, Some(claimed))
            if claimed > fence && owners.may_wait(caller.placement.facts.organisation) =>
        {
            owners.waiting.push(Waiting { room, until: now.instant + WAITS_FOR, caller });
        }
        (RoomOwner::There { .. }, Some(_)) => refuse(now, caller, control, shared),
        (RoomOwner::There { .. }, None) => join(now, caller, room, control, shared),
        (RoomOwner::Unowned | RoomOwner::Lost, _) if owners.may_wait(caller.placement.facts.organisation) => {
            owners.waiting.push(Waiting { room, until: now.instant + WAITS_FOR, caller });
        }
        (RoomOwner::Unowned | RoomOwner::Lost, _) => refuse(now, caller, control, shared),
    }
}

/// Refuses callers whose room has no owner in time, and ends rooms whose handover timed out.
pub(super) fn timeout(now: Now, owners: &mut RoomOwners, control: &mut CallControl, shared: &mut Shared) {
    let late: Vec<Waiting> = owners.waiting.extract_if(.., |waiting| waiting.until <= now.instant).collect();
    late.into_iter().for_each(|waiting| refuse(now, waiting.caller, control, shared));
    owners.lost += owners.handovers.timeout(now, control, shared);
}

/// The rooms that are live here, that callers wait for, or whose owner is lost while callers here are connected to it.
pub(super) fn wanted(
    now: Now,
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) -> WantedRooms {
    shared.rooms.keep(|call| control.calls.get(call).is_some_and(is_joined));
    owners.handovers.keep_live(control);
    room_handover::reconcile(now, &mut owners.handovers, control, shared);
    go_on(now, control, shared);
    let (lost, directory) = (shared.rooms.lost(), &shared.directory);
    let waiting = owners.waiting.iter().map(|waiting| waiting.room);
    // Include callers who are asked for their PIN: their room is not live yet.
    let seats = control.conferences.seats.values();
    let entering = seats.filter_map(|seat| match control.calls.get(seat.call)?.goal {
        Some(Goal::Room(room)) => Some(room),
        _ => None,
    });
    let live = control.conferences.rooms.live_ids();
    let entering = entering.chain(control.conferences.rooms.entered());
    let wanted: BTreeSet<RoomId> = live.chain(entering).chain(waiting.chain(lost)).collect();
    let rooms = wanted.into_iter().filter_map(|room| Some((directory.room(room)?.organisation_id, room)));
    WantedRooms(rooms.collect())
}

/// Applies new owners: waiting callers continue, and a room that this node no longer owns ends. Returns the number of
/// rooms lost.
pub(super) fn replace(
    now: Now,
    changes: Vec<(RoomId, RoomOwner)>,
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) -> usize {
    shared.rooms.keep(|call| control.calls.get(call).is_some_and(is_joined));
    let mut lost = std::mem::take(&mut owners.lost);
    for (room, owner) in changes {
        let before = shared.rooms.set(room, owner);
        let was_here = matches!(before, Some(RoomOwner::Here(_)));
        let is_handed_over = owners.handovers.has(room);
        if was_here && !is_handed_over && !matches!(owner, RoomOwner::Here(_)) {
            // Members hear that the conference is over. Another node may own it soon.
            lost += 1;
            // Refused for a room that is no longer live here.
            let _ = conference_commands::control(&mut control.conferences, now, room.into(), Control::End);
        }
        match owner {
            RoomOwner::Here(_) => {
                owners.handovers.keep(now, room, control, shared);
                rejoin(now, room, control, shared);
            }
            RoomOwner::There { .. } if is_handed_over => {
                owners.handovers.owned(now, room, control, shared);
                go_on(now, control, shared);
            }
            RoomOwner::There { .. } if before == Some(RoomOwner::Lost) => follow(now, room, control, shared),
            // Callers who are connected to an earlier owner follow the room.
            RoomOwner::There { .. } => go_on(now, control, shared),
            RoomOwner::Lost | RoomOwner::Unowned => {}
        }
        if matches!(owner, RoomOwner::Here(_) | RoomOwner::There { .. }) {
            let waiting = &mut owners.waiting;
            let ready: Vec<Waiting> = waiting.extract_if(.., |waiting| waiting.room == room).collect();
            ready.into_iter().for_each(|waiting| begin(now, waiting.caller, owners, control, shared));
            room_handover::found(now, room, control, shared);
        }
    }
    lost
}

/// Seats the callers here who were connected to the former owner, because this node now owns the room.
fn rejoin(now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    for (call, joined) in shared.rooms.take_joined(room) {
        let seat = seat_there(call, control, shared);
        let callee = control.calls.get(call).and_then(|live| live.call.parties().callee());
        let joined = joined.with_seat(seat.clone());
        let is_seated = callee
            .is_some_and(|callee| room_moves::seat_linked(now, (call, callee), joined, control, shared));
        if is_seated {
            continue;
        }
        if let Some(live) = control.calls.get_mut(call) {
            live.returns = seat;
        }
        let leg = control.calls.get(call).and_then(|live| Some(live.identity_of(Party::Caller)?.id));
        let moved = leg.map(|leg| {
            let order = MoveOrder { call, leg: Some(leg), room };
            operations::operate(now, CallOperation::MoveToRoom(order), control, shared)
        });
        if !matches!(moved, Some(Ok(_))) {
            control.feed(now, call, Input::End(HangupCause::NormalTemporaryFailure), shared);
        }
    }
}

/// Connects the callers here from an earlier, lost owner to the present one. A caller for whom that fails is hung up.
fn follow(now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    for (call, joined) in shared.rooms.take_joined(room) {
        let callee = control.calls.get(call).and_then(|live| live.call.parties().callee());
        let moved =
            callee.and_then(|callee| move_there(now, (call, Party::Callee(callee)), joined, control, shared));
        if moved.is_none() {
            control.feed(now, call, Input::End(HangupCause::NormalTemporaryFailure), shared);
        }
    }
}

/// Connects the callers here from a node that has handed their room over to the next one. Each caller stays at the
/// former node until the next one has answered; a failed attempt is repeated.
fn go_on(now: Now, control: &mut CallControl, shared: &mut Shared) {
    for (call, joined) in shared.rooms.outdated(now.instant) {
        let callee = control.calls.get(call).and_then(|live| live.call.parties().callee());
        // A call that is not answered yet is moved after its answer.
        let Some(callee) = callee else { continue };
        let joined = joined.with_seat(seat_there(call, control, shared));
        // A caller that cannot be moved in time is hung up by the former node.
        let _ = room_moves::move_from(now, (call, Party::Callee(callee)), joined, control, shared);
    }
}

/// The name of a call's seat at another node: the Call-ID of our INVITE.
fn seat_there(call: CallId, control: &CallControl, shared: &Shared) -> Option<String> {
    let callee = control.calls.get(call)?.call.parties().callee()?;
    let leg = control.calls.key_of(call, Party::Callee(callee))?;
    shared.ua.call_id(leg).map(str::to_owned)
}

/// Whether a call is connected to a room at another node, or will be.
fn is_joined(live: &LiveCall) -> bool {
    let parties = live.call.parties();
    let callee = parties.callee().map(Party::Callee);
    let is_open = callee.is_none_or(|callee| parties.leg(callee).is_some_and(Leg::is_open));
    !live.call.has_ended() && is_open
}

/// Connects a caller to a room at another node, by a call to that node.
fn join(now: Now, mut caller: RoomCaller, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    let joined = Joined::new(room, caller.sender.clone(), caller.dialled.clone());
    let Shared { rooms, ids, directory, .. } = &mut *shared;
    let there = rooms.there(room);
    let shown = &caller.placement.caller;
    let callee = there.and_then(|there| rooms.callee(&joined, shown, there, (ids, directory)));
    let Some(callee) = callee else { return refuse(now, caller, control, shared) };
    let call = caller.placement.facts.call;
    caller.placement.onward = Onward::Bindings(vec![callee]);
    start(now, caller, control, shared);
    if control.calls.get(call).is_some() {
        shared.rooms.join(call, joined);
    }
}

/// Begins the call as placed, unless its caller has hung up.
fn start(now: Now, caller: RoomCaller, control: &mut CallControl, shared: &mut Shared) {
    let RoomCaller { invitation, placement, entry, .. } = caller;
    let call = placement.facts.call;
    if shared.ua.call_id(invitation.leg).is_none() {
        return;
    }
    let session = (shared.ids.session(), shared.ids.keys());
    let new = incoming::call_of(
        invitation,
        placement,
        session,
        control.limits,
        &shared.directory,
        &control.conferences,
    );
    control.begin(now, new, shared);
    if let Some(live) = control.calls.get_mut(call) {
        live.returns = entry.and_then(|entry| entry.seat);
    }
}

fn refuse(now: Now, caller: RoomCaller, control: &mut CallControl, shared: &mut Shared) {
    let (status, cause) = (StatusCode::SERVICE_UNAVAILABLE, HangupCause::NormalTemporaryFailure);
    let refused = Refused::of_call(status, cause, caller.placement.facts).saying("Room Has No Node");
    control.refuse(now, &caller.invitation.key, refused, shared);
}

/// How long a caller waits for the owner of a room: the lease of a failed node, plus a margin.
const WAITS_FOR: Duration = Duration::from_secs(5);
/// Most callers who wait at the same time.
const WAITING_MAX: usize = 1_000;
/// Most waiting callers of one organisation, so that its callers do not use up the places of others.
const WAITING_OF_ORGANISATION_MAX: usize = WAITING_MAX / 4;
