//! Conference rooms in apply files, and applying them.

use rand::CryptoRng;
use sidetone_model::directory::Destination;
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::room::{Exemption, Pin, Role, RoomPin, rules};
use sidetone_model::rules as common;
use toml::{Table, Value};

use crate::fields::{Fields, Problem, key_of};
use crate::provision::apply::Work;
use crate::provision::file::{Organisation, name_of};
use crate::provision::report::RoomReport;
use crate::store::{RoomRow, StoreError};

/// A conference room as it is declared.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) path: String,
    pub(super) number: String,
    name: String,
    participant_pin: Option<Pin>,
    moderator_pin: Pin,
    wait_for_moderator: bool,
    end_when_moderator_leaves: bool,
    record: bool,
    max_members: u32,
    minutes_email: String,
    /// Extensions by number; `None` keeps the stored ones.
    members: Option<Vec<String>>,
    exemptions: Option<Vec<(String, Role)>>,
}

/// The destination of a declared phone number.
#[derive(Debug)]
pub(super) enum Target {
    /// The caller is asked for the room's number.
    Conference,
    /// An extension, by its number.
    Extension(String),
    /// A conference room, by its number.
    Room(String),
}

pub(super) fn room(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Room> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    let number = fields.required_checked("number", rules::number);
    let participant_pin = fields.checked("participant_pin", rules::pin);
    let moderator_pin = fields.checked("moderator_pin", rules::pin);
    let wait_for_moderator = fields.boolean("wait_for_moderator").unwrap_or_default();
    let end_when_moderator_leaves = fields.boolean("end_when_moderator_leaves").unwrap_or_default();
    let record = fields.boolean("record").unwrap_or_default();
    let max_members =
        fields.integer("max_members", 0..=i64::from(rules::MAX_MEMBERS_MAX)).unwrap_or_default();
    let minutes_email = fields.checked("minutes_email", rules::minutes_email).unwrap_or_default();
    let members = members(&mut fields);
    let exempts = fields.has("exemptions");
    let exemptions = fields.tables("exemptions");
    let moderator_pin_is_wrong = fields.problems().iter().any(|p| p.key == key_of(&path, "moderator_pin"));
    let moderator_pin = moderator_pin.unwrap_or_default();
    let given = participant_pin.clone().map_or(RoomPin::Default, RoomPin::Given);
    if !moderator_pin_is_wrong {
        for problem in rules::pins_together(&given, &moderator_pin, wait_for_moderator) {
            fields.refuse::<()>(&problem.field, problem.message);
        }
    }
    fields.finish();
    let exemptions = exempts.then(|| exemptions_of(&path, exemptions, problems));
    Some(Room {
        path,
        number: number?,
        name: name?,
        participant_pin,
        moderator_pin,
        wait_for_moderator,
        end_when_moderator_leaves,
        record,
        max_members: u32::try_from(max_members).unwrap_or_default(),
        minutes_email,
        members,
        exemptions,
    })
}

fn members(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let members = fields.texts("members")?;
    if members.len() > rules::MEMBERS_MAX {
        fields.refuse::<()>("members", format!("must name at most {} extensions", rules::MEMBERS_MAX));
    }
    for (at, member) in members.iter().enumerate() {
        if let Err(message) = common::extension_number(member) {
            fields.refuse::<()>("members", message);
        } else if members.iter().take(at).any(|before| before == member) {
            fields.refuse::<()>("members", format!("\"{member}\" is named twice"));
        }
    }
    Some(members)
}

fn exemptions_of(
    path: &str,
    tables: Vec<(String, Table)>,
    problems: &mut Vec<Problem>,
) -> Vec<(String, Role)> {
    if tables.len() > rules::EXEMPTIONS_MAX {
        let message = format!("must name at most {} extensions", rules::EXEMPTIONS_MAX);
        problems.push(Problem::new(key_of(path, "exemptions"), message));
    }
    let mut exemptions: Vec<(String, Role)> = Vec::with_capacity(tables.len());
    for (path, table) in tables {
        let mut fields = Fields::new(path, table, problems);
        let extension = fields.required_checked("extension", common::extension_number);
        let role = fields.required_checked("role", |text| {
            Role::from_name(text).ok_or_else(|| "must be participant or moderator".to_owned())
        });
        if let Some(extension) = &extension
            && exemptions.iter().any(|(before, _)| before == extension)
        {
            fields.refuse::<()>("extension", format!("\"{extension}\" is named twice"));
        }
        fields.finish();
        exemptions.extend(extension.zip(role));
    }
    exemptions
}

/// The destination of a phone number: `{ extension = "1001" }`, `{ conference = true }`, `{ conference = "200" }`.
pub(super) fn target(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Target> {
    let mut fields = Fields::new(path, table, problems);
    let conference = fields.take("conference");
    let extension = if conference.is_some() {
        if fields.take("extension").is_some() {
            fields.refuse::<()>("extension", "cannot stand beside conference: name one of them");
        }
        None
    } else {
        fields.required_text("extension")
    };
    let target = match conference {
        None => extension.map(Target::Extension),
        Some(Value::Boolean(true)) => Some(Target::Conference),
        Some(Value::String(number)) => match rules::number(&number) {
            Ok(number) => Some(Target::Room(number)),
            Err(message) => fields.refuse("conference", message),
        },
        Some(_) => fields.refuse("conference", "must be true, or the number of a room in quotes"),
    };
    fields.finish();
    target
}

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

    /// Resolves the destination `target` of a phone number; refuses one that does not exist.
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
