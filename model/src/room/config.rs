//! A room in the form that the switch uses.

use serde::Serialize;

use crate::call::words;
use crate::ids::{ExtensionId, OrganisationId, RoomId};
use crate::room::Pin;

words! {
    /// What a member may do in a room.
    Role {
        /// Locks the room, mutes all members, ends the room.
        Moderator = "moderator",
        /// Talks and listens.
        Participant = "participant",
    }
}

/// An extension that dials the room's number and joins without a PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RoomExemption))]
pub struct Exemption {
    /// The extension, of the room's organisation.
    pub extension_id: ExtensionId,
    /// Its role in the room.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub role: Role,
}

/// A room in the form that the switch uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomConfig {
    /// Primary key.
    pub id: RoomId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The display name.
    pub name: String,
    /// The number that extensions dial and outside callers key.
    pub number: String,
    /// See [`Room`](super::Room).
    pub participant_pin: Pin,
    /// See [`Room`](super::Room).
    pub moderator_pin: Pin,
    /// See [`Room`](super::Room).
    pub wait_for_moderator: bool,
    /// See [`Room`](super::Room).
    pub end_when_moderator_leaves: bool,
    /// See [`Room`](super::Room).
    pub record: bool,
    /// See [`Room`](super::Room).
    pub record_channels: u16,
    /// See [`Room`](super::Room).
    pub announce_names: bool,
    /// See [`Room`](super::Room).
    pub max_members: u32,
    /// The extensions that enter without a PIN.
    pub exemptions: Vec<Exemption>,
    /// The extensions that are rung when it opens, in order.
    pub members: Vec<ExtensionId>,
}

impl RoomConfig {
    /// The role of an extension that authenticated by digest and enters without a PIN.
    pub fn exempt(&self, extension: ExtensionId) -> Option<Role> {
        self.exemptions.iter().find(|exempt| exempt.extension_id == extension).map(|exempt| exempt.role)
    }
}
