//! The ports that a running switch implements: each call of a port is a query to it.

use sidetone_model::access::Scope;
use sidetone_model::call_fields::GivenFields;
use sidetone_model::ids::{CallId, ExtensionId, OrganisationId, RoomId, TrunkId};
use sidetone_model::live_call::{LiveCall, LiveCallQuery, LiveCalls};
use sidetone_model::note::{CallPhones, Dispatch, Phones};
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::registration::{PhoneRegistrations, RegistrationQuery, RegistrationRecord};
use sidetone_model::room::{
    Control, ControlDone, DialKind, DialRequest, LiveRoom, LiveRooms, Requester, RoomDialled, RoomName,
    RoomViewer,
};
use sidetone_model::trunk_status::{TrunkStatus, TrunkStatuses};
use sidetone_sip::transaction::ServerKey;
use sidetone_switch::queries::{
    AnswerMessage, ControlRoom, DevicesOf, DialIntoRoom, FindCall, FindRoom, ListCalls, ListRegistrations,
    ListRooms, MembersOfRooms, Merge, PhonesOnCall, RoomOfCall, SendNotes, StatusOfTrunk, WrongFields,
};
use uuid::Uuid;

use crate::driver::Handle;

impl LiveCalls for Handle {
    fn list(&self, scope: Scope, query: LiveCallQuery) -> PortFuture<'_, Page<LiveCall>> {
        Box::pin(async move { Ok(self.ask(ListCalls(scope, query)).await?) })
    }

    fn find(&self, call: CallId) -> PortFuture<'_, Option<LiveCall>> {
        Box::pin(async move { Ok(self.ask(FindCall(call)).await?.map(|call| *call)) })
    }
}

impl PhoneRegistrations for Handle {
    fn list(&self, scope: Scope, query: RegistrationQuery) -> PortFuture<'_, Page<RegistrationRecord>> {
        Box::pin(async move { Ok(self.ask(ListRegistrations(scope, query)).await?) })
    }
}

impl TrunkStatuses for Handle {
    fn find(&self, trunk: TrunkId) -> PortFuture<'_, Option<TrunkStatus>> {
        Box::pin(async move { Ok(self.ask(StatusOfTrunk(trunk)).await?) })
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

    fn dial(&self, room: RoomId, request: DialRequest) -> PortFuture<'_, RoomDialled> {
        Box::pin(async move { self.ask(DialIntoRoom(room, request)).await?.map_err(Problem::from) })
    }

    fn wrong_target(
        &self,
        organisation: OrganisationId,
        kind: DialKind,
        target: String,
    ) -> PortFuture<'_, Vec<FieldProblem>> {
        let given = GivenFields::Dial { organisation, kind, target };
        Box::pin(async move { Ok(self.ask(WrongFields(given)).await?) })
    }

    fn merge(&self, call: CallId, with: CallId, by: Requester) -> PortFuture<'_, LiveRoom> {
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
    /// Answers a phone's message. If the switch cannot be reached, the phone retransmits the message.
    pub async fn answer_message(&self, key: ServerKey, status: u16) {
        if let Err(error) = self.ask(AnswerMessage(key, status)).await {
            tracing::warn!(%error, "a phone gets no answer to its message");
        }
    }
}
