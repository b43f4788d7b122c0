//! Rooms that this node hands over to another one, and callers who keyed the number of a room that another node owns.
//!
//! The next node first gets the state of the room, and then owns it. Each member stays in the room here until that node
//! has answered its call, so that no member hears silence. Members that are not moved in time are hung up.

use std::time::{Duration, Instant};

use sidetone_model::call::Transport;
use sidetone_model::ids::{LegId, RoomId};
use sidetone_model::room::{Control, RoomName};
use sidetone_model::time::Now;

use crate::call_control::CallControl;
use crate::conference::{self, Sought};
use crate::conference_commands;
use crate::room_moves;
use crate::room_owner::RoomOwner;
use crate::room_places::Joined;
use crate::room_state::RoomState;
use crate::shared::Shared;

/// The rooms that this node hands over.
///
/// *Bounds*: the number of live rooms.
#[derive(Default)]
pub(super) struct Handovers(Vec<Handover>);

struct Handover {
    room: RoomId,
    /// When the room is ended, if no node owns it or members are left.
    until: Instant,
}

impl Handovers {
    /// Whether a room is being handed over.
    pub(super) fn has(&self, room: RoomId) -> bool {
        self.0.iter().any(|handover| handover.room == room)
    }

    /// When the next handover times out.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.0.iter().map(|handover| handover.until).min()
    }

    /// Forgets the rooms that no longer have members here.
    pub(super) fn keep_live(&mut self, control: &CallControl) {
        self.0.retain(|handover| control.conferences.rooms.members_in(handover.room.into()) > 0);
    }

    /// Begins to hand over a room that this node owns; returns its state. `None` for a room that has no members or is
    /// being handed over.
    pub(super) fn begin(
        &mut self,
        now: Now,
        room: RoomId,
        control: &mut CallControl,
        shared: &Shared,
    ) -> Option<RoomState> {
        let legs = control.conferences.rooms.legs_in(room.into());
        let is_here = matches!(shared.rooms.owner(room), RoomOwner::Here(_));
        if !is_here || self.has(room) || legs.is_empty() {
            return None;
        }
        let seats: Vec<(LegId, String)> =
            legs.iter().map(|leg| (*leg, seat_of(*leg, control, shared))).collect();
        let seat = |leg: LegId| {
            let known = seats.iter().find(|(known, _)| *known == leg);
            known.map(|(_, seat)| seat.clone()).unwrap_or_default()
        };
        let state = control.conferences.rooms.let_go(now, room, seat)?;
        self.0.push(Handover { room, until: now.instant + OWNED_WITHIN });
        Some(state)
    }

    /// Keeps a room, because no node accepts it or this node owns it again.
    pub(super) fn keep(&mut self, now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
        let before = self.0.len();
        self.0.retain(|handover| handover.room != room);
        if self.0.len() < before {
            room_moves::cancel(now, room, control, shared);
            control.conferences.rooms.keep(now, room);
        }
    }

    /// Moves the members of a room to its next node. Another node moves the members who are connected through it.
    pub(super) fn owned(&mut self, now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
        let handover = self.0.iter_mut().find(|handover| handover.room == room);
        handover.into_iter().for_each(|handover| handover.until = now.instant + MOVED_WITHIN);
        for leg in control.conferences.rooms.legs_in(room.into()) {
            let seat = Some(seat_of(leg, control, shared));
            if !has_come_by_node(leg, control) {
                // A member that cannot be moved now is hung up when the handover times out.
                let _ = join(now, leg, room, seat, control, shared);
            }
        }
    }

    /// Ends the rooms whose handover timed out; returns how many of them no other node owns.
    pub(super) fn timeout(&mut self, now: Now, control: &mut CallControl, shared: &Shared) -> usize {
        let late: Vec<Handover> = self.0.extract_if(.., |handover| handover.until <= now.instant).collect();
        for Handover { room, .. } in &late {
            // Refused when the last member has left.
            let _ = conference_commands::control(&mut control.conferences, now, (*room).into(), Control::End);
        }
        late.iter().filter(|handover| shared.rooms.there(handover.room).is_none()).count()
    }
}

/// The name of a member's seat for the next node: the Call-ID of the node that connected it, or its leg id.
fn seat_of(leg: LegId, control: &CallControl, shared: &Shared) -> String {
    let key = control.conferences.place_of(leg).filter(|_| has_come_by_node(leg, control));
    let key = key.and_then(|(call, party)| control.calls.key_of(call, party));
    let call_id = key.and_then(|key| shared.ua.call_id(key));
    call_id.map_or_else(|| leg.to_string(), str::to_owned)
}

fn has_come_by_node(leg: LegId, control: &CallControl) -> bool {
    let place = control.conferences.place_of(leg);
    let live = place.and_then(|(call, _)| control.calls.get(call));
    live.is_some_and(|live| live.call.facts().transport == Transport::Node)
}

/// Connects the party of a leg that belongs to the rooms here to the node of a room; returns whether that has begun.
fn join(
    now: Now,
    leg: LegId,
    room: RoomId,
    seat: Option<String>,
    control: &mut CallControl,
    shared: &mut Shared,
) -> bool {
    let Some(place) = control.conferences.place_of(leg) else { return false };
    let dialled = shared.directory.room(room).map(|room| room.number.clone());
    let Some((sender, dialled)) = room_moves::sender_of(control, place).zip(dialled) else { return false };
    let joined = Joined::new(room, sender, dialled).with_seat(seat);
    room_moves::move_seated(now, place, joined, control, shared).is_some()
}

/// Handles the next caller who keyed a room; returns whether there was one.
pub(super) fn seek(now: Now, control: &mut CallControl, shared: &mut Shared) -> bool {
    let Some((leg, room)) = control.conferences.seekers.pop_front() else { return false };
    find(now, leg, room, control, shared);
    true
}

/// Connects the callers who keyed a room to its node, which has been found.
pub(super) fn found(now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    for leg in control.conferences.rooms.seekers(room) {
        find(now, leg, room, control, shared);
    }
}

/// Admits a caller to a room of this node, or connects it to the room's node. A caller whose room has no node waits.
fn find(now: Now, leg: LegId, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    let found = match shared.rooms.owner(room) {
        RoomOwner::Here(_) => Sought::Here,
        // The call to the room's node is in progress; its result decides.
        RoomOwner::There { .. } if is_moving(leg, control) => return,
        RoomOwner::There { .. } => match join(now, leg, room, None, control, shared) {
            true => Sought::Elsewhere,
            false => Sought::Nowhere,
        },
        RoomOwner::Lost | RoomOwner::Unowned => return,
    };
    control.conferences.handle_input(now, conference::Input::Sought(leg, found));
}

fn is_moving(leg: LegId, control: &CallControl) -> bool {
    control.conferences.place_of(leg).is_some_and(|place| control.transfers.is_of(place))
}

/// Hands over the rooms that are live here although another node owns them, for example after a call was answered for
/// the room while the room opened there. Their members are connected to that node, and asked for the PIN.
pub(super) fn reconcile(now: Now, handovers: &mut Handovers, control: &mut CallControl, shared: &mut Shared) {
    let rooms = control.conferences.rooms.live_ids().filter(|room| shared.rooms.there(*room).is_some());
    let rooms: Vec<RoomId> = rooms.collect();
    for room in rooms {
        if !handovers.has(room) {
            // The state is not sent: the room has its own state at the other node.
            let _ = control.conferences.rooms.let_go(now, room, |leg| leg.to_string());
            handovers.0.push(Handover { room, until: now.instant + MOVED_WITHIN });
            handovers.owned(now, room, control, shared);
        }
    }
}

/// Whether a room, by its name in controls, is being handed over.
pub(super) fn is_handed_over(handovers: &Handovers, room: RoomName) -> bool {
    room.room_id().is_some_and(|room| handovers.has(room))
}

/// How long a room may have no owner while it is handed over: less than the rest of the lease, after which another
/// node may own it.
const OWNED_WITHIN: Duration = Duration::from_secs(2);
/// How long the connection of the members to the next node may take, including the lease of a node that fails.
const MOVED_WITHIN: Duration = Duration::from_secs(6);
