//! Organisations.

use sidetone_model::directory::Numbering;
use sidetone_model::ids::OrganisationId;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::search::searchable;
use crate::sql::sql;
use crate::{Change, StoreError, WriteTransaction};

/// An organisation as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganisationRow {
    /// Its name, the natural key.
    pub name: String,
    /// The domain and digest realm of its phones, lower case.
    pub sip_domain: String,
    /// The currency of its amounts.
    pub currency: Currency,
    /// Its credit; `None` is no limit.
    pub credit: Option<Amount>,
    /// How its users write phone numbers.
    pub numbering: Numbering,
    /// The largest number of simultaneous outbound calls over trunks; `None` is no limit.
    pub max_outbound_calls: Option<u32>,
    /// The longest duration of an answered call in seconds; `None` takes the node's limit.
    pub max_call_seconds: Option<u32>,
}

impl WriteTransaction {
    /// Returns the organisation of that name and its current domain.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_organisation(
        &mut self,
        name: &str,
    ) -> Result<Option<(OrganisationId, String)>, StoreError> {
        let row = sql("SELECT id, sip_domain FROM organisations WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map(|row| Ok((parsed(&row, "id")?, row.try_get("sip_domain")?))).transpose()
    }

    /// Creates or updates the organisation as declared.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when another one has the domain; otherwise when the database fails.
    pub async fn declare_organisation(
        &mut self,
        declared: &OrganisationRow,
        now: Timestamp,
    ) -> Result<(OrganisationId, Change), StoreError> {
        let clash = sql("SELECT id FROM organisations WHERE sip_domain = $1 AND name <> $2")
            .bind(&declared.sip_domain)
            .bind(&declared.name)
            .fetch_optional(&mut *self.transaction)
            .await?;
        if clash.is_some() {
            return Err(StoreError::Taken { column: "sip_domain" });
        }
        let row = sql("SELECT id, sip_domain, currency, credit_scaled, country_code, national_prefix,
             international_prefix, max_outbound_calls, max_call_seconds FROM organisations WHERE name = $1")
        .bind(&declared.name)
        .fetch_optional(&mut *self.transaction)
        .await?;
        let credit = declared.credit.map(Amount::scaled);
        let numbering = &declared.numbering;
        let max_outbound_calls = declared.max_outbound_calls.map(i64::from);
        let max_call_seconds = declared.max_call_seconds.map(i64::from);
        let Some(row) = row else {
            let id = OrganisationId(Uuid::new_v4());
            sql("INSERT INTO organisations
                 (id, name, sip_domain, currency, credit_scaled, country_code, national_prefix,
                 international_prefix, max_outbound_calls, search, created_at_us, updated_at_us, max_call_seconds)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12)")
            .bind(id.to_string())
            .bind(&declared.name)
            .bind(&declared.sip_domain)
            .bind(declared.currency.as_str())
            .bind(credit)
            .bind(&numbering.country_code)
            .bind(&numbering.national_prefix)
            .bind(&numbering.international_prefix)
            .bind(max_outbound_calls)
            .bind(organisation_search(&declared.name, &declared.sip_domain))
            .bind(now.as_micros())
            .bind(max_call_seconds)
            .execute(&mut *self.transaction)
            .await?;
            return Ok((id, self.note(Change::Created)));
        };
        let id = parsed(&row, "id")?;
        let same = row.try_get::<&str>("sip_domain")? == declared.sip_domain
            && row.try_get::<&str>("currency")? == declared.currency.as_str()
            && row.try_get::<Option<i64>>("credit_scaled")? == credit
            && row.try_get::<Option<String>>("country_code")? == numbering.country_code
            && row.try_get::<&str>("national_prefix")? == numbering.national_prefix
            && row.try_get::<&str>("international_prefix")? == numbering.international_prefix
            && row.try_get::<Option<i64>>("max_outbound_calls")? == max_outbound_calls
            && row.try_get::<Option<i64>>("max_call_seconds")? == max_call_seconds;
        if same {
            return Ok((id, Change::Unchanged));
        }
        // A newly granted credit, or one in another currency, starts unused.
        sql("UPDATE organisations SET credit_used_before_scaled =
             CASE WHEN credit_scaled IS NULL OR currency <> $2 THEN credit_used_scaled
             ELSE credit_used_before_scaled END,
             sip_domain = $1, currency = $2, credit_scaled = $3, country_code = $4,
             national_prefix = $5, international_prefix = $6, max_outbound_calls = $7, search = $8,
             updated_at_us = $9, max_call_seconds = $11 WHERE id = $10")
        .bind(&declared.sip_domain)
        .bind(declared.currency.as_str())
        .bind(credit)
        .bind(&numbering.country_code)
        .bind(&numbering.national_prefix)
        .bind(&numbering.international_prefix)
        .bind(max_outbound_calls)
        .bind(organisation_search(&declared.name, &declared.sip_domain))
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(max_call_seconds)
        .execute(&mut *self.transaction)
        .await?;
        Ok((id, self.note(Change::Changed)))
    }
}

/// The text that a search in a list of organisations covers.
pub(super) fn organisation_search(name: &str, sip_domain: &str) -> String {
    searchable([Some(name), Some(sip_domain)])
}
