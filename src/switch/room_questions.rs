//! Questions about live rooms, and commands to them: the port used by the HTTP API.

use std::cmp::Reverse;

use sidetone_model::ids::{CallId, ExtensionId, LegId, OrganisationId, RoomId};
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialRequest, LiveRoom, LiveRooms, RoomName, RoomViewer,
};
use uuid::Uuid;

use crate::switch::control::Question;
use crate::switch::driver::Handle;
use crate::switch::machine::{Now, Switch};
use crate::switch::merging::Merge;

/// Lists the live rooms that a viewer may see.
struct List(RoomViewer, Option<OrganisationId>, Window);

impl Question for List {
    type Answer = Page<LiveRoom>;

    fn put(self, now: Now, switch: &mut Switch) -> Page<LiveRoom> {
        let List(viewer, organisation, window) = self;
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

/// Finds a live room.
struct Find(RoomName);

impl Question for Find {
    type Answer = Option<LiveRoom>;

    fn put(self, now: Now, switch: &mut Switch) -> Option<LiveRoom> {
        switch.live_room(now, self.0)
    }
}

/// Finds the live room that a call or leg is in.
struct ByCall(Uuid);

impl Question for ByCall {
    type Answer = Option<LiveRoom>;

    fn put(self, now: Now, switch: &mut Switch) -> Option<LiveRoom> {
        switch.live_room_of(now, self.0)
    }
}

/// Applies a command to a live room.
struct Do(RoomName, Control);

impl Question for Do {
    type Answer = Result<ControlDone, ControlRefused>;

    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer {
        switch.conferences.rooms.control(now, self.0, self.1)
    }
}

/// Dials a target for a room.
struct Ring(RoomId, DialRequest);

impl Question for Ring {
    type Answer = Result<String, ControlRefused>;

    fn put(self, now: Now, switch: &mut Switch) -> Self::Answer {
        switch.dial_into(now, self.0, self.1)
    }
}

/// Counts the members of rooms.
struct Members(Vec<RoomId>);

impl Question for Members {
    type Answer = Vec<u32>;

    fn put(self, _now: Now, switch: &mut Switch) -> Vec<u32> {
        let rooms = &switch.conferences.rooms;
        let members = |room| u32::try_from(rooms.members_in(RoomName::Stored(room))).unwrap_or(u32::MAX);
        self.0.into_iter().map(members).collect()
    }
}

impl LiveRooms for Handle {
    fn list(
        &self,
        viewer: RoomViewer,
        organisation: Option<OrganisationId>,
        window: Window,
    ) -> PortFuture<'_, Page<LiveRoom>> {
        Box::pin(async move { Ok(self.ask(List(viewer, organisation, window)).await?) })
    }

    fn find(&self, room: RoomName) -> PortFuture<'_, Option<LiveRoom>> {
        Box::pin(async move { Ok(self.ask(Find(room)).await?) })
    }

    fn by_call(&self, call: Uuid) -> PortFuture<'_, Option<LiveRoom>> {
        Box::pin(async move { Ok(self.ask(ByCall(call)).await?) })
    }

    fn control(&self, room: RoomName, control: Control) -> PortFuture<'_, ControlDone> {
        Box::pin(async move { self.ask(Do(room, control)).await?.map_err(Problem::from) })
    }

    fn dial(&self, room: RoomId, request: DialRequest) -> PortFuture<'_, String> {
        Box::pin(async move { self.ask(Ring(room, request)).await?.map_err(Problem::from) })
    }

    fn merge(&self, call: CallId, with: CallId, by: Vec<ExtensionId>) -> PortFuture<'_, LiveRoom> {
        Box::pin(async move { self.ask(Merge { call, with, by }).await?.map_err(Problem::from) })
    }

    fn live_members<'a>(&'a self, rooms: &'a [RoomId]) -> PortFuture<'a, Vec<u32>> {
        Box::pin(async move { Ok(self.ask(Members(rooms.to_vec())).await?) })
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
