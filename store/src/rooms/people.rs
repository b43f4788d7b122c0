//! Which extensions are rung when a room opens, and which enter it without a PIN.

use std::collections::HashSet;

use sidetone_model::access::Scope;
use sidetone_model::ids::{ExtensionId, OrganisationId, RoomId};
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::room::{Exemption, ExpectedRoom, Room, RoomMember};
use sidetone_model::time::Timestamp;

use crate::columns::parsed;
use crate::rooms::rows::complete;
use crate::sql::{Connection, sql};
use crate::statement::Statement;
use crate::{Change, Store, StoreError, WriteTransaction};

impl Store {
    /// The default members of a room inside `scope`, in order.
    pub(super) async fn members_of_room(
        &self,
        scope: Scope,
        room: RoomId,
    ) -> Result<Vec<RoomMember>, Problem> {
        let mut transaction = self.readers().begin_read().await.map_err(StoreError::from)?;
        Ok(members(&mut transaction, scope, room).await?)
    }

    /// Replaces the default members of a room inside `scope`.
    pub(super) async fn replace_members(
        &self,
        scope: Scope,
        (id, expected): (RoomId, ExpectedRoom),
        extensions: Vec<ExtensionId>,
        now: Timestamp,
    ) -> Result<Vec<RoomMember>, Problem> {
        let mut write = self.write().await?;
        let room = write.room_as_expected(scope, id, expected).await?;
        let room = Room { updated_at: now.max(room.updated_at.plus_micros(1)), ..room };
        write.require_own_extensions(room.organisation_id, &extensions).await?;
        write.set_room_members(&room, &extensions).await?;
        write.update_room(&room).await?;
        let members = members(&mut write.transaction, scope, id).await?;
        write.commit().await?;
        Ok(members)
    }

    /// Replaces the exemptions from the PIN of a room inside `scope`.
    pub(super) async fn replace_exemptions(
        &self,
        scope: Scope,
        (id, expected): (RoomId, ExpectedRoom),
        exemptions: Vec<Exemption>,
        now: Timestamp,
    ) -> Result<Vec<Exemption>, Problem> {
        let mut write = self.write().await?;
        let room = write.room_as_expected(scope, id, expected).await?;
        let room = Room { updated_at: now.max(room.updated_at.plus_micros(1)), ..room };
        let extensions: Vec<ExtensionId> = exemptions.iter().map(|exempt| exempt.extension_id).collect();
        write.require_own_extensions(room.organisation_id, &extensions).await?;
        write.set_room_exemptions(&room, &exemptions).await?;
        write.update_room(&room).await?;
        let mut room = [room];
        complete(&mut write.transaction, &mut room).await?;
        write.commit().await?;
        let [room] = room;
        Ok(room.exemptions)
    }
}

impl WriteTransaction {
    /// Sets the extensions that are rung when the room opens.
    pub(super) async fn set_room_members(
        &mut self,
        room: &Room,
        extensions: &[ExtensionId],
    ) -> Result<(), StoreError> {
        let (id, organisation) = (room.id.to_string(), room.organisation_id.to_string());
        sql("DELETE FROM conference_room_members WHERE room_id = $1 AND organisation_id = $2")
            .bind(&id)
            .bind(&organisation)
            .execute(&mut *self.transaction)
            .await?;
        if !extensions.is_empty() {
            let mut statement = Statement::new(
                "INSERT INTO conference_room_members (room_id, organisation_id, extension_id, place) VALUES ",
            );
            statement.rows((0_i64..).zip(extensions).map(|(place, extension)| {
                [id.as_str().into(), organisation.as_str().into(), extension.to_string().into(), place.into()]
            }));
            statement.query().execute(&mut *self.transaction).await?;
        }
        self.note(Change::Changed);
        Ok(())
    }

    /// Sets the exemptions from the PIN to exactly `exemptions`.
    pub(super) async fn set_room_exemptions(
        &mut self,
        room: &Room,
        exemptions: &[Exemption],
    ) -> Result<(), StoreError> {
        let (id, organisation) = (room.id.to_string(), room.organisation_id.to_string());
        sql("DELETE FROM conference_room_exemptions WHERE room_id = $1 AND organisation_id = $2")
            .bind(&id)
            .bind(&organisation)
            .execute(&mut *self.transaction)
            .await?;
        if !exemptions.is_empty() {
            let mut statement = Statement::new(
                "INSERT INTO conference_room_exemptions (room_id, organisation_id, extension_id, role) VALUES ",
            );
            statement.rows(exemptions.iter().map(|Exemption { extension_id, role }| {
                [
                    id.as_str().into(),
                    organisation.as_str().into(),
                    extension_id.to_string().into(),
                    role.as_str().into(),
                ]
            }));
            statement.query().execute(&mut *self.transaction).await?;
        }
        self.note(Change::Changed);
        Ok(())
    }

    /// Refuses extensions that the organisation does not have, each by its index in the list.
    async fn require_own_extensions(
        &mut self,
        organisation: OrganisationId,
        extensions: &[ExtensionId],
    ) -> Result<(), Problem> {
        let rows = sql("SELECT id FROM extensions WHERE organisation_id = $1")
            .bind(organisation.to_string())
            .fetch_all(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        let own: HashSet<ExtensionId> = rows.iter().map(|row| parsed(row, "id")).collect::<Result<_, _>>()?;
        let wrong: Vec<FieldProblem> = extensions
            .iter()
            .enumerate()
            .filter(|(_, extension)| !own.contains(extension))
            .map(|(at, _)| FieldProblem {
                field: format!("items[{at}].extension_id"),
                message: "the organisation has no such extension".to_owned(),
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(Problem::InvalidRequest(wrong)) }
    }
}

/// The default members of a room inside `scope`, in order.
async fn members(
    connection: &mut Connection,
    scope: Scope,
    room: RoomId,
) -> Result<Vec<RoomMember>, StoreError> {
    let rows = sql("SELECT member.organisation_id, member.extension_id, extensions.number, extensions.name
         FROM conference_room_members AS member JOIN extensions ON extensions.id = member.extension_id
         WHERE member.room_id = $1 ORDER BY member.place, member.extension_id")
    .bind(room.to_string())
    .fetch_all(connection)
    .await?;
    let mut members = Vec::with_capacity(rows.len());
    for row in &rows {
        if scope.covers(parsed(row, "organisation_id")?, None) {
            members.push(RoomMember {
                extension_id: parsed(row, "extension_id")?,
                number: row.try_get("number")?,
                name: row.try_get("name")?,
            });
        }
    }
    Ok(members)
}
