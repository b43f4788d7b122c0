//! A phone that calls again before the end of its last call is detected, for example after a power cut, takes its
//! old seat. A call that may come from another phone of the same party gets its own seat, and the silent
//! member is probed immediately.

use sidetone_model::call::HangupCause;
use sidetone_model::room::{Role, RoomName};
use sidetone_model::time::Now;

use crate::conference::live::{Live, Member};
use crate::conference::live_rooms::LiveRooms;
use crate::conference::outputs::Outputs;
use crate::conference::{Arrival, Output};

/// Whether a silent member of the room is on the same phone.
pub(super) fn has_old_seat(rooms: &LiveRooms, who: &Arrival, name: RoomName) -> bool {
    rooms.get(name).is_some_and(|room| old_seat(room, who).is_some())
}

/// Gives a phone that calls again its old seat; returns whether it had one.
pub(super) fn retake(
    now: Now,
    rooms: &mut LiveRooms,
    who: &Arrival,
    (name, role): (RoomName, Role),
    outputs: &mut Outputs,
) -> bool {
    let Some(room) = rooms.get_mut(name) else { return false };
    let Some(id) = old_seat(room, who) else { return false };
    room.stop_sound_of(now, id, outputs);
    let Some((lost, seat)) = room.reseat(now, id, who.clone(), role, outputs) else { return false };
    outputs.push(Output::HangUp(lost, HangupCause::MediaTimeout));
    let (leg, mix, organisation) = (who.leg, room.mix, who.organisation);
    outputs.push(Output::Join { leg, mix, organisation, muted: seat.muted, hears: seat.hears });
    // The new leg has no gain and no whisper yet, and whispers to the member go to its old leg.
    room.settle(outputs);
    room.greet(id, leg, outputs);
    room.note_roster(id, outputs);
    rooms.pass_seat(lost, leg);
    true
}

/// Requests a probe of the silent members that may be lost calls of the same party.
pub(super) fn doubt_others(rooms: &LiveRooms, who: &Arrival, name: RoomName, outputs: &mut Outputs) {
    let members = rooms.get(name).into_iter().flat_map(|room| room.members.values());
    for member in members.filter(|member| member.silent && is_same_party(member, who)) {
        outputs.push(Output::Doubt(member.leg));
    }
}

fn old_seat(room: &Live, who: &Arrival) -> Option<u32> {
    // The parties of merged calls are in calls that are up.
    room.name.room_id()?;
    let device = who.device?;
    let is_lost = |member: &&Member| member.silent && member.device == Some(device) && member.leg != who.leg;
    room.members.values().find(is_lost).map(|member| member.id)
}

fn is_same_party(member: &Member, who: &Arrival) -> bool {
    match who.extension {
        Some(extension) => member.extension == Some(extension),
        None => member.extension.is_none() && !who.number.is_empty() && member.number == who.number,
    }
}
