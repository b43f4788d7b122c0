//! Closes sessions of rooms that a crash interrupted, with the time of their last mark as their end.

use std::sync::Arc;

use sidetone_model::event::{Event, EventViewers};
use sidetone_model::ids::{ConferenceSessionId, ExtensionId, NodeId, OrganisationId, TeamId};
use sidetone_model::room::RoomName;
use sidetone_model::room::event::{RoomChange, RoomEvent};
use sidetone_model::time::Timestamp;

use crate::columns::{instant, number, parsed, parsed_opt};
use crate::events::insert_event;
use crate::recordings::announce_recording;
use crate::sessions::whole;
use crate::sql::{Connection, Row, Transaction, sql};
use crate::{Store, StoreError};

/// Selects sessions that can get no further changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphaned {
    /// Those of a node that starts.
    Of(NodeId),
    /// Those of any node whose last mark is older than this time.
    Since(Timestamp),
}

impl Store {
    /// Closes sessions that can get no further changes, with their people and times, cancels their ringing
    /// invites, and writes the events, all in one transaction. A bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn close_sessions(&self, orphaned: Orphaned) -> Result<u64, StoreError> {
        let (node, before) = match orphaned {
            Orphaned::Of(node) => (node.to_string(), i64::MAX),
            Orphaned::Since(since) => (String::new(), since.as_micros()),
        };
        let mut transaction = self.writer().begin_write().await?;
        let rows = sql("SELECT id, organisation_id, room, room_id, seen_at_us, events, revision
             FROM conference_sessions
             WHERE ended_at_us IS NULL AND ($1 = '' OR node_id = $1) AND seen_at_us < $2
             ORDER BY seen_at_us, id LIMIT $3")
        .bind(node)
        .bind(before)
        .bind(Self::SESSION_BATCH as i64)
        .fetch_all(&mut *transaction)
        .await?;
        for row in &rows {
            close(&mut transaction, row).await?;
        }
        transaction.commit().await?;
        Ok(rows.len() as u64)
    }

    /// The sessions of a node whose recording was started and is not marked complete; a bounded number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unfinished_recordings(
        &self,
        node: NodeId,
    ) -> Result<Vec<(OrganisationId, ConferenceSessionId)>, StoreError> {
        let rows = sql("SELECT id, organisation_id FROM conference_sessions
             WHERE node_id = $1 AND is_recorded = 1 AND recording_bytes IS NULL
             ORDER BY started_at_us DESC, id LIMIT $2")
        .bind(node.to_string())
        .bind(Self::SESSION_BATCH as i64)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|row| Ok((parsed(row, "organisation_id")?, parsed(row, "id")?))).collect()
    }

    /// Sessions that one transaction closes at most.
    pub const SESSION_BATCH: u64 = 200;
}

async fn close(transaction: &mut Transaction, row: &Row) -> Result<(), StoreError> {
    let id: ConferenceSessionId = parsed(row, "id")?;
    let organisation: OrganisationId = parsed(row, "organisation_id")?;
    let seen = instant(row, "seen_at_us")?;
    let (events, revision): (u64, u64) = (number(row, "events")?, number(row, "revision")?);
    let (events, revision) = (events + 1, revision.saturating_add(REVISIONS_UNSTORED));
    let done = sql("UPDATE conference_sessions SET ended_at_us = seen_at_us, events = $1, revision = $2
         WHERE id = $3 AND organisation_id = $4 AND ended_at_us IS NULL")
    .bind(whole(events))
    .bind(whole(revision))
    .bind(id.to_string())
    .bind(organisation.to_string())
    .execute(&mut **transaction)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(()); // Another node was faster.
    }
    let viewers = members(transaction, id, organisation).await?;
    see_off(transaction, id, organisation, seen).await?;
    announce_recording(transaction, organisation, id).await?;
    let (room, room_id) = (parsed::<RoomName>(row, "room")?, parsed_opt(row, "room_id")?);
    // A room of two merged calls began with `call.conferenced`, which has no `seq`.
    let seq = events.saturating_sub(u64::from(room.room_id().is_none()));
    let what = RoomChange::Ended;
    let news =
        RoomEvent { organisation_id: organisation, room, room_id, session: id, at: seen, revision, what };
    match news.event(seq) {
        Some(event) => insert_event(transaction, &Event { viewers, ..event }).await,
        None => Ok(()),
    }
}

/// The teams and extensions of the members at the end; their users see the event.
async fn members(
    connection: &mut Connection,
    session: ConferenceSessionId,
    organisation: OrganisationId,
) -> Result<Option<Arc<EventViewers>>, StoreError> {
    let rows = sql("SELECT people.extension_id AS extension_id,
             COALESCE(agents.team_id, extensions.team_id) AS team_id
         FROM conference_people people
         LEFT JOIN extensions ON extensions.id = people.extension_id
             AND extensions.organisation_id = people.organisation_id
         LEFT JOIN agents ON agents.extension_id = extensions.id
             AND agents.organisation_id = extensions.organisation_id
         WHERE people.session_id = $1 AND people.organisation_id = $2 AND people.left_at_us IS NULL
             AND people.extension_id IS NOT NULL")
    .bind(session.to_string())
    .bind(organisation.to_string())
    .fetch_all(connection)
    .await?;
    let mut viewers = EventViewers::default();
    for row in &rows {
        viewers.teams.extend(parsed_opt::<TeamId>(row, "team_id")?);
        viewers.extensions.extend(parsed_opt::<ExtensionId>(row, "extension_id")?);
    }
    Ok(Some(viewers).filter(|viewers| !viewers.is_empty()).map(Arc::new))
}

/// Marks everyone in the session as leaving at its end, and cancels ringing invites.
async fn see_off(
    connection: &mut Connection,
    session: ConferenceSessionId,
    organisation: OrganisationId,
    at: Timestamp,
) -> Result<(), StoreError> {
    sql("UPDATE conference_people SET left_at_us = CASE WHEN joined_at_us > $1 THEN joined_at_us ELSE $1 END
         WHERE session_id = $2 AND organisation_id = $3 AND left_at_us IS NULL")
    .bind(at.as_micros())
    .bind(session.to_string())
    .bind(organisation.to_string())
    .execute(&mut *connection)
    .await?;
    sql("UPDATE conference_invites SET state = 'cancelled', last_reason = 'room_ended'
         WHERE session_id = $1 AND organisation_id = $2 AND state IN ('pending', 'ringing', 'waiting')")
    .bind(session.to_string())
    .bind(organisation.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// More than the number of changes of a room between two stored rows: so the closed row is newer than any revision
/// that was read.
const REVISIONS_UNSTORED: u64 = 1 << 32;
