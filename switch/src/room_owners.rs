//! Rooms in a cluster: a room lives at one node, its owner, and callers at the others are joined to it there.
//!
//! A caller waits, unanswered, until the owner of the room is known. A node on its own owns every room.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sidetone_model::call::{HangupCause, Transport};
use sidetone_model::call_operation::{CallOperation, MoveOrder};
use sidetone_model::ids::{OrganisationId, RoomId};
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
use crate::node_entry::NodeEntry;
use crate::operations;
use crate::placement::{Onward, Placement, Refused};
use crate::room_moves::move_there;
use crate::room_owner::{RoomOwner, WantedRooms};
use crate::room_places::Joined;
use crate::shared::Shared;

/// The callers who wait for the owner of a room.
#[derive(Default)]
pub(super) struct RoomOwners {
    /// *Bounds*: [`WAITING_MAX`], and [`WAITING_OF_ORGANISATION_MAX`] of one organisation.
    waiting: Vec<Waiting>,
}

/// A caller who waits until the owner of the room is known.
struct Waiting {
    room: RoomId,
    until: Instant,
    caller: RoomCaller,
}

/// A caller who has dialled a number, maybe that of a room.
pub(super) struct RoomCaller {
    pub(super) sender: Sender,
    pub(super) dialled: String,
    /// What another node asserts that joins the caller to this one.
    pub(super) entry: Option<NodeEntry>,
    pub(super) invitation: Invitation,
    pub(super) placement: Placement,
}

impl RoomOwners {
    /// When a caller has waited long enough.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// Whether one more caller of an organisation may wait.
    fn may_wait(&self, organisation: OrganisationId) -> bool {
        let own = |waiting: &&Waiting| waiting.caller.placement.facts.organisation == organisation;
        self.waiting.len() < WAITING_MAX
            && self.waiting.iter().filter(own).count() < WAITING_OF_ORGANISATION_MAX
    }
}

/// Begins the call of an INVITE that may be placed: into a room at its owner, or onward.
pub(super) fn begin(
    now: Now,
    mut caller: RoomCaller,
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    if let Some(entry) = &caller.entry {
        let Placement { facts, caller_policy, srtp, .. } = &mut caller.placement;
        // The node of the caller has settled codecs and encryption, and has the call's own record.
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
        // The other node knows of a later owner.
        (RoomOwner::Here(fence), Some(claimed)) if claimed > fence => refuse(now, caller, control, shared),
        (RoomOwner::Here(_), _) => start(now, caller, control, shared),
        (RoomOwner::There { .. }, Some(_)) => refuse(now, caller, control, shared),
        (RoomOwner::There { .. }, None) => join(now, caller, room, control, shared),
        (RoomOwner::Unowned | RoomOwner::Lost, _) if owners.may_wait(caller.placement.facts.organisation) => {
            owners.waiting.push(Waiting { room, until: now.instant + WAITS_FOR, caller });
        }
        (RoomOwner::Unowned | RoomOwner::Lost, _) => refuse(now, caller, control, shared),
    }
}

/// Refuses callers whose room has no owner in time.
pub(super) fn timeout(now: Now, owners: &mut RoomOwners, control: &mut CallControl, shared: &mut Shared) {
    let late: Vec<Waiting> = owners.waiting.extract_if(.., |waiting| waiting.until <= now.instant).collect();
    late.into_iter().for_each(|waiting| refuse(now, waiting.caller, control, shared));
}

/// The rooms that are live here, that callers wait for, or whose callers here have lost their owner.
pub(super) fn wanted(owners: &RoomOwners, control: &CallControl, shared: &mut Shared) -> WantedRooms {
    shared.rooms.keep(|call| control.calls.get(call).is_some_and(|live| !live.call.has_ended()));
    let (lost, directory) = (shared.rooms.lost(), &shared.directory);
    let waiting = owners.waiting.iter().map(|waiting| waiting.room);
    // Callers who are asked for their PIN, too: their room is not live yet.
    let seats = control.conferences.seats.values();
    let entering = seats.filter_map(|seat| match control.calls.get(seat.call)?.goal {
        Some(Goal::Room(room)) => Some(room),
        _ => None,
    });
    let live = control.conferences.rooms.live_ids();
    let wanted: BTreeSet<RoomId> = live.chain(entering).chain(waiting.chain(lost)).collect();
    let rooms = wanted.into_iter().filter_map(|room| Some((directory.room(room)?.organisation_id, room)));
    WantedRooms(rooms.collect())
}

/// Takes new owners: callers who waited go on, and a room that this node owns no longer ends.
pub(super) fn replace(
    now: Now,
    changes: Vec<(RoomId, RoomOwner)>,
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) -> usize {
    let mut lost = 0;
    for (room, owner) in changes {
        let before = shared.rooms.set(room, owner);
        let was_here = matches!(before, Some(RoomOwner::Here(_)));
        if was_here && !matches!(owner, RoomOwner::Here(_)) {
            // Members hear that the conference is over. Another node may own it in a moment.
            lost += 1;
            // Refused for a room that is not live here any more.
            let _ = conference_commands::control(&mut control.conferences, now, room.into(), Control::End);
        }
        match owner {
            RoomOwner::Here(_) => rejoin(now, room, control, shared),
            RoomOwner::There { .. } if before.is_some_and(|before| before != owner) => {
                follow(now, room, control, shared);
            }
            RoomOwner::There { .. } | RoomOwner::Lost | RoomOwner::Unowned => {}
        }
        if matches!(owner, RoomOwner::Here(_) | RoomOwner::There { .. }) {
            let waiting = &mut owners.waiting;
            let ready: Vec<Waiting> = waiting.extract_if(.., |waiting| waiting.room == room).collect();
            ready.into_iter().for_each(|waiting| begin(now, waiting.caller, owners, control, shared));
        }
    }
    lost
}

/// Seats the callers here who were joined to an owner that is gone: the room is here now.
fn rejoin(now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    for (call, _) in shared.rooms.take_joined(room) {
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

/// Joins the callers here who were joined to an earlier owner to the present one. A caller for whom that fails is hung up.
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

/// Joins a caller to a room at another node, by a call to that node.
fn join(now: Now, mut caller: RoomCaller, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    let joined = Joined { room, sender: caller.sender.clone(), dialled: caller.dialled.clone() };
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

/// Begins the call as it is placed, unless its caller is gone.
fn start(now: Now, caller: RoomCaller, control: &mut CallControl, shared: &mut Shared) {
    let RoomCaller { invitation, placement, .. } = caller;
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
}

fn refuse(now: Now, caller: RoomCaller, control: &mut CallControl, shared: &mut Shared) {
    let (status, cause) = (StatusCode::SERVICE_UNAVAILABLE, HangupCause::NormalTemporaryFailure);
    let refused = Refused::of_call(status, cause, caller.placement.facts).saying("Room Has No Node");
    control.refuse(now, &caller.invitation.key, refused, shared);
}

/// How long a caller waits for the owner of a room: the lease of one that died, and a moment.
const WAITS_FOR: Duration = Duration::from_secs(5);
/// Callers who wait at the same time.
const WAITING_MAX: usize = 1_000;
/// Those of one organisation: the callers of one do not keep those of others from waiting.
const WAITING_OF_ORGANISATION_MAX: usize = WAITING_MAX / 4;
