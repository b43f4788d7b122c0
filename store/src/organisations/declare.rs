//! Organisations as apply files declare them.

use sidetone_model::directory::Numbering;
use sidetone_model::ids::OrganisationId;
use sidetone_model::language::Language;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::organisation::OrganisationRecord;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::organisations::rows::organisation;
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
    /// Its credit; `None` means no limit.
    pub credit: Option<Amount>,
    /// How its users write phone numbers.
    pub numbering: Numbering,
    /// The largest number of simultaneous outbound calls over trunks; `None` means no limit.
    pub max_outbound_calls: Option<u32>,
    /// The longest duration of an answered call in seconds; `None` means the node's limit.
    pub max_call_seconds: Option<u32>,
    /// Whether its phones can dial star codes; `None` keeps the stored value, which is true for a new organisation.
    pub star_codes: Option<bool>,
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
        let query = sql("SELECT * FROM organisations WHERE name = $1").bind(&declared.name);
        let stored = self.one(query, organisation).await?;
        let made = declared.organisation(stored.as_ref(), now);
        let change = match &stored {
            None => {
                self.insert_organisation(&made, ["", ""]).await?;
                Change::Created
            }
            Some(stored)
                if *stored == (OrganisationRecord { updated_at: stored.updated_at, ..made.clone() }) =>
            {
                Change::Unchanged
            }
            Some(_) => {
                self.update_organisation(&made, [None, None]).await?;
                Change::Changed
            }
        };
        Ok((made.id, change))
    }

    /// Sets the language of the organisation's prompts, as declared.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_language(
        &mut self,
        organisation: OrganisationId,
        language: Language,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let done = sql(
            "UPDATE organisations SET language = $1, updated_at_us = $2 WHERE id = $3 AND language <> $1",
        )
        .bind(language.as_str())
        .bind(now.as_micros())
        .bind(organisation.to_string())
        .execute(&mut *self.transaction)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(Change::Unchanged);
        }
        self.note(Change::Changed);
        Ok(Change::Changed)
    }
}

impl OrganisationRow {
    /// Builds the declared organisation; values that an apply file does not declare here are kept.
    fn organisation(&self, stored: Option<&OrganisationRecord>, now: Timestamp) -> OrganisationRecord {
        OrganisationRecord {
            id: stored.map_or_else(|| OrganisationId(Uuid::new_v4()), |stored| stored.id),
            name: self.name.clone(),
            sip_domain: self.sip_domain.clone(),
            currency: self.currency,
            credit: self.credit,
            spent: stored.map_or(Amount::ZERO, |stored| stored.spent),
            numbering: self.numbering.clone(),
            max_outbound_calls: self.max_outbound_calls,
            max_call_seconds: self.max_call_seconds,
            call_info_url: stored.map(|stored| stored.call_info_url.clone()).unwrap_or_default(),
            has_call_info_secret: stored.is_some_and(|stored| stored.has_call_info_secret),
            has_callback_secret: stored.is_some_and(|stored| stored.has_callback_secret),
            recording_retention_days: stored.map_or(0, |stored| stored.recording_retention_days),
            language: stored.map(|stored| stored.language).unwrap_or_default(),
            star_codes: self.star_codes.unwrap_or_else(|| stored.is_none_or(|stored| stored.star_codes)),
            created_at: stored.map_or(now, |stored| stored.created_at),
            updated_at: now,
        }
    }
}
