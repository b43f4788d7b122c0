//! The stored rooms, indexed for the machine: by id and by number.

use std::collections::HashMap;
use std::sync::Arc;

use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId};
use sidetone_model::room::{RoomConfig, RoomMember};

/// The stored rooms; immutable, replaced as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomDirectory {
    rooms: HashMap<RoomId, Entry>,
    by_number: HashMap<(OrganisationId, String), RoomId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    config: Arc<RoomConfig>,
    members: Vec<RoomMember>,
}

impl RoomDirectory {
    /// Indexes `rooms`. `extension` returns number and name of a default member; a member that it does not
    /// know is not rung.
    pub fn new<'a>(
        rooms: impl IntoIterator<Item = &'a RoomConfig>,
        extension: impl Fn(ExtensionId) -> Option<(String, String)>,
    ) -> Self {
        let mut directory = RoomDirectory::default();
        for config in rooms {
            let members = config.members.iter().take(INVITES_MAX).filter_map(|&extension_id| {
                let (number, name) = extension(extension_id)?;
                Some(RoomMember { extension_id, number, name })
            });
            let entry = Entry { members: members.collect(), config: Arc::new(config.clone()) };
            directory.by_number.insert((config.organisation_id, config.number.clone()), config.id);
            directory.rooms.insert(config.id, entry);
        }
        directory
    }

    /// Returns the room of that id.
    pub fn room(&self, room: RoomId) -> Option<&Arc<RoomConfig>> {
        self.rooms.get(&room).map(|entry| &entry.config)
    }

    /// Returns the default members of a room, in order.
    pub fn members(&self, room: RoomId) -> &[RoomMember] {
        self.rooms.get(&room).map_or(&[], |entry| &entry.members)
    }

    /// Returns the room of an organisation that has this number.
    pub fn by_number(&self, organisation: OrganisationId, digits: &str) -> Option<RoomId> {
        self.by_number.get(&(organisation, digits.to_owned())).copied()
    }
}

/// Most default members of one room that are rung.
const INVITES_MAX: usize = 100;
