//! Notes: stored in groups before they are sent, with the responses of phones and users, each with its event.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{CallId, NodeId, NoteId, OrganisationId, TeamId};
use sidetone_model::note::rules::{Outcome, tapped};
use sidetone_model::note::{
    Change, Committed, NewNote, NewReceipt, NoteLog, NoteStatus, Tap, Tapper, Written,
};
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::columns::{instant, number, parsed, parsed_opt, word};
use crate::events::insert_events;
use crate::sql::{Connection, Row, Transaction, sql};
use crate::statement::{Statement, parts};
use crate::{Store, StoreError, transaction};

impl NoteLog for Store {
    fn write_changes<'a>(&'a self, changes: &'a [Change]) -> PortFuture<'a, Vec<Written>> {
        Box::pin(async move { Ok(self.write_notes(changes).await?) })
    }

    fn is_within_unit(&self) -> bool {
        transaction::is_within()
    }

    fn write_within<'a>(&'a self, note: &'a NewNote, committed: Committed) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let mut transaction = self.writer().begin_write().await.map_err(StoreError::from)?;
            let events = insert_notes(&mut transaction, &[note]).await?;
            insert_events(&mut transaction, &events).await?;
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
    /// Stores changes together: one statement for many of a kind, because a thousand notes may arrive each second.
    async fn write_notes(&self, changes: &[Change]) -> Result<Vec<Written>, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let mut written = vec![Written::Done; changes.len()];
        let mut sent = Vec::new();
        let mut outcomes = BTreeMap::new();
        for change in changes {
            match change {
                Change::Acked(_) => {}
                Change::Answered { note, place, outcome } => {
                    outcomes.entry((*note, *place)).or_insert(outcome);
                }
                Change::Sent(note) => sent.push(note.as_ref()),
            }
        }
        let mut events = insert_notes(&mut transaction, &sent).await?;
        let mut judged = store_outcomes(&mut transaction, &outcomes).await?;
        for (change, written) in changes.iter().zip(&mut written) {
            let Change::Acked(tap) = change else { continue };
            match store_tap(&mut transaction, tap).await? {
                Some(event) => {
                    judged.insert(tap.acknowledgement.id);
                    events.push(event);
                }
                None => *written = Written::Refused,
            }
        }
        judge(&mut transaction, &judged).await?;
        insert_events(&mut transaction, &events).await?;
        transaction.commit().await?;
        Ok(written)
    }

    /// Fails the receipts for which no response can arrive any more: sent before `before`, by `node` or by any node.
    /// A bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
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
        let outcome = Outcome { status: NoteStatus::Failed, sip_status: None, error: Some(why.to_owned()) };
        let mut outcomes = BTreeMap::new();
        for row in &rows {
            outcomes.insert((parsed(row, "note_id")?, number(row, "place")?), &outcome);
        }
        let judged = store_outcomes(&mut transaction, &outcomes).await?;
        judge(&mut transaction, &judged).await?;
        transaction.commit().await?;
        Ok(rows.len() as u64)
    }

    /// Deletes notes older than the retention time, a bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
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

/// Stores notes, their receipts, and the events of the notes that are about to be sent.
async fn insert_notes(transaction: &mut Transaction, notes: &[&NewNote]) -> Result<Vec<Event>, StoreError> {
    for part in parts(notes) {
        let mut statement = Statement::new(
            "INSERT INTO notes (id, organisation_id, team_id, channel, call_uuid, extension_id, title, level, ack,
             source, status, error, acked_count, sent_at_us, payload, room_id) VALUES ",
        );
        statement.rows(part.iter().map(|note| {
            [
                note.id.to_string().into(),
                note.organisation_id.to_string().into(),
                note.team_id.map(|team| team.to_string()).into(),
                note.channel.as_str().into(),
                note.call_uuid.map(|call| call.to_string()).into(),
                note.extension_id.map(|extension| extension.to_string()).into(),
                (&note.title).into(),
                note.level.as_str().into(),
                note.ack.into(),
                note.source.as_str().into(),
                note.status().as_str().into(),
                note.error.as_deref().into(),
                0.into(),
                note.sent_at.as_micros().into(),
                String::from_utf8_lossy(&note.payload).into_owned().into(),
                note.room.as_ref().and_then(|from| from.room.room_id()).map(|room| room.to_string()).into(),
            ]
        }));
        statement.query().execute(&mut **transaction).await?;
    }
    let receipts: Vec<(&NewNote, i64, &NewReceipt)> = notes
        .iter()
        .flat_map(|note| (0..).zip(&note.receipts).map(|(place, receipt)| (*note, place, receipt)))
        .collect();
    for part in parts(&receipts) {
        let mut statement = Statement::new(
            "INSERT INTO note_receipts (note_id, place, node_id, member, name, device, sent_at_us, status) VALUES ",
        );
        statement.rows(part.iter().map(|(note, place, receipt)| {
            [
                note.id.to_string().into(),
                (*place).into(),
                note.node.to_string().into(),
                (&receipt.member).into(),
                (&receipt.name).into(),
                (&receipt.device).into(),
                note.sent_at.as_micros().into(),
                note.status().as_str().into(),
            ]
        }));
        statement.query().execute(&mut **transaction).await?;
    }
    let about_to_be_sent = notes.iter().filter(|note| note.status() != NoteStatus::Failed);
    Ok(about_to_be_sent
        .map(|note| {
            let (organisation, team) = (note.organisation_id, note.team_id);
            Event::new(EventKind::CallInfoSent, organisation, team, note.sent_at, note.sent_data())
        })
        .collect())
}

/// Stores the results of sending notes to phones, by the note and the phone's index. Returns the notes whose state
/// must be computed again. A final state stays: an acknowledgement, or the end of the wait for one.
async fn store_outcomes(
    transaction: &mut Transaction,
    outcomes: &BTreeMap<(NoteId, usize), &Outcome>,
) -> Result<BTreeSet<NoteId>, StoreError> {
    let all: Vec<(NoteId, usize, &Outcome)> =
        outcomes.iter().map(|((note, place), outcome)| (*note, *place, *outcome)).collect();
    for part in parts(&all) {
        let mut statement = Statement::new(
            "UPDATE note_receipts SET sip_status = answers.column3,
             status = CASE WHEN note_receipts.status = 'pending' THEN answers.column4 ELSE note_receipts.status END,
             error = CASE WHEN note_receipts.status = 'pending' THEN answers.column5 ELSE note_receipts.error END
             FROM (VALUES ",
        );
        statement.rows(part.iter().map(|(note, place, outcome)| {
            [
                note.to_string().into(),
                i64::try_from(*place).unwrap_or(i64::MAX).into(),
                outcome.sip_status.map(i64::from).into(),
                outcome.status.as_str().into(),
                outcome.error.as_deref().into(),
            ]
        }));
        statement.push(
            ") AS answers WHERE note_receipts.note_id = answers.column1 AND note_receipts.place = answers.column2",
        );
        statement.query().execute(&mut **transaction).await?;
    }
    Ok(all.into_iter().map(|(note, ..)| note).collect())
}

/// A note that a client reports as acknowledged, with the one receipt that this concerns.
struct OpenReceipt {
    organisation: OrganisationId,
    team: Option<TeamId>,
    title: String,
    sent_at: Timestamp,
    call: Option<CallId>,
    place: usize,
}

/// Stores an acknowledgement if it is valid: the phone was sent the note, the note requests one, and it is the first
/// from that phone. Returns its event for the caller to store; the state of the note must be computed again.
async fn store_tap(transaction: &mut Transaction, tap: &Tap) -> Result<Option<Event>, StoreError> {
    let Some(receipt) = find_open_receipt(transaction, tap).await? else { return Ok(None) };
    let note = tap.acknowledgement.id;
    let acked_at = tap.acknowledgement.acked_at(receipt.sent_at, tap.now);
    let done = sql("UPDATE note_receipts SET acked_at_us = $1, status = 'acked', error = NULL
         WHERE note_id = $2 AND place = $3 AND acked_at_us IS NULL")
    .bind(acked_at.as_micros())
    .bind(note.to_string())
    .bind(i64::try_from(receipt.place).unwrap_or(i64::MAX))
    .execute(&mut **transaction)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(None); // Another node was faster.
    }
    let mut data = Map::new();
    let mut put = |name: &str, value: String| data.insert(name.to_owned(), Value::from(value));
    put("id", note.to_string());
    put("title", receipt.title);
    put(
        "leg",
        match &tap.by {
            Tapper::Device { address, .. } => address.clone(),
            Tapper::Leg { leg, .. } => leg.to_string(),
        },
    );
    if let Tapper::Device { device: Some(device), .. } = &tap.by {
        put("device", device.clone());
    }
    put("acked_at", acked_at.to_string());
    if let Some(call) = receipt.call {
        put("call_uuid", call.to_string());
    }
    Ok(Some(Event::new(EventKind::CallInfoAcked, receipt.organisation, receipt.team, tap.now, data)))
}

async fn find_open_receipt(
    connection: &mut Connection,
    tap: &Tap,
) -> Result<Option<OpenReceipt>, StoreError> {
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
    row.map(open_receipt).transpose()
}

fn open_receipt(row: &Row) -> Result<OpenReceipt, StoreError> {
    Ok(OpenReceipt {
        organisation: parsed(row, "organisation_id")?,
        team: parsed_opt(row, "team_id")?,
        title: row.try_get("title")?,
        sent_at: instant(row, "sent_at_us")?,
        call: parsed_opt(row, "call_uuid")?,
        place: number(row, "place")?,
    })
}

/// Computes the state of each note from all its receipts.
async fn judge(connection: &mut Connection, notes: &BTreeSet<NoteId>) -> Result<(), StoreError> {
    let notes: Vec<NoteId> = notes.iter().copied().collect();
    for part in parts(&notes) {
        let mut statement = Statement::new(
            "SELECT note_id, status, error, acked_at_us FROM note_receipts WHERE note_id IN (VALUES ",
        );
        statement.rows(part.iter().map(|note| [note.to_string().into()]));
        statement.push(") ORDER BY note_id, place");
        let rows = statement.query().fetch_all(&mut *connection).await?;
        let mut receipts: BTreeMap<NoteId, Receipts<'_>> = BTreeMap::new();
        for row in &rows {
            let of_note = receipts.entry(parsed(row, "note_id")?).or_default();
            of_note.acked += i64::from(row.try_get::<Option<i64>>("acked_at_us")?.is_some());
            let status = word(row, "status", NoteStatus::from_name)?;
            of_note.answers.push((status, row.try_get::<Option<&str>>("error")?));
        }
        let mut statement = Statement::new(
            "UPDATE notes SET status = whole.column2, error = whole.column3, acked_count = whole.column4
             FROM (VALUES ",
        );
        statement.rows(part.iter().map(|note| {
            let Receipts { acked, answers } = receipts.remove(note).unwrap_or_default();
            let (status, error) = NoteStatus::of(answers);
            [note.to_string().into(), status.as_str().into(), error.into(), acked.into()]
        }));
        statement.push(") AS whole WHERE notes.id = whole.column1");
        statement.query().execute(&mut *connection).await?;
    }
    Ok(())
}

/// The receipts of a note's phones, in order.
#[derive(Default)]
struct Receipts<'a> {
    acked: i64,
    answers: Vec<(NoteStatus, Option<&'a str>)>,
}

const BATCH_ROWS_MAX: i64 = 500;
/// As documented in the API: notes are kept for 30 days.
const KEPT_FOR_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;
