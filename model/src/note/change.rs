//! Changes of stored notes, and the port that stores them.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::ids::{CallId, ConferenceSessionId, ExtensionId, LegId, NodeId, NoteId, OrganisationId, TeamId};
use crate::note::rules::Outcome;
use crate::note::{Acknowledgement, Note, NoteChannel, NoteLevel, NoteSource, NoteStatus};
use crate::port_future::PortFuture;
use crate::room::RoomName;
use crate::time::Timestamp;

/// A change of a note, to be stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A user acknowledged the note, or a client reports an acknowledgement.
    Acked(Tap),
    /// The result of sending it to one phone.
    Answered {
        /// The note.
        note: NoteId,
        /// The phone's index among its receipts.
        place: usize,
        /// The result.
        outcome: Outcome,
    },
    /// A note that is about to be sent, or that cannot be sent.
    Sent(Box<NewNote>),
}

/// The result of storing a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is stored.
    Done,
    /// An acknowledgement that was refused; nothing changed.
    Refused,
}

/// A note as it is first stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNote {
    /// The note.
    pub id: NoteId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// The team of the call or the extension.
    pub team_id: Option<TeamId>,
    /// How it is sent.
    pub channel: NoteChannel,
    /// The call that it goes into.
    pub call_uuid: Option<CallId>,
    /// The extension that it goes to.
    pub extension_id: Option<ExtensionId>,
    /// The room that sends it.
    pub room: Option<FromRoom>,
    /// The heading.
    pub title: String,
    /// The level.
    pub level: NoteLevel,
    /// Whether the phone shows an Acknowledge button.
    pub ack: bool,
    /// Its source.
    pub source: NoteSource,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// The payload for the phones; empty when nothing is sent.
    pub payload: Bytes,
    /// Why it cannot be sent; `None` if it can.
    pub error: Option<String>,
    /// The node that sends it.
    pub node: NodeId,
    /// One for each phone.
    pub receipts: Vec<NewReceipt>,
}

/// The room that sends a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromRoom {
    /// The switch's name for it.
    pub room: RoomName,
    /// The session.
    pub session: ConferenceSessionId,
    /// The legs to which the note is sent, one receipt each.
    pub legs: Vec<LegId>,
}

/// A phone that receives a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    /// The leg, the extension, or the number of a room's member.
    pub member: String,
    /// The person.
    pub name: String,
    /// The contact of a device; empty for a leg.
    pub device: String,
}

/// An acknowledgement, and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// The authenticated sender.
    pub by: Tapper,
    /// The content.
    pub acknowledgement: Acknowledgement,
    /// When it arrived.
    pub now: Timestamp,
}

/// The sender of an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tapper {
    /// A device that authenticated as the extension.
    Device {
        /// The extension's organisation.
        organisation: OrganisationId,
        /// The extension.
        extension: ExtensionId,
        /// Its address of record.
        address: String,
        /// The device's registered contact at the address that the acknowledgement came from.
        device: Option<String>,
    },
    /// The phone at the far end of a leg.
    Leg {
        /// The call's organisation.
        organisation: OrganisationId,
        /// The leg.
        leg: LegId,
    },
}

/// Called after the commit; dropped without a call if nothing is committed.
pub type Committed = Box<dyn FnOnce() + Send>;

/// The stored notes, for their senders.
pub trait NoteLog: Send + Sync {
    /// Stores changes in one durable transaction, each with its event; returns the result of each, in order.
    fn write_changes<'a>(&'a self, changes: &'a [Change]) -> PortFuture<'a, Vec<Written>>;

    /// Whether writes are currently part of a larger unit, which another function commits.
    fn is_within_unit(&self) -> bool;

    /// Stores a new note within this unit.
    fn write_within<'a>(&'a self, note: &'a NewNote, committed: Committed) -> PortFuture<'a, ()>;

    /// Returns the organisation and team of the call, as stored with the notes that were sent into it.
    fn owner_of_call(&self, call: CallId) -> PortFuture<'_, Option<(OrganisationId, Option<TeamId>)>>;
}

impl NewNote {
    /// Returns the note with the content of `note`.
    #[must_use]
    pub fn saying(self, note: &Note) -> Self {
        let payload = note.payload(self.id).into();
        NewNote { title: note.title().to_owned(), level: note.level(), ack: note.ack(), payload, ..self }
    }

    /// Returns the status with which it is first stored.
    pub fn status(&self) -> NoteStatus {
        if self.error.is_some() { NoteStatus::Failed } else { NoteStatus::Pending }
    }

    /// The data of `call.info.sent`.
    pub fn sent_data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
        put("id", self.id.to_string().into());
        put("channel", self.channel.as_str().into());
        put("title", self.title.as_str().into());
        put("level", self.level.as_str().into());
        put("ack", self.ack.into());
        put("source", self.source.as_str().into());
        if let Some(call) = self.call_uuid {
            put("call_uuid", call.to_string().into());
        }
        if let Some(FromRoom { room, session, legs }) = &self.room {
            let legs: Vec<Value> = legs.iter().map(|leg| leg.to_string().into()).collect();
            put("legs", legs.into());
            put("room", room.to_string().into());
            if let Some(room) = room.room_id() {
                put("room_id", room.to_string().into());
            }
            put("session_id", session.to_string().into());
        } else if self.call_uuid.is_some() {
            let legs: Vec<Value> =
                self.receipts.iter().map(|receipt| receipt.member.as_str().into()).collect();
            put("legs", legs.into());
        }
        if let Some(extension) = self.extension_id {
            put("extension_id", extension.to_string().into());
        }
        data
    }
}
