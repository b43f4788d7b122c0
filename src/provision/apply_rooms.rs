//! Applies the declared conference rooms.

use rand::CryptoRng;
use sidetone_model::directory::Destination;
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::room::Exemption;

use crate::provision::file::Organisation;
use crate::provision::report::RoomReport;
use crate::provision::rooms::{Room, Target};
use crate::provision::work::Work;
use sidetone_store::{RoomRow, StoreError};

impl<R: CryptoRng> Work<'_, R> {
    pub(super) async fn room(
        &mut self,
        id: OrganisationId,
        organisation: &Organisation,
        declared: &Room,
    ) -> Result<(), StoreError> {
        let (members, exemptions) = (self.members(id, declared).await?, self.exemptions(id, declared).await?);
        let stored = self.write.participant_pin(id, &declared.number).await?;
        let drawn = match (&declared.participant_pin, &stored) {
            (None, None) => Some(self.default_pin().draw(&declared.moderator_pin, self.rng)),
            _ => None,
        };
        let participant_pin = declared.participant_pin.as_ref().or(drawn.as_ref()).or(stored.as_ref());
        if declared.participant_pin.is_none()
            && !declared.moderator_pin.is_empty()
            && stored.as_ref() == Some(&declared.moderator_pin)
        {
            let message = "must differ from participant_pin, which is stored".to_owned();
            self.refuse(&declared.path, "moderator_pin", message);
            return Ok(());
        }
        let row = RoomRow {
            organisation_id: id,
            number: declared.number.clone(),
            name: declared.name.clone(),
            participant_pin: participant_pin.cloned(),
            moderator_pin: declared.moderator_pin.clone(),
            wait_for_moderator: declared.wait_for_moderator,
            end_when_moderator_leaves: declared.end_when_moderator_leaves,
            record: declared.record,
            record_channels: declared.record_channels,
            announce_names: declared.announce_names,
            max_members: declared.max_members,
            minutes_email: declared.minutes_email.clone(),
            members,
            exemptions,
        };
        let (room, change) = self.write.declare_room(&row, self.now).await?;
        let drawn = drawn.filter(|pin| !pin.is_empty() && !self.dry_run);
        let what = format_args!("room {} of {}", declared.number, organisation.name);
        self.report.count(change, what, None);
        let shown = self.shown(room, change);
        self.report.organisation(&organisation.name, None).rooms.push(RoomReport {
            number: declared.number.clone(),
            id: shown,
            participant_pin: drawn.map(|pin| pin.as_str().to_owned()),
        });
        Ok(())
    }

    /// The destination of a number that is declared to lead to `target`; a missing target is refused.
    pub(super) async fn destination(
        &mut self,
        id: OrganisationId,
        path: &str,
        target: &Target,
    ) -> Result<Option<Destination>, StoreError> {
        let (found, what) = match target {
            Target::Conference => return Ok(Some(Destination::Conference(None))),
            Target::Extension(number) => {
                let found = self.write.find_extension(id, number).await?;
                (found.map(Destination::Extension), format!("extension \"{number}\""))
            }
            Target::Room(number) => {
                let found = self.write.find_room(id, number).await?;
                (found.map(|room| Destination::Conference(Some(room))), format!("room \"{number}\""))
            }
        };
        if found.is_none() {
            self.refuse(path, "destination", format!("there is no {what}, declare it"));
        }
        Ok(found)
    }

    async fn members(
        &mut self,
        id: OrganisationId,
        declared: &Room,
    ) -> Result<Option<Vec<ExtensionId>>, StoreError> {
        let Some(numbers) = &declared.members else { return Ok(None) };
        let mut members = Vec::with_capacity(numbers.len());
        for number in numbers {
            members.extend(self.own_extension(id, declared, "members", number).await?);
        }
        Ok(Some(members))
    }

    async fn exemptions(
        &mut self,
        id: OrganisationId,
        declared: &Room,
    ) -> Result<Option<Vec<Exemption>>, StoreError> {
        let Some(wanted) = &declared.exemptions else { return Ok(None) };
        let mut exemptions = Vec::with_capacity(wanted.len());
        for (number, role) in wanted {
            let extension = self.own_extension(id, declared, "exemptions", number).await?;
            exemptions.extend(extension.map(|extension_id| Exemption { extension_id, role: *role }));
        }
        Ok(Some(exemptions))
    }

    async fn own_extension(
        &mut self,
        id: OrganisationId,
        declared: &Room,
        key: &str,
        number: &str,
    ) -> Result<Option<ExtensionId>, StoreError> {
        let found = self.write.find_extension(id, number).await?;
        if found.is_none() {
            let message = format!("there is no extension \"{number}\", declare it");
            self.refuse(&declared.path, key, message);
        }
        Ok(found)
    }
}
