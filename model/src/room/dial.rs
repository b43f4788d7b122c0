//! Calls that rooms place for clients: the request, its answer, and the reasons for a failure.

use serde::Serialize;

use crate::call::words;
use crate::event::{Event, EventKind};
use crate::ids::{CallId, OrganisationId, RoomId};
use crate::room::{Role, RoomName};
use crate::time::Timestamp;

words! {
    /// The kind of party that is dialled into a room.
    DialKind {
        /// An extension of the organisation.
        Extension = "extension",
        /// A number of the world.
        External = "external",
    }
}

/// A party to be rung and added to a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialRequest {
    /// Where they are.
    pub kind: DialKind,
    /// An extension's number, or E.164 with `+`.
    pub target: String,
    /// The role in the room.
    pub role: Role,
    /// Whether the party is asked to press 1 before it joins.
    pub confirm: bool,
}

/// A party that is being rung for a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomDialled {
    /// The extension's number or the telephone number, as requested.
    pub target: String,
    /// The call to the target. If the target was already being rung, this is the call of the first request.
    pub call: CallId,
}

words! {
    /// Why a party that was dialled did not join the room.
    DialFailure {
        /// The party is in another call.
        Busy = "busy",
        /// The call was ended before the party joined: with the room, or because the extension joined by itself.
        Cancelled = "cancelled",
        /// The party rejected the call.
        Declined = "declined",
        /// Another final status, in `sip_status`.
        Failed = "failed",
        /// The party did not answer.
        NoAnswer = "no_answer",
        /// The organisation's credit is used up.
        NoCredit = "no_credit",
        /// No trunk takes the number, or no rate covers it.
        NoRoute = "no_route",
        /// The party answered and did not press 1, such as a mailbox.
        NotConfirmed = "not_confirmed",
        /// The party answered; the room was full or locked by then, or deleted.
        Refused = "refused",
        /// No phone of the extension is registered.
        Unregistered = "unregistered",
    }
}

/// A party that was dialled but did not join; the data of `conference.dial_failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoomDialFailed {
    /// The organisation of the room.
    #[serde(skip)]
    pub organisation_id: OrganisationId,
    /// The room.
    pub room_id: RoomId,
    /// The switch's name of the room.
    pub room: RoomName,
    /// The call, as the request to dial was answered.
    pub call_uuid: CallId,
    /// The kind of the target.
    pub kind: DialKind,
    /// The target as it was requested.
    pub target: String,
    /// The role that it would have had.
    pub role: Role,
    /// Why it did not join.
    pub cause: DialFailure,
    /// The final SIP status, if the cause is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    /// When it failed.
    pub at: Timestamp,
}

impl RoomDialFailed {
    /// Returns a new event with these data.
    pub fn event(&self) -> Event {
        Event::of(EventKind::ConferenceDialFailed, self.organisation_id, None, self.at, self)
    }
}
