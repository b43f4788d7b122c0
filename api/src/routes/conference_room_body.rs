//! The bodies for creating and changing conference rooms, and for dialling a party into one.

use sidetone_model::field_check::StoredRule;
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::room::{
    DialKind, DialRequest, Exemption, NewRoom, Pin, Role, Room, RoomChange, RoomPin, rules,
};
use sidetone_model::rules as common;

use crate::body::declare::{checked, id_of, integer, optional, parsed, required};
use crate::body::{Fields, body};

body! {
    /// A new conference room.
    pub(crate) struct NewConferenceRoomBody {
        /// The owner; the caller's organisation by default.
        organisation_id: Option<OrganisationId> = optional(id_of(StoredRule::Organisation)),
        /// The display name.
        #[schema(min_length = 1, max_length = 100, example = "Stand-up")]
        name: String = required(parsed(common::name)),
        /// Dialled by an extension, or keyed by an outside caller; unique among the organisation's rooms. An extension with
        /// the same digits takes precedence.
        #[schema(pattern = "^[0-9]{2,8}$", example = "200")]
        number: String = required(checked(StoredRule::FreeRoomNumber, parsed(rules::number))),
        /// The participants' PIN. Empty admits every caller who can dial the room, including outside callers. The
        /// default depends on the node's configuration: empty, or six random digits.
        #[schema(value_type = Option<String>, pattern = "^([0-9]{4,10})?$", example = "1234")]
        participant_pin: Option<Pin> = optional(parsed(rules::pin)),
        /// The moderators' PIN, different from `participant_pin`. Empty, the default, means that the room has no
        /// moderator role.
        #[schema(value_type = Option<String>, pattern = "^([0-9]{4,10})?$", example = "9876")]
        moderator_pin: Option<Pin> = optional(parsed(rules::pin)),
        /// Participants hear music until a moderator joins; needs a `moderator_pin`.
        #[schema(default = false)]
        wait_for_moderator: Option<bool> = optional(Fields::boolean),
        /// Ends the room when the last moderator leaves.
        #[schema(default = false)]
        end_when_moderator_leaves: Option<bool> = optional(Fields::boolean),
        /// Records the room from its first member on.
        #[schema(default = false)]
        record: Option<bool> = optional(Fields::boolean),
        /// The channels of its recordings: 1 with the whole mix, or 2, the moderators on the left and all others on the
        /// right.
        #[schema(value_type = Option<i32>, minimum = 1, maximum = 2, default = 1)]
        record_channels: Option<u16> = optional(integer(1..=2)),
        /// Members say their names when they join, and the room hears the name of who joins or leaves.
        #[schema(default = false)]
        announce_names: Option<bool> = optional(Fields::boolean),
        /// The greatest number of members; 0 means no cap.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 1000, default = 0)]
        max_members: Option<u32> = optional(integer(0..=rules::MAX_MEMBERS_MAX.into())),
        /// The address that a virtual agent's minutes are sent to; empty for none.
        #[schema(pattern = "^([^@ ]+@[^@ ]+)?$", max_length = 254, example = "minutes@acme.test")]
        minutes_email: Option<String> = optional(parsed(rules::minutes_email)),
    }
    ignores SHOWN;
    checks |fields: &mut Fields| {
        // PINs that were refused are not compared.
        if !fields.is_refused("participant_pin") && !fields.is_refused("moderator_pin") {
            let participant_pin = room_pin(participant_pin.clone().flatten());
            let moderator_pin = moderator_pin.clone().flatten().unwrap_or_default();
            let wait = wait_for_moderator.flatten().unwrap_or_default();
            for problem in rules::pins_together(&participant_pin, &moderator_pin, wait) {
                fields.refuse::<()>(&problem.field, problem.message);
            }
        }
    };
}

body! {
    /// Changes of a conference room; omitted fields keep their values.
    pub(crate) struct ConferenceRoomChangeBody(stored: &Room) {
        /// The new name.
        #[schema(min_length = 1, max_length = 100)]
        name: Option<String> = optional(parsed(common::name)),
        /// The new number.
        #[schema(pattern = "^[0-9]{2,8}$")]
        number: Option<String> = optional(checked(StoredRule::FreeRoomNumber, parsed(rules::number))),
        /// The new PIN; empty for none.
        #[schema(value_type = Option<String>, pattern = "^([0-9]{4,10})?$")]
        participant_pin: Option<Pin> = optional(parsed(rules::pin)),
        /// The new PIN; empty for none.
        #[schema(value_type = Option<String>, pattern = "^([0-9]{4,10})?$")]
        moderator_pin: Option<Pin> = optional(parsed(rules::pin)),
        /// Whether participants hear music until a moderator joins.
        wait_for_moderator: Option<bool> = optional(Fields::boolean),
        /// Whether the room ends when the last moderator leaves.
        end_when_moderator_leaves: Option<bool> = optional(Fields::boolean),
        /// Whether it is recorded from its first member on.
        record: Option<bool> = optional(Fields::boolean),
        /// The channels of its recordings, from the next session on.
        #[schema(value_type = Option<i32>, minimum = 1, maximum = 2)]
        record_channels: Option<u16> = optional(integer(1..=2)),
        /// Whether members say their names when they join, and are announced by them.
        announce_names: Option<bool> = optional(Fields::boolean),
        /// The greatest number of members; 0 means no cap.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 1000)]
        max_members: Option<u32> = optional(integer(0..=rules::MAX_MEMBERS_MAX.into())),
        /// The address that minutes are sent to; empty for none.
        #[schema(pattern = "^([^@ ]+@[^@ ]+)?$", max_length = 254)]
        minutes_email: Option<String> = optional(parsed(rules::minutes_email)),
    }
    ignores SHOWN_AND_OWNER;
    checks |fields: &mut Fields| {
        // A valid request is checked later, against the room at the time of the change.
        if fields.is_wrong() && !fields.is_refused("participant_pin") && !fields.is_refused("moderator_pin") {
            let participant_pin = participant_pin.clone().flatten().unwrap_or(stored.participant_pin.clone());
            let moderator_pin = moderator_pin.clone().flatten().unwrap_or(stored.moderator_pin.clone());
            let wait = wait_for_moderator.flatten().unwrap_or(stored.wait_for_moderator);
            for problem in rules::pins_together(&RoomPin::Given(participant_pin), &moderator_pin, wait) {
                fields.refuse::<()>(&problem.field, problem.message);
            }
        }
    };
}

body! {
    /// The default members of a room, in the order in which they are rung.
    pub(crate) struct RoomMembersBody {
        /// The whole list: other extensions are no longer default members.
        #[schema(max_items = 100)]
        items: Vec<RoomMemberBody> = required(|fields: &mut Fields, name| {
            let mut seen = Vec::new();
            fields.items(name, 0..=rules::MEMBERS_MAX, |item| RoomMemberBody::read(item, &mut seen))
        }),
    }
}

body! {
    /// An extension that is rung when the room opens.
    pub(crate) struct RoomMemberBody(seen: &mut Vec<ExtensionId>) {
        /// The extension, of the room's organisation.
        extension_id: ExtensionId = required(|fields: &mut Fields, name| extension(fields, name, seen)),
    }
    ignores &["number", "name"];
}

body! {
    /// The extensions that dial the room's number and join without a PIN.
    pub(crate) struct RoomExemptionsBody {
        /// The whole list: other extensions need a PIN again.
        #[schema(max_items = 1000)]
        items: Vec<RoomExemptionBody> = required(|fields: &mut Fields, name| {
            let mut seen = Vec::new();
            fields.items(name, 0..=rules::EXEMPTIONS_MAX, |item| RoomExemptionBody::read(item, &mut seen))
        }),
    }
}

body! {
    /// An extension that joins without a PIN.
    pub(crate) struct RoomExemptionBody(seen: &mut Vec<ExtensionId>) {
        /// The extension, of the room's organisation.
        extension_id: ExtensionId = required(|fields: &mut Fields, name| extension(fields, name, seen)),
        /// Its role in the room.
        #[schema(inline)]
        role: Role = required(role_of),
    }
}

body! {
    /// The party to dial into a room.
    pub(crate) struct DialBody {
        /// Where they are.
        #[schema(inline)]
        kind: DialKind = required(parsed(|kind| DialKind::from_name(kind).ok_or("must be extension or external"))),
        /// An extension's number, or for `external` a number in E.164 with its `+`.
        #[schema(pattern = "^([0-9]{1,15}|\\+[1-9][0-9]{1,14})$", example = "1001")]
        target: String = required(parsed(|target| match kind {
            Some(DialKind::Extension) => common::extension_number(target),
            Some(DialKind::External) => common::e164(target),
            // No rule applies, because the kind is wrong.
            None => Ok(target.to_owned()),
        })),
        /// The role in the room.
        #[schema(inline)]
        role: Role = required(role_of),
        /// Whether the party is asked to press 1 before it joins, so that a mailbox is never in the room. It has 30
        /// seconds.
        #[schema(value_type = Option<bool>, default = false)]
        confirm: Option<bool> = optional(Fields::boolean),
    }
}

impl NewConferenceRoomBody {
    /// The new room of `organisation_id`.
    pub(crate) fn room(self, organisation_id: OrganisationId) -> NewRoom {
        NewRoom {
            organisation_id,
            name: self.name,
            number: self.number,
            participant_pin: room_pin(self.participant_pin),
            moderator_pin: self.moderator_pin.unwrap_or_default(),
            wait_for_moderator: self.wait_for_moderator.unwrap_or_default(),
            end_when_moderator_leaves: self.end_when_moderator_leaves.unwrap_or_default(),
            record: self.record.unwrap_or_default(),
            record_channels: self.record_channels.unwrap_or(1),
            announce_names: self.announce_names.unwrap_or_default(),
            max_members: self.max_members.unwrap_or_default(),
            minutes_email: self.minutes_email.unwrap_or_default(),
        }
    }
}

impl From<ConferenceRoomChangeBody> for RoomChange {
    fn from(body: ConferenceRoomChangeBody) -> Self {
        RoomChange {
            name: body.name,
            number: body.number,
            participant_pin: body.participant_pin,
            moderator_pin: body.moderator_pin,
            wait_for_moderator: body.wait_for_moderator,
            end_when_moderator_leaves: body.end_when_moderator_leaves,
            record: body.record,
            record_channels: body.record_channels,
            announce_names: body.announce_names,
            max_members: body.max_members,
            minutes_email: body.minutes_email,
        }
    }
}

impl From<RoomMembersBody> for Vec<ExtensionId> {
    fn from(body: RoomMembersBody) -> Self {
        body.items.into_iter().map(|member| member.extension_id).collect()
    }
}

impl From<RoomExemptionsBody> for Vec<Exemption> {
    fn from(body: RoomExemptionsBody) -> Self {
        let exemption = |RoomExemptionBody { extension_id, role }| Exemption { extension_id, role };
        body.items.into_iter().map(exemption).collect()
    }
}

impl From<DialBody> for DialRequest {
    fn from(body: DialBody) -> Self {
        let confirm = body.confirm.unwrap_or_default();
        DialRequest { kind: body.kind, target: body.target, role: body.role, confirm }
    }
}

fn room_pin(given: Option<Pin>) -> RoomPin {
    given.map_or(RoomPin::Default, RoomPin::Given)
}

/// Reads an extension that no earlier item contains.
fn extension(item: &mut Fields, name: &'static str, seen: &mut Vec<ExtensionId>) -> Option<ExtensionId> {
    let extension: ExtensionId = id_of(StoredRule::Extension)(item, name)?;
    if seen.contains(&extension) {
        return item.refuse(name, "is named twice");
    }
    seen.push(extension);
    Some(extension)
}

fn role_of(fields: &mut Fields, name: &'static str) -> Option<Role> {
    fields.parsed(name, |role| Role::from_name(role).ok_or("must be participant or moderator"))
}

/// Fields that a room shows and no caller can set.
const SHOWN: &[&str] = &["id", "numbers", "live_members", "exemptions", "created_at", "updated_at"];
const SHOWN_AND_OWNER: &[&str] =
    &["id", "organisation_id", "numbers", "live_members", "exemptions", "created_at", "updated_at"];
