//! Questions about live rooms, and what is done to them: what the port of the HTTP face asks.

use std::cmp::Reverse;

use sidetone_model::ids::{CallId, LegId, OrganisationId, RoomId};
use sidetone_model::page::{Page, Window};
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialRequest, LiveRoom, RoomName, RoomViewer,
};
use uuid::Uuid;

use crate::control::Question;
use crate::machine::{Now, Switch};

/// The live rooms that a viewer sees.
#[derive(Debug)]
pub struct ListRooms(pub RoomViewer, pub Option<OrganisationId>, pub Window);

impl Question for ListRooms {
    type Answer = Page<LiveRoom>;

    fn put(self, now: Now, switch: &mut Switch) -> Page<LiveRoom> {
        let ListRooms(viewer, organisation, window) = self;
        let mut rooms: Vec<LiveRoom> = switch.live_rooms(now).collect();
        rooms.retain(|room| {
            organisation.is_none_or(|wanted| wanted == room.organisation_id) && viewer.sees(room)
        });
        rooms.sort_unstable_by_key(|room| Reverse((room.started_at, room.session_id)));
        let total = rooms.len() as u64;
        let skipped = usize::try_from(window.offset).unwrap_or(usize::MAX);
        let items = rooms.into_iter().skip(skipped).take(window.limit as usize).collect();
        Page { items, total, limit: window.limit, offset: window.offset }
    }
}

/// One live room.
#[derive(Debug)]
pub struct FindRoom(pub RoomName);

impl Question for FindRoom {
    type Answer = Option<LiveRoom>;

    fn put(self, now: Now, switch: &mut Switch) -> Option<LiveRoom> {
        switch.live_room(now, self.0)
    }
}

/// The live room that a call or leg is in.
#[derive(Debug)]
pub struct RoomOfCall(pub Uuid);

impl Question for RoomOfCall {
    type Answer = Option<LiveRoom>;

    fn put(self, now: Now, switch: &mut Switch) -> Option<LiveRoom> {
        switch.live_room_of(now, self.0)
    }
}

/// Something that is done to a live room.
#[derive(Debug)]
pub struct ControlRoom(pub RoomName, pub Control);

impl Question for ControlRoom {
    type Answer = Result<ControlDone, ControlRefused>;

    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer {
        switch.conferences.rooms.control(now, self.0, self.1)
    }
}

/// Somebody to be rung.
#[derive(Debug)]
pub struct DialIntoRoom(pub RoomId, pub DialRequest);

impl Question for DialIntoRoom {
    type Answer = Result<String, ControlRefused>;

    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer {
        switch.dial_into(now, self.0, self.1)
    }
}

/// How many are in rooms.
#[derive(Debug)]
pub struct MembersOfRooms(pub Vec<RoomId>);

impl Question for MembersOfRooms {
    type Answer = Vec<u32>;

    fn put(self, _now: Now, switch: &mut Switch) -> Vec<u32> {
        let rooms = &switch.conferences.rooms;
        let members = |room| u32::try_from(rooms.members_in(RoomName::Stored(room))).unwrap_or(u32::MAX);
        self.0.into_iter().map(members).collect()
    }
}

impl Switch {
    /// Dials a target for a room.
    ///
    /// # Errors
    /// Why it is not dialled.
    pub(super) fn dial_into(
        &mut self,
        now: Now,
        room: RoomId,
        request: DialRequest,
    ) -> Result<String, ControlRefused> {
        let organisation = self.directory.room(room).ok_or(ControlRefused::NoRoom)?.organisation_id;
        self.may_dial(now, organisation, &request)?;
        self.conferences.rooms.dial(room, request)
    }

    /// Returns the live rooms.
    pub fn live_rooms(&self, now: Now) -> impl Iterator<Item = LiveRoom> + '_ {
        self.conferences.rooms.live(now.wall)
    }

    /// Returns a live room.
    pub fn live_room(&self, now: Now, room: RoomName) -> Option<LiveRoom> {
        self.conferences.rooms.live_room(now.wall, room)
    }

    /// Returns the live room of a call, found by the call's id or that of any of its legs.
    pub fn live_room_of(&self, now: Now, call: Uuid) -> Option<LiveRoom> {
        let seats = &self.conferences.seats;
        let of_call = || seats.iter().find(|(_, seat)| seat.call == CallId(call)).map(|(leg, _)| *leg);
        let leg = Some(LegId(call)).filter(|leg| seats.contains_key(leg)).or_else(of_call)?;
        self.live_room(now, self.conferences.rooms.room_of(leg)?)
    }
}
