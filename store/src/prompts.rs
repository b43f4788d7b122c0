//! The audio prompts of organisations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sidetone_model::ids::OrganisationId;
use sidetone_model::prompt::{OwnSound, PromptRecord, SoundName};
use sidetone_model::time::Timestamp;

use crate::bell::Changed;
use crate::columns::{instant, number, parsed, word};
use crate::sql::{Row, Transaction, sql};
use crate::{Store, StoreError};

/// A prompt of an organisation, and the revision at which it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPrompt {
    /// The organisation it belongs to.
    pub organisation: OrganisationId,
    /// The prompt that it replaces, or the organisation's own sound name.
    pub name: SoundName,
    /// Grows whenever it is stored again.
    pub revision: i64,
}

impl Store {
    /// The organisation's own prompts, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn own_prompts(&self, organisation: OrganisationId) -> Result<Vec<PromptRecord>, StoreError> {
        let rows = sql("SELECT name, bytes, duration_ms, updated_at_us FROM prompts
             WHERE organisation_id = $1 ORDER BY name")
        .bind(organisation.to_string())
        .fetch_all(self.readers())
        .await?;
        let record = |row: &Row| {
            Ok(PromptRecord {
                name: word(row, "name", SoundName::from_name)?,
                own_since: Some(instant(row, "updated_at_us")?),
                duration_ms: number(row, "duration_ms")?,
                bytes: number(row, "bytes")?,
            })
        };
        // A prompt name of a later version is not played here.
        let known = |row: &&Row| row.try_get("name").is_ok_and(|name| SoundName::from_name(name).is_some());
        rows.iter().filter(known).map(record).collect()
    }

    /// Returns the file of the organisation's own prompt, if it has one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn own_prompt(
        &self,
        organisation: OrganisationId,
        name: SoundName,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sql("SELECT wav FROM prompts WHERE organisation_id = $1 AND name = $2")
            .bind(organisation.to_string())
            .bind(name.to_string());
        let wav = |row: &Row| {
            let text: &str = row.try_get("wav")?;
            STANDARD.decode(text).map_err(|_| StoreError::Corrupt { column: "wav" })
        };
        self.one(query, wav).await
    }

    /// Stores `wav` as the organisation's version of a prompt, or as a sound that only it has. Returns `false` if
    /// there is no room: an organisation has at most [`OwnSound::COUNT_MAX`] sounds of its own.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_prompt(
        &self,
        organisation: OrganisationId,
        name: SoundName,
        wav: &[u8],
        duration_ms: u64,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let revision = next_revision(&mut transaction).await?;
        if matches!(name, SoundName::Own(_))
            && others(&mut transaction, organisation, name).await? >= OwnSound::COUNT_MAX
        {
            return Ok(false);
        }
        sql("INSERT INTO prompts (organisation_id, name, wav, bytes, duration_ms, revision, updated_at_us)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (organisation_id, name) DO UPDATE SET wav = excluded.wav, bytes = excluded.bytes,
             duration_ms = excluded.duration_ms, revision = excluded.revision,
             updated_at_us = excluded.updated_at_us")
        .bind(organisation.to_string())
        .bind(name.to_string())
        .bind(STANDARD.encode(wav))
        .bind(i64::try_from(wav.len()).unwrap_or(i64::MAX))
        .bind(i64::try_from(duration_ms).unwrap_or(i64::MAX))
        .bind(revision)
        .bind(now.as_micros())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Removes the organisation's own prompt; returns whether there was one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn remove_prompt(
        &self,
        organisation: OrganisationId,
        name: SoundName,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        next_revision(&mut transaction).await?;
        let done = sql("DELETE FROM prompts WHERE organisation_id = $1 AND name = $2")
            .bind(organisation.to_string())
            .bind(name.to_string())
            .execute(&mut *transaction)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Returns a revision that grows with every prompt that is stored or removed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prompt_revision(&self) -> Result<i64, StoreError> {
        let row =
            sql("SELECT revision FROM directory_revision WHERE id = 3").fetch_one(self.readers()).await?;
        Ok(row.try_get("revision")?)
    }

    /// Returns the prompts of every organisation, for a node that plays them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn stored_prompts(&self) -> Result<Vec<StoredPrompt>, StoreError> {
        let rows = sql("SELECT organisation_id, name, revision FROM prompts ORDER BY organisation_id, name")
            .fetch_all(self.readers())
            .await?;
        let known = rows.iter().filter_map(|row| {
            let name = row.try_get("name").map(SoundName::from_name);
            name.map_err(StoreError::from).transpose().map(|name| (row, name))
        });
        known
            .map(|(row, name)| {
                Ok(StoredPrompt {
                    organisation: parsed(row, "organisation_id")?,
                    name: name?,
                    revision: row.try_get("revision")?,
                })
            })
            .collect()
    }
}

/// The number of the organisation's own sounds, without this one.
async fn others(
    transaction: &mut Transaction,
    organisation: OrganisationId,
    name: SoundName,
) -> Result<usize, StoreError> {
    let row = sql("SELECT COUNT(*) AS total FROM prompts
         WHERE organisation_id = $1 AND name LIKE 'own-%' AND name <> $2")
    .bind(organisation.to_string())
    .bind(name.to_string())
    .fetch_one(&mut **transaction)
    .await?;
    let total: i64 = row.try_get("total")?;
    Ok(usize::try_from(total).unwrap_or(usize::MAX))
}

/// Writers run one after the other: a node that saw a revision has seen all changes up to it.
async fn next_revision(transaction: &mut Transaction) -> Result<i64, StoreError> {
    let row = sql("UPDATE directory_revision SET revision = revision + 1 WHERE id = 3 RETURNING revision")
        .fetch_one(&mut **transaction)
        .await?;
    transaction.changes(Changed::Directory);
    Ok(row.try_get("revision")?)
}
