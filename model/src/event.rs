//! Events: what happened, in the one JSON shape that the stream, webhooks and the outbox share.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{EventId, OrganisationId};
use crate::time::Timestamp;

/// An event of one organisation: `{id, type, timestamp, organisation_id, data}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// UUIDv7, so that ids sort by time.
    pub id: EventId,
    /// Dotted name such as `call.ended`.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The payload of that kind.
    pub data: Map<String, Value>,
}

/// The kinds of event that this engine causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// A call was over; its record is stored.
    #[serde(rename = "call.ended")]
    CallEnded,
    /// A conversation was over; its price is settled and it was reviewed.
    #[serde(rename = "conversation.completed")]
    ConversationCompleted,
}

impl EventKind {
    /// The dotted name.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventKind::CallEnded => "call.ended",
            EventKind::ConversationCompleted => "conversation.completed",
        }
    }
}
