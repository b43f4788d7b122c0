//! The outbox: events, written in the same transaction as the change that they report, and read so that none is
//! missed.
//!
//! # Writing
//!
//! Call [`insert_event`] within the transaction that stores the change. Its commit rings the [`Bell`].
//!
//! # Reading
//!
//! On SQLite, a reader that keeps up gets the events of this process from memory ([`EventLog::recent`]). It reads the
//! log to catch up, and regularly for events that other processes stored.
//!
//! ```ignore
//! let mut heard = store.event_bell().listen();
//! let mut cursor = store.events_end().await?; // or the position stored with the completed work
//! loop {
//!     let batch = store.events_after(Scope::Everything, cursor, 256).await?;
//!     // … process batch.events, and store batch.next in the same transaction
//!     cursor = batch.next;
//!     if batch.is_last {
//!         // Other nodes do not ring this bell: check again after a while.
//!         let _ = tokio::time::timeout(LOOK_EVERY, heard.news()).await;
//!     }
//! }
//! ```
//!
//! Ids are UUIDv7 and sort by when they were *created*; transactions end in another order, and several nodes write. A
//! reader that continued after the greatest id it saw would miss an event with a smaller id that became visible
//! later. So every event has a position, and positions become visible in order:
//!
//! - On SQLite one transaction writes at a time. The event gets the next position when it is written.
//! - On PostgreSQL an event is stored without a position. The first reader gives a position to all visible
//!   events without one ([`Store::place_events`]): one reader at a time, holding the lock of the only row of
//!   `event_position`, in a separate transaction. Writers never wait for each other, and an event was visible
//!   before it got its position. A later placing sees the earlier one committed, so a reader that sees a
//!   position sees all smaller ones.
//!
//! A sequence is not sufficient, because its value is taken before the commit. Comparing transaction ids with
//! the oldest running one would save the second write, but would wait for any long transaction on the same
//! server.

use std::sync::Arc;

use serde_json::Value;
use sidetone_model::access::Scope;
use sidetone_model::event::{
    Event, EventBatch, EventKind, EventLog, EventReader, EventViewers, PlacedEvent, Position, RecentEvents,
    StreamedEvent,
};
use sidetone_model::ids::EventId;
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::bell::Bell;
use crate::columns::{instant, parsed, parsed_opt};
use crate::scope::{within, within_organisation};
use crate::sql::{Row, Transaction, sql};
use crate::statement::{Statement, parts};
use crate::{Store, StoreError};

/// Stores an event within `transaction`.
pub(super) async fn insert_event(transaction: &mut Transaction, event: &Event) -> Result<(), StoreError> {
    insert_events(transaction, std::slice::from_ref(event)).await
}

/// Like [`insert_event`], for several events in order.
pub(super) async fn insert_events(transaction: &mut Transaction, events: &[Event]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let mut position = first_position(transaction, events.len()).await?;
    for part in parts(events) {
        let mut placed = Vec::with_capacity(position.map_or(0, |_| part.len()));
        let mut statement = Statement::new(
            "INSERT INTO events (id, organisation_id, team_id, kind, at_us, data, position, viewers) VALUES ",
        );
        statement.rows(part.iter().map(|event| {
            let data = serde_json::to_string(&event.data).unwrap_or_else(|_| "{}".to_owned());
            placed.extend(position.map(|position| streamed(Position(position), event, &data)));
            let row = [
                event.id.to_string().into(),
                event.organisation_id.to_string().into(),
                event.team_id.map(|team| team.to_string()).into(),
                event.kind.as_str().into(),
                event.timestamp.as_micros().into(),
                data.into(),
                position.into(),
                event.viewers.as_ref().map(ToString::to_string).into(),
            ];
            position = position.map(|position| position + 1);
            row
        }));
        statement.query().execute(&mut **transaction).await?;
        transaction.wrote_events(part.len(), placed);
    }
    Ok(())
}

/// The event in the form that its readers send.
fn streamed(position: Position, event: &Event, data: &str) -> StreamedEvent {
    StreamedEvent {
        position,
        id: event.id,
        kind: event.kind,
        organisation_id: event.organisation_id,
        team_id: event.team_id,
        viewers: event.viewers.clone(),
        envelope: event.envelope_of(data),
    }
}

/// The position of the next event, with `count` consecutive ones; only where no other transaction can get one
/// in between.
async fn first_position(transaction: &mut Transaction, count: usize) -> Result<Option<i64>, StoreError> {
    if !transaction.writes_alone() {
        return Ok(None);
    }
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let row = sql("UPDATE event_position SET last = last + $1 WHERE id = 1 RETURNING last")
        .bind(count)
        .fetch_one(&mut **transaction)
        .await?;
    let last: i64 = row.try_get("last")?;
    Ok(Some(last - count + 1))
}

impl Store {
    /// Stores events without any other row.
    ///
    /// # Errors
    /// When the database fails; none of them is stored then.
    pub async fn store_events(&self, events: &[Event]) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        insert_events(&mut transaction, events).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// The bell, rung when this process has made events visible.
    pub fn event_bell(&self) -> &Bell {
        self.bell()
    }

    /// The events that `reader` sees after the position `after`, at most `limit`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events_after(
        &self,
        reader: impl Into<EventReader>,
        after: Position,
        limit: u32,
    ) -> Result<EventBatch, StoreError> {
        let reader = reader.into();
        let more = self.place_events().await?;
        let mut statement = Statement::new("SELECT * FROM events");
        seen_by(&mut statement, &reader);
        statement.bind(" AND position > ", after.0, "");
        statement.bind(" ORDER BY position LIMIT ", i64::from(limit), "");
        let rows = statement.query().fetch_all(self.readers()).await?;
        let is_last = !more && rows.len() < limit as usize;
        let mut batch = EventBatch { events: Vec::with_capacity(rows.len()), next: after, is_last };
        for row in &rows {
            batch.next = Position(row.try_get("position")?);
            match placed(row) {
                Ok(event) => batch.events.push(event),
                // An error here would stop every reader permanently.
                Err(error) => {
                    tracing::warn!(%error, "an event that this version does not understand is left out")
                }
            }
        }
        Ok(batch)
    }

    /// Returns the current end of the log.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events_end(&self) -> Result<Position, StoreError> {
        self.place_events().await?;
        let row = sql("SELECT last FROM event_position WHERE id = 1").fetch_one(self.readers()).await?;
        Ok(Position(row.try_get("last")?))
    }

    /// Assigns positions to visible events without one, a bounded number; returns whether there may be more. On
    /// SQLite every event has one.
    async fn place_events(&self) -> Result<bool, StoreError> {
        if !self.writer().is_postgres() {
            return Ok(false);
        }
        // Usually there is nothing to do; then no lock is taken.
        let unplaced = sql("SELECT id FROM events WHERE position IS NULL LIMIT 1");
        if unplaced.fetch_optional(self.readers()).await?.is_none() {
            return Ok(false);
        }
        let mut transaction = self.writer().begin_write().await?;
        let row = sql("SELECT last FROM event_position WHERE id = 1 FOR UPDATE")
            .fetch_one(&mut *transaction)
            .await?;
        let done = sql("UPDATE events SET position = fresh.position
             FROM (SELECT id, $1 + ROW_NUMBER() OVER (ORDER BY id) AS position
                   FROM (SELECT id FROM events WHERE position IS NULL ORDER BY id LIMIT $2) AS unplaced) AS fresh
             WHERE events.id = fresh.id")
        .bind(row.try_get::<i64>("last")?)
        .bind(PLACED_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        let placed = i64::try_from(done.rows_affected()).unwrap_or(i64::MAX);
        sql("UPDATE event_position SET last = last + $1 WHERE id = 1")
            .bind(placed)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(placed >= PLACED_ROWS_MAX)
    }

    /// Deletes events older than the retention time, a bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_events(&self, now: Timestamp) -> Result<u64, StoreError> {
        let done =
            sql("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id < $1 ORDER BY id LIMIT $2)")
                .bind(EventId::first_at(now.plus_micros(-KEPT_FOR_US)).to_string())
                .bind(PURGE_ROWS_MAX)
                .execute(self.writer())
                .await?;
        Ok(done.rows_affected())
    }

    /// How many rows one [`Store::purge_events`] deletes at most.
    pub const EVENT_PURGE_BATCH: u64 = PURGE_ROWS_MAX.unsigned_abs();
}

impl EventLog for Store {
    fn recent(&self, after: Position, limit: u32) -> Option<RecentEvents> {
        self.bell().recent(after, limit)
    }

    fn after<'a>(
        &'a self,
        reader: &'a EventReader,
        after: Position,
        limit: u32,
    ) -> PortFuture<'a, EventBatch> {
        Box::pin(async move { Ok(self.events_after(reader.clone(), after, limit).await?) })
    }

    fn end(&self) -> PortFuture<'_, Position> {
        Box::pin(async move { Ok(self.events_end().await?) })
    }

    fn position_of<'a>(&'a self, reader: &'a EventReader, id: EventId) -> PortFuture<'a, Option<Position>> {
        Box::pin(async move {
            // A client may know the id of an event that has no position yet.
            self.place_events().await?;
            let mut statement = Statement::new("SELECT position FROM events");
            seen_by(&mut statement, reader);
            statement.bind(" AND id = ", id.to_string(), " AND position IS NOT NULL");
            Ok(self.one(statement.query(), position).await?)
        })
    }

    fn position_before(&self, first: EventId) -> PortFuture<'_, Position> {
        Box::pin(async move {
            // An id is created shortly before its transaction ends, so an event with an earlier id may have a later
            // position. An event whose id is older than the longest transaction has an earlier position.
            let first = first.made_at().map_or(first, |at| EventId::first_at(at.plus_micros(-COMMIT_US)));
            let query = sql(
                "SELECT position FROM events WHERE id < $1 AND position IS NOT NULL ORDER BY id DESC LIMIT 1",
            )
            .bind(first.to_string());
            Ok(self.one(query, position).await?.unwrap_or_default())
        })
    }
}

/// Adds ` WHERE …`: the events that `reader` sees. Further conditions follow with ` AND …`.
fn seen_by(statement: &mut Statement, reader: &EventReader) {
    let Scope::Team { team, .. } = reader.scope else { return within(statement, reader.scope) };
    within_organisation(statement, reader.scope);
    statement.push(" AND (FALSE");
    if let Some(team) = team {
        statement.bind(" OR team_id = ", team.to_string(), "");
        statement.bind(" OR viewers LIKE ", format!("%{}%", EventViewers::team_text(team)), "");
    }
    for own in &reader.extensions {
        statement.bind(" OR viewers LIKE ", format!("%{}%", EventViewers::extension_text(*own)), "");
    }
    statement.push(")");
}

fn position(row: &Row) -> Result<Position, StoreError> {
    Ok(Position(row.try_get("position")?))
}

fn placed(row: &Row) -> Result<PlacedEvent, StoreError> {
    let kind = EventKind::from_name(row.try_get("kind")?).ok_or(StoreError::Corrupt { column: "kind" })?;
    let data = match serde_json::from_str(row.try_get("data")?) {
        Ok(Value::Object(data)) => data,
        _ => return Err(StoreError::Corrupt { column: "data" }),
    };
    let event = Event {
        id: parsed(row, "id")?,
        kind,
        timestamp: instant(row, "at_us")?,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        viewers: parsed_opt(row, "viewers")?.map(Arc::new),
        data,
    };
    Ok(PlacedEvent { position: position(row)?, event })
}

/// Retention time of events.
const KEPT_FOR_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;
/// The longest time between the creation of an id and its commit: no transaction of this program may run longer.
const COMMIT_US: i64 = 60 * 1_000_000;
/// Events placed in one transaction.
const PLACED_ROWS_MAX: i64 = 1000;
const PURGE_ROWS_MAX: i64 = 500;
