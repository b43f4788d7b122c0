//! The bodies for creating and changing conference rooms, and for dialling a party into one.

use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::room::{DialKind, DialRequest, Exemption, NewRoom, Role, RoomChange, RoomPin, rules};
use sidetone_model::rules as common;
use utoipa::ToSchema;

use crate::body::Fields;

/// A new conference room.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `new_room` reads")]
pub(crate) struct NewConferenceRoomBody {
    /// Whose it is; the caller's own organisation unless given.
    organisation_id: Option<OrganisationId>,
    /// What people call it.
    #[schema(min_length = 1, max_length = 100, example = "Stand-up")]
    name: String,
    /// Dialled by an extension, or keyed by an outside caller; unique among the organisation's rooms. An extension with
    /// the same digits takes precedence.
    #[schema(pattern = "^[0-9]{2,8}$", example = "200")]
    number: String,
    /// What participants key. Empty is a room that anyone who can dial it is in, outside callers included; unless
    /// given it is what the node is configured to give: empty, or six random digits.
    #[schema(pattern = "^([0-9]{4,10})?$", example = "1234")]
    participant_pin: Option<String>,
    /// What moderators key; it differs from `participant_pin`. Empty, as unless given, means that the room has no
    /// moderator role.
    #[schema(pattern = "^([0-9]{4,10})?$", example = "9876")]
    moderator_pin: Option<String>,
    /// Holds participants on music until a moderator joins; needs a `moderator_pin`.
    #[schema(default = false)]
    wait_for_moderator: Option<bool>,
    /// Ends the room when the last moderator leaves.
    #[schema(default = false)]
    end_when_moderator_leaves: Option<bool>,
    /// Records the room from its first member on.
    #[schema(default = false)]
    record: Option<bool>,
    /// How many it holds; 0 means no cap.
    #[schema(minimum = 0, maximum = 1000, default = 0)]
    max_members: Option<i64>,
    /// Where a virtual member's minutes are sent; empty is nowhere.
    #[schema(pattern = "^([^@ ]+@[^@ ]+)?$", max_length = 254, example = "minutes@acme.test")]
    minutes_email: Option<String>,
}

/// What changes of a conference room; what is left out stays as it is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `room_change` reads")]
pub(crate) struct ConferenceRoomChangeBody {
    /// Another name.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Another number.
    #[schema(pattern = "^[0-9]{2,8}$")]
    number: Option<String>,
    /// Another PIN; empty is none.
    #[schema(pattern = "^([0-9]{4,10})?$")]
    participant_pin: Option<String>,
    /// Another PIN; empty is none.
    #[schema(pattern = "^([0-9]{4,10})?$")]
    moderator_pin: Option<String>,
    /// Whether participants are held on music until a moderator joins.
    wait_for_moderator: Option<bool>,
    /// Whether the room ends when the last moderator leaves.
    end_when_moderator_leaves: Option<bool>,
    /// Whether it is recorded from its first member on.
    record: Option<bool>,
    /// How many it holds; 0 means no cap.
    #[schema(minimum = 0, maximum = 1000)]
    max_members: Option<i64>,
    /// Where minutes are sent; empty is nowhere.
    #[schema(pattern = "^([^@ ]+@[^@ ]+)?$", max_length = 254)]
    minutes_email: Option<String>,
}

/// The default members of a room, in the order in which they are rung.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `members` reads")]
pub(crate) struct RoomMembersBody {
    /// All of them: who is not among them is none any more.
    #[schema(max_items = 100)]
    items: Vec<RoomMemberBody>,
}

/// An extension that is rung when the room opens.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `members` reads")]
pub(crate) struct RoomMemberBody {
    /// The extension, of the room's organisation.
    extension_id: ExtensionId,
}

/// Who dials the room's number and is seated without a PIN.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `exemptions` reads")]
pub(crate) struct RoomExemptionsBody {
    /// All of them: who is not among them keys a PIN again.
    #[schema(max_items = 1000)]
    items: Vec<RoomExemptionBody>,
}

/// An extension that is seated without a PIN.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `exemptions` reads")]
pub(crate) struct RoomExemptionBody {
    /// The extension, of the room's organisation.
    extension_id: ExtensionId,
    /// What it is seated as.
    #[schema(inline)]
    role: Role,
}

/// Somebody to dial into a room.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says in the document what `dial` reads")]
pub(crate) struct DialBody {
    /// Where they are.
    #[schema(inline)]
    kind: DialKind,
    /// An extension's number, or for `external` a number in E.164 with its `+`.
    #[schema(pattern = "^([0-9]{1,15}|\\+[1-9][0-9]{1,14})$", example = "1001")]
    target: String,
    /// What they are seated as.
    #[schema(inline)]
    role: Role,
}

/// Reads the organisation and the new room in a body.
pub(crate) fn new_room(
    fields: &mut Fields,
) -> Option<(Option<OrganisationId>, impl FnOnce(OrganisationId) -> NewRoom + use<>)> {
    let organisation = fields.uuid::<OrganisationId>("organisation_id");
    let name = fields.required("name", |fields, name| fields.parsed(name, common::name));
    let number = fields.required("number", |fields, name| fields.parsed(name, rules::number));
    let given = fields.has("participant_pin");
    let participant_pin = fields.parsed("participant_pin", rules::pin);
    let moderator_given = fields.has("moderator_pin");
    let moderator_pin = fields.parsed("moderator_pin", rules::pin);
    let wait_for_moderator = fields.boolean("wait_for_moderator").unwrap_or_default();
    let end_when_moderator_leaves = fields.boolean("end_when_moderator_leaves").unwrap_or_default();
    let record = fields.boolean("record").unwrap_or_default();
    let max_members = max_members(fields).unwrap_or_default();
    let minutes_email = fields.parsed("minutes_email", rules::minutes_email).unwrap_or_default();
    fields.read_only(SHOWN);
    if given && participant_pin.is_none() || moderator_given && moderator_pin.is_none() {
        // PINs that are wrong themselves are not compared.
        return None;
    }
    let participant_pin = participant_pin.map_or(RoomPin::Default, RoomPin::Given);
    let moderator_pin = moderator_pin.unwrap_or_default();
    for problem in rules::pins_together(&participant_pin, &moderator_pin, wait_for_moderator) {
        fields.refuse::<()>(&problem.field, problem.message);
    }
    let (name, number) = (name?, number?);
    let room = move |organisation_id| NewRoom {
        organisation_id,
        name,
        number,
        participant_pin,
        moderator_pin,
        wait_for_moderator,
        end_when_moderator_leaves,
        record,
        max_members,
        minutes_email,
    };
    Some((organisation, room))
}

/// Reads the change in a body.
pub(crate) fn room_change(fields: &mut Fields) -> Option<RoomChange> {
    let change = RoomChange {
        name: fields.parsed("name", common::name),
        number: fields.parsed("number", rules::number),
        participant_pin: fields.parsed("participant_pin", rules::pin),
        moderator_pin: fields.parsed("moderator_pin", rules::pin),
        wait_for_moderator: fields.boolean("wait_for_moderator"),
        end_when_moderator_leaves: fields.boolean("end_when_moderator_leaves"),
        record: fields.boolean("record"),
        max_members: max_members(fields),
        minutes_email: fields.parsed("minutes_email", rules::minutes_email),
    };
    fields.read_only(SHOWN);
    fields.read_only(&["organisation_id"]);
    Some(change)
}

/// Reads the default members in a body.
pub(crate) fn members(fields: &mut Fields) -> Option<Vec<ExtensionId>> {
    let mut seen = Vec::new();
    fields.required("items", |fields, name| {
        fields.items(name, 0..=rules::MEMBERS_MAX, |item| {
            let extension = extension(item, &mut seen);
            // Fields that the list shows of them.
            item.read_only(&["number", "name"]);
            extension
        })
    })
}

/// Reads the exemptions in a body.
pub(crate) fn exemptions(fields: &mut Fields) -> Option<Vec<Exemption>> {
    let mut seen = Vec::new();
    fields.required("items", |fields, name| {
        fields.items(name, 0..=rules::EXEMPTIONS_MAX, |item| {
            let extension_id = extension(item, &mut seen);
            let role = item.required("role", role);
            Some(Exemption { extension_id: extension_id?, role: role? })
        })
    })
}

/// Reads the party to dial in a body.
pub(crate) fn dial(fields: &mut Fields) -> Option<DialRequest> {
    let kind = fields.required("kind", |fields, name| {
        fields.parsed(name, |kind| DialKind::from_name(kind).ok_or("must be extension or external"))
    });
    let target = fields.required("target", |fields, name| {
        fields.parsed(name, |target| match kind {
            Some(DialKind::Extension) => common::extension_number(target),
            Some(DialKind::External) => common::e164(target),
            // The rule depends on the kind, which is wrong.
            None => Ok(target.to_owned()),
        })
    });
    let role = fields.required("role", role);
    Some(DialRequest { kind: kind?, target: target?, role: role? })
}

fn extension(item: &mut Fields, seen: &mut Vec<ExtensionId>) -> Option<ExtensionId> {
    let extension: ExtensionId = item.required("extension_id", Fields::uuid)?;
    if seen.contains(&extension) {
        return item.refuse("extension_id", "is named twice");
    }
    seen.push(extension);
    Some(extension)
}

fn role(fields: &mut Fields, name: &'static str) -> Option<Role> {
    fields.parsed(name, |role| Role::from_name(role).ok_or("must be participant or moderator"))
}

fn max_members(fields: &mut Fields) -> Option<u32> {
    let number = fields.integer("max_members", 0..=i64::from(rules::MAX_MEMBERS_MAX))?;
    u32::try_from(number).ok()
}

/// Fields that a room shows and no caller can set.
const SHOWN: &[&str] = &["id", "numbers", "live_members", "exemptions", "created_at", "updated_at"];
