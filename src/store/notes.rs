//! Notes: stored in groups before they are sent, and what phones and people say to them, each with its event.

use serde_json::{Map, Value};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{CallId, NodeId, NoteId, OrganisationId, TeamId};
use sidetone_model::note::NoteStatus;
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::notes::rules::{Outcome, tapped};
use crate::notes::{Change, Committed, NewNote, NoteLog, Tap, Tapper, Written};
use crate::store::columns::{instant, number, parsed, parsed_opt, word};
use crate::store::events::insert_event;
use crate::store::sql::{Connection, Row, Transaction, sql};
use crate::store::{Store, StoreError, unit};

impl NoteLog for Store {
    fn write_changes<'a>(&'a self, changes: &'a [Change]) -> PortFuture<'a, Vec<Written>> {
        Box::pin(async move { Ok(self.write_notes(changes).await?) })
    }

    fn is_within_unit(&self) -> bool {
        unit::is_within()
    }

    fn write_within<'a>(&'a self, note: &'a NewNote, committed: Committed) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let mut transaction = self.writer().begin_write().await.map_err(StoreError::from)?;
            insert_note(&mut transaction, note).await?;
            transaction.when_committed(committed);
            transaction.commit().await.map_err(StoreError::from)?;
            Ok(())
        })
    }

    fn owner_of_call(&self, call: CallId) -> PortFuture<'_, Option<(OrganisationId, Option<TeamId>)>> {
        Box::pin(async move {
            let query = sql("SELECT organisation_id, team_id FROM notes WHERE call_uuid = $1 LIMIT 1")
                .bind(call.to_string());
            Ok(self
                .one(query, |row| Ok((parsed(row, "organisation_id")?, parsed_opt(row, "team_id")?)))
                .await?)
        })
    }
}

impl Store {
    async fn write_notes(&self, changes: &[Change]) -> Result<Vec<Written>, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let mut written = Vec::with_capacity(changes.len());
        for change in changes {
            written.push(match change {
                Change::Acked(tap) => store_tap(&mut transaction, tap).await?,
                Change::Answered { note, place, outcome } => {
                    store_outcome(&mut transaction, *note, *place, outcome).await?;
                    Written::Done
                }
                Change::Sent(note) => {
                    insert_note(&mut transaction, note).await?;
                    Written::Done
                }
            });
        }
        transaction.commit().await?;
        Ok(written)
    }

    /// Gives up on the receipts that nobody will hear an answer for: sent before `before`, by `node` or by any. A
    /// bounded number; says how many.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn fail_pending_notes(
        &self,
        node: Option<NodeId>,
        before: Timestamp,
        why: &str,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let rows = sql("SELECT note_id, place FROM note_receipts
             WHERE status = 'pending' AND sent_at_us < $1 AND ($2 = '' OR node_id = $2)
             ORDER BY sent_at_us LIMIT $3")
        .bind(before.as_micros())
        .bind(node.map(|node| node.to_string()).unwrap_or_default())
        .bind(BATCH_ROWS_MAX)
        .fetch_all(&mut *transaction)
        .await?;
        for row in &rows {
            let outcome =
                Outcome { status: NoteStatus::Failed, sip_status: None, error: Some(why.to_owned()) };
            store_outcome(&mut transaction, parsed(row, "note_id")?, number(row, "place")?, &outcome).await?;
        }
        transaction.commit().await?;
        Ok(rows.len() as u64)
    }

    /// Deletes notes that were sent longer ago than they are kept, a bounded number; says how many.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn purge_notes(&self, now: Timestamp) -> Result<u64, StoreError> {
        let before = now.plus_micros(-KEPT_FOR_US).as_micros();
        let mut transaction = self.writer().begin_write().await?;
        sql("DELETE FROM note_receipts WHERE note_id IN
             (SELECT id FROM notes WHERE sent_at_us < $1 ORDER BY sent_at_us, id LIMIT $2)")
        .bind(before)
        .bind(BATCH_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        let done = sql("DELETE FROM notes WHERE id IN
             (SELECT id FROM notes WHERE sent_at_us < $1 ORDER BY sent_at_us, id LIMIT $2)")
        .bind(before)
        .bind(BATCH_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }

    /// How many rows one [`Store::purge_notes`] or [`Store::fail_pending_notes`] takes at most.
    pub const NOTE_BATCH: u64 = BATCH_ROWS_MAX.unsigned_abs();
}

/// Stores a note, its receipts and, when it is about to be sent, its event.
async fn insert_note(transaction: &mut Transaction, note: &NewNote) -> Result<(), StoreError> {
    sql("INSERT INTO notes (id, organisation_id, team_id, channel, call_uuid, extension_id, title, level, ack, source,
         status, error, acked_count, sent_at_us, payload)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14)")
    .bind(note.id.to_string())
    .bind(note.organisation_id.to_string())
    .bind(note.team_id.map(|team| team.to_string()))
    .bind(note.channel.as_str())
    .bind(note.call_uuid.map(|call| call.to_string()))
    .bind(note.extension_id.map(|extension| extension.to_string()))
    .bind(&note.title)
    .bind(note.level.as_str())
    .bind(note.ack)
    .bind(note.source.as_str())
    .bind(note.status().as_str())
    .bind(note.error.as_deref())
    .bind(note.sent_at.as_micros())
    .bind(String::from_utf8_lossy(&note.payload).into_owned())
    .execute(&mut **transaction)
    .await?;
    for (place, receipt) in (0_i64..).zip(&note.receipts) {
        sql("INSERT INTO note_receipts (note_id, place, node_id, member, name, device, sent_at_us, status)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
        .bind(note.id.to_string())
        .bind(place)
        .bind(note.node.to_string())
        .bind(&receipt.member)
        .bind(&receipt.name)
        .bind(&receipt.device)
        .bind(note.sent_at.as_micros())
        .bind(note.status().as_str())
        .execute(&mut **transaction)
        .await?;
    }
    if note.status() == NoteStatus::Failed {
        return Ok(()); // Nothing was sent.
    }
    let (organisation, team, data) = (note.organisation_id, note.team_id, note.sent_data());
    insert_event(transaction, &Event::new(EventKind::CallInfoSent, organisation, team, note.sent_at, data))
        .await
}

/// Notes what came of sending a note to one phone. What is known better already stays: a tap, or an end of the waiting.
async fn store_outcome(
    transaction: &mut Transaction,
    note: NoteId,
    place: usize,
    outcome: &Outcome,
) -> Result<(), StoreError> {
    sql("UPDATE note_receipts SET sip_status = $1, status = CASE WHEN status = 'pending' THEN $2 ELSE status END,
         error = CASE WHEN status = 'pending' THEN $3 ELSE error END WHERE note_id = $4 AND place = $5")
    .bind(outcome.sip_status.map(i64::from))
    .bind(outcome.status.as_str())
    .bind(outcome.error.as_deref())
    .bind(note.to_string())
    .bind(i64::try_from(place).unwrap_or(i64::MAX))
    .execute(&mut **transaction)
    .await?;
    judge(transaction, note).await
}

/// A note that somebody says was acknowledged, with the one receipt that this is about.
struct Asked {
    organisation: OrganisationId,
    team: Option<TeamId>,
    title: String,
    sent_at: Timestamp,
    call: Option<CallId>,
    place: usize,
}

/// Takes a tap when it is one: of a phone that was sent the note, which asked for it, the first of that phone.
async fn store_tap(transaction: &mut Transaction, tap: &Tap) -> Result<Written, StoreError> {
    let Some(asked) = find_asked(transaction, tap).await? else { return Ok(Written::Refused) };
    let note = tap.acknowledgement.id;
    let acked_at = tap.acknowledgement.acked_at(asked.sent_at, tap.now);
    let done = sql("UPDATE note_receipts SET acked_at_us = $1, status = 'acked', error = NULL
         WHERE note_id = $2 AND place = $3 AND acked_at_us IS NULL")
    .bind(acked_at.as_micros())
    .bind(note.to_string())
    .bind(i64::try_from(asked.place).unwrap_or(i64::MAX))
    .execute(&mut **transaction)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(Written::Refused); // Another node was faster.
    }
    judge(transaction, note).await?;
    let mut data = Map::new();
    let mut put = |name: &str, value: String| data.insert(name.to_owned(), Value::from(value));
    put("id", note.to_string());
    put("title", asked.title);
    put(
        "leg",
        match &tap.by {
            Tapper::Device { address, .. } => address.clone(),
            Tapper::Leg { leg, .. } => leg.to_string(),
        },
    );
    put("acked_at", acked_at.to_string());
    if let Some(call) = asked.call {
        put("call_uuid", call.to_string());
    }
    let event = Event::new(EventKind::CallInfoAcked, asked.organisation, asked.team, tap.now, data);
    insert_event(transaction, &event).await?;
    Ok(Written::Done)
}

async fn find_asked(connection: &mut Connection, tap: &Tap) -> Result<Option<Asked>, StoreError> {
    let (organisation, channel, member) = match &tap.by {
        Tapper::Device { organisation, extension, .. } => (organisation, "message", extension.to_string()),
        Tapper::Leg { organisation, leg } => (organisation, "info", leg.to_string()),
    };
    let rows =
        sql("SELECT notes.organisation_id, notes.team_id, notes.title, notes.sent_at_us, notes.call_uuid,
         note_receipts.place, note_receipts.device, note_receipts.acked_at_us
         FROM notes JOIN note_receipts ON note_receipts.note_id = notes.id
         WHERE notes.id = $1 AND notes.organisation_id = $2 AND notes.channel = $3 AND notes.ack = 1
         AND note_receipts.member = $4 ORDER BY note_receipts.place")
        .bind(tap.acknowledgement.id.to_string())
        .bind(organisation.to_string())
        .bind(channel)
        .bind(member)
        .fetch_all(connection)
        .await?;
    let receipts = rows
        .iter()
        .map(|row| Ok((row.try_get::<&str>("device")?, row.try_get::<Option<i64>>("acked_at_us")?.is_some())))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let device = match &tap.by {
        Tapper::Device { device, .. } => device.as_deref(),
        Tapper::Leg { .. } => Some(""),
    };
    let row = tapped(&receipts, device).and_then(|at| rows.get(at));
    row.map(asked).transpose()
}

fn asked(row: &Row) -> Result<Asked, StoreError> {
    Ok(Asked {
        organisation: parsed(row, "organisation_id")?,
        team: parsed_opt(row, "team_id")?,
        title: row.try_get("title")?,
        sent_at: instant(row, "sent_at_us")?,
        call: parsed_opt(row, "call_uuid")?,
        place: number(row, "place")?,
    })
}

/// Says of a note as a whole what its receipts come to.
async fn judge(connection: &mut Connection, note: NoteId) -> Result<(), StoreError> {
    let rows = sql("SELECT status, error, acked_at_us FROM note_receipts WHERE note_id = $1 ORDER BY place")
        .bind(note.to_string())
        .fetch_all(&mut *connection)
        .await?;
    let mut acked: i64 = 0;
    let mut receipts = Vec::with_capacity(rows.len());
    for row in &rows {
        acked += i64::from(row.try_get::<Option<i64>>("acked_at_us")?.is_some());
        receipts.push((word(row, "status", NoteStatus::from_name)?, row.try_get::<Option<&str>>("error")?));
    }
    let (status, error) = NoteStatus::of(receipts);
    sql("UPDATE notes SET status = $1, error = $2, acked_count = $3 WHERE id = $4")
        .bind(status.as_str())
        .bind(error)
        .bind(acked)
        .bind(note.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

const BATCH_ROWS_MAX: i64 = 500;
/// The public document: notes are kept for 30 days.
const KEPT_FOR_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;
