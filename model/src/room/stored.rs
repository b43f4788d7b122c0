//! Rooms as the API manages them, and as the switch uses them.

use serde::Serialize;

use crate::access::Scope;
use crate::ids::{ExtensionId, NumberId, OrganisationId, RoomId, UserId};
use crate::listing::Listing;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::problem::FieldProblem;
use crate::room::config::Exemption;
use crate::room::pin::{Pin, RoomPin};
use crate::room::rules;
use crate::time::Timestamp;

/// A stored room with a number to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Primary key.
    pub id: RoomId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The display name.
    pub name: String,
    /// 2 to 8 digits; unique among the rooms of the organisation.
    pub number: String,
    /// The participants' PIN; without one every caller who can dial the number may join.
    pub participant_pin: Pin,
    /// The moderators' PIN; without one the room has no moderators.
    pub moderator_pin: Pin,
    /// Whether participants hear music until a moderator joins.
    pub wait_for_moderator: bool,
    /// Whether it ends when the last moderator leaves.
    pub end_when_moderator_leaves: bool,
    /// Whether it is recorded from its first member on.
    pub record: bool,
    /// The channels of its recordings: 1 with the whole mix, or 2, the moderators on the left.
    pub record_channels: u16,
    /// Whether members say their names when they join, and are announced by them.
    pub announce_names: bool,
    /// Its limit of members; 0 means no limit.
    pub max_members: u32,
    /// The mail address for minutes; may be empty.
    pub minutes_email: String,
    /// The phone numbers whose destination is this room, in order.
    pub numbers: Vec<RoomNumber>,
    /// The extensions that enter without a PIN, by number.
    pub exemptions: Vec<Exemption>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

/// A phone number that points at a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RoomNumber {
    /// The number's id.
    pub id: NumberId,
    /// E.164 with `+`.
    pub number: String,
}

/// A default member: an extension that is rung when the room opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RoomMember {
    /// The extension, of the room's organisation.
    pub extension_id: ExtensionId,
    /// The digits to dial.
    pub number: String,
    /// The person's name; may be empty.
    pub name: String,
}

impl Room {
    /// The room as callers see it; `live_members` is its current number of members.
    pub fn view(&self, live_members: u32) -> RoomView<'_> {
        RoomView {
            id: self.id,
            organisation_id: self.organisation_id,
            name: &self.name,
            number: &self.number,
            participant_pin: self.participant_pin.as_str(),
            moderator_pin: self.moderator_pin.as_str(),
            wait_for_moderator: self.wait_for_moderator,
            end_when_moderator_leaves: self.end_when_moderator_leaves,
            record: self.record,
            record_channels: self.record_channels,
            announce_names: self.announce_names,
            max_members: self.max_members,
            minutes_email: &self.minutes_email,
            numbers: &self.numbers,
            live_members,
            exemptions: &self.exemptions,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// A conference room as callers see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConferenceRoom))]
pub struct RoomView<'a> {
    /// The room's id.
    id: RoomId,
    /// Whose it is.
    organisation_id: OrganisationId,
    /// The display name.
    name: &'a str,
    /// Dialled by an extension, or keyed by an outside caller. An extension with the same digits takes precedence.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9]{2,8}$", example = "200"))]
    number: &'a str,
    /// The participants' PIN; empty for a room that callers join without a PIN.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([0-9]{4,10})?$", example = "1234"))]
    participant_pin: &'a str,
    /// The moderators' PIN; empty means that the room has no moderator role.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([0-9]{4,10})?$", example = "9876"))]
    moderator_pin: &'a str,
    /// Whether participants hear music until a moderator joins.
    wait_for_moderator: bool,
    /// Whether the room ends when the last moderator leaves.
    end_when_moderator_leaves: bool,
    /// Whether it is recorded from its first member on.
    record: bool,
    /// The channels of its recordings: 1 with the whole mix, or 2, the moderators on the left.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2))]
    record_channels: u16,
    /// Whether members say their names when they join, and are announced by them.
    announce_names: bool,
    /// The greatest number of members; 0 means no cap.
    #[cfg_attr(feature = "openapi", schema(maximum = 1000))]
    max_members: u32,
    /// The address that a virtual agent's minutes are sent to; may be empty.
    minutes_email: &'a str,
    /// The phone numbers that point at this room.
    numbers: &'a [RoomNumber],
    /// Members in the room now.
    live_members: u32,
    /// The extensions that join without a PIN.
    exemptions: &'a [Exemption],
    /// When it was made.
    created_at: Timestamp,
    /// The last change.
    updated_at: Timestamp,
}

/// A room to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoom {
    /// The owner.
    pub organisation_id: OrganisationId,
    /// See [`Room`].
    pub name: String,
    /// Unique among the rooms of the organisation.
    pub number: String,
    /// See [`Room`].
    pub participant_pin: RoomPin,
    /// See [`Room`].
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
}

/// The changes of a room; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomChange {
    /// See [`Room`].
    pub name: Option<String>,
    /// See [`Room`].
    pub number: Option<String>,
    /// See [`Room`].
    pub participant_pin: Option<Pin>,
    /// See [`Room`].
    pub moderator_pin: Option<Pin>,
    /// See [`Room`].
    pub wait_for_moderator: Option<bool>,
    /// See [`Room`].
    pub end_when_moderator_leaves: Option<bool>,
    /// See [`Room`].
    pub record: Option<bool>,
    /// See [`Room`].
    pub record_channels: Option<u16>,
    /// See [`Room`].
    pub announce_names: Option<bool>,
    /// See [`Room`].
    pub max_members: Option<u32>,
    /// See [`Room`].
    pub minutes_email: Option<String>,
}

impl RoomChange {
    /// Applies the change to a room.
    ///
    /// # Errors
    /// The fields that do not fit together after the change.
    pub fn applied(self, before: Room, now: Timestamp) -> Result<Room, Vec<FieldProblem>> {
        let after = Room {
            name: self.name.unwrap_or(before.name),
            number: self.number.unwrap_or(before.number),
            participant_pin: self.participant_pin.unwrap_or(before.participant_pin),
            moderator_pin: self.moderator_pin.unwrap_or(before.moderator_pin),
            wait_for_moderator: self.wait_for_moderator.unwrap_or(before.wait_for_moderator),
            end_when_moderator_leaves: self
                .end_when_moderator_leaves
                .unwrap_or(before.end_when_moderator_leaves),
            record: self.record.unwrap_or(before.record),
            record_channels: self.record_channels.unwrap_or(before.record_channels),
            announce_names: self.announce_names.unwrap_or(before.announce_names),
            max_members: self.max_members.unwrap_or(before.max_members),
            minutes_email: self.minutes_email.unwrap_or(before.minutes_email),
            updated_at: now.max(before.updated_at.plus_micros(1)),
            ..before
        };
        let participant_pin = RoomPin::Given(after.participant_pin.clone());
        let problems = rules::pins_together(&participant_pin, &after.moderator_pin, after.wait_for_moderator);
        if problems.is_empty() { Ok(after) } else { Err(problems) }
    }
}

/// The states of a room that a request accepts, identified by `updated_at`; `None` means any.
pub type ExpectedRoom = Option<Vec<Timestamp>>;

/// The stored rooms.
///
/// A change of a room that is in none of the expected states is a
/// [`PreconditionFailed`](crate::problem::Problem::PreconditionFailed). Every change moves `updated_at`.
pub trait Rooms: Send + Sync {
    /// The rooms inside `scope`, by name unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Room>>;

    /// One room, of any organisation.
    fn find(&self, room: RoomId) -> PortFuture<'_, Option<Room>>;

    /// Creates a room inside `scope`. A conflict when another room of the organisation has the number.
    fn create(&self, scope: Scope, new: NewRoom, now: Timestamp) -> PortFuture<'_, Room>;

    /// Changes a room inside `scope`.
    fn change(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        change: RoomChange,
        now: Timestamp,
    ) -> PortFuture<'_, Room>;

    /// Removes a room inside `scope`. A conflict while phone numbers refer to it.
    fn delete(&self, scope: Scope, room: RoomId, expected: ExpectedRoom) -> PortFuture<'_, ()>;

    /// The default members of a room, in order.
    fn members(&self, scope: Scope, room: RoomId) -> PortFuture<'_, Vec<RoomMember>>;

    /// Replaces the default members of a room inside `scope`; invalid when the organisation has no such extension.
    fn set_members(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        members: Vec<ExtensionId>,
        now: Timestamp,
    ) -> PortFuture<'_, Vec<RoomMember>>;

    /// Replaces the exemptions from the PIN of a room inside `scope`; invalid when the organisation has no
    /// such extension.
    fn set_exemptions(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        exemptions: Vec<Exemption>,
        now: Timestamp,
    ) -> PortFuture<'_, Vec<Exemption>>;

    /// The extensions on which a user takes calls.
    fn extensions_of(&self, user: UserId) -> PortFuture<'_, Vec<ExtensionId>>;
}
