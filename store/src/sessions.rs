//! Sessions of rooms: their rows, stored in groups together with their events.

use std::collections::BTreeMap;

use sidetone_model::event::Event;
use sidetone_model::ids::{ConferenceSessionId, NodeId};
use sidetone_model::ports::PortFuture;
use sidetone_model::room::rows::{
    InviteRow, NewEvent, PersonRow, RecordingRow, Rows, SessionLog, SessionRow,
};
use sidetone_model::time::Timestamp;

use crate::columns::{number, parsed};
use crate::events::insert_events;
use crate::recordings::announce_recording;
use crate::sql::{Connection, Transaction, sql};
use crate::statement::{Statement, parts};
use crate::{Store, StoreError};

impl SessionLog for Store {
    fn store<'a>(&'a self, node: NodeId, rows: &'a Rows) -> PortFuture<'a, ()> {
        Box::pin(async move { Ok(self.store_sessions(node, rows).await?) })
    }
}

impl Store {
    /// See [`SessionLog::store`].
    ///
    /// # Errors
    /// When the database fails; nothing is stored then.
    pub async fn store_sessions(&self, node: NodeId, rows: &Rows) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        // A commit that was not confirmed may have succeeded: its events must not be written again.
        let reported = reported_events(&mut transaction, &rows.sessions).await?;
        for part in parts(&rows.sessions) {
            upsert_sessions(&mut transaction, node, part).await?;
        }
        for part in parts(&rows.people) {
            upsert_people(&mut transaction, part).await?;
        }
        for part in parts(&rows.invites) {
            upsert_invites(&mut transaction, part).await?;
        }
        for recording in &rows.recordings {
            complete(&mut transaction, recording).await?;
        }
        if let Some(seen_at) = rows.seen_at {
            mark(&mut transaction, node, seen_at).await?;
        }
        announce_recordings(&mut transaction, rows).await?;
        let is_new = |event: &&NewEvent| {
            reported.get(&event.session).is_none_or(|reported| event.position > *reported)
        };
        let events: Vec<Event> = rows.events.iter().filter(is_new).filter_map(NewEvent::event).collect();
        insert_events(&mut transaction, &events).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// The number of stored events of each session.
async fn reported_events(
    connection: &mut Connection,
    sessions: &[SessionRow],
) -> Result<BTreeMap<ConferenceSessionId, u64>, StoreError> {
    let mut reported = BTreeMap::new();
    for part in parts(sessions) {
        let mut statement = Statement::new(
            "SELECT id, organisation_id, events FROM conference_sessions WHERE id IN (VALUES ",
        );
        statement.rows(part.iter().map(|session| [session.id.to_string().into()]));
        statement.push(")");
        for row in statement.query().fetch_all(&mut *connection).await? {
            reported.insert(parsed(&row, "id")?, number(&row, "events")?);
        }
    }
    Ok(reported)
}

async fn upsert_sessions(
    connection: &mut Connection,
    node: NodeId,
    sessions: &[SessionRow],
) -> Result<(), StoreError> {
    let mut statement = Statement::new(
        "INSERT INTO conference_sessions (id, organisation_id, node_id, room, room_id, room_name, started_at_us,
         ended_at_us, seen_at_us, peak_members, is_recorded, is_recording, recording_channels, events,
         revision) VALUES ",
    );
    statement.rows(sessions.iter().map(|session| {
        [
            session.id.to_string().into(),
            session.organisation_id.to_string().into(),
            node.to_string().into(),
            session.room.to_string().into(),
            session.room_id.map(|room| room.to_string()).into(),
            session.room_name.as_str().into(),
            session.started_at.as_micros().into(),
            session.ended_at.map(Timestamp::as_micros).into(),
            session.seen_at.as_micros().into(),
            i64::from(session.peak_members).into(),
            session.is_recorded.into(),
            session.is_recording.into(),
            i64::from(session.recording_channels).into(),
            whole(session.events).into(),
            whole(session.revision).into(),
        ]
    }));
    // `ended_at_us` is not updated: a session that another node has closed stays closed.
    statement.push(
        " ON CONFLICT (id) DO UPDATE SET
         ended_at_us = COALESCE(conference_sessions.ended_at_us, excluded.ended_at_us),
         seen_at_us = excluded.seen_at_us, peak_members = excluded.peak_members,
         is_recorded = excluded.is_recorded,
         is_recording = excluded.is_recording, recording_channels = excluded.recording_channels, recording_bytes = CASE WHEN excluded.is_recording = 1 THEN NULL
         ELSE conference_sessions.recording_bytes END, events = excluded.events, revision = excluded.revision",
    );
    statement.query().execute(connection).await?;
    Ok(())
}

async fn upsert_people(connection: &mut Connection, people: &[PersonRow]) -> Result<(), StoreError> {
    let mut statement = Statement::new(
        "INSERT INTO conference_people (session_id, organisation_id, member, name, number, role, extension_id,
         call_uuid, leg, joined_at_us, left_at_us, talked_ms) VALUES ",
    );
    statement.rows(people.iter().map(|row| {
        let person = &row.person;
        [
            row.session.to_string().into(),
            row.organisation_id.to_string().into(),
            i64::from(person.member).into(),
            person.name.as_str().into(),
            person.number.as_str().into(),
            person.role.as_str().into(),
            person.extension_id.map(|extension| extension.to_string()).into(),
            person.call_uuid.to_string().into(),
            person.leg.to_string().into(),
            person.joined_at.as_micros().into(),
            row.left_at.map(Timestamp::as_micros).into(),
            whole(row.talked_ms).into(),
        ]
    }));
    // A phone that returns to its former seat keeps its row; the row then shows the later call.
    statement.push(
        " ON CONFLICT (session_id, member) DO UPDATE SET left_at_us = excluded.left_at_us,
         talked_ms = excluded.talked_ms, role = excluded.role, call_uuid = excluded.call_uuid, leg = excluded.leg",
    );
    statement.query().execute(connection).await?;
    Ok(())
}

async fn upsert_invites(connection: &mut Connection, invites: &[InviteRow]) -> Result<(), StoreError> {
    let mut statement = Statement::new(
        "INSERT INTO conference_invites (session_id, organisation_id, place, extension_id, number, name, state,
         last_reason) VALUES ",
    );
    statement.rows(invites.iter().map(|row| {
        let invite = &row.invite;
        [
            row.session.to_string().into(),
            row.organisation_id.to_string().into(),
            i64::try_from(row.place).unwrap_or(i64::MAX).into(),
            invite.extension_id.to_string().into(),
            invite.number.as_str().into(),
            invite.name.as_str().into(),
            invite.state.as_str().into(),
            invite.last_reason.to_string().into(),
        ]
    }));
    statement.push(
        " ON CONFLICT (session_id, place) DO UPDATE SET extension_id = excluded.extension_id,
         number = excluded.number, name = excluded.name, state = excluded.state,
         last_reason = excluded.last_reason",
    );
    statement.query().execute(connection).await?;
    Ok(())
}

/// Stores the result of a recording.
async fn complete(connection: &mut Connection, recording: &RecordingRow) -> Result<(), StoreError> {
    sql("UPDATE conference_sessions SET recording_bytes = $1, recording_error = $2
         WHERE id = $3 AND organisation_id = $4")
    .bind(whole(recording.bytes))
    .bind(recording.error.as_deref())
    .bind(recording.session.to_string())
    .bind(recording.organisation_id.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes the events of recordings that have become playable, once each: those of finished sessions.
async fn announce_recordings(transaction: &mut Transaction, rows: &Rows) -> Result<(), StoreError> {
    let over = rows.sessions.iter().filter(|session| session.ended_at.is_some() && session.is_recorded);
    let complete = rows.recordings.iter().map(|recording| (recording.organisation_id, recording.session));
    for (organisation, session) in over.map(|row| (row.organisation_id, row.id)).chain(complete) {
        announce_recording(transaction, organisation, session).await?;
    }
    Ok(())
}

/// Marks the live sessions of a node as live at `seen_at`.
async fn mark(connection: &mut Connection, node: NodeId, seen_at: Timestamp) -> Result<(), StoreError> {
    sql("UPDATE conference_sessions SET seen_at_us = $1
         WHERE node_id = $2 AND ended_at_us IS NULL AND seen_at_us < $1")
    .bind(seen_at.as_micros())
    .bind(node.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
