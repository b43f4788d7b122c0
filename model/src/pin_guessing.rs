//! Guessed PINs of rooms, as an event for the organisation.

use serde::Serialize;

use crate::call::words;
use crate::event::{Event, EventKind};
use crate::ids::{ExtensionId, OrganisationId, RoomId, TrunkId};
use crate::time::Timestamp;

words! {
    /// The limit on wrong PINs that was reached.
    PinLimit {
        /// One caller at one room.
        Caller = "caller",
        /// Extensions, and callers who keyed the right PIN before, at one room.
        Known = "known",
        /// All callers at all rooms of the organisation.
        Organisation = "organisation",
        /// All callers at one room.
        Room = "room",
        /// All callers over one trunk.
        Trunk = "trunk",
        /// All callers without a number at one room.
        Withheld = "withheld",
    }
}

/// Wrong PINs reached a limit; the data of `security.pin_guessing`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PinGuessing {
    /// The organisation of the room.
    #[serde(skip)]
    pub organisation_id: OrganisationId,
    /// The room of the last wrong PIN.
    pub room_id: RoomId,
    /// The limit that was reached.
    pub limit: PinLimit,
    /// The number that the last caller presented; left out if it was withheld.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub number: String,
    /// The extension of the last caller, if the caller was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The trunk of the last call, if it came over one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk_id: Option<TrunkId>,
    /// The wrong PINs that reach it.
    pub failures: u32,
    /// The period in which they were entered, in seconds.
    pub window_seconds: u64,
    /// When it was reached.
    pub at: Timestamp,
}

impl PinGuessing {
    /// Returns a new event with these data.
    pub fn event(&self) -> Event {
        Event::of(EventKind::SecurityPinGuessing, self.organisation_id, None, self.at, self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_event_names_the_room_the_caller_and_the_limit() {
        let guessing = PinGuessing {
            organisation_id: OrganisationId(Uuid::from_u128(1)),
            room_id: RoomId(Uuid::from_u128(9)),
            limit: PinLimit::Room,
            number: String::new(),
            extension_id: None,
            trunk_id: Some(TrunkId(Uuid::from_u128(3))),
            failures: 80,
            window_seconds: 3_600,
            at: Timestamp::from_micros(1_767_225_600_000_000),
        };
        let event = guessing.event();
        assert_eq!(
            (event.kind, event.organisation_id),
            (EventKind::SecurityPinGuessing, guessing.organisation_id)
        );
        let expected = json!({
            "room_id": "00000000-0000-0000-0000-000000000009", "limit": "room",
            "trunk_id": "00000000-0000-0000-0000-000000000003", "failures": 80, "window_seconds": 3600,
            "at": "2026-01-01T00:00:00.000Z"
        });
        assert_eq!(serde_json::Value::Object(event.data), expected);
    }
}
