//! Requests that are executed once: the claim, and the answer in one transaction with the changes.
//!
//! A claim is committed before the work begins, so that a duplicate request sees it. The changes are
//! committed together with the answer, on the condition that the claim is still held. So if the process is
//! killed at any time, either both are stored and a retry gets the same answer, or neither is and a retry
//! does the work.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::idempotency::{Claim, Idempotency, KeptAnswer, Once};
use sidetone_model::ids::NodeId;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::number;
use crate::columns::to_hex;
use crate::sql::sql;
use crate::transaction::{self, Unit};
use crate::{Store, StoreError};

/// The claims and answers of requests, as one node sees them.
#[derive(Debug, Clone)]
pub struct IdempotencyKeys {
    store: Store,
    node: NodeId,
    given_up: Arc<GivenUp>,
}

/// Attempts of this node that failed and whose claims may still be stored, because the database was failing.
/// The next attempt of the request takes such a claim over.
///
/// *Bounds*: [`GIVEN_UP_MAX`]; beyond it the oldest is forgotten, and its lease expires.
#[derive(Debug, Default)]
struct GivenUp(Mutex<VecDeque<(String, String)>>);

impl GivenUp {
    fn note(&self, id: &str, attempt: &str) {
        let mut given_up = self.0.lock();
        if given_up.len() >= GIVEN_UP_MAX {
            given_up.pop_front();
        }
        given_up.push_back((id.to_owned(), attempt.to_owned()));
    }

    /// Returns the last abandoned attempt of the request; empty without one.
    fn attempt(&self, id: &str) -> String {
        let given_up = self.0.lock();
        let found = given_up.iter().rev().find(|(own, _)| own == id);
        found.map(|(_, attempt)| attempt.clone()).unwrap_or_default()
    }

    fn forget(&self, id: &str) {
        self.0.lock().retain(|(own, _)| own != id);
    }
}

/// The result of an attempt to claim a request.
enum Claimed {
    /// This attempt executes it.
    Ours,
    /// Another attempt executes or has executed it.
    Theirs(Once),
}

impl Idempotency for IdempotencyKeys {
    fn once<'a>(
        &'a self,
        claim: Claim,
        now: Timestamp,
        work: PortFuture<'a, Option<KeptAnswer>>,
    ) -> PortFuture<'a, Once> {
        Box::pin(async move {
            let attempt = Attempt { keys: self, id: to_hex(&claim.id), token: Uuid::new_v4().to_string() };
            match attempt.claim(&to_hex(&claim.fingerprint), now).await {
                Ok(Claimed::Ours) => {}
                Ok(Claimed::Theirs(once)) => return Ok(once),
                Err(error) => {
                    // The claim may be stored, although the commit was not confirmed.
                    self.given_up.note(&attempt.id, &attempt.token);
                    return Err(error.into());
                }
            }
            let (result, unit) = transaction::within(work).await;
            match result {
                Ok(Some(answer)) => {
                    let kept = attempt.keep(&answer, unit).await;
                    if kept.is_err() {
                        attempt.release().await;
                    }
                    kept
                }
                Ok(None) => {
                    drop(unit);
                    attempt.release().await;
                    Ok(Once::Executed)
                }
                Err(problem) => {
                    drop(unit);
                    attempt.release().await;
                    Err(problem)
                }
            }
        })
    }
}

impl IdempotencyKeys {
    /// Returns the keys for `node`. Releases the claims that an earlier run of the node left unfinished: their
    /// changes were rolled back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open(store: Store, node: NodeId) -> Result<Self, StoreError> {
        sql("DELETE FROM idempotency_keys WHERE node_id = $1 AND status IS NULL")
            .bind(node.to_string())
            .execute(store.writer())
            .await?;
        Ok(Self { store, node, given_up: Arc::default() })
    }

    /// Deletes rows whose retention time is over, a bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge(&self, now: Timestamp) -> Result<u64, StoreError> {
        let done = sql("DELETE FROM idempotency_keys WHERE id IN
             (SELECT id FROM idempotency_keys WHERE expires_at_us <= $1 ORDER BY expires_at_us LIMIT $2)")
        .bind(now.as_micros())
        .bind(PURGE_ROWS_MAX)
        .execute(self.store.writer())
        .await?;
        Ok(done.rows_affected())
    }

    /// How many rows one [`purge`](Self::purge) deletes at most.
    pub const PURGE_BATCH: u64 = PURGE_ROWS_MAX.unsigned_abs();
}

/// One attempt to execute a request.
struct Attempt<'a> {
    keys: &'a IdempotencyKeys,
    id: String,
    /// Unique to this attempt: if the lease was lost, the row has another token.
    token: String,
}

impl Attempt<'_> {
    /// Takes the claim if it is free, its retention time is over, or the lease of the same request has
    /// expired.
    async fn claim(&self, fingerprint: &str, now: Timestamp) -> Result<Claimed, StoreError> {
        let done = sql("INSERT INTO idempotency_keys AS own
             (id, fingerprint, node_id, attempt, leased_until_us, expires_at_us)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, node_id = excluded.node_id,
             attempt = excluded.attempt, leased_until_us = excluded.leased_until_us,
             expires_at_us = excluded.expires_at_us, status = NULL, content_type = NULL, location = NULL,
             sealed_body = NULL
             WHERE own.expires_at_us <= $7 OR (own.status IS NULL AND own.leased_until_us <= $7
             AND own.fingerprint = excluded.fingerprint) OR (own.status IS NULL AND own.attempt = $8)")
        .bind(&self.id)
        .bind(fingerprint)
        .bind(self.keys.node.to_string())
        .bind(&self.token)
        .bind(now.plus_micros(LEASE_US).as_micros())
        .bind(now.plus_micros(KEPT_FOR_US).as_micros())
        .bind(now.as_micros())
        .bind(self.keys.given_up.attempt(&self.id))
        .execute(self.keys.store.writer())
        .await?;
        if done.rows_affected() > 0 {
            self.keys.given_up.forget(&self.id);
            return Ok(Claimed::Ours);
        }
        self.theirs(fingerprint).await.map(Claimed::Theirs)
    }

    /// Reads the claim of another attempt.
    async fn theirs(&self, fingerprint: &str) -> Result<Once, StoreError> {
        let row = sql("SELECT fingerprint, status, content_type, location, sealed_body
             FROM idempotency_keys WHERE id = $1")
        .bind(&self.id)
        // Read on the write connection, which sees its own commits.
        .fetch_optional(self.keys.store.writer())
        .await?;
        // Released in the meantime: the client is asked to try again, which will succeed.
        let Some(row) = row else { return Ok(Once::Running) };
        if row.try_get::<&str>("fingerprint")? != fingerprint {
            return Ok(Once::Reused);
        }
        if row.try_get::<Option<i64>>("status")?.is_none() {
            return Ok(Once::Running);
        }
        Ok(Once::Replayed(KeptAnswer {
            status: number(&row, "status")?,
            content_type: row.try_get("content_type")?,
            location: row.try_get("location")?,
            sealed_body: row.try_get::<Option<String>>("sealed_body")?.unwrap_or_default(),
        }))
    }

    /// Commits the answer with the changes; if the answer is not a success, the changes are rolled back.
    async fn keep(&self, answer: &KeptAnswer, unit: Unit) -> Result<Once, Problem> {
        let written = match unit.into_transaction() {
            Ok(written) => written.filter(|_| answer.is_success()),
            Err(undone) if answer.is_success() => return Err(Problem::Internal(undone.to_string())),
            Err(_) => None,
        };
        let mut transaction = match written {
            Some(transaction) => transaction,
            None => self.keys.store.writer().begin_write().await.map_err(StoreError::from)?,
        };
        let done =
            sql("UPDATE idempotency_keys SET status = $1, content_type = $2, location = $3, sealed_body = $4
             WHERE id = $5 AND attempt = $6")
            .bind(i64::from(answer.status))
            .bind(&answer.content_type)
            .bind(&answer.location)
            .bind(&answer.sealed_body)
            .bind(&self.id)
            .bind(&self.token)
            .execute(&mut *transaction)
            .await
            .map_err(StoreError::from)?;
        if done.rows_affected() == 0 {
            // The lease expired and another attempt has the claim: the changes of this one are rolled back.
            return Ok(Once::Running);
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(Once::Executed)
    }

    /// Releases the claim. If that fails, the next attempt of the request on this node takes it over; for
    /// other nodes the lease expires.
    async fn release(&self) {
        self.keys.given_up.note(&self.id, &self.token);
        let released = sql("DELETE FROM idempotency_keys WHERE id = $1 AND attempt = $2 AND status IS NULL")
            .bind(&self.id)
            .bind(&self.token)
            .execute(self.keys.store.writer())
            .await;
        match released {
            Ok(_) => self.keys.given_up.forget(&self.id),
            Err(error) => {
                tracing::warn!(%error, "an Idempotency-Key stays claimed until it is tried again or its lease ends");
            }
        }
    }
}

/// How long an answer is repeated.
const KEPT_FOR_US: i64 = 24 * 60 * 60 * 1_000_000;
/// Time after which another attempt may take a claim over.
const LEASE_US: i64 = 60 * 1_000_000;
/// Abandoned attempts that are remembered.
const GIVEN_UP_MAX: usize = 4_096;
const PURGE_ROWS_MAX: i64 = 500;
