//! The part of an organisation's credit that each node of a cluster has reserved. All reserves and the used amount
//! together are within the credit.

use std::collections::BTreeMap;
use std::time::Duration;

use sidetone_model::ids::{NodeId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::time::Timestamp;

use crate::sql::{Connection, sql};
use crate::{Store, StoreError};

/// The credit that a node has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedCredit {
    /// The amount; less than requested if there is no more.
    pub amount: Amount,
    /// The amount that all nodes have used by then, as [`Account::used`](sidetone_model::rating::Account).
    pub used: Amount,
}

impl Store {
    /// Sets the reserve of a node to `want`, or to the amount that the other nodes leave. The reserves of other nodes
    /// that were not renewed for `longest` no longer count.
    ///
    /// `None` for an organisation that does not exist.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn reserve_credit(
        &self,
        (organisation, node): (OrganisationId, NodeId),
        want: Amount,
        longest: Duration,
        now: Timestamp,
    ) -> Result<Option<ReservedCredit>, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        // Locks the account: stored calls and other nodes wait.
        let row = sql("UPDATE organisations SET credit_used_scaled = credit_used_scaled WHERE id = $1
             RETURNING credit_scaled, credit_used_scaled, credit_used_before_scaled")
        .bind(organisation.to_string())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let used = row.try_get::<i64>("credit_used_scaled")?;
        let credit = row.try_get::<Option<i64>>("credit_scaled")?;
        let before = row.try_get::<i64>("credit_used_before_scaled")?;
        let oldest = now.as_micros().saturating_sub(i64::try_from(longest.as_micros()).unwrap_or(i64::MAX));
        let others = sql("SELECT CAST(COALESCE(SUM(reserved_scaled), 0) AS BIGINT) AS reserved
             FROM credit_reserves WHERE organisation_id = $1 AND node_id <> $2 AND updated_at_us > $3")
        .bind(organisation.to_string())
        .bind(node.to_string())
        .bind(oldest)
        .fetch_one(&mut *transaction)
        .await?;
        let others = i128::from(others.try_get::<i64>("reserved")?);
        let free = credit.map(|credit| i128::from(credit) + i128::from(before) - i128::from(used) - others);
        let amount = free.map_or(i128::from(want.scaled()), |free| free.clamp(0, want.scaled().into()));
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        sql("INSERT INTO credit_reserves (organisation_id, node_id, reserved_scaled, updated_at_us)
             VALUES ($1, $2, $3, $4) ON CONFLICT (organisation_id, node_id) DO UPDATE SET
             reserved_scaled = excluded.reserved_scaled, updated_at_us = excluded.updated_at_us")
        .bind(organisation.to_string())
        .bind(node.to_string())
        .bind(amount)
        .bind(now.as_micros())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Some(ReservedCredit { amount: Amount::from_scaled(amount), used: Amount::from_scaled(used) }))
    }

    /// Releases the complete reserve of a node: it is starting, or it is dead and its calls are recorded.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release_credit(&self, node: NodeId) -> Result<(), StoreError> {
        sql("DELETE FROM credit_reserves WHERE node_id = $1")
            .bind(node.to_string())
            .execute(self.writer())
            .await?;
        Ok(())
    }
}

/// Subtracts the charges of stored calls from the reserves of their nodes.
pub(super) async fn spend(
    connection: &mut Connection,
    organisation: OrganisationId,
    charges: &BTreeMap<NodeId, Amount>,
) -> Result<(), StoreError> {
    for (node, charge) in charges {
        sql("UPDATE credit_reserves SET reserved_scaled =
             CASE WHEN reserved_scaled > $1 THEN reserved_scaled - $1 ELSE 0 END
             WHERE organisation_id = $2 AND node_id = $3")
        .bind(charge.scaled())
        .bind(organisation.to_string())
        .bind(node.to_string())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
