//! Queues deliveries of webhooks: those of every event, and single ones on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sidetone_model::access::Scope;
use sidetone_model::event::{EventLog, EventPattern, Position, StreamedEvent};
use sidetone_model::ids::{EventId, OrganisationId, WebhookId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::sql::{Connection, sql};
use crate::statement::Statement;
use crate::webhook_place::Place;
use crate::webhooks::rows::patterns;
use crate::{Store, StoreError};

/// The result of one reading of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedOut {
    /// Deliveries that were queued.
    pub queued: u64,
    /// Whether the end of the log was reached.
    pub is_last: bool,
}

/// The next events, from memory or from the log.
struct Next {
    events: Vec<Arc<StreamedEvent>>,
    next: Position,
    is_last: bool,
}

impl Store {
    /// Queues the next events of the log for the webhooks that subscribe to them, a bounded number.
    ///
    /// The deliveries and the new position in the log are one transaction: after a crash at any time, no event is
    /// left out and none is queued twice. If another node was faster, there is nothing to do. If no webhook
    /// subscribes to the events, the position is stored only at intervals.
    ///
    /// # Errors
    /// When the database fails; nothing is queued then.
    pub async fn hand_out_events(&self, now: Timestamp) -> Result<HandedOut, StoreError> {
        let place = self.handed_out_place(now).await?;
        let Next { events, next, is_last } = self.next_events(place.reached).await?;
        let wanted = self.wanting(&events).await?;
        let wanted: Vec<Vec<Queued>> = wanted
            .iter()
            .map(|(webhook, wanting)| wanting.of(*webhook, &events))
            .filter(|deliveries| !deliveries.is_empty())
            .collect();
        if next == place.stored {
            return Ok(HandedOut { queued: 0, is_last });
        }
        if wanted.is_empty() && !place.is_due(next, now) {
            self.hand_out().set_place(Some(Place { reached: next, ..place }));
            return Ok(HandedOut { queued: 0, is_last });
        }
        // The position is unknown until the commit.
        self.hand_out().set_place(None);
        let mut transaction = self.writer().begin_write().await?;
        let moved = sql("UPDATE webhook_cursor SET position = $1 WHERE id = 1 AND position = $2")
            .bind(next.0)
            .bind(place.stored.0)
            .execute(&mut *transaction)
            .await?;
        if moved.rows_affected() == 0 {
            return Ok(HandedOut { queued: 0, is_last: false });
        }
        let mut queued = 0;
        for deliveries in wanted {
            let Some(first) = deliveries.first() else { continue };
            // Disabled after it was read: its events are not queued.
            if !due_at(&mut transaction, first.webhook, now).await? {
                continue;
            }
            for delivery in deliveries {
                queued += u64::from(queue(&mut transaction, &delivery, now).await?);
            }
        }
        transaction.commit().await?;
        self.hand_out().set_place(Some(Place { stored: next, stored_at: now, reached: next }));
        Ok(HandedOut { queued, is_last })
    }

    /// The position that this process has reached.
    async fn handed_out_place(&self, now: Timestamp) -> Result<Place, StoreError> {
        if let Some(place) = self.hand_out().place() {
            return Ok(place);
        }
        let row = sql("SELECT position FROM webhook_cursor WHERE id = 1").fetch_one(self.readers()).await?;
        let stored = Position(row.try_get("position")?);
        Ok(Place { stored, stored_at: now, reached: stored })
    }

    async fn next_events(&self, from: Position) -> Result<Next, StoreError> {
        if let Some(recent) = self.recent(from, HANDED_OUT_MAX) {
            return Ok(Next { events: recent.events, next: recent.next, is_last: recent.is_last });
        }
        let batch = self.events_after(Scope::Everything, from, HANDED_OUT_MAX).await?;
        let events = batch.events.iter().map(|placed| Arc::new(StreamedEvent::from(placed))).collect();
        Ok(Next { events, next: batch.next, is_last: batch.is_last })
    }

    /// The webhooks of the events' organisations, in the order of their ids. Read after the events, so that every
    /// webhook created before them is included.
    async fn wanting(
        &self,
        events: &[Arc<StreamedEvent>],
    ) -> Result<BTreeMap<WebhookId, Wanting>, StoreError> {
        let mut webhooks = BTreeMap::new();
        if events.is_empty() {
            return Ok(webhooks);
        }
        let organisations: BTreeSet<OrganisationId> =
            events.iter().map(|event| event.organisation_id).collect();
        let mut statement = Statement::new(
            "SELECT id, organisation_id, events FROM webhooks WHERE active = 1 AND organisation_id IN (",
        );
        for (index, organisation) in organisations.into_iter().enumerate() {
            statement.bind(if index == 0 { "" } else { ", " }, organisation.to_string(), "");
        }
        statement.push(")");
        for row in &statement.query().fetch_all(self.readers()).await? {
            let organisation = parsed(row, "organisation_id")?;
            webhooks.insert(parsed(row, "id")?, Wanting { organisation, patterns: patterns(row)? });
        }
        Ok(webhooks)
    }
}

/// The events that a webhook subscribes to.
struct Wanting {
    organisation: OrganisationId,
    patterns: Vec<EventPattern>,
}

impl Wanting {
    /// The deliveries to `webhook` for the events.
    fn of<'a>(&self, webhook: WebhookId, events: &'a [Arc<StreamedEvent>]) -> Vec<Queued<'a>> {
        let wanted = events.iter().filter(|event| {
            event.organisation_id == self.organisation
                && self.patterns.iter().any(|pattern| pattern.matches(event.kind))
        });
        wanted
            .map(|event| Queued {
                webhook,
                organisation: self.organisation,
                event: event.id,
                kind: event.kind.as_str(),
                body: &event.envelope,
            })
            .collect()
    }
}

/// A delivery to be queued.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queued<'a> {
    pub(super) webhook: WebhookId,
    pub(super) organisation: OrganisationId,
    pub(super) event: EventId,
    pub(super) kind: &'a str,
    /// The body, byte for byte.
    pub(super) body: &'a str,
}

/// Queues a delivery, once for an event and a webhook even if called again; returns whether it was new.
pub(super) async fn queue(
    connection: &mut Connection,
    queued: &Queued<'_>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sql("INSERT INTO webhook_deliveries (id, webhook_id, organisation_id, event_id, kind, status,
         next_at_us, round_at_us, round_attempts, attempts, body, created_at_us, updated_at_us)
         VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6, 0, 0, $7, $6, $6)
         ON CONFLICT (webhook_id, event_id) DO NOTHING")
    .bind(Uuid::now_v7().to_string())
    .bind(queued.webhook.to_string())
    .bind(queued.organisation.to_string())
    .bind(queued.event.to_string())
    .bind(queued.kind)
    .bind(now.as_micros())
    .bind(queued.body)
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Schedules an enabled webhook for `at` at the latest; returns whether it is enabled. Its row stays locked until the
/// transaction ends.
pub(super) async fn due_at(
    connection: &mut Connection,
    webhook: WebhookId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let done = sql("UPDATE webhooks SET next_at_us = CASE WHEN next_at_us <= $1 THEN next_at_us ELSE $1 END
         WHERE id = $2 AND active = 1")
    .bind(at.as_micros())
    .bind(webhook.to_string())
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Events that one transaction processes.
const HANDED_OUT_MAX: u32 = 256;
