//! Keys as apply files declare them.

use sidetone_model::access::Permission;
use sidetone_model::directory::Network;
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::key::KeyRecord;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::api_keys::rows::{ApiKeyText, record_with_text, sorted};
use crate::columns::parsed_opt;
use crate::sql::sql;
use crate::{Change, StoreError, WriteTransaction};

/// A key as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRow {
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// Its name, the natural key within the organisation.
    pub name: String,
    /// The key's text in its stored form; `None` keeps the stored one.
    pub text: Option<ApiKeyText>,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// The preset that the permissions are copied from; a stored key with the same preset keeps its
    /// permissions.
    pub preset: Option<String>,
    /// The networks it may be used from.
    pub allow: Vec<Network>,
    /// Requests a minute.
    pub rate_per_minute: u32,
}

impl WriteTransaction {
    /// Returns the key of that name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_api_key(
        &mut self,
        organisation: OrganisationId,
        name: &str,
    ) -> Result<Option<ApiKeyId>, StoreError> {
        let row = sql("SELECT id FROM api_keys WHERE organisation_id = $1 AND name = $2")
            .bind(organisation.to_string())
            .bind(name)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map_or(Ok(None), |row| parsed_opt(&row, "id"))
    }

    /// Creates or updates the key as declared.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when another key has the short id, [`StoreError::Corrupt`] when a new one has no
    /// text; otherwise when the database fails.
    pub async fn declare_api_key(
        &mut self,
        declared: &ApiKeyRow,
        now: Timestamp,
    ) -> Result<(ApiKeyId, Change), StoreError> {
        let query = sql("SELECT * FROM api_keys WHERE organisation_id = $1 AND name = $2")
            .bind(declared.organisation_id.to_string())
            .bind(&declared.name);
        let stored = self.one(query, record_with_text).await?;
        let Some((before, kept)) = stored else {
            let text = declared.text.as_ref().ok_or(StoreError::Corrupt { column: "secret_sha256" })?;
            let made = declared.key(None, text, now);
            self.refuse_taken(text, made.id).await?;
            self.insert_api_key(&made, text).await?;
            return Ok((made.id, Change::Created));
        };
        let text = declared.text.as_ref().unwrap_or(&kept);
        let after = declared.key(Some(&before), text, now);
        if *text == kept && before == (KeyRecord { updated_at: before.updated_at, ..after.clone() }) {
            return Ok((after.id, Change::Unchanged));
        }
        self.refuse_taken(text, after.id).await?;
        self.update_api_key(&before, &after, text).await?;
        Ok((after.id, Change::Changed))
    }

    async fn refuse_taken(&mut self, text: &ApiKeyText, id: ApiKeyId) -> Result<(), StoreError> {
        let clash = sql("SELECT id FROM api_keys WHERE short_id = $1 AND id <> $2")
            .bind(&text.short_id)
            .bind(id.to_string())
            .fetch_optional(&mut *self.transaction)
            .await?;
        if clash.is_some() { Err(StoreError::Taken { column: "short_id" }) } else { Ok(()) }
    }
}

impl ApiKeyRow {
    /// Builds the declared key, based on the stored one if there is one.
    fn key(&self, stored: Option<&KeyRecord>, text: &ApiKeyText, now: Timestamp) -> KeyRecord {
        // A stored key with the same preset keeps its permissions.
        let copied = stored.filter(|stored| self.preset.is_some() && self.preset == stored.preset);
        KeyRecord {
            id: stored.map_or_else(|| ApiKeyId(Uuid::new_v4()), |stored| stored.id),
            organisation_id: self.organisation_id,
            name: self.name.clone(),
            prefix: text.shown(),
            last4: text.last4.clone(),
            permissions: copied
                .map_or_else(|| sorted(self.permissions.clone()), |stored| stored.permissions.clone()),
            preset: self.preset.clone(),
            allow: self.allow.clone(),
            rate_per_minute: self.rate_per_minute,
            created_at: stored.map_or(now, |stored| stored.created_at),
            updated_at: now,
        }
    }
}
