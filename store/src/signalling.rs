//! The SIP messages of calls: stored once, found by their call, deleted after their retention time.

use sidetone_model::ids::{CallId, NodeId, OrganisationId};
use sidetone_model::signalling::CallSignalling;
use sidetone_model::time::Timestamp;

use crate::packed::{pack, unpack};
use crate::sql::sql;
use crate::statement::{Statement, parts};
use crate::{Store, StoreError};

/// A call, its organisation, when it ended, and its messages.
type Row<'r> = (CallId, OrganisationId, Timestamp, &'r CallSignalling);

impl Store {
    /// Stores the SIP messages of ended calls of a node for `days`; an existing row of a call is not changed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn store_signalling(
        &self,
        node: NodeId,
        days: u32,
        calls: &[Row<'_>],
    ) -> Result<(), StoreError> {
        let node = node.to_string();
        let kept_us = i64::from(days).saturating_mul(DAY_US);
        let mut rows = Vec::with_capacity(calls.len());
        for (call, organisation, at, signalling) in calls {
            let body =
                serde_json::to_string(signalling).map_err(|_| StoreError::Corrupt { column: "packed" })?;
            let packed = pack(&body).ok_or(StoreError::Corrupt { column: "packed" })?;
            rows.push((call, organisation, at, packed));
        }
        let mut transaction = self.writer().begin_write().await?;
        for part in parts(&rows) {
            let mut statement = Statement::new(
                "INSERT INTO call_signalling
                 (call_uuid, organisation_id, node_id, ended_at_us, expires_at_us, packed) VALUES ",
            );
            statement.rows(part.iter().map(|(call, organisation, at, packed)| {
                [
                    call.to_string().into(),
                    organisation.to_string().into(),
                    node.as_str().into(),
                    at.as_micros().into(),
                    at.plus_micros(kept_us).as_micros().into(),
                    Some(packed.clone()).into(),
                ]
            }));
            statement.push(" ON CONFLICT (call_uuid) DO NOTHING");
            statement.query().execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Returns the SIP messages of a call of an organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn signalling(
        &self,
        organisation: OrganisationId,
        call: CallId,
    ) -> Result<Option<CallSignalling>, StoreError> {
        let row = sql("SELECT packed FROM call_signalling WHERE call_uuid = $1 AND organisation_id = $2")
            .bind(call.to_string())
            .bind(organisation.to_string())
            .fetch_optional(self.readers())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let packed: Option<Vec<u8>> = row.try_get("packed")?;
        let body = unpack(&packed.unwrap_or_default()).ok_or(StoreError::Corrupt { column: "packed" })?;
        serde_json::from_str(&body).map(Some).map_err(|_| StoreError::Corrupt { column: "packed" })
    }

    /// Deletes the messages of calls whose retention time is over, a bounded number; returns the number of calls.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_signalling(&self, now: Timestamp) -> Result<u64, StoreError> {
        let done =
            sql("DELETE FROM call_signalling WHERE call_uuid IN (SELECT call_uuid FROM call_signalling
             WHERE expires_at_us <= $1 ORDER BY expires_at_us, call_uuid LIMIT $2)")
            .bind(now.as_micros())
            .bind(Self::SIGNALLING_PURGE_BATCH.cast_signed())
            .execute(self.writer())
            .await?;
        Ok(done.rows_affected())
    }

    /// How many rows one [`Store::purge_signalling`] deletes at most.
    pub const SIGNALLING_PURGE_BATCH: u64 = 500;
}

const DAY_US: i64 = 24 * 3_600 * 1_000_000;
