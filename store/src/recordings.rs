//! How long recordings are kept, and which of them have expired.

use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{ConferenceSessionId, NodeId, OrganisationId};
use sidetone_model::recording::{RecordingReady, seconds};
use sidetone_model::time::Timestamp;

use crate::columns::{instant, number, parsed, parsed_opt};
use crate::events::insert_event;
use crate::sql::{Row, Transaction, sql};
use crate::statement::Statement;
use crate::{Change, Store, StoreError, WriteTransaction};

/// The organisation and the session of a recording.
pub type RecordingPlace = (OrganisationId, ConferenceSessionId);

impl Store {
    /// Recordings on a node whose retention time is over, or whose organisation is deleted; the oldest first,
    /// at most [`Store::RECORDING_PURGE_BATCH`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn expired_recordings(
        &self,
        node: NodeId,
        now: Timestamp,
    ) -> Result<Vec<RecordingPlace>, StoreError> {
        let rows = sql("SELECT kept.id, kept.organisation_id FROM conference_sessions AS kept
             LEFT JOIN organisations ON organisations.id = kept.organisation_id
             WHERE kept.node_id = $1 AND kept.recording_bytes > 0 AND kept.ended_at_us IS NOT NULL
             AND (organisations.id IS NULL OR (organisations.recording_retention_days > 0
             AND kept.ended_at_us <= $2 - organisations.recording_retention_days * 86400000000))
             ORDER BY kept.ended_at_us, kept.id LIMIT $3")
        .bind(node.to_string())
        .bind(now.as_micros())
        .bind(Self::RECORDING_PURGE_BATCH as i64)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(place).collect()
    }

    /// Marks a session as no longer having a recording.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_recording(&self, (organisation, session): RecordingPlace) -> Result<(), StoreError> {
        sql("UPDATE conference_sessions SET recording_bytes = 0 WHERE id = $1 AND organisation_id = $2")
            .bind(session.to_string())
            .bind(organisation.to_string())
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Returns those of the given files that are, or may be, the recording of a session; the others belong to no
    /// session.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn recordings_of_sessions(
        &self,
        files: &[RecordingPlace],
    ) -> Result<Vec<RecordingPlace>, StoreError> {
        let mut statement = Statement::new(
            "SELECT id, organisation_id FROM conference_sessions
             WHERE (recording_bytes IS NULL OR recording_bytes > 0) AND id IN (VALUES ",
        );
        statement.rows(files.iter().map(|(_, session)| [session.to_string().into()]));
        statement.push(")");
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let rows = statement.query().fetch_all(self.readers()).await?;
        rows.iter().map(place).collect()
    }

    /// Recordings that one batch deletes at most.
    pub const RECORDING_PURGE_BATCH: usize = 50;
}

impl WriteTransaction {
    /// Sets the number of days that the organisation's recordings are kept, as declared.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_recording_retention(
        &mut self,
        organisation: OrganisationId,
        days: u32,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let done = sql("UPDATE organisations SET recording_retention_days = $1, updated_at_us = $2
             WHERE id = $3 AND recording_retention_days <> $1")
        .bind(i64::from(days))
        .bind(now.as_micros())
        .bind(organisation.to_string())
        .execute(&mut *self.transaction)
        .await?;
        Ok(if done.rows_affected() == 0 { Change::Unchanged } else { Change::Changed })
    }
}

/// Writes the event of a recording if its session has ended, it is complete and playable, and its event was not
/// written before.
pub(super) async fn announce_recording(
    transaction: &mut Transaction,
    organisation: OrganisationId,
    session: ConferenceSessionId,
) -> Result<(), StoreError> {
    let row = sql("UPDATE conference_sessions SET is_recording_told = 1
         WHERE id = $1 AND organisation_id = $2 AND ended_at_us IS NOT NULL AND recording_bytes > 0
         AND is_recording_told = 0 RETURNING room, room_id, recording_bytes, recording_channels,
         ended_at_us")
    .bind(session.to_string())
    .bind(organisation.to_string())
    .fetch_optional(&mut **transaction)
    .await?;
    let Some(row) = row else { return Ok(()) };
    let (bytes, channels) = (number(&row, "recording_bytes")?, number(&row, "recording_channels")?);
    let data = RecordingReady {
        session_id: session,
        room_id: parsed_opt(&row, "room_id")?,
        room: row.try_get("room")?,
        bytes,
        channels,
        seconds: seconds(bytes, channels),
    };
    let at = instant(&row, "ended_at_us")?;
    insert_event(transaction, &Event::of(EventKind::RecordingReady, organisation, None, at, &data)).await
}

fn place(row: &Row) -> Result<RecordingPlace, StoreError> {
    Ok((parsed(row, "organisation_id")?, parsed(row, "id")?))
}
