//! Puts deliveries into the queues of webhooks: those of every event, and single ones on request.

use std::collections::{BTreeMap, BTreeSet};

use sidetone_model::access::Scope;
use sidetone_model::event::{Event, EventPattern, PlacedEvent, Position};
use sidetone_model::ids::{EventId, OrganisationId, WebhookId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::sql::{Connection, sql};
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

impl Store {
    /// Queues the next events of the log for the webhooks that subscribe to them, a bounded number.
    ///
    /// The deliveries and the new position in the log are one transaction: after a crash at any time, no
    /// event is left out and none is queued twice. If another node was faster, there is nothing to do.
    ///
    /// # Errors
    /// When the database fails; nothing is queued then.
    pub async fn hand_out_events(&self, now: Timestamp) -> Result<HandedOut, StoreError> {
        let row = sql("SELECT position FROM webhook_cursor WHERE id = 1").fetch_one(self.readers()).await?;
        let from = Position(row.try_get("position")?);
        let batch = self.events_after(Scope::Everything, from, HANDED_OUT_MAX).await?;
        if batch.next == from {
            return Ok(HandedOut { queued: 0, is_last: batch.is_last });
        }
        let mut transaction = self.writer().begin_write().await?;
        let moved = sql("UPDATE webhook_cursor SET position = $1 WHERE id = 1 AND position = $2")
            .bind(batch.next.0)
            .bind(from.0)
            .execute(&mut *transaction)
            .await?;
        if moved.rows_affected() == 0 {
            return Ok(HandedOut { queued: 0, is_last: false });
        }
        let bodies: Vec<String> = batch.events.iter().map(|placed| placed.event.envelope()).collect();
        let mut queued = 0;
        for (webhook, wanting) in wanting(&mut transaction, &batch.events).await? {
            let deliveries = wanting.of(webhook, &batch.events, &bodies);
            // Disabled since it was read: its events are not queued.
            if deliveries.is_empty() || !due_at(&mut transaction, webhook, now).await? {
                continue;
            }
            for delivery in deliveries {
                queued += u64::from(queue(&mut transaction, &delivery, now).await?);
            }
        }
        transaction.commit().await?;
        Ok(HandedOut { queued, is_last: batch.is_last })
    }
}

/// What a webhook subscribes to.
struct Wanting {
    organisation: OrganisationId,
    patterns: Vec<EventPattern>,
}

impl Wanting {
    /// The deliveries to `webhook` for the events, each with its body.
    fn of<'a>(&self, webhook: WebhookId, events: &'a [PlacedEvent], bodies: &'a [String]) -> Vec<Queued<'a>> {
        let wanted = |event: &Event| {
            event.organisation_id == self.organisation
                && self.patterns.iter().any(|pattern| pattern.matches(event.kind))
        };
        let with_bodies = events.iter().map(|placed| &placed.event).zip(bodies);
        with_bodies
            .filter(|(event, _)| wanted(event))
            .map(|(event, body)| Queued {
                webhook,
                organisation: self.organisation,
                event: event.id,
                kind: event.kind.as_str(),
                body,
            })
            .collect()
    }
}

/// The webhooks of the events' organisations, in the order of their ids.
async fn wanting(
    connection: &mut Connection,
    events: &[PlacedEvent],
) -> Result<BTreeMap<WebhookId, Wanting>, StoreError> {
    let organisations: BTreeSet<OrganisationId> =
        events.iter().map(|placed| placed.event.organisation_id).collect();
    let mut webhooks = BTreeMap::new();
    for organisation in organisations {
        let rows = sql("SELECT id, events FROM webhooks WHERE organisation_id = $1 AND active = 1")
            .bind(organisation.to_string())
            .fetch_all(&mut *connection)
            .await?;
        for row in &rows {
            webhooks.insert(parsed(row, "id")?, Wanting { organisation, patterns: patterns(row)? });
        }
    }
    Ok(webhooks)
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

/// Schedules an enabled webhook for `at` at the latest; returns whether it is enabled. Its row is locked
/// until the transaction ends.
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
