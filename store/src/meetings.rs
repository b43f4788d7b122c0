//! Meetings: the reports of virtual agents on the sessions of rooms.

use serde::de::DeserializeOwned;
use sidetone_model::access::Scope;
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{ConferenceSessionId, OrganisationId, RoomId};
use sidetone_model::page::{Page, Window};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::room::Role;
use sidetone_model::room::meeting::{
    Attendee, Meeting, MeetingAgent, MeetingReport, MeetingState, MeetingSummary, Meetings, ReportedMeeting,
};
use sidetone_model::time::Timestamp;

use crate::columns::{instant, number, parsed, word};
use crate::conversation_rows::json_text;
use crate::events::insert_event;
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::sql::{Connection, Query, Row, Transaction, sql};
use crate::{Store, StoreError};

impl Meetings for Store {
    fn meeting(&self, scope: Scope, room: RoomId, session: ConferenceSessionId) -> PortFuture<'_, Meeting> {
        Box::pin(async move {
            let organisation = self.owner_of_room(scope, room).await?;
            let query =
                sql("SELECT * FROM meetings WHERE session_id = $1 AND organisation_id = $2 AND room_id = $3")
                    .bind(session.to_string())
                    .bind(organisation.to_string())
                    .bind(room.to_string());
            let found = self.one(query, meeting).await?;
            found.ok_or_else(|| {
                Problem::NotFound("no virtual agent sat in such a session of the room".to_owned())
            })
        })
    }

    fn meetings(&self, scope: Scope, room: RoomId, window: Window) -> PortFuture<'_, Page<MeetingSummary>> {
        Box::pin(async move {
            let organisation = self.owner_of_room(scope, room).await?;
            Ok(self.meetings_of_room(organisation, room, window).await?)
        })
    }

    fn report(
        &self,
        scope: Scope,
        room: RoomId,
        session: ConferenceSessionId,
        report: MeetingReport,
        now: Timestamp,
    ) -> PortFuture<'_, ReportedMeeting> {
        Box::pin(async move {
            let organisation = self.owner_of_room(scope, room).await?;
            self.report_meeting(organisation, Meeting { session_id: session, room_id: room, report }, now)
                .await
        })
    }
}

impl Store {
    async fn meetings_of_room(
        &self,
        organisation: OrganisationId,
        room: RoomId,
        window: Window,
    ) -> Result<Page<MeetingSummary>, StoreError> {
        // Both statements see one snapshot, so the total matches these items.
        let mut transaction = self.readers().begin_read().await?;
        let list = List {
            count: "SELECT COUNT(*) AS total FROM meetings WHERE organisation_id = ",
            items: "SELECT session_id, agent_id, agent_name, state, minutes_error, notes_count, turns_count,
                started_at_us, CAST(CASE WHEN minutes IS NULL THEN 0 ELSE 1 END AS BIGINT) AS has_minutes
                FROM meetings WHERE organisation_id = ",
            matching: &|statement| {
                statement.bind("", organisation.to_string(), "");
                statement.bind(" AND room_id = ", room.to_string(), "");
            },
            sorting: Sorting::descending(BY_START),
        };
        rows(&mut transaction, &list, &window).await?.try_map(|row| summary(&row))
    }

    async fn report_meeting(
        &self,
        organisation: OrganisationId,
        reported: Meeting,
        now: Timestamp,
    ) -> Result<ReportedMeeting, Problem> {
        let mut transaction = self.writer().begin_write().await.map_err(StoreError::from)?;
        let started_at = lock_session(&mut transaction, organisation, &reported).await?;
        let row = sql("SELECT * FROM meetings WHERE session_id = $1 AND organisation_id = $2")
            .bind(reported.session_id.to_string())
            .bind(organisation.to_string())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(StoreError::from)?;
        let stored = row.as_ref().map(meeting).transpose()?;
        if let Some(stored) = &stored {
            reported.report.may_follow(&stored.report).map_err(Problem::Conflict)?;
        }
        let created = stored.is_none();
        if stored.as_ref() == Some(&reported) {
            return Ok(ReportedMeeting { meeting: reported, created });
        }
        let was_told = row.is_some_and(|row| row.try_get::<i64>("is_told").is_ok_and(|told| told != 0));
        let is_told = was_told || reported.report.minutes.is_some();
        upsert(&mut transaction, organisation, &reported, (started_at, is_told, now)).await?;
        if is_told && !was_told {
            let attendees = attendees(&mut transaction, organisation, reported.session_id).await?;
            let data = reported.minutes_data(&attendees);
            let event = Event::of(EventKind::ConferenceMinutes, organisation, None, now, &data);
            insert_event(&mut transaction, &event).await?;
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(ReportedMeeting { meeting: reported, created })
    }
}

/// Returns when the session began; serializes its reports until the end of the transaction.
async fn lock_session(
    transaction: &mut Transaction,
    organisation: OrganisationId,
    reported: &Meeting,
) -> Result<Timestamp, Problem> {
    // On another row than the one that the writer of sessions updates: on PostgreSQL the lock is on the session's
    // row, and is held briefly.
    let row = sql("UPDATE conference_sessions SET room_name = room_name
         WHERE id = $1 AND organisation_id = $2 AND room_id = $3 RETURNING started_at_us")
    .bind(reported.session_id.to_string())
    .bind(organisation.to_string())
    .bind(reported.room_id.to_string())
    .fetch_optional(&mut **transaction)
    .await
    .map_err(StoreError::from)?;
    let row = row.ok_or_else(|| Problem::NotFound("the room had no such session".to_owned()))?;
    Ok(instant(&row, "started_at_us")?)
}

async fn upsert(
    connection: &mut Connection,
    organisation: OrganisationId,
    reported: &Meeting,
    (started_at, is_told, now): (Timestamp, bool, Timestamp),
) -> Result<(), StoreError> {
    let query = sql(
        "INSERT INTO meetings (session_id, organisation_id, room_id, started_at_us, agent_id, agent_name,
         state, minutes, minutes_error, notes, notes_count, turns, turns_count, replies_unheard, delivered_to,
         is_told, updated_at_us)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
         ON CONFLICT (session_id) DO UPDATE SET agent_name = excluded.agent_name, state = excluded.state,
         minutes = excluded.minutes, minutes_error = excluded.minutes_error, notes = excluded.notes,
         notes_count = excluded.notes_count, turns = excluded.turns, turns_count = excluded.turns_count,
         replies_unheard = excluded.replies_unheard, delivered_to = excluded.delivered_to,
         is_told = excluded.is_told, updated_at_us = excluded.updated_at_us",
    )
    .bind(reported.session_id.to_string())
    .bind(organisation.to_string())
    .bind(reported.room_id.to_string())
    .bind(started_at.as_micros());
    with_report(query, &reported.report).bind(is_told).bind(now.as_micros()).execute(connection).await?;
    Ok(())
}

/// Binds `$5` to `$15`.
fn with_report(query: Query, report: &MeetingReport) -> Query {
    let count = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
    query
        .bind(report.agent.id.to_string())
        .bind(&report.agent.name)
        .bind(report.state.as_str())
        .bind(report.minutes.as_deref())
        .bind(report.minutes_error.as_deref())
        .bind(json_text(&report.notes))
        .bind(count(report.notes.len()))
        .bind(json_text(&report.turns))
        .bind(count(report.turns.len()))
        .bind(json_text(&report.replies_unheard))
        .bind(json_text(&report.delivered_to))
}

/// The people in a session, each once.
async fn attendees(
    connection: &mut Connection,
    organisation: OrganisationId,
    session: ConferenceSessionId,
) -> Result<Vec<Attendee>, StoreError> {
    let rows = sql("SELECT name, number, role FROM conference_people
         WHERE session_id = $1 AND organisation_id = $2 ORDER BY joined_at_us, member")
    .bind(session.to_string())
    .bind(organisation.to_string())
    .fetch_all(connection)
    .await?;
    let mut attendees: Vec<Attendee> = Vec::new();
    for row in &rows {
        let name: String = row.try_get("name")?;
        let name = if name.is_empty() { row.try_get("number")? } else { name };
        let attendee = Attendee { name, role: word(row, "role", Role::from_name)? };
        if !attendees.contains(&attendee) {
            attendees.push(attendee);
        }
    }
    Ok(attendees)
}

fn meeting(row: &Row) -> Result<Meeting, StoreError> {
    Ok(Meeting {
        session_id: parsed(row, "session_id")?,
        room_id: parsed(row, "room_id")?,
        report: MeetingReport {
            agent: agent(row)?,
            state: word(row, "state", MeetingState::from_name)?,
            minutes: row.try_get("minutes")?,
            minutes_error: row.try_get("minutes_error")?,
            notes: json(row, "notes")?,
            turns: json(row, "turns")?,
            replies_unheard: json(row, "replies_unheard")?,
            delivered_to: json(row, "delivered_to")?,
        },
    })
}

fn summary(row: &Row) -> Result<MeetingSummary, StoreError> {
    Ok(MeetingSummary {
        session_id: parsed(row, "session_id")?,
        agent: agent(row)?,
        state: word(row, "state", MeetingState::from_name)?,
        has_minutes: row.try_get::<i64>("has_minutes")? != 0,
        minutes_error: row.try_get("minutes_error")?,
        notes: number(row, "notes_count")?,
        turns: number(row, "turns_count")?,
    })
}

fn agent(row: &Row) -> Result<MeetingAgent, StoreError> {
    Ok(MeetingAgent { id: parsed(row, "agent_id")?, name: row.try_get("agent_name")? })
}

fn json<T: DeserializeOwned>(row: &Row, column: &'static str) -> Result<T, StoreError> {
    serde_json::from_str(row.try_get(column)?).map_err(|_| StoreError::Corrupt { column })
}

const BY_START: &[SortColumn] = &[SortColumn::Integer("started_at_us"), SortColumn::Text("session_id")];
