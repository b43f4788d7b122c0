//! The credit of organisations, and how much of it settled calls and conversations use.

use std::collections::BTreeMap;

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, NodeId, OrganisationId, TrunkId};
use sidetone_model::money::{Amount, Currency};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::rate_book::Accounts;
use sidetone_model::rating::{Account, Drawn};
use sidetone_model::time::Timestamp;

use crate::columns::parsed;
use crate::credit_reserves::spend;
use crate::sql::{Connection, Row, sql};
use crate::{Store, StoreError, WriteTransaction};

impl Store {
    /// Every account.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let rows = sql("SELECT id, currency, credit_scaled, credit_used_scaled, credit_used_before_scaled
             FROM organisations ORDER BY id")
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(account).collect()
    }
}

impl Accounts for Store {
    fn account(&self, organisation: OrganisationId) -> PortFuture<'_, Option<Account>> {
        Box::pin(async move {
            let row = sql("SELECT id, currency, credit_scaled, credit_used_scaled, credit_used_before_scaled
                 FROM organisations WHERE id = $1")
            .bind(organisation.to_string())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::from)?;
            Ok(row.as_ref().map(account).transpose()?)
        })
    }
}

impl WriteTransaction {
    /// Returns the organisation of that name and the currency of its account.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_payer(&mut self, name: &str) -> Result<Option<(OrganisationId, Currency)>, StoreError> {
        let row = sql("SELECT id, currency FROM organisations WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map(|row| Ok((parsed(&row, "id")?, parsed(&row, "currency")?))).transpose()
    }

    /// Refuses to delete a trunk that has cost rates.
    pub(super) async fn require_no_cost_rates(&mut self, trunk: TrunkId) -> Result<(), Problem> {
        let row = sql("SELECT COUNT(*) AS rates FROM cost_rates WHERE trunk_id = $1")
            .bind(trunk.to_string())
            .fetch_one(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        match row.try_get::<i64>("rates").map_err(StoreError::from)? {
            0 => Ok(()),
            count => {
                Err(Problem::Conflict(format!("the trunk still has cost rates ({count}): remove them first")))
            }
        }
    }

    /// Whether an amount in `currency` can be deducted from the organisation's credit: it has no credit limit, or a
    /// limit in that currency, or a conversion rate exists.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn reaches_credit(
        &mut self,
        organisation: OrganisationId,
        currency: Currency,
    ) -> Result<bool, StoreError> {
        let lacking = sql("SELECT id FROM organisations
             WHERE id = $1 AND credit_scaled IS NOT NULL AND currency <> $2 AND NOT EXISTS
             (SELECT 1 FROM fx_rates WHERE from_currency = $2 AND to_currency = organisations.currency)")
        .bind(organisation.to_string())
        .bind(currency.to_string())
        .fetch_optional(&mut *self.transaction)
        .await?;
        Ok(lacking.is_none())
    }
}

/// Deducts an amount that does not belong to a call, such as the cost of a conversation's AI, from the credit of its
/// organisation. An amount in another currency is converted at the rate in force at `at`. Running engines read it
/// within two seconds (`src/watch.rs`).
pub(super) async fn draw(
    connection: &mut Connection,
    organisation: OrganisationId,
    (amount, currency): (Amount, Currency),
    at: Timestamp,
) -> Result<(), StoreError> {
    let row = sql("SELECT currency FROM organisations WHERE id = $1")
        .bind(organisation.to_string())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else { return Ok(()) };
    let own: Currency = parsed(&row, "currency")?;
    let amount = if own == currency {
        Some(amount)
    } else {
        let rate = sql("SELECT rate_scaled FROM fx_rates
             WHERE from_currency = $1 AND to_currency = $2 AND from_time_us <= $3 ORDER BY from_time_us DESC LIMIT 1")
        .bind(currency.to_string())
        .bind(own.to_string())
        .bind(at.as_micros())
        .fetch_optional(&mut *connection)
        .await?;
        let rate = rate.map(|rate| rate.try_get("rate_scaled")).transpose()?;
        rate.and_then(|rate| amount.converted(Amount::from_scaled(rate)))
    };
    match amount {
        Some(amount) => add_used(connection, organisation, own, amount).await,
        None => {
            tracing::warn!(%currency, account = %own, "an amount is not deducted: there is no rate to the account's currency");
            Ok(())
        }
    }
}

async fn add_used(
    connection: &mut Connection,
    organisation: OrganisationId,
    currency: Currency,
    amount: Amount,
) -> Result<(), StoreError> {
    // The sum must not overflow: SQLite would continue with a floating-point number.
    sql("UPDATE organisations SET credit_used_scaled =
         CASE WHEN credit_used_scaled > 9223372036854775807 - $1 THEN 9223372036854775807
         ELSE credit_used_scaled + $1 END
         WHERE id = $2 AND currency = $3")
    .bind(amount.scaled())
    .bind(organisation.to_string())
    .bind(currency.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Deducts the prices of settled calls from the credit of their organisations, each call once.
#[derive(Debug, Default)]
pub(super) struct Draws(BTreeMap<OrganisationId, Draw>);

#[derive(Debug, Default)]
struct Draw {
    /// By currency: after a change of currency, the organisation's account is in the new one.
    amounts: BTreeMap<Currency, Amount>,
    /// Amounts of new records, by their node.
    charges: BTreeMap<NodeId, Amount>,
    calls: Vec<CallId>,
}

impl Draws {
    /// Adds the record. Only the amount of a new record counts, but the settled call is reported in both cases.
    pub(super) fn note(&mut self, cdr: &Cdr, is_new: bool) {
        let Some(credit) = cdr.billing.credit else { return };
        let draw = self.0.entry(cdr.organisation_id).or_default();
        draw.calls.push(cdr.call_uuid);
        if is_new {
            let add = |sum: &mut Amount| *sum = sum.checked_add(credit.amount).unwrap_or(Amount::MAX);
            add(draw.amounts.entry(credit.currency).or_default());
            if let Some(node) = cdr.node_id {
                add(draw.charges.entry(node).or_default());
            }
        }
    }

    /// Writes the added amounts; returns how much every affected organisation has used.
    pub(super) async fn write(self, connection: &mut Connection) -> Result<Vec<Drawn>, StoreError> {
        let mut all = Vec::with_capacity(self.0.len());
        for (organisation, draw) in self.0 {
            for (currency, amount) in draw.amounts {
                add_used(&mut *connection, organisation, currency, amount).await?;
            }
            spend(&mut *connection, organisation, &draw.charges).await?;
            let row = sql("SELECT credit_used_scaled FROM organisations WHERE id = $1")
                .bind(organisation.to_string())
                .fetch_optional(&mut *connection)
                .await?;
            let used = row.map(|row| row.try_get("credit_used_scaled")).transpose()?;
            let used = Amount::from_scaled(used.unwrap_or_default());
            all.push(Drawn { organisation, used, calls: draw.calls });
        }
        Ok(all)
    }
}

fn account(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        organisation_id: parsed(row, "id")?,
        currency: parsed(row, "currency")?,
        credit: row.try_get::<Option<i64>>("credit_scaled")?.map(Amount::from_scaled),
        used: Amount::from_scaled(row.try_get("credit_used_scaled")?),
        used_before: Amount::from_scaled(row.try_get("credit_used_before_scaled")?),
    })
}
