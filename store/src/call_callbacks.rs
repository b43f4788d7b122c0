//! Callbacks of calls that programs request: queued with the change that they report, and sent one at a time for each
//! request, in order.
//!
//! An attempt is leased: its node takes the lease before it begins, and another node takes over when the lease
//! expires without a result. The sender's functions serve all organisations together, by the ids of rows that they
//! read themselves.

use std::collections::BTreeMap;

use serde_json::json;
use sidetone_model::call_request::{CallRequest, RequestChange, RequestState};
use sidetone_model::directory::Secret;
use sidetone_model::ids::{CallRequestId, DeliveryId, NodeId, OrganisationId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{instant, instant_opt, number, parsed};
use crate::sql::{Connection, Row, sql};
use crate::{Store, StoreError};

/// A callback that this node attempts, with everything needed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedCallback {
    /// The callback; every attempt has the same id.
    pub id: DeliveryId,
    /// The request.
    pub request: CallRequestId,
    /// The organisation of the request.
    pub organisation: OrganisationId,
    /// The kind of the report.
    pub kind: String,
    /// The destination.
    pub url: String,
    /// The organisation's secret; `None` once it was removed.
    pub secret: Option<Secret>,
    /// The body, byte for byte.
    pub body: String,
    /// When its schedule began.
    pub round_at: Timestamp,
    /// Finished attempts.
    pub attempts: u32,
    /// The token of this attempt's lease.
    lease: String,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledCallback {
    /// The callback.
    pub callback: ClaimedCallback,
    /// Why the attempt failed; `None` when the callback was delivered.
    pub error: Option<String>,
    /// When the next attempt is due after a failure; `None` after the last.
    pub retry_at: Option<Timestamp>,
}

impl Store {
    /// Whether callbacks of the organisation's calls can be signed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn has_callback_secret(&self, organisation: OrganisationId) -> Result<bool, StoreError> {
        let query =
            sql("SELECT callback_secret FROM organisations WHERE id = $1").bind(organisation.to_string());
        let found = self.one(query, |row| Ok(!row.try_get::<&str>("callback_secret")?.is_empty())).await?;
        Ok(found.unwrap_or(false))
    }

    /// Frees the attempts that an earlier run of `node` left unfinished: they are due again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn free_callback_leases(&self, node: NodeId, now: Timestamp) -> Result<(), StoreError> {
        sql("UPDATE call_callbacks SET next_at_us = $1, node_id = NULL, lease = NULL,
             status = CASE WHEN attempts = 0 THEN 'pending' ELSE 'retrying' END WHERE node_id = $2")
        .bind(now.as_micros())
        .bind(node.to_string())
        .execute(self.writer())
        .await?;
        Ok(())
    }

    /// The organisations with a callback that is due, the longest waiting first, at most `limit`.
    ///
    /// A due time further ahead than the longest pause is due too: it was set before the clock was set back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_callbacks(&self, now: Timestamp, limit: i64) -> Result<Vec<OrganisationId>, StoreError> {
        let rows = sql("SELECT organisation_id, MIN(next_at_us) AS first_us FROM call_callbacks
             WHERE next_at_us IS NOT NULL AND (next_at_us <= $1 OR next_at_us > $2)
             GROUP BY organisation_id ORDER BY first_us, organisation_id LIMIT $3")
        .bind(now.as_micros())
        .bind(now.plus_micros(WAIT_MAX_US).as_micros())
        .bind(limit)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|row| parsed(row, "organisation_id")).collect()
    }

    /// Returns when the next callback becomes due, among those that are not due at `now`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_callback_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let row = sql("SELECT MIN(next_at_us) AS next_at_us FROM call_callbacks WHERE next_at_us > $1")
            .bind(now.as_micros())
            .fetch_one(self.readers())
            .await?;
        instant_opt(&row, "next_at_us")
    }

    /// Leases the due callbacks of each organisation, at most as many as are granted. Never more than `running_max`
    /// attempts of one organisation run at a time on all nodes together.
    ///
    /// # Errors
    /// When the database fails; nothing is leased then.
    pub async fn claim_callbacks(
        &self,
        node: NodeId,
        grants: &BTreeMap<OrganisationId, usize>,
        running_max: usize,
        now: Timestamp,
    ) -> Result<Vec<ClaimedCallback>, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let mut claimed = Vec::new();
        for (organisation, places) in grants {
            let running: usize = running(&mut transaction, *organisation, now).await?;
            let free = running_max.saturating_sub(running).min(*places);
            if free > 0 {
                claimed.extend(claim(&mut transaction, node, (*organisation, free), now).await?);
            }
        }
        transaction.commit().await?;
        Ok(claimed)
    }

    /// Stores the result of an attempt; after the last one, the next report of the request is due. Returns whether
    /// the attempt still had its lease.
    ///
    /// # Errors
    /// When the database fails; nothing is stored then, and the call may be repeated.
    pub async fn settle_callback(
        &self,
        settled: &SettledCallback,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let SettledCallback { callback, error, retry_at } = settled;
        let status = match (error, retry_at) {
            (None, _) => "delivered",
            (Some(_), None) => "failed",
            (Some(_), Some(_)) => "retrying",
        };
        let retry_at = retry_at.filter(|_| error.is_some());
        // One transaction for each: changing a request locks several requests in its own order.
        let mut transaction = self.writer().begin_write().await?;
        let done =
            sql("UPDATE call_callbacks SET status = $1, next_at_us = $2, node_id = NULL, lease = NULL,
             attempts = attempts + 1, last_error = $3, updated_at_us = $4 WHERE id = $5 AND lease = $6")
            .bind(status)
            .bind(retry_at.map(Timestamp::as_micros))
            .bind(error)
            .bind(now.as_micros())
            .bind(callback.id.to_string())
            .bind(&callback.lease)
            .execute(&mut *transaction)
            .await?;
        let is_ours = done.rows_affected() > 0;
        if is_ours && retry_at.is_none() {
            lock(&mut transaction, callback.request).await?;
            sql("UPDATE call_callbacks SET status = 'pending', next_at_us = $1, round_at_us = $1,
                 updated_at_us = $1 WHERE request_id = $2 AND status = 'waiting' AND seq = (SELECT MIN(seq)
                 FROM call_callbacks WHERE request_id = $2 AND status = 'waiting')")
            .bind(now.as_micros())
            .bind(callback.request.to_string())
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(is_ours)
    }
}

/// Queues the callback that reports `change`. The same transaction has changed the request and thereby locked it.
pub(super) async fn report(
    connection: &mut Connection,
    change: &RequestChange,
    request: &CallRequest,
) -> Result<(), StoreError> {
    let (Some(url), Some((seq, kind))) = (&request.callback_url, reported_as(change.state)) else {
        return Ok(());
    };
    let id = DeliveryId(Uuid::now_v7());
    let body = json!({
        "id": id,
        "type": kind,
        "timestamp": change.at,
        "organisation_id": request.organisation_id,
        "data": request,
    });
    // A report waits for the earlier ones of its request.
    let is_free = sql("SELECT COUNT(*) AS total FROM call_callbacks WHERE request_id = $1
         AND status IN ('waiting', 'pending', 'delivering', 'retrying')")
    .bind(request.id.to_string())
    .fetch_one(&mut *connection)
    .await?;
    let is_free = number::<u64>(&is_free, "total")? == 0;
    let at = change.at.as_micros();
    sql("INSERT INTO call_callbacks (id, request_id, organisation_id, seq, kind, url, body, status, next_at_us,
         round_at_us, attempts, created_at_us, updated_at_us)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $10, $10)
         ON CONFLICT (request_id, seq) DO NOTHING")
    .bind(id.to_string())
    .bind(request.id.to_string())
    .bind(request.organisation_id.to_string())
    .bind(seq)
    .bind(kind)
    .bind(url)
    .bind(body.to_string())
    .bind(if is_free { "pending" } else { "waiting" })
    .bind(is_free.then_some(at))
    .bind(at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes callbacks that were queued before a time; a bounded number.
pub(super) async fn purge(
    connection: &mut Connection,
    until: Timestamp,
    rows_max: i64,
) -> Result<(), StoreError> {
    sql("DELETE FROM call_callbacks WHERE id IN (SELECT id FROM call_callbacks
         WHERE created_at_us <= $1 ORDER BY created_at_us, id LIMIT $2)")
    .bind(until.as_micros())
    .bind(rows_max)
    .execute(connection)
    .await?;
    Ok(())
}

/// The rank and the name of the report of a state; `None` when the state is not reported.
fn reported_as(state: RequestState) -> Option<(i64, &'static str)> {
    match state {
        RequestState::Ringing => Some((1, "ringing")),
        RequestState::Answered => Some((2, "answered")),
        RequestState::Cancelled | RequestState::Completed | RequestState::Failed => Some((3, "completed")),
        RequestState::Calling | RequestState::Queued => None,
    }
}

/// Locks a request, so that no report of it is queued before the commit.
async fn lock(connection: &mut Connection, request: CallRequestId) -> Result<(), StoreError> {
    sql("UPDATE call_requests SET state = state WHERE id = $1")
        .bind(request.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

async fn running(
    connection: &mut Connection,
    organisation: OrganisationId,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let row = sql("SELECT COUNT(*) AS total FROM call_callbacks WHERE organisation_id = $1
         AND node_id IS NOT NULL AND next_at_us > $2")
    .bind(organisation.to_string())
    .bind(now.as_micros())
    .fetch_one(connection)
    .await?;
    number(&row, "total")
}

async fn claim(
    connection: &mut Connection,
    node: NodeId,
    (organisation, places): (OrganisationId, usize),
    now: Timestamp,
) -> Result<Vec<ClaimedCallback>, StoreError> {
    let lease = Uuid::new_v4().to_string();
    // The condition is repeated: a node that waited here for another one finds the rows leased.
    sql("UPDATE call_callbacks SET status = 'delivering', next_at_us = $1, node_id = $2, lease = $3,
         updated_at_us = $4 WHERE (next_at_us <= $4 OR next_at_us > $5) AND id IN (SELECT id
         FROM call_callbacks WHERE organisation_id = $6 AND next_at_us IS NOT NULL
         AND (next_at_us <= $4 OR next_at_us > $5) ORDER BY next_at_us, id LIMIT $7)")
    .bind(now.plus_micros(LEASE_US).as_micros())
    .bind(node.to_string())
    .bind(&lease)
    .bind(now.as_micros())
    .bind(now.plus_micros(WAIT_MAX_US).as_micros())
    .bind(organisation.to_string())
    .bind(i64::try_from(places).unwrap_or(i64::MAX))
    .execute(&mut *connection)
    .await?;
    let rows = sql("SELECT call_callbacks.*, organisations.callback_secret FROM call_callbacks
         LEFT JOIN organisations ON organisations.id = call_callbacks.organisation_id
         WHERE call_callbacks.node_id = $1 AND call_callbacks.lease = $2 ORDER BY call_callbacks.id")
    .bind(node.to_string())
    .bind(&lease)
    .fetch_all(connection)
    .await?;
    rows.iter().map(claimed).collect()
}

fn claimed(row: &Row) -> Result<ClaimedCallback, StoreError> {
    let secret: Option<String> = row.try_get("callback_secret")?;
    Ok(ClaimedCallback {
        id: parsed(row, "id")?,
        request: parsed(row, "request_id")?,
        organisation: parsed(row, "organisation_id")?,
        kind: row.try_get("kind")?,
        url: row.try_get("url")?,
        secret: secret.filter(|secret| !secret.is_empty()).map(Secret),
        body: row.try_get("body")?,
        round_at: instant(row, "round_at_us")?,
        attempts: number(row, "attempts")?,
        lease: row.try_get("lease")?,
    })
}

/// Longer than any attempt may take.
const LEASE_US: i64 = 60 * 1_000_000;
/// Longer than any pause of the schedule.
const WAIT_MAX_US: i64 = 9 * 60 * 60 * 1_000_000;
