//! Conference rooms in apply files.

use sidetone_model::room::{Pin, Role, RoomPin, rules};
use sidetone_model::rules as common;
use toml::{Table, Value};

use crate::fields::{Fields, Problem, key_of};
use crate::provision::reading::name_of;

/// A conference room as it is declared.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) path: String,
    pub(super) number: String,
    pub(super) name: String,
    pub(super) participant_pin: Option<Pin>,
    pub(super) moderator_pin: Pin,
    pub(super) wait_for_moderator: bool,
    pub(super) end_when_moderator_leaves: bool,
    pub(super) record: bool,
    pub(super) record_channels: u16,
    pub(super) announce_names: bool,
    pub(super) max_members: u32,
    pub(super) minutes_email: String,
    /// Extensions by their numbers; `None` keeps the stored ones.
    pub(super) members: Option<Vec<String>>,
    pub(super) exemptions: Option<Vec<(String, Role)>>,
}

/// The destination of a declared phone number.
#[derive(Debug)]
pub(super) enum Target {
    /// The caller is prompted for the room's number.
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
    let record_channels = fields.integer("record_channels", 1..=2).unwrap_or(1);
    let announce_names = fields.boolean("announce_names").unwrap_or_default();
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
        record_channels: u16::try_from(record_channels).unwrap_or(1),
        announce_names,
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
            fields.refuse::<()>("extension", "cannot be combined with conference: give one of them");
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
