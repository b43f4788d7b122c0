//! What happens to stored notes, and where it is stored.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::ids::{CallId, ConferenceSessionId, ExtensionId, LegId, NodeId, NoteId, OrganisationId, TeamId};
use crate::note::rules::Outcome;
use crate::note::{Acknowledgement, Note, NoteChannel, NoteLevel, NoteSource, NoteStatus};
use crate::ports::PortFuture;
use crate::room::RoomName;
use crate::time::Timestamp;

/// Something that is to be stored of a note.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A person tapped Acknowledge, or somebody says so.
    Acked(Tap),
    /// What came of sending it to one phone.
    Answered {
        /// The note.
        note: NoteId,
        /// The phone's place among its receipts.
        place: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// A note that is about to be sent, or that never can be.
    Sent(Box<NewNote>),
}

/// What storing a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is stored.
    Done,
    /// An acknowledgement that counts for nothing; nothing changed.
    Refused,
}

/// A note as it is stored first.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNote {
    /// The note.
    pub id: NoteId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team of the call or the extension.
    pub team_id: Option<TeamId>,
    /// How it goes out.
    pub channel: NoteChannel,
    /// The call that it goes into.
    pub call_uuid: Option<CallId>,
    /// The extension that it goes to.
    pub extension_id: Option<ExtensionId>,
    /// The room that sends it.
    pub room: Option<FromRoom>,
    /// The heading.
    pub title: String,
    /// How urgent it is.
    pub level: NoteLevel,
    /// Whether it shows an Acknowledge button.
    pub ack: bool,
    /// Where it came from.
    pub source: NoteSource,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// What the phones receive; empty when there is nothing to send.
    pub payload: Bytes,
    /// Why it cannot be sent; `None` when it is about to be.
    pub error: Option<String>,
    /// The node that sends it.
    pub node: NodeId,
    /// One for each phone.
    pub receipts: Vec<NewReceipt>,
}

/// The room that sends a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromRoom {
    /// The switch's name of it.
    pub room: RoomName,
    /// The occupancy.
    pub session: ConferenceSessionId,
    /// The legs that it goes to, a receipt for each.
    pub legs: Vec<LegId>,
}

/// A phone that a note goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    /// The leg, the extension, or the number of a room's member.
    pub member: String,
    /// The person.
    pub name: String,
    /// The contact of a device; empty for a leg.
    pub device: String,
}

/// A tap, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Who says so, as it was proved.
    pub by: Tapper,
    /// What is said.
    pub acknowledgement: Acknowledgement,
    /// When it came.
    pub now: Timestamp,
}

/// Who says that a person tapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tapper {
    /// A device that proved to be the extension's.
    Device {
        /// Whose extension it is.
        organisation: OrganisationId,
        /// The extension.
        extension: ExtensionId,
        /// Its address of record.
        address: String,
        /// The contact that it has registered from where the tap came.
        device: Option<String>,
    },
    /// The phone at the far end of a leg.
    Leg {
        /// Whose call it is.
        organisation: OrganisationId,
        /// The leg.
        leg: LegId,
    },
}

/// Done once what was written is committed; dropped when it never will be.
pub type Committed = Box<dyn FnOnce() + Send>;

/// The stored notes, as those write them who send them.
pub trait NoteLog: Send + Sync {
    /// Stores changes in one durable transaction, each with its event; says what each did, in their order.
    fn write_changes<'a>(&'a self, changes: &'a [Change]) -> PortFuture<'a, Vec<Written>>;

    /// Whether what is written now becomes visible together with something else, at somebody else's commit.
    fn is_within_unit(&self) -> bool;

    /// Stores a new note within that unit.
    fn write_within<'a>(&'a self, note: &'a NewNote, committed: Committed) -> PortFuture<'a, ()>;

    /// The organisation and team of the call, by the notes that were sent into it.
    fn owner_of_call(&self, call: CallId) -> PortFuture<'_, Option<(OrganisationId, Option<TeamId>)>>;
}

impl NewNote {
    /// The same with what `note` says.
    #[must_use]
    pub fn saying(self, note: &Note) -> Self {
        let payload = note.payload(self.id).into();
        NewNote { title: note.title().to_owned(), level: note.level(), ack: note.ack(), payload, ..self }
    }

    /// How far it is when it is stored.
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
