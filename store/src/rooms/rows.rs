//! Reads the rows of rooms.

use std::collections::HashMap;

use sidetone_model::ids::{ExtensionId, RoomId};
use sidetone_model::room::{Exemption, Pin, Role, Room, RoomConfig, RoomNumber, rules};

use crate::StoreError;
use crate::columns::{instant, number, parsed, word};
use crate::search::searchable;
use crate::sql::{Connection, Row, sql};
use crate::statement::Statement;

/// Every room as the switch caches it.
pub(crate) async fn rooms(connection: &mut Connection) -> Result<Vec<RoomConfig>, StoreError> {
    let mut members: HashMap<RoomId, Vec<ExtensionId>> = HashMap::new();
    let rows = sql("SELECT room_id, extension_id FROM conference_room_members
         ORDER BY organisation_id, room_id, place, extension_id")
    .fetch_all(&mut *connection)
    .await?;
    for row in &rows {
        members.entry(parsed(row, "room_id")?).or_default().push(parsed(row, "extension_id")?);
    }
    let mut exemptions: HashMap<RoomId, Vec<Exemption>> = HashMap::new();
    let rows = sql("SELECT room_id, extension_id, role FROM conference_room_exemptions
         ORDER BY organisation_id, room_id, extension_id")
    .fetch_all(&mut *connection)
    .await?;
    for row in &rows {
        exemptions.entry(parsed(row, "room_id")?).or_default().push(exemption(row)?);
    }
    let rows =
        sql("SELECT * FROM conference_rooms ORDER BY organisation_id, number").fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            let room = room(row)?;
            Ok(RoomConfig {
                id: room.id,
                organisation_id: room.organisation_id,
                name: room.name,
                number: room.number,
                participant_pin: room.participant_pin,
                moderator_pin: room.moderator_pin,
                wait_for_moderator: room.wait_for_moderator,
                end_when_moderator_leaves: room.end_when_moderator_leaves,
                record: room.record,
                record_channels: room.record_channels,
                announce_names: room.announce_names,
                max_members: room.max_members,
                exemptions: exemptions.remove(&room.id).unwrap_or_default(),
                members: members.remove(&room.id).unwrap_or_default(),
            })
        })
        .collect()
}

/// The row of a room; its numbers and exemptions are in other tables, see [`complete`].
pub(super) fn room(row: &Row) -> Result<Room, StoreError> {
    Ok(Room {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        name: row.try_get("name")?,
        number: row.try_get("number")?,
        participant_pin: pin(row, "participant_pin")?,
        moderator_pin: pin(row, "moderator_pin")?,
        wait_for_moderator: row.try_get::<i64>("wait_for_moderator")? != 0,
        end_when_moderator_leaves: row.try_get::<i64>("end_when_moderator_leaves")? != 0,
        record: row.try_get::<i64>("record")? != 0,
        record_channels: number(row, "record_channels")?,
        announce_names: row.try_get::<i64>("announce_names")? != 0,
        max_members: number(row, "max_members")?,
        minutes_email: row.try_get("minutes_email")?,
        numbers: Vec::new(),
        exemptions: Vec::new(),
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

/// Adds to each of `rooms` the phone numbers that lead to it and its exemptions from the PIN.
pub(super) async fn complete(connection: &mut Connection, rooms: &mut [Room]) -> Result<(), StoreError> {
    if rooms.is_empty() {
        return Ok(());
    }
    let places: HashMap<RoomId, usize> = rooms.iter().enumerate().map(|(at, room)| (room.id, at)).collect();
    let mut statement = Statement::new(
        "SELECT organisation_id, id, number, destination_id FROM numbers
         WHERE destination = 'conference' AND destination_id IN (",
    );
    among(&mut statement, rooms, ") ORDER BY number");
    for row in statement.query().fetch_all(&mut *connection).await? {
        let room: RoomId = parsed(&row, "destination_id")?;
        if let Some(room) = places.get(&room).and_then(|at| rooms.get_mut(*at)) {
            room.numbers.push(RoomNumber { id: parsed(&row, "id")?, number: row.try_get("number")? });
        }
    }
    let mut statement = Statement::new(
        "SELECT exempt.room_id, exempt.organisation_id, exempt.extension_id, exempt.role
         FROM conference_room_exemptions AS exempt JOIN extensions ON extensions.id = exempt.extension_id
         WHERE exempt.room_id IN (",
    );
    among(&mut statement, rooms, ") ORDER BY extensions.number, exempt.extension_id");
    for row in statement.query().fetch_all(connection).await? {
        let room: RoomId = parsed(&row, "room_id")?;
        if let Some(room) = places.get(&room).and_then(|at| rooms.get_mut(*at)) {
            room.exemptions.push(exemption(&row)?);
        }
    }
    Ok(())
}

/// The text that a search in a list of rooms covers.
pub(super) fn room_search(name: &str, number: &str) -> String {
    searchable([Some(number), Some(name)])
}

fn among(statement: &mut Statement, rooms: &[Room], after: &'static str) {
    for (at, room) in rooms.iter().enumerate() {
        statement.bind(if at == 0 { "" } else { ", " }, room.id.to_string(), "");
    }
    statement.push(after);
}

fn exemption(row: &Row) -> Result<Exemption, StoreError> {
    Ok(Exemption { extension_id: parsed(row, "extension_id")?, role: word(row, "role", Role::from_name)? })
}

fn pin(row: &Row, column: &'static str) -> Result<Pin, StoreError> {
    rules::pin(row.try_get(column)?).map_err(|_| StoreError::Corrupt { column })
}
