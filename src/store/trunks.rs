//! Trunks: carriers and peers, known by the addresses their calls come from.

use sidetone_model::directory::Network;
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::time::Timestamp;
use sqlx::Row;
use uuid::Uuid;

use crate::store::columns::{networks_text, parsed};
use crate::store::{Change, StoreError, WriteTransaction};

/// A trunk as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkRow {
    /// Its name, the natural key.
    pub name: String,
    /// Who alone uses it; `None` is everybody.
    pub organisation_id: Option<OrganisationId>,
    /// Where its calls are sent.
    pub address: Option<String>,
    /// Where its calls come from.
    pub accept_from: Vec<Network>,
    /// Lower is tried first.
    pub priority: u16,
}

impl WriteTransaction {
    /// Makes the trunk as declared.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn declare_trunk(
        &mut self,
        declared: &TrunkRow,
        now: Timestamp,
    ) -> Result<(TrunkId, Change), StoreError> {
        let organisation = declared.organisation_id.map(|id| id.to_string());
        let accept_from = networks_text(&declared.accept_from);
        let priority = i64::from(declared.priority);
        let row = sqlx::query(
            "SELECT id, organisation_id, address, accept_from, priority FROM trunks WHERE name = $1",
        )
        .bind(&declared.name)
        .fetch_optional(&mut *self.transaction)
        .await?;
        let Some(row) = row else {
            let id = TrunkId(Uuid::new_v4());
            sqlx::query(
                "INSERT INTO trunks (id, organisation_id, name, address, accept_from, priority,
                 created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
            )
            .bind(id.to_string())
            .bind(organisation)
            .bind(&declared.name)
            .bind(&declared.address)
            .bind(accept_from)
            .bind(priority)
            .bind(now.as_micros())
            .execute(&mut *self.transaction)
            .await?;
            return Ok((id, self.note(Change::Created)));
        };
        let id: TrunkId = parsed(&row, "id")?;
        let same = row.try_get::<Option<String>, _>("organisation_id")? == organisation
            && row.try_get::<Option<String>, _>("address")? == declared.address
            && row.try_get::<&str, _>("accept_from")? == accept_from
            && row.try_get::<i64, _>("priority")? == priority;
        if same {
            return Ok((id, Change::Unchanged));
        }
        sqlx::query(
            "UPDATE trunks SET organisation_id = $1, address = $2, accept_from = $3, priority = $4,
             updated_at_us = $5 WHERE id = $6",
        )
        .bind(organisation)
        .bind(&declared.address)
        .bind(accept_from)
        .bind(priority)
        .bind(now.as_micros())
        .bind(id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        Ok((id, self.note(Change::Changed)))
    }
}
