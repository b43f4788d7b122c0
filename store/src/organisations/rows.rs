//! Reads and writes the rows of organisations.

use sidetone_model::directory::Numbering;
use sidetone_model::language::Language;
use sidetone_model::money::Amount;
use sidetone_model::organisation::OrganisationRecord;

use crate::columns::{instant, number, number_opt, parsed, word};
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, StoreError, WriteTransaction};

impl WriteTransaction {
    /// Stores a new organisation with the secrets of its call-info URL and of its callbacks, which may be empty.
    pub(super) async fn insert_organisation(
        &mut self,
        made: &OrganisationRecord,
        [call_info_secret, callback_secret]: [&str; 2],
    ) -> Result<(), StoreError> {
        sql("INSERT INTO organisations (id, name, sip_domain, currency, credit_scaled, country_code,
             national_prefix, international_prefix, max_outbound_calls, search, created_at_us, updated_at_us,
             call_info_url, call_info_secret, recording_retention_days, max_call_seconds, callback_secret,
             language, star_codes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14, $15, $16, $17, $18)")
        .bind(made.id.to_string())
        .bind(&made.name)
        .bind(&made.sip_domain)
        .bind(made.currency.as_str())
        .bind(made.credit.map(Amount::scaled))
        .bind(&made.numbering.country_code)
        .bind(&made.numbering.national_prefix)
        .bind(&made.numbering.international_prefix)
        .bind(made.max_outbound_calls.map(i64::from))
        .bind(search(made))
        .bind(made.created_at.as_micros())
        .bind(&made.call_info_url)
        .bind(call_info_secret)
        .bind(i64::from(made.recording_retention_days))
        .bind(made.max_call_seconds.map(i64::from))
        .bind(callback_secret)
        .bind(made.language.as_str())
        .bind(i64::from(made.star_codes))
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    /// Stores a changed organisation; `None` keeps the secret of its call-info URL, or of its callbacks.
    ///
    /// Like [`sidetone_model::organisation::OrganisationChange::applied`]: a newly granted credit, or one in another
    /// currency, starts unused.
    pub(super) async fn update_organisation(
        &mut self,
        after: &OrganisationRecord,
        [call_info_secret, callback_secret]: [Option<&str>; 2],
    ) -> Result<(), StoreError> {
        sql("UPDATE organisations SET credit_used_before_scaled =
             CASE WHEN credit_scaled IS NULL OR currency <> $3 THEN credit_used_scaled
             ELSE credit_used_before_scaled END,
             name = $1, sip_domain = $2, currency = $3, credit_scaled = $4,
             country_code = $5, national_prefix = $6, international_prefix = $7, max_outbound_calls = $8,
             search = $9, updated_at_us = $10, call_info_url = $12,
             call_info_secret = COALESCE($13, call_info_secret), recording_retention_days = $14,
             max_call_seconds = $15, callback_secret = COALESCE($16, callback_secret), language = $17,
             star_codes = $18 WHERE id = $11")
        .bind(&after.name)
        .bind(&after.sip_domain)
        .bind(after.currency.as_str())
        .bind(after.credit.map(Amount::scaled))
        .bind(&after.numbering.country_code)
        .bind(&after.numbering.national_prefix)
        .bind(&after.numbering.international_prefix)
        .bind(after.max_outbound_calls.map(i64::from))
        .bind(search(after))
        .bind(after.updated_at.as_micros())
        .bind(after.id.to_string())
        .bind(&after.call_info_url)
        .bind(call_info_secret)
        .bind(i64::from(after.recording_retention_days))
        .bind(after.max_call_seconds.map(i64::from))
        .bind(callback_secret)
        .bind(after.language.as_str())
        .bind(i64::from(after.star_codes))
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Changed);
        Ok(())
    }
}

/// The text that a search in a list of organisations covers.
fn search(organisation: &OrganisationRecord) -> String {
    searchable([Some(organisation.name.as_str()), Some(&organisation.sip_domain)])
}

pub(super) fn organisation(row: &Row) -> Result<OrganisationRecord, StoreError> {
    Ok(OrganisationRecord {
        id: parsed(row, "id")?,
        name: row.try_get("name")?,
        sip_domain: row.try_get("sip_domain")?,
        currency: parsed(row, "currency")?,
        credit: row.try_get::<Option<i64>>("credit_scaled")?.map(Amount::from_scaled),
        spent: Amount::from_scaled(row.try_get("credit_used_scaled")?)
            .checked_sub(Amount::from_scaled(row.try_get("credit_used_before_scaled")?))
            .unwrap_or_default(),
        numbering: Numbering {
            country_code: row.try_get("country_code")?,
            national_prefix: row.try_get("national_prefix")?,
            international_prefix: row.try_get("international_prefix")?,
        },
        max_outbound_calls: number_opt(row, "max_outbound_calls")?,
        max_call_seconds: number_opt(row, "max_call_seconds")?,
        call_info_url: row.try_get("call_info_url")?,
        has_call_info_secret: !row.try_get::<&str>("call_info_secret")?.is_empty(),
        has_callback_secret: !row.try_get::<&str>("callback_secret")?.is_empty(),
        recording_retention_days: number(row, "recording_retention_days")?,
        language: word(row, "language", Language::from_name)?,
        star_codes: row.try_get::<i64>("star_codes")? != 0,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}
