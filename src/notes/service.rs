//! Sends notes for the API and the call-info callback, and reads them.

use std::sync::Arc;

use bytes::Bytes;
use sidetone_model::access::Scope;
use sidetone_model::extension::ExtensionRecord;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NodeId, NoteId, OrganisationId, RoomId};
use sidetone_model::note::{
    CallPhones, Destination, Dispatch, NewNote, NewReceipt, Note, NoteChannel, NoteLevel, NoteLog, NoteQuery,
    NoteRecord, NoteSent, NoteSource, Notes, Phones,
};
use sidetone_model::page::Page;
use sidetone_model::ports::{CdrLog, PortFuture};
use sidetone_model::problem::Problem;
use sidetone_store::Store;
use uuid::Uuid;

use crate::clock::Clock;
use crate::notes::{Dispatcher, Orders};
use crate::supervise::{Supervisor, Task};

/// Sends and reads notes; clones share the tasks.
#[derive(Clone)]
pub struct NoteService {
    store: Store,
    phones: Arc<dyn Phones>,
    orders: Orders,
    dispatcher: Dispatcher,
    node: NodeId,
    clock: Clock,
    supervisor: Supervisor,
}

impl NoteService {
    /// Returns a service with these parts.
    pub fn new(
        store: Store,
        phones: Arc<dyn Phones>,
        (orders, dispatcher): (Orders, Dispatcher),
        node: NodeId,
        clock: Clock,
    ) -> Self {
        Self { store, phones, orders, dispatcher, node, clock, supervisor: Supervisor::default() }
    }

    /// Returns the service with its tasks under `supervisor`.
    #[must_use]
    pub fn supervised(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = supervisor;
        self
    }

    pub(super) async fn to_call(
        &self,
        scope: Scope,
        call: CallId,
        note: Note,
        source: NoteSource,
    ) -> Result<NoteSent, Problem> {
        let found = self.phones.on_call(call).await?;
        let CallPhones { organisation, team, is_answered, phones } =
            found.ok_or_else(|| Problem::NotFound("there is no such call now".to_owned()))?;
        if !scope.covers(organisation, team) {
            return Err(foreign_call());
        }
        if !is_answered {
            return Err(Problem::Conflict(
                "the call is not answered yet, send the note when it is".to_owned(),
            ));
        }
        if phones.is_empty() {
            return Err(Problem::Conflict("the call has no phone of yours on it".to_owned()));
        }
        let legs: Vec<LegId> = phones.iter().map(|phone| phone.leg).collect();
        let receipts = phones
            .into_iter()
            .map(|phone| NewReceipt {
                member: phone.leg.to_string(),
                name: phone.name,
                device: String::new(),
            })
            .collect();
        let new = NewNote {
            call_uuid: Some(call),
            team_id: team,
            receipts,
            ..self.blank(organisation, NoteChannel::Info, source).saying(&note)
        };
        let sent = NoteSent { id: new.id, channel: new.channel, legs: Some(legs.clone()), ack: new.ack };
        self.store_and_send(new, Destination::Call(call, legs)).await?;
        Ok(sent)
    }

    async fn to_extension(&self, extension: ExtensionRecord, note: Note) -> Result<NoteSent, Problem> {
        let devices = self.phones.devices_of(extension.id).await?;
        if devices.is_empty() {
            return Err(Problem::Conflict("the extension has no registered device".to_owned()));
        }
        let name = if extension.name.is_empty() { &extension.number } else { &extension.name };
        let receipts = devices
            .iter()
            .map(|device| NewReceipt {
                member: extension.id.to_string(),
                name: name.clone(),
                device: device.clone(),
            })
            .collect();
        let new = NewNote {
            extension_id: Some(extension.id),
            team_id: extension.team_id,
            receipts,
            ..self.blank(extension.organisation_id, NoteChannel::Message, NoteSource::Api).saying(&note)
        };
        let sent = NoteSent { id: new.id, channel: new.channel, legs: None, ack: new.ack };
        self.store_and_send(new, Destination::Extension(extension.id, devices)).await?;
        Ok(sent)
    }

    /// A new note without content and destination.
    pub(super) fn blank(
        &self,
        organisation_id: OrganisationId,
        channel: NoteChannel,
        source: NoteSource,
    ) -> NewNote {
        NewNote {
            id: NoteId(Uuid::now_v7()),
            organisation_id,
            team_id: None,
            channel,
            call_uuid: None,
            extension_id: None,
            room: None,
            title: String::new(),
            level: NoteLevel::Info,
            ack: false,
            source,
            sent_at: (self.clock)(),
            payload: Bytes::new(),
            error: None,
            node: self.node,
            receipts: Vec::new(),
        }
    }

    /// Stores a note that is not sent.
    pub(super) async fn keep_failed(&self, note: NewNote) -> Result<(), Problem> {
        self.orders.store(note, None).await
    }

    /// Stores a note with its event and sends it after the commit.
    async fn store_and_send(&self, note: NewNote, to: Destination) -> Result<(), Problem> {
        let dispatch = Dispatch { note: note.id, to, payload: note.payload.clone() };
        if !self.store.is_within_unit() {
            return self.orders.store(note, Some(dispatch)).await;
        }
        let (dispatcher, orders) = (self.dispatcher.clone(), self.orders.clone());
        let supervisor = self.supervisor.clone();
        let committed = Box::new(move || {
            let Err(unsent) = dispatcher.take(dispatch) else { return };
            drop(supervisor.once(Task::NoteDispatch, async move {
                for change in unsent {
                    orders.answered(change).await;
                }
            }));
        });
        self.store.write_within(&note, committed).await
    }

    /// Returns the owner of the call: from its record, from the notes sent into it, or from the live call.
    async fn owner_of(&self, scope: Scope, call: CallId) -> Result<OrganisationId, Problem> {
        let record = CdrLog::find(&self.store, call).await?;
        let mut owner = record.map(|record| (record.organisation_id, record.team_id));
        if owner.is_none() {
            owner = self.store.owner_of_call(call).await?;
        }
        if owner.is_none() {
            owner = self.phones.on_call(call).await?.map(|found| (found.organisation, found.team));
        }
        let (organisation, team) =
            owner.ok_or_else(|| Problem::NotFound("there is no such call".to_owned()))?;
        if !scope.covers(organisation, team) {
            return Err(foreign_call());
        }
        Ok(organisation)
    }

    async fn extension(&self, scope: Scope, id: ExtensionId) -> Result<ExtensionRecord, Problem> {
        let found = self.store.extension_by_id(id).await?;
        let found = found.ok_or_else(|| Problem::NotFound("there is no such extension".to_owned()))?;
        if !scope.covers(found.organisation_id, found.team_id) {
            return Err(Problem::Forbidden("the extension is outside the caller's scope".to_owned()));
        }
        Ok(found)
    }
}

impl Notes for NoteService {
    fn send_to_call(&self, scope: Scope, call: CallId, note: Note) -> PortFuture<'_, NoteSent> {
        Box::pin(self.to_call(scope, call, note, NoteSource::Api))
    }

    fn send_to_extension(
        &self,
        scope: Scope,
        extension: ExtensionId,
        note: Note,
    ) -> PortFuture<'_, NoteSent> {
        Box::pin(async move {
            let extension = self.extension(scope, extension).await?;
            self.to_extension(extension, note).await
        })
    }

    fn of_call<'a>(
        &'a self,
        scope: Scope,
        call: CallId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>> {
        Box::pin(async move {
            let organisation = self.owner_of(scope, call).await?;
            Ok(self.store.notes_of_call(organisation, call, query).await?)
        })
    }

    fn of_extension<'a>(
        &'a self,
        scope: Scope,
        extension: ExtensionId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>> {
        Box::pin(async move {
            let extension = self.extension(scope, extension).await?;
            Ok(self.store.notes_of_extension(extension.organisation_id, extension.id, query).await?)
        })
    }

    fn of_room<'a>(
        &'a self,
        scope: Scope,
        room: RoomId,
        query: &'a NoteQuery,
    ) -> PortFuture<'a, Page<NoteRecord>> {
        Box::pin(async move {
            let organisation = self.store.owner_of_room(scope, room).await?;
            Ok(self.store.notes_of_room(organisation, room, query).await?)
        })
    }
}

fn foreign_call() -> Problem {
    Problem::Forbidden("the call is outside the caller's scope".to_owned())
}
