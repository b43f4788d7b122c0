//! Answers queries about live rooms, and carries out commands in them.

use std::cmp::Reverse;

use sidetone_model::cursor::KeyValue;
use sidetone_model::ids::{CallId, LegId, RoomId};
use sidetone_model::page::{Order, Page};
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialRequest, LiveRoom, RoomDialled, RoomName,
};
use sidetone_model::time::Now;
use uuid::Uuid;

use crate::conference_adapter::Conferences;
use crate::queries::ListRooms;

/// Returns the live rooms that a viewer may see, newest first.
pub(super) fn list(conferences: &Conferences, now: Now, query: &ListRooms) -> Page<LiveRoom> {
    let ListRooms(viewer, organisation, window) = query;
    let mut rooms: Vec<LiveRoom> = conferences.rooms.live(now.wall).collect();
    rooms
        .retain(|room| organisation.is_none_or(|wanted| wanted == room.organisation_id) && viewer.sees(room));
    rooms.sort_unstable_by_key(|room| Reverse((room.started_at, room.session_id)));
    Page::of_sorted(rooms, window, Order::Descending, |room| {
        vec![KeyValue::Integer(room.started_at.as_micros()), KeyValue::Text(room.session_id.to_string())]
    })
}

/// Returns a live room.
pub(super) fn find(conferences: &Conferences, now: Now, room: RoomName) -> Option<LiveRoom> {
    conferences.rooms.live_room(now.wall, room)
}

/// Returns the live room of a call, found by the call's id or that of any of its legs.
pub(super) fn of_call(conferences: &Conferences, now: Now, call: Uuid) -> Option<LiveRoom> {
    let leg = Some(LegId(call)).filter(|leg| conferences.has(*leg));
    let leg = leg.or_else(|| conferences.leg_of_call(CallId(call)))?;
    find(conferences, now, conferences.rooms.room_of(leg)?)
}

/// Carries out a command in a live room.
///
/// # Errors
/// Why it was refused.
pub(super) fn control(
    conferences: &mut Conferences,
    now: Now,
    room: RoomName,
    control: Control,
) -> Result<ControlDone, ControlRefused> {
    conferences.rooms.control(now, room, control)
}

/// Dials a target for a room; the call follows as an output of the rooms.
///
/// # Errors
/// Why the target is not dialled.
pub(super) fn dial(
    conferences: &mut Conferences,
    now: Now,
    room: RoomId,
    request: DialRequest,
) -> Result<RoomDialled, ControlRefused> {
    conferences.rooms.dial(now, room, request)
}

/// Returns the number of members in each of these rooms.
pub(super) fn members(conferences: &Conferences, rooms: &[RoomId]) -> Vec<u32> {
    let members = |room: &RoomId| conferences.rooms.members_in(RoomName::Stored(*room));
    rooms.iter().map(|room| u32::try_from(members(room)).unwrap_or(u32::MAX)).collect()
}
