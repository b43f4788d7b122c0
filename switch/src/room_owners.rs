//! Rooms in a cluster: a room lives at one node, its owner, and callers at the others are joined to it there.
//!
//! A caller waits, unanswered, until the owner of the room is known. A node on its own owns every room.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sidetone_model::call::{HangupCause, Transport};
use sidetone_model::call_operation::{CallOperation, MoveOrder};
use sidetone_model::ids::{CallId, OrganisationId, RoomId};
use sidetone_model::room::Control;
use sidetone_model::time::Now;
use sidetone_sip::flow::Flow;
use sidetone_sip::message::{NameAddr, Request, StatusCode, Uri};
use sidetone_sip::sdp::{CodecPolicy, SrtpRule};

use crate::authentication::Sender;
use crate::call_control::CallControl;
use crate::conference::Goal;
use crate::conference_commands;
use crate::incoming::{self, Invitation};
use crate::io::{CalleeAt, Input, Party};
use crate::live::{Callee, LegIdentity};
use crate::node_entry::{NodeEntries, NodeEntry, host_of};
use crate::operations;
use crate::placement::{Onward, Placement, Refused};
use crate::room_owner::{RoomOwner, WantedRooms};
use crate::routing::Directory;
use crate::shared::Shared;

/// The owners of rooms, the callers who wait for one, and those who are joined to another node.
#[derive(Default)]
pub(super) struct RoomOwners {
    /// `None` for a node on its own.
    entries: Option<NodeEntries>,
    owners: HashMap<RoomId, RoomOwner>,
    /// *Bounds*: [`WAITING_MAX`], and [`WAITING_OF_ORGANISATION_MAX`] of one organisation.
    waiting: Vec<Waiting>,
    /// *Bounds*: the number of calls.
    joined: HashMap<CallId, RoomId>,
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
    pub(super) fn new(entries: Option<NodeEntries>) -> Self {
        RoomOwners { entries, ..RoomOwners::default() }
    }

    /// What an INVITE of another node asserts.
    pub(super) fn entry_of(&self, flow: &Flow, request: &Request) -> Option<NodeEntry> {
        self.entries.as_ref()?.read(flow, request)
    }

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

    fn owner(&self, room: RoomId) -> RoomOwner {
        self.owners.get(&room).copied().unwrap_or(RoomOwner::Unowned)
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
        Onward::Room(Goal::Room(room)) if owners.entries.is_some() => room,
        _ => return start(now, caller, control, shared),
    };
    let claimed = caller.entry.as_ref().map(|entry| entry.fence);
    match (owners.owner(room), claimed) {
        // The other node knows of a later owner.
        (RoomOwner::Here(fence), Some(claimed)) if claimed > fence => refuse(now, caller, control, shared),
        (RoomOwner::Here(_), _) => start(now, caller, control, shared),
        (RoomOwner::There { .. }, Some(_)) => refuse(now, caller, control, shared),
        (RoomOwner::There { fence, way, address }, None) => {
            join(now, caller, (room, fence), (way, address), owners, control, shared);
        }
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
pub(super) fn wanted(owners: &mut RoomOwners, control: &CallControl, directory: &Directory) -> WantedRooms {
    owners.joined.retain(|call, _| control.calls.get(*call).is_some_and(|live| !live.call.has_ended()));
    let lost = owners.joined.values().filter(|room| owners.owner(**room) == RoomOwner::Lost);
    let waiting = owners.waiting.iter().map(|waiting| &waiting.room);
    // Callers who are asked for their PIN, too: their room is not live yet.
    let seats = control.conferences.seats.values();
    let entering = seats.filter_map(|seat| match control.calls.get(seat.call)?.goal {
        Some(Goal::Room(room)) => Some(room),
        _ => None,
    });
    let live = control.conferences.rooms.live_ids();
    let wanted: BTreeSet<RoomId> = live.chain(entering).chain(waiting.chain(lost).copied()).collect();
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
        let has_joined = owners.joined.values().any(|joined| *joined == room);
        let before = match owner {
            RoomOwner::Lost if !has_joined => owners.owners.remove(&room),
            RoomOwner::Unowned => owners.owners.remove(&room),
            owner => owners.owners.insert(room, owner),
        };
        let was_here = matches!(before, Some(RoomOwner::Here(_)));
        if was_here && !matches!(owner, RoomOwner::Here(_)) {
            // Members hear that the conference is over. Another node may own it in a moment.
            lost += 1;
            // Refused for a room that is not live here any more.
            let _ = conference_commands::control(&mut control.conferences, now, room.into(), Control::End);
        }
        match owner {
            RoomOwner::Here(_) => rejoin(now, room, owners, control, shared),
            RoomOwner::There { .. } if before.is_some_and(|before| before != owner) => {
                leave_joined(now, room, owners, control, shared);
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
fn rejoin(now: Now, room: RoomId, owners: &mut RoomOwners, control: &mut CallControl, shared: &mut Shared) {
    for call in take_joined(room, owners) {
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

/// Ends the calls of callers here who were joined to an earlier owner: they may call again.
fn leave_joined(
    now: Now,
    room: RoomId,
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    for call in take_joined(room, owners) {
        control.feed(now, call, Input::End(HangupCause::NormalTemporaryFailure), shared);
    }
}

fn take_joined(room: RoomId, owners: &mut RoomOwners) -> Vec<CallId> {
    let mut calls: Vec<CallId> =
        owners.joined.extract_if(|_, of| *of == room).map(|(call, _)| call).collect();
    calls.sort_unstable();
    calls
}

/// Joins a caller to a room at another node, by a call to that node.
fn join(
    now: Now,
    mut caller: RoomCaller,
    (room, fence): (RoomId, u64),
    (way, address): (Flow, SocketAddr),
    owners: &mut RoomOwners,
    control: &mut CallControl,
    shared: &mut Shared,
) {
    let call_id = shared.ids.token();
    let from = from_of(&caller.placement.caller, address);
    let entry = NodeEntry { sender: caller.sender.clone(), room, fence };
    let entries = owners.entries.as_ref();
    let invite = entries.and_then(|entries| {
        entries.invite(&entry, &caller.dialled, (from.as_str(), call_id.as_str()), address)
    });
    let Some(invite) = invite else { return refuse(now, caller, control, shared) };
    let name = shared.directory.room(room).map(|room| room.name.clone()).unwrap_or_default();
    let identity =
        LegIdentity { id: shared.ids.leg(), extension: None, number: Some(caller.dialled.clone()), name };
    let callee = Callee { flow: way, at: CalleeAt::of(&way), invite, identity, leg: None, binding: None };
    let call = caller.placement.facts.call;
    caller.placement.onward = Onward::Bindings(vec![callee]);
    start(now, caller, control, shared);
    if control.calls.get(call).is_some() {
        owners.joined.insert(call, room);
    }
}

/// The From of the INVITE to another node: the caller's number and name.
fn from_of(LegIdentity { number, name, .. }: &LegIdentity, address: SocketAddr) -> String {
    let user = number.as_deref().filter(|number| !number.is_empty()).unwrap_or("anonymous");
    let from = NameAddr::new(Uri::sip(host_of(address), None).with_user(user));
    let from = if name.is_empty() { from } else { from.with_display(name) };
    from.to_string()
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
