//! Rooms that this node hands over to another one, and callers who have keyed the number of a room that lives elsewhere.
//!
//! The next node gets the state of the room first, and then owns it. The members stay in the room here until that node has
//! answered for each of them, so that no one hears silence. What is not moved in time is ended here.

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
    /// When it is ended, if no node owns it or members are left.
    until: Instant,
}

impl Handovers {
    /// Whether a room is being handed over.
    pub(super) fn has(&self, room: RoomId) -> bool {
        self.0.iter().any(|handover| handover.room == room)
    }

    /// When the time of one is over.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.0.iter().map(|handover| handover.until).min()
    }

    /// Forgets the rooms that have no members here any more.
    pub(super) fn keep_live(&mut self, control: &CallControl) {
        self.0.retain(|handover| control.conferences.rooms.members_in(handover.room.into()) > 0);
    }

    /// Begins to hand over a room that lives here; returns its state. `None` for a room that has no members or is being handed
    /// over.
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

    /// Keeps a room: no node takes it, or this one owns it again.
    pub(super) fn keep(&mut self, now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
        let before = self.0.len();
        self.0.retain(|handover| handover.room != room);
        if self.0.len() < before {
            room_moves::cancel(now, room, control, shared);
            control.conferences.rooms.keep(now, room);
        }
    }

    /// Moves the members of a room to its next node. Those who came by another node are moved by that one.
    pub(super) fn owned(&mut self, now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
        let handover = self.0.iter_mut().find(|handover| handover.room == room);
        handover.into_iter().for_each(|handover| handover.until = now.instant + MOVED_WITHIN);
        for leg in control.conferences.rooms.legs_in(room.into()) {
            let seat = Some(seat_of(leg, control, shared));
            if !has_come_by_node(leg, control) {
                // One that cannot be moved now is hung up when the time of the handover is over.
                let _ = join(now, leg, room, seat, control, shared);
            }
        }
    }

    /// Ends the rooms whose handover takes too long; returns how many of them no node owns.
    pub(super) fn timeout(&mut self, now: Now, control: &mut CallControl, shared: &Shared) -> usize {
        let late: Vec<Handover> = self.0.extract_if(.., |handover| handover.until <= now.instant).collect();
        for Handover { room, .. } in &late {
            // Refused when the last member has gone.
            let _ = conference_commands::control(&mut control.conferences, now, (*room).into(), Control::End);
        }
        late.iter().filter(|handover| shared.rooms.there(handover.room).is_none()).count()
    }
}

/// The name of a member's seat for the next node: the Call-ID by which another node joined it, or its leg.
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

/// Joins the party of a leg, which belongs to the rooms here, to the node of a room; returns whether that has begun.
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

/// Takes the next caller who has keyed a room; returns whether there was one.
pub(super) fn seek(now: Now, control: &mut CallControl, shared: &mut Shared) -> bool {
    let Some((leg, room)) = control.conferences.seekers.pop_front() else { return false };
    find(now, leg, room, control, shared);
    true
}

/// Joins those who have keyed a room to its node, which is known now.
pub(super) fn found(now: Now, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    for leg in control.conferences.rooms.seekers(room) {
        find(now, leg, room, control, shared);
    }
}

/// Lets a caller into a room that is here, or joins it to the room's node; one whose room has no node waits.
fn find(now: Now, leg: LegId, room: RoomId, control: &mut CallControl, shared: &mut Shared) {
    let found = match shared.rooms.owner(room) {
        RoomOwner::Here(_) => Sought::Here,
        // A call that is under way decides.
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

/// Hands over the rooms that are live here although another node owns them, as after a call that was answered for the room
/// while the room began there: their members are joined to that node, and asked for the PIN.
pub(super) fn reconcile(now: Now, handovers: &mut Handovers, control: &mut CallControl, shared: &mut Shared) {
    let rooms = control.conferences.rooms.live_ids().filter(|room| shared.rooms.there(*room).is_some());
    let rooms: Vec<RoomId> = rooms.collect();
    for room in rooms {
        if !handovers.has(room) {
            // Nothing of its state goes to the other node, where the room has its own.
            let _ = control.conferences.rooms.let_go(now, room, |leg| leg.to_string());
            handovers.0.push(Handover { room, until: now.instant + MOVED_WITHIN });
            handovers.owned(now, room, control, shared);
        }
    }
}

/// Names the room in controls.
pub(super) fn is_handed_over(handovers: &Handovers, room: RoomName) -> bool {
    room.room_id().is_some_and(|room| handovers.has(room))
}

/// How long a room may have no owner while it is handed over: less than the lease that is left, after which another node may
/// own it.
const OWNED_WITHIN: Duration = Duration::from_secs(2);
/// How long the members may take to be joined to the next node, with the lease of one that dies.
const MOVED_WITHIN: Duration = Duration::from_secs(6);
