//! Rooms as apply files declare them.

use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId};
use sidetone_model::room::{Exemption, Pin, Room, RoomConfig};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::rooms::rows::rooms;
use crate::{Change, StoreError, WriteTransaction};

/// A room as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomRow {
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// Its number, the natural key within the organisation.
    pub number: String,
    /// Its display name.
    pub name: String,
    /// The participants' PIN; `None` keeps the stored one; a new room then has no PIN.
    pub participant_pin: Option<Pin>,
    /// The moderators' PIN.
    pub moderator_pin: Pin,
    /// See [`Room`].
    pub wait_for_moderator: bool,
    /// See [`Room`].
    pub end_when_moderator_leaves: bool,
    /// See [`Room`].
    pub record: bool,
    /// See [`Room`].
    pub record_channels: u16,
    /// See [`Room`].
    pub announce_names: bool,
    /// See [`Room`].
    pub max_members: u32,
    /// See [`Room`].
    pub minutes_email: String,
    /// The organisation's extensions that are rung when it opens; `None` keeps the stored ones.
    pub members: Option<Vec<ExtensionId>>,
    /// The organisation's extensions that enter without a PIN; `None` keeps the stored ones.
    pub exemptions: Option<Vec<Exemption>>,
}

impl WriteTransaction {
    /// Returns the room of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_room(
        &mut self,
        organisation: OrganisationId,
        number: &str,
    ) -> Result<Option<RoomId>, StoreError> {
        Ok(self.room_of_number(organisation, number).await?.map(|room| room.id))
    }

    /// Returns the participant PIN of the room of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn participant_pin(
        &mut self,
        organisation: OrganisationId,
        number: &str,
    ) -> Result<Option<Pin>, StoreError> {
        Ok(self.room_of_number(organisation, number).await?.map(|room| room.participant_pin))
    }

    /// Creates or updates the room as declared.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_room(
        &mut self,
        declared: &RoomRow,
        now: Timestamp,
    ) -> Result<(RoomId, Change), StoreError> {
        let stored = self.room_of_number(declared.organisation_id, &declared.number).await?;
        let made = declared.room(stored.as_ref(), now);
        let mut change = match &stored {
            None => {
                self.insert_room(&made).await?;
                Change::Created
            }
            Some(stored) if *stored == (Room { updated_at: stored.updated_at, ..made.clone() }) => {
                Change::Unchanged
            }
            Some(_) => {
                self.update_room(&made).await?;
                Change::Changed
            }
        };
        if self.declare_people(declared, &made).await? && change == Change::Unchanged {
            self.update_room(&made).await?;
            change = Change::Changed;
        }
        Ok((made.id, change))
    }

    /// Stores which extensions are rung and which enter without a PIN; returns whether that changed.
    async fn declare_people(&mut self, declared: &RoomRow, room: &Room) -> Result<bool, StoreError> {
        let stored = rooms(&mut self.transaction).await?.into_iter().find(|stored| stored.id == room.id);
        let RoomConfig { members, exemptions, .. } =
            stored.ok_or(StoreError::Corrupt { column: "room_id" })?;
        let mut changed = false;
        if let Some(wanted) = declared.members.as_ref().filter(|wanted| **wanted != members) {
            self.set_room_members(room, wanted).await?;
            changed = true;
        }
        if let Some(wanted) = &declared.exemptions {
            let mut sorted = wanted.clone();
            sorted.sort_unstable_by_key(|exempt| exempt.extension_id.to_string());
            if sorted != exemptions {
                self.set_room_exemptions(room, wanted).await?;
                changed = true;
            }
        }
        Ok(changed)
    }
}

impl RoomRow {
    /// Builds the declared room, based on the stored one if there is one.
    fn room(&self, stored: Option<&Room>, now: Timestamp) -> Room {
        let kept = || stored.map(|stored| stored.participant_pin.clone());
        Room {
            id: stored.map_or_else(|| RoomId(Uuid::new_v4()), |stored| stored.id),
            organisation_id: self.organisation_id,
            name: self.name.clone(),
            number: self.number.clone(),
            participant_pin: self.participant_pin.clone().or_else(kept).unwrap_or_default(),
            moderator_pin: self.moderator_pin.clone(),
            wait_for_moderator: self.wait_for_moderator,
            end_when_moderator_leaves: self.end_when_moderator_leaves,
            record: self.record,
            record_channels: self.record_channels,
            announce_names: self.announce_names,
            max_members: self.max_members,
            minutes_email: self.minutes_email.clone(),
            numbers: Vec::new(),
            exemptions: Vec::new(),
            created_at: stored.map_or(now, |stored| stored.created_at),
            updated_at: now,
        }
    }
}
