//! Recordings of calls: their rows, their event, and which of them have expired.

use sidetone_model::call_recording::{CallRecording, CallRecordingEnd, CallRecordingReady, seconds};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{CallId, CallRecordingId, ConferenceSessionId, NodeId, OrganisationId};
use sidetone_model::time::Timestamp;

use crate::columns::{instant, instant_opt, number_opt, parsed, parsed_opt};
use crate::events::insert_event;
use crate::recordings::RecordingPlace;
use crate::sql::{Row, sql};
use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    /// Stores a recording that is about to begin on a node.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_call_recording(
        &self,
        node: NodeId,
        recording: &CallRecording,
    ) -> Result<(), StoreError> {
        sql("INSERT INTO call_recordings (id, organisation_id, team_id, call_uuid, node_id, started_at_us)
             VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(recording.id.to_string())
        .bind(recording.organisation_id.to_string())
        .bind(recording.team_id.map(|team| team.to_string()))
        .bind(recording.call_uuid.to_string())
        .bind(node.to_string())
        .bind(recording.started_at.as_micros())
        .execute(self.writer())
        .await?;
        Ok(())
    }

    /// Stores the call that is linked with the call of a recording, and whose party is in the recording too.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn link_call_recording(
        &self,
        organisation: OrganisationId,
        id: CallRecordingId,
        linked: CallId,
    ) -> Result<(), StoreError> {
        sql("UPDATE call_recordings SET linked_call_uuid = $1 WHERE id = $2 AND organisation_id = $3")
            .bind(linked.to_string())
            .bind(id.to_string())
            .bind(organisation.to_string())
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Deletes a recording that was not started.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_call_recording(
        &self,
        organisation: OrganisationId,
        id: CallRecordingId,
    ) -> Result<(), StoreError> {
        sql("DELETE FROM call_recordings WHERE id = $1 AND organisation_id = $2 AND bytes IS NULL")
            .bind(id.to_string())
            .bind(organisation.to_string())
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Stores the end of a recording, once, with its event if it can be played.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn complete_call_recording(&self, end: &CallRecordingEnd) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let row = sql("UPDATE call_recordings SET bytes = $1, error = $2, ended_at_us = $3
             WHERE id = $4 AND organisation_id = $5 AND bytes IS NULL 
             RETURNING call_uuid, linked_call_uuid, team_id")
        .bind(i64::try_from(end.bytes).unwrap_or(i64::MAX))
        .bind(end.error.as_deref())
        .bind(end.at.as_micros())
        .bind(end.id.to_string())
        .bind(end.organisation_id.to_string())
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(row) = row.filter(|_| end.bytes > 0) {
            let data = CallRecordingReady {
                recording_id: end.id,
                call_uuid: parsed(&row, "call_uuid")?,
                linked_call_uuid: parsed_opt(&row, "linked_call_uuid")?,
                bytes: end.bytes,
                seconds: seconds(end.bytes),
                error: end.error.clone(),
            };
            let team = parsed_opt(&row, "team_id")?;
            let event = Event::of(EventKind::RecordingReady, end.organisation_id, team, end.at, &data);
            insert_event(&mut transaction, &event).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Returns the recordings of a call, including those started for a call linked with it, of any organisation; the
    /// oldest first, at most 500.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn recordings_of_call(&self, call: CallId) -> Result<Vec<CallRecording>, StoreError> {
        let rows =
            sql("SELECT id, organisation_id, team_id, call_uuid, linked_call_uuid, started_at_us, ended_at_us, bytes,
             error FROM call_recordings WHERE call_uuid = $1 OR linked_call_uuid = $1 ORDER BY started_at_us, id LIMIT 500")
            .bind(call.to_string())
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(recording).collect()
    }

    /// Returns recordings of calls on a node that were started and are not marked complete; a bounded number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unfinished_call_recordings(&self, node: NodeId) -> Result<Vec<RecordingPlace>, StoreError> {
        let rows = sql("SELECT id, organisation_id FROM call_recordings
             WHERE node_id = $1 AND bytes IS NULL ORDER BY started_at_us DESC, id LIMIT 1000")
        .bind(node.to_string())
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(place).collect()
    }

    /// Returns recordings of calls on a node whose retention time is over, or whose organisation is deleted; the oldest
    /// first, at most [`Store::RECORDING_PURGE_BATCH`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn expired_call_recordings(
        &self,
        node: NodeId,
        now: Timestamp,
    ) -> Result<Vec<RecordingPlace>, StoreError> {
        let rows = sql("SELECT kept.id, kept.organisation_id FROM call_recordings AS kept
             LEFT JOIN organisations ON organisations.id = kept.organisation_id
             WHERE kept.node_id = $1 AND kept.bytes > 0 AND (organisations.id IS NULL
             OR (organisations.recording_retention_days > 0
             AND kept.ended_at_us <= $2 - organisations.recording_retention_days * 86400000000))
             ORDER BY kept.ended_at_us, kept.id LIMIT $3")
        .bind(node.to_string())
        .bind(now.as_micros())
        .bind(Self::RECORDING_PURGE_BATCH as i64)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(place).collect()
    }

    /// Returns the node that has the file of a call's recording, if the recording exists.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn node_of_call_recording(
        &self,
        (organisation, id): RecordingPlace,
    ) -> Result<Option<NodeId>, StoreError> {
        let row = sql("SELECT node_id FROM call_recordings WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(organisation.to_string())
            .fetch_optional(self.readers())
            .await?;
        row.map(|row| parsed(&row, "node_id")).transpose()
    }

    /// Marks the recording of a call as deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_call_recording(&self, (organisation, id): RecordingPlace) -> Result<(), StoreError> {
        sql("UPDATE call_recordings SET bytes = 0 WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(organisation.to_string())
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Returns those of the given files that are, or may become, recordings of calls.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn recordings_of_calls(
        &self,
        files: &[RecordingPlace],
    ) -> Result<Vec<RecordingPlace>, StoreError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = Statement::new(
            "SELECT id, organisation_id FROM call_recordings
             WHERE (bytes IS NULL OR bytes > 0) AND id IN (VALUES ",
        );
        statement.rows(files.iter().map(|(_, id)| [id.to_string().into()]));
        statement.push(")");
        let rows = statement.query().fetch_all(self.readers()).await?;
        rows.iter().map(place).collect()
    }
}

fn recording(row: &Row) -> Result<CallRecording, StoreError> {
    let bytes: u64 = number_opt(row, "bytes")?.unwrap_or(0);
    Ok(CallRecording {
        id: parsed(row, "id")?,
        call_uuid: parsed(row, "call_uuid")?,
        linked_call_uuid: parsed_opt(row, "linked_call_uuid")?,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        started_at: instant(row, "started_at_us")?,
        ended_at: instant_opt(row, "ended_at_us")?,
        bytes,
        seconds: seconds(bytes),
        error: row.try_get("error")?,
    })
}

/// The file of a recording has the recording's id as its name, like that of a session.
fn place(row: &Row) -> Result<RecordingPlace, StoreError> {
    let id: CallRecordingId = parsed(row, "id")?;
    Ok((parsed(row, "organisation_id")?, ConferenceSessionId(id.0)))
}
