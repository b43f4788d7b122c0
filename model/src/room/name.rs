//! The switch's name for a live room.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::ids::{CallId, RoomId};

/// The switch's name for a live room: the `{room}` of its paths, and the `room` of its events.
///
/// Written as `svc-room-<room id>` and `svc-conf-<call uuid>`, in hyphenated lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoomName {
    /// Merged calls; named after the call to which the other one was added.
    Merged(CallId),
    /// A stored room.
    Stored(RoomId),
}

impl RoomName {
    /// The stored room, if there is one.
    pub fn room_id(self) -> Option<RoomId> {
        match self {
            RoomName::Merged(_) => None,
            RoomName::Stored(room) => Some(room),
        }
    }
}

impl From<RoomId> for RoomName {
    fn from(room: RoomId) -> Self {
        RoomName::Stored(room)
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RoomName::Merged(call) => write!(f, "{MERGED}{call}"),
            RoomName::Stored(room) => write!(f, "{STORED}{room}"),
        }
    }
}

/// The text is not the name of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be svc-room-<room id> or svc-conf-<call uuid>")]
pub struct RoomNameError;

impl FromStr for RoomName {
    type Err = RoomNameError;

    /// A room has only one name: a UUID in another spelling is refused.
    fn from_str(text: &str) -> Result<Self, RoomNameError> {
        let name = if let Some(room) = text.strip_prefix(STORED) {
            Uuid::try_parse(room).map(|room| RoomName::Stored(room.into()))
        } else if let Some(call) = text.strip_prefix(MERGED) {
            Uuid::try_parse(call).map(|call| RoomName::Merged(call.into()))
        } else {
            return Err(RoomNameError);
        };
        name.ok().filter(|name| name.to_string() == text).ok_or(RoomNameError)
    }
}

impl Serialize for RoomName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const MERGED: &str = "svc-conf-";
const STORED: &str = "svc-room-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_have_one_spelling() {
        let id = Uuid::from_u128(0xabc);
        for name in [RoomName::Stored(id.into()), RoomName::Merged(id.into())] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!(RoomName::Stored(id.into()).to_string(), format!("svc-room-{id}"));
        assert_eq!(RoomName::Merged(id.into()).to_string(), format!("svc-conf-{id}"));
        let others = [
            id.to_string(),
            format!("svc-room-{}", id.as_simple()),
            format!("svc-room-{}", id.to_string().to_uppercase()),
            format!("SVC-ROOM-{id}"),
            format!("svc-room-{id} "),
            "svc-room-".to_owned(),
            String::new(),
        ];
        for other in others {
            assert_eq!(other.parse::<RoomName>(), Err(RoomNameError), "{other}");
        }
    }
}
