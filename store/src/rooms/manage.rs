//! Rooms as the API manages them.

use sidetone_model::access::Scope;
use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId, UserId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::{Exemption, ExpectedRoom, NewRoom, Room, RoomChange, RoomMember, Rooms};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::rooms::rows::{complete, room, room_search};
use crate::sql::sql;
use crate::{Change, Store, StoreError, WriteTransaction};

/// A room belongs to no team.
const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM conference_rooms",
    select: "SELECT * FROM conference_rooms",
    team: None,
    by_name: &[SortColumn::Text("name"), SortColumn::Text("id")],
};

impl Rooms for Store {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Room>> {
        Box::pin(async move {
            let mut page = self.page(scope, listing, &TABLE, room).await?;
            let mut transaction = self.readers().begin_read().await.map_err(StoreError::from)?;
            complete(&mut transaction, &mut page.items).await?;
            Ok(page)
        })
    }

    fn find(&self, id: RoomId) -> PortFuture<'_, Option<Room>> {
        Box::pin(async move {
            let mut transaction = self.readers().begin_read().await.map_err(StoreError::from)?;
            let query = sql("SELECT * FROM conference_rooms WHERE id = $1").bind(id.to_string());
            let row = query.fetch_optional(&mut *transaction).await.map_err(StoreError::from)?;
            let Some(row) = row else { return Ok(None) };
            let mut found = [room(&row)?];
            complete(&mut transaction, &mut found).await?;
            let [found] = found;
            Ok(Some(found))
        })
    }

    fn create(&self, scope: Scope, new: NewRoom, now: Timestamp) -> PortFuture<'_, Room> {
        Box::pin(async move {
            let participant_pin = new.participant_pin.given().cloned().unwrap_or_default();
            let made = Room {
                id: RoomId(Uuid::new_v4()),
                organisation_id: new.organisation_id,
                name: new.name,
                number: new.number,
                participant_pin,
                moderator_pin: new.moderator_pin,
                wait_for_moderator: new.wait_for_moderator,
                end_when_moderator_leaves: new.end_when_moderator_leaves,
                record: new.record,
                record_channels: new.record_channels,
                announce_names: new.announce_names,
                max_members: new.max_members,
                minutes_email: new.minutes_email,
                numbers: Vec::new(),
                exemptions: Vec::new(),
                created_at: now,
                updated_at: now,
            };
            let mut write = self.write().await?;
            write.require_possible_room(scope, &made).await?;
            write.insert_room(&made).await?;
            write.commit().await?;
            Ok(made)
        })
    }

    fn change(
        &self,
        scope: Scope,
        id: RoomId,
        expected: ExpectedRoom,
        change: RoomChange,
        now: Timestamp,
    ) -> PortFuture<'_, Room> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let before = write.room_as_expected(scope, id, expected).await?;
            let after = change.applied(before, now).map_err(Problem::InvalidRequest)?;
            write.require_possible_room(scope, &after).await?;
            write.update_room(&after).await?;
            let mut after = [after];
            complete(&mut write.transaction, &mut after).await?;
            write.commit().await?;
            let [after] = after;
            Ok(after)
        })
    }

    fn delete(&self, scope: Scope, id: RoomId, expected: ExpectedRoom) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let room = write.room_as_expected(scope, id, expected).await?;
            let organisation = room.organisation_id.to_string();
            write.refuse_if_dialled(&organisation, id.to_string(), "room").await?;
            let statement = sql("DELETE FROM conference_rooms WHERE id = $1 AND organisation_id = $2")
                .bind(id.to_string())
                .bind(organisation);
            write.finish(statement, Change::Changed).await?;
            Ok(())
        })
    }

    fn members(&self, scope: Scope, room: RoomId) -> PortFuture<'_, Vec<RoomMember>> {
        Box::pin(self.members_of_room(scope, room))
    }

    fn set_members(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        members: Vec<ExtensionId>,
        now: Timestamp,
    ) -> PortFuture<'_, Vec<RoomMember>> {
        Box::pin(self.replace_members(scope, (room, expected), members, now))
    }

    fn set_exemptions(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        exemptions: Vec<Exemption>,
        now: Timestamp,
    ) -> PortFuture<'_, Vec<Exemption>> {
        Box::pin(self.replace_exemptions(scope, (room, expected), exemptions, now))
    }

    fn extensions_of(&self, user: UserId) -> PortFuture<'_, Vec<ExtensionId>> {
        Box::pin(async move {
            let rows = sql("SELECT organisation_id, extension_id FROM agents
                 WHERE user_id = $1 AND extension_id IS NOT NULL ORDER BY extension_id")
            .bind(user.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::from)?;
            Ok(rows.iter().map(|row| parsed(row, "extension_id")).collect::<Result<_, _>>()?)
        })
    }
}

impl WriteTransaction {
    /// The row of a room inside `scope`, without the data from other tables.
    pub(super) async fn room_inside(&mut self, scope: Scope, id: RoomId) -> Result<Room, Problem> {
        let query = sql("SELECT * FROM conference_rooms WHERE id = $1").bind(id.to_string());
        let found = self.one(query, room).await?;
        found
            .filter(|found| scope.covers(found.organisation_id, None))
            .ok_or_else(|| Problem::NotFound("there is no such conference room".to_owned()))
    }

    /// Like [`WriteTransaction::room_inside`], but only in one of the expected states. The row is locked, so that of
    /// two requests for one state only one is carried out.
    pub(super) async fn room_as_expected(
        &mut self,
        scope: Scope,
        id: RoomId,
        expected: ExpectedRoom,
    ) -> Result<Room, Problem> {
        let room = self.room_inside(scope, id).await?;
        let Some(states) = expected else { return Ok(room) };
        sql("UPDATE conference_rooms SET updated_at_us = updated_at_us WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(room.organisation_id.to_string())
            .execute(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        let room = self.room_inside(scope, id).await?;
        if states.contains(&room.updated_at) {
            return Ok(room);
        }
        Err(Problem::PreconditionFailed(
            "the room was changed since it was read: read it again, and send its new ETag".to_owned(),
        ))
    }

    /// The room of that number.
    pub(super) async fn room_of_number(
        &mut self,
        organisation: OrganisationId,
        number: &str,
    ) -> Result<Option<Room>, StoreError> {
        let query = sql("SELECT * FROM conference_rooms WHERE organisation_id = $1 AND number = $2")
            .bind(organisation.to_string())
            .bind(number);
        self.one(query, room).await
    }

    pub(super) async fn insert_room(&mut self, made: &Room) -> Result<(), StoreError> {
        sql(
            "INSERT INTO conference_rooms (id, organisation_id, name, number, participant_pin, moderator_pin,
             wait_for_moderator, end_when_moderator_leaves, record, max_members, minutes_email, search,
             created_at_us, updated_at_us, record_channels, announce_names)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15)",
        )
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(&made.name)
        .bind(&made.number)
        .bind(made.participant_pin.as_str())
        .bind(made.moderator_pin.as_str())
        .bind(made.wait_for_moderator)
        .bind(made.end_when_moderator_leaves)
        .bind(made.record)
        .bind(i64::from(made.max_members))
        .bind(&made.minutes_email)
        .bind(room_search(&made.name, &made.number))
        .bind(made.created_at.as_micros())
        .bind(i64::from(made.record_channels))
        .bind(made.announce_names)
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    pub(super) async fn update_room(&mut self, after: &Room) -> Result<(), StoreError> {
        sql("UPDATE conference_rooms SET name = $1, number = $2, participant_pin = $3, moderator_pin = $4,
             wait_for_moderator = $5, end_when_moderator_leaves = $6, record = $7, max_members = $8,
             minutes_email = $9, search = $10, updated_at_us = $11, record_channels = $12,
             announce_names = $13 WHERE id = $14 AND organisation_id = $15")
        .bind(&after.name)
        .bind(&after.number)
        .bind(after.participant_pin.as_str())
        .bind(after.moderator_pin.as_str())
        .bind(after.wait_for_moderator)
        .bind(after.end_when_moderator_leaves)
        .bind(after.record)
        .bind(i64::from(after.max_members))
        .bind(&after.minutes_email)
        .bind(room_search(&after.name, &after.number))
        .bind(after.updated_at.as_micros())
        .bind(i64::from(after.record_channels))
        .bind(after.announce_names)
        .bind(after.id.to_string())
        .bind(after.organisation_id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Changed);
        Ok(())
    }

    /// Checks that the organisation exists and is inside the caller's scope, and that no other room of it has
    /// the number.
    async fn require_possible_room(&mut self, scope: Scope, own: &Room) -> Result<(), Problem> {
        let organisation = own.organisation_id;
        if !scope.covers(organisation, None) {
            return Err(Problem::Forbidden(
                "the conference rooms of the organisation are not the caller's".to_owned(),
            ));
        }
        self.require_organisation(organisation).await?;
        match self.room_of_number(organisation, &own.number).await? {
            Some(other) if other.id != own.id => Err(Problem::Conflict(format!(
                "number: the organisation already has a conference room {}",
                own.number
            ))),
            _ => Ok(()),
        }
    }
}
