//! The recorded names of extensions, for rooms that announce their members.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sidetone_model::access::Scope;
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;

use crate::columns::parsed;
use crate::scope::within;
use crate::sql::{Row, sql};
use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    /// Returns the WAV file with the recorded name of an extension of this organisation, if it has one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn spoken_name(
        &self,
        organisation: OrganisationId,
        extension: ExtensionId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sql("SELECT wav FROM spoken_names WHERE organisation_id = $1 AND extension_id = $2")
            .bind(organisation.to_string())
            .bind(extension.to_string());
        let wav = |row: &Row| {
            let text: &str = row.try_get("wav")?;
            STANDARD.decode(text).map_err(|_| StoreError::Corrupt { column: "wav" })
        };
        self.one(query, wav).await
    }

    /// Stores the name of an extension of this organisation and replaces an earlier one. Nothing is stored for an
    /// extension that was deleted or belongs to another organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_spoken_name(
        &self,
        organisation: OrganisationId,
        extension: ExtensionId,
        wav: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        sql("INSERT INTO spoken_names (organisation_id, extension_id, wav, recorded_at_us)
             SELECT organisation_id, id, $1, $2 FROM extensions WHERE organisation_id = $3 AND id = $4
             ON CONFLICT (organisation_id, extension_id) DO UPDATE SET wav = excluded.wav,
             recorded_at_us = excluded.recorded_at_us")
        .bind(STANDARD.encode(wav))
        .bind(now.as_micros())
        .bind(organisation.to_string())
        .bind(extension.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// The WAV file with the recorded name of an extension inside `scope`.
    ///
    /// # Errors
    /// When there is no such extension, it has no recorded name, or the database fails.
    pub async fn find_spoken_name(&self, scope: Scope, extension: ExtensionId) -> Result<Vec<u8>, Problem> {
        let owner = self.owner_of(scope, extension).await?;
        self.spoken_name(owner, extension).await?.ok_or_else(none)
    }

    /// Deletes the name of an extension inside `scope`.
    ///
    /// # Errors
    /// When there is no such extension, it has no recorded name, or the database fails.
    pub async fn remove_spoken_name(&self, scope: Scope, extension: ExtensionId) -> Result<(), Problem> {
        let owner = self.owner_of(scope, extension).await?;
        let mut transaction = self.writer().begin_write().await.map_err(StoreError::from)?;
        let done = sql("DELETE FROM spoken_names WHERE organisation_id = $1 AND extension_id = $2")
            .bind(owner.to_string())
            .bind(extension.to_string())
            .execute(&mut *transaction)
            .await
            .map_err(StoreError::from)?;
        transaction.commit().await.map_err(StoreError::from)?;
        if done.rows_affected() == 0 { Err(none()) } else { Ok(()) }
    }

    /// Deletes names older than the recording retention time of their organisation; one batch. Returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_spoken_names(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let done = sql("DELETE FROM spoken_names WHERE extension_id IN (SELECT spoken_names.extension_id
             FROM spoken_names JOIN organisations ON organisations.id = spoken_names.organisation_id
             WHERE organisations.recording_retention_days > 0 AND spoken_names.recorded_at_us <=
             $1 - organisations.recording_retention_days * 86400000000 LIMIT $2)")
        .bind(now.as_micros())
        .bind(PURGE_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }

    /// The organisation of an extension inside `scope`.
    async fn owner_of(&self, scope: Scope, extension: ExtensionId) -> Result<OrganisationId, Problem> {
        let mut statement = Statement::new("SELECT * FROM extensions");
        within(&mut statement, scope);
        statement.bind(" AND id = ", extension.to_string(), "");
        let found = self.one(statement.query(), |row: &Row| parsed(row, "organisation_id")).await?;
        found.ok_or_else(|| Problem::NotFound("there is no such extension".to_owned()))
    }

    /// How many names one [`purge_spoken_names`](Self::purge_spoken_names) deletes at most.
    pub const SPOKEN_NAME_PURGE_BATCH: u64 = PURGE_ROWS_MAX.unsigned_abs();
}

fn none() -> Problem {
    Problem::NotFound(
        "the extension has no spoken name: it is asked for one when it joins a room with announce_names"
            .to_owned(),
    )
}

/// Rows of one batch.
const PURGE_ROWS_MAX: i64 = 500;
