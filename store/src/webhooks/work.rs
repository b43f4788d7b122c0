//! Database work of the sender: which deliveries are due, which node attempts them, and their results.
//!
//! An attempt is leased: its node takes the lease before it begins, and another node takes over when the lease
//! expires without a result. These functions serve all organisations together, by the ids of rows that they read
//! themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use sidetone_model::directory::Secret;
use sidetone_model::ids::{DeliveryId, EventId, NodeId, WebhookId};
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::{ATTEMPTS_KEPT_MAX, Attempt, DisabledReason, KEPT_FOR_US, is_hopeless};
use uuid::Uuid;

use crate::columns::{instant, instant_opt, number, parsed};
use crate::sql::{Connection, Row, sql};
use crate::webhooks::manage::{cancel_waiting, lock};
use crate::{Store, StoreError};

/// A delivery that this node attempts, with everything needed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The event.
    pub event: EventId,
    /// The event's type.
    pub kind: String,
    /// The destination.
    pub url: String,
    /// The signing secrets, newest first.
    pub secrets: Vec<Secret>,
    /// The body, byte for byte.
    pub body: String,
    /// When its schedule began.
    pub round_at: Timestamp,
    /// Finished attempts of the schedule.
    pub round_attempts: u32,
    /// All finished attempts.
    attempts: i64,
    /// The token of this attempt's lease.
    lease: String,
}

/// Largest number of attempts of a delivery, as in `webhooks::schedule`.
const ATTEMPTS_MAX: u32 = 10;

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledAttempt {
    /// The delivery.
    pub delivery: ClaimedDelivery,
    /// The attempt; it succeeded if it has no error.
    pub attempt: Attempt,
    /// When the next attempt is due after a failure; `None` after the last.
    pub retry_at: Option<Timestamp>,
}

/// The results of several attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Deliveries that succeeded.
    pub delivered: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Deliveries whose last attempt failed.
    pub failed: u64,
    /// Webhooks that were disabled because of failures.
    pub switched_off: Vec<WebhookId>,
}

impl Store {
    /// Frees the attempts that an earlier run of `node` left unfinished: they are due again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn free_webhook_leases(&self, node: NodeId, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        sql("UPDATE webhooks SET next_at_us = $1
             WHERE id IN (SELECT webhook_id FROM webhook_deliveries WHERE node_id = $2)")
        .bind(now.as_micros())
        .bind(node.to_string())
        .execute(&mut *transaction)
        .await?;
        sql("UPDATE webhook_deliveries SET next_at_us = $1, node_id = NULL, lease = NULL,
             status = CASE WHEN round_attempts = 0 THEN 'pending' ELSE 'retrying' END WHERE node_id = $2")
        .bind(now.as_micros())
        .bind(node.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// The webhooks with a due delivery, the longest waiting first, at most `limit`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_webhooks(&self, now: Timestamp, limit: i64) -> Result<Vec<WebhookId>, StoreError> {
        let rows = sql("SELECT id FROM webhooks WHERE next_at_us <= $1 AND active = 1
             ORDER BY next_at_us, id LIMIT $2")
        .bind(now.as_micros())
        .bind(limit)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|row| parsed(row, "id")).collect()
    }

    /// Shortens every wait that is longer than `pause_max` after the last attempt: such a due time was set before the
    /// clock was set back. Repeating this, also on several nodes, changes nothing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn shorten_webhook_waits(
        &self,
        now: Timestamp,
        pause_max: fn(u32) -> Duration,
    ) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        for attempts in 0..ATTEMPTS_MAX {
            let pause_us = i64::try_from(pause_max(attempts).as_micros()).unwrap_or(i64::MAX);
            sql("UPDATE webhook_deliveries SET next_at_us = $1
                 WHERE next_at_us > $1 AND round_attempts = $2")
            .bind(now.plus_micros(pause_us).as_micros())
            .bind(i64::from(attempts))
            .execute(&mut *transaction)
            .await?;
        }
        sql("UPDATE webhooks SET next_at_us = (SELECT MIN(next_at_us) FROM webhook_deliveries
                 WHERE webhook_id = webhooks.id AND next_at_us IS NOT NULL)
             WHERE next_at_us > $1")
        .bind(now.as_micros())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Returns when the next webhook becomes due, among those without a due delivery at `now`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_webhook_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let row =
            sql("SELECT MIN(next_at_us) AS next_at_us FROM webhooks WHERE next_at_us > $1 AND active = 1")
                .bind(now.as_micros())
                .fetch_one(self.readers())
                .await?;
        instant_opt(&row, "next_at_us")
    }

    /// Returns how many deliveries wait or are being sent.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn webhook_queue_len(&self) -> Result<u64, StoreError> {
        let row = sql("SELECT COUNT(*) AS total FROM webhook_deliveries WHERE next_at_us IS NOT NULL")
            .fetch_one(self.readers())
            .await?;
        number(&row, "total")
    }

    /// Leases the due deliveries of each webhook, at most as many as are granted. Never more than `running_max`
    /// attempts of one webhook run at a time on all nodes together.
    ///
    /// # Errors
    /// When the database fails; nothing is leased then.
    pub async fn claim_deliveries(
        &self,
        node: NodeId,
        grants: &[(WebhookId, usize)],
        running_max: usize,
        now: Timestamp,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let grants: BTreeMap<WebhookId, usize> = grants.iter().copied().collect();
        let mut transaction = self.writer().begin_write().await?;
        let mut claimed = Vec::new();
        for (webhook, places) in grants {
            claimed.extend(claim(&mut transaction, node, webhook, places, running_max, now).await?);
        }
        transaction.commit().await?;
        Ok(claimed)
    }

    /// Stores the results of attempts, and disables webhooks whose endpoints failed for too long.
    ///
    /// # Errors
    /// When the database fails; nothing is stored then, and the call may be repeated.
    pub async fn settle_deliveries(
        &self,
        attempts: &[SettledAttempt],
        now: Timestamp,
    ) -> Result<Settlement, StoreError> {
        let mut by_webhook: BTreeMap<WebhookId, Vec<&SettledAttempt>> = BTreeMap::new();
        for attempt in attempts {
            by_webhook.entry(attempt.delivery.webhook).or_default().push(attempt);
        }
        let mut settlement = Settlement::default();
        let mut transaction = self.writer().begin_write().await?;
        for (webhook, mut attempts) in by_webhook {
            attempts.sort_by_key(|settled| settled.attempt.at);
            settle(&mut transaction, webhook, &attempts, now, &mut settlement).await?;
        }
        transaction.commit().await?;
        Ok(settlement)
    }

    /// Deletes deliveries whose retention time is over, a bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_webhook_deliveries(&self, now: Timestamp) -> Result<u64, StoreError> {
        let until = now.plus_micros(-KEPT_FOR_US).as_micros();
        let mut transaction = self.writer().begin_write().await?;
        sql("DELETE FROM webhook_attempts WHERE delivery_id IN (SELECT id FROM webhook_deliveries
             WHERE created_at_us <= $1 ORDER BY created_at_us, id LIMIT $2)")
        .bind(until)
        .bind(PURGE_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        let done = sql("DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries
             WHERE created_at_us <= $1 ORDER BY created_at_us, id LIMIT $2)")
        .bind(until)
        .bind(PURGE_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }

    /// How many deliveries one [`purge_webhook_deliveries`](Self::purge_webhook_deliveries) deletes at most.
    pub const WEBHOOK_PURGE_BATCH: u64 = PURGE_ROWS_MAX.unsigned_abs();
}

async fn claim(
    connection: &mut Connection,
    node: NodeId,
    webhook: WebhookId,
    places: usize,
    running_max: usize,
    now: Timestamp,
) -> Result<Vec<ClaimedDelivery>, StoreError> {
    if !lock(connection, webhook).await? {
        return Ok(Vec::new());
    }
    let found = sql("SELECT url, secret, old_secret, old_secret_until_us, active,
         (SELECT COUNT(*) FROM webhook_deliveries WHERE webhook_id = webhooks.id AND node_id IS NOT NULL
          AND next_at_us > $1) AS running FROM webhooks WHERE id = $2")
    .bind(now.as_micros())
    .bind(webhook.to_string())
    .fetch_one(&mut *connection)
    .await?;
    let free = running_max.saturating_sub(number(&found, "running")?).min(places);
    if free == 0 || found.try_get::<i64>("active")? == 0 {
        return Ok(Vec::new());
    }
    let lease = Uuid::new_v4().to_string();
    sql("UPDATE webhook_deliveries SET status = 'delivering', next_at_us = $1, node_id = $2, lease = $3,
         updated_at_us = $4 WHERE id IN (SELECT id FROM webhook_deliveries
         WHERE webhook_id = $5 AND next_at_us <= $4 ORDER BY next_at_us, id LIMIT $6)")
    .bind(now.plus_micros(LEASE_US).as_micros())
    .bind(node.to_string())
    .bind(&lease)
    .bind(now.as_micros())
    .bind(webhook.to_string())
    .bind(i64::try_from(free).unwrap_or(i64::MAX))
    .execute(&mut *connection)
    .await?;
    let rows =
        sql("SELECT id, webhook_id, event_id, kind, body, round_at_us, round_attempts, attempts, lease
         FROM webhook_deliveries WHERE webhook_id = $1 AND node_id = $2 AND lease = $3 ORDER BY event_id")
        .bind(webhook.to_string())
        .bind(node.to_string())
        .bind(&lease)
        .fetch_all(&mut *connection)
        .await?;
    look_when_due(connection, webhook).await?;
    rows.iter().map(|row| claimed(row, &found, now)).collect()
}

fn claimed(row: &Row, webhook: &Row, now: Timestamp) -> Result<ClaimedDelivery, StoreError> {
    let mut secrets = vec![Secret(webhook.try_get("secret")?)];
    let old: Option<String> = webhook.try_get("old_secret")?;
    let until = instant_opt(webhook, "old_secret_until_us")?;
    secrets.extend(old.filter(|_| until.is_some_and(|until| until > now)).map(Secret));
    Ok(ClaimedDelivery {
        id: parsed(row, "id")?,
        webhook: parsed(row, "webhook_id")?,
        event: parsed(row, "event_id")?,
        kind: row.try_get("kind")?,
        url: webhook.try_get("url")?,
        secrets,
        body: row.try_get("body")?,
        round_at: instant(row, "round_at_us")?,
        round_attempts: number(row, "round_attempts")?,
        attempts: row.try_get("attempts")?,
        lease: row.try_get("lease")?,
    })
}

async fn settle(
    connection: &mut Connection,
    webhook: WebhookId,
    attempts: &[&SettledAttempt],
    now: Timestamp,
    settlement: &mut Settlement,
) -> Result<(), StoreError> {
    if !lock(connection, webhook).await? {
        return Ok(());
    }
    let found = sql("SELECT active, failing_since_us FROM webhooks WHERE id = $1")
        .bind(webhook.to_string())
        .fetch_one(&mut *connection)
        .await?;
    let mut active = found.try_get::<i64>("active")? != 0;
    let mut failing_since = instant_opt(&found, "failing_since_us")?;
    let was_active = active;
    for settled in attempts {
        let failed = settled.attempt.error.is_some();
        let since = failing_since.unwrap_or(settled.attempt.at);
        let hopeless = failed && is_hopeless(since, settled.attempt.at);
        let (status, retry_at) = match settled.retry_at {
            _ if !failed => ("delivered", None),
            None => ("failed", None),
            Some(_) if !active || hopeless => ("cancelled", None),
            Some(at) => ("retrying", Some(at)),
        };
        if !write_attempt(connection, settled, status, retry_at, now).await? {
            // The lease expired and another node has the delivery, or the delivery was removed.
            continue;
        }
        failing_since = failed.then_some(since);
        active &= !hopeless;
        settlement.delivered += u64::from(!failed);
        settlement.failures += u64::from(failed);
        settlement.failed += u64::from(status == "failed");
    }
    sql("UPDATE webhooks SET failing_since_us = $1 WHERE id = $2")
        .bind(failing_since.map(Timestamp::as_micros))
        .bind(webhook.to_string())
        .execute(&mut *connection)
        .await?;
    if was_active && !active {
        sql("UPDATE webhooks SET active = 0, disabled_reason = $1, updated_at_us = $2 WHERE id = $3")
            .bind(DisabledReason::Failing.as_str())
            .bind(now.as_micros())
            .bind(webhook.to_string())
            .execute(&mut *connection)
            .await?;
        cancel_waiting(connection, webhook, now).await?;
        settlement.switched_off.push(webhook);
    }
    look_when_due(connection, webhook).await
}

/// Stores one attempt; returns whether the delivery was still leased for it.
async fn write_attempt(
    connection: &mut Connection,
    settled: &SettledAttempt,
    status: &str,
    retry_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let SettledAttempt { delivery, attempt, .. } = settled;
    let number = delivery.attempts.saturating_add(1);
    let done = sql(
        "UPDATE webhook_deliveries SET status = $1, next_at_us = $2, node_id = NULL, lease = NULL,
         round_attempts = round_attempts + 1, attempts = $3, updated_at_us = $4 WHERE id = $5 AND lease = $6",
    )
    .bind(status)
    .bind(retry_at.map(Timestamp::as_micros))
    .bind(number)
    .bind(now.as_micros())
    .bind(delivery.id.to_string())
    .bind(&delivery.lease)
    .execute(&mut *connection)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    sql("INSERT INTO webhook_attempts (delivery_id, number, at_us, status_code, duration_ms, error, answer)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (delivery_id, number) DO NOTHING")
    .bind(delivery.id.to_string())
    .bind(number)
    .bind(attempt.at.as_micros())
    .bind(attempt.status_code.map(i64::from))
    .bind(i64::from(attempt.duration_ms))
    .bind(&attempt.error)
    .bind(&attempt.answer)
    .execute(&mut *connection)
    .await?;
    if number > ATTEMPTS_KEPT_MAX {
        sql("DELETE FROM webhook_attempts WHERE delivery_id = $1 AND number <= $2")
            .bind(delivery.id.to_string())
            .bind(number - ATTEMPTS_KEPT_MAX)
            .execute(&mut *connection)
            .await?;
    }
    Ok(true)
}

/// Schedules the webhook for the time when the first of its deliveries is due.
async fn look_when_due(connection: &mut Connection, webhook: WebhookId) -> Result<(), StoreError> {
    sql("UPDATE webhooks SET next_at_us = (SELECT MIN(next_at_us) FROM webhook_deliveries
         WHERE webhook_id = $1 AND next_at_us IS NOT NULL) WHERE id = $1")
    .bind(webhook.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Longer than any attempt may take. After a node crashes, another one takes its attempts over after this time.
const LEASE_US: i64 = 60 * 1_000_000;
const PURGE_ROWS_MAX: i64 = 500;
