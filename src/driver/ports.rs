//! The ports that a running switch serves: each call of a port is a question to it.

use sidetone_model::access::Scope;
use sidetone_model::ids::{CallId, ExtensionId, OrganisationId, RoomId};
use sidetone_model::live_call::{LiveCall, LiveCallQuery, LiveCalls};
use sidetone_model::note::{CallPhones, Dispatch, Phones};
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::{Control, ControlDone, DialRequest, LiveRoom, LiveRooms, RoomName, RoomViewer};
use sidetone_sip::transaction::ServerKey;
use sidetone_switch::control::{FindCall, ListCalls};
use sidetone_switch::merging::Merge;
use sidetone_switch::notes::{AnswerSaid, DevicesOf, PhonesOnCall, SendNotes};
use sidetone_switch::room_questions::{
    ControlRoom, DialIntoRoom, FindRoom, ListRooms, MembersOfRooms, RoomOfCall,
};
use uuid::Uuid;

use crate::driver::Handle;

impl LiveCalls for Handle {
    fn list(&self, scope: Scope, query: LiveCallQuery) -> PortFuture<'_, Page<LiveCall>> {
        Box::pin(async move { Ok(self.ask(ListCalls(scope, query)).await?) })
    }

    fn find(&self, call: CallId) -> PortFuture<'_, Option<LiveCall>> {
        Box::pin(async move { Ok(self.ask(FindCall(call)).await?) })
    }
}

impl LiveRooms for Handle {
    fn list(
        &self,
        viewer: RoomViewer,
        organisation: Option<OrganisationId>,
        window: Window,
    ) -> PortFuture<'_, Page<LiveRoom>> {
        Box::pin(async move { Ok(self.ask(ListRooms(viewer, organisation, window)).await?) })
    }

    fn find(&self, room: RoomName) -> PortFuture<'_, Option<LiveRoom>> {
        Box::pin(async move { Ok(self.ask(FindRoom(room)).await?) })
    }

    fn by_call(&self, call: Uuid) -> PortFuture<'_, Option<LiveRoom>> {
        Box::pin(async move { Ok(self.ask(RoomOfCall(call)).await?) })
    }

    fn control(&self, room: RoomName, control: Control) -> PortFuture<'_, ControlDone> {
        Box::pin(async move { self.ask(ControlRoom(room, control)).await?.map_err(Problem::from) })
    }

    fn dial(&self, room: RoomId, request: DialRequest) -> PortFuture<'_, String> {
        Box::pin(async move { self.ask(DialIntoRoom(room, request)).await?.map_err(Problem::from) })
    }

    fn merge(&self, call: CallId, with: CallId, by: Vec<ExtensionId>) -> PortFuture<'_, LiveRoom> {
        Box::pin(async move { self.ask(Merge { call, with, by }).await?.map_err(Problem::from) })
    }

    fn live_members<'a>(&'a self, rooms: &'a [RoomId]) -> PortFuture<'a, Vec<u32>> {
        Box::pin(async move { Ok(self.ask(MembersOfRooms(rooms.to_vec())).await?) })
    }
}

impl Phones for Handle {
    fn on_call(&self, call: CallId) -> PortFuture<'_, Option<CallPhones>> {
        Box::pin(async move { Ok(self.ask(PhonesOnCall(call)).await?) })
    }

    fn devices_of(&self, extension: ExtensionId) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { Ok(self.ask(DevicesOf(extension)).await?) })
    }

    fn send(&self, notes: Vec<Dispatch>) -> PortFuture<'_, ()> {
        Box::pin(async move { Ok(self.ask(SendNotes(notes)).await?) })
    }
}

impl Handle {
    /// Answers what a phone said. A switch that cannot be asked lets the phone say it again.
    pub async fn answer_said(&self, key: ServerKey, status: u16) {
        if let Err(error) = self.ask(AnswerSaid(key, status)).await {
            tracing::warn!(%error, "a phone gets no answer to what it said");
        }
    }
}
