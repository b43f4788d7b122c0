//! The entry of a room in the store.

use std::fmt;

use serde::{Deserialize, Serialize};
use sidetone_model::ids::{NodeId, OrganisationId, RoomId};

use crate::membership::RunId;

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoomKey {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The room.
    pub room: RoomId,
}

impl RoomKey {
    /// Reads the key of an entry.
    pub fn parse(text: &str) -> Option<Self> {
        let (organisation, room) = text.split_once('.')?;
        Some(RoomKey {
            organisation: OrganisationId(organisation.parse().ok()?),
            room: RoomId(room.parse().ok()?),
        })
    }
}

impl fmt::Display for RoomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.organisation, self.room)
    }
}

/// The owner of a room, as a node knows it. The fence grows with each owner: an action for an earlier owner is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This node.
    Here {
        /// The fence.
        fence: u64,
    },
    /// No node: the lease of the owner ran out without a release.
    Lost,
    /// Another node.
    There {
        /// The node.
        node: NodeId,
        /// The fence.
        fence: u64,
    },
    /// No node, as far as this one knows.
    Unowned,
}

/// An entry: versioned JSON; unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// [`Entry::FORMAT`].
    pub(super) v: u32,
    pub(super) node: NodeId,
    pub(super) run: RunId,
    /// The revision of this owner's first entry; `None` in that first entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<u64>,
    /// Whether the previous owner wrote this entry to hand the room over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) granted: bool,
}

impl Entry {
    pub(super) const FORMAT: u32 = 1;

    pub(super) fn read(value: &[u8]) -> Option<Entry> {
        let entry: Entry = serde_json::from_slice(value).ok()?;
        (entry.v == Self::FORMAT).then_some(entry)
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Cannot fail: the fields are numbers and strings.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
