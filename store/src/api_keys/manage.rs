//! Keys as the API manages them.

use sidetone_model::access::Scope;
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::key::{KeyChange, KeyRecord, NewKey};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::api_keys::rows::{ApiKeyText, record, record_with_text, sorted};
use crate::bell::Changed;
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::sql::sql;
use crate::{Change, Store, StoreError, WriteTransaction};

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM api_keys",
    select: "SELECT id, organisation_id, name, prefix, short_id, last4, permissions, preset, allow,
             rate_per_minute, created_at_us, updated_at_us FROM api_keys",
    team: None,
    by_name: &[SortColumn::Text("name"), SortColumn::Text("id")],
};

impl Store {
    /// The keys inside `scope` that the listing selects.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_api_keys(
        &self,
        scope: Scope,
        listing: &Listing,
    ) -> Result<Page<KeyRecord>, StoreError> {
        self.page(scope, listing, &TABLE, record).await
    }

    /// One key, of any organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn api_key(&self, id: ApiKeyId) -> Result<Option<KeyRecord>, StoreError> {
        let row =
            sql("SELECT id, organisation_id, name, prefix, short_id, last4, permissions, preset, allow,
             rate_per_minute, created_at_us, updated_at_us FROM api_keys WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await?;
        row.map(|row| record(&row)).transpose()
    }

    /// Creates a key with that text.
    ///
    /// # Errors
    /// As [`sidetone_model::key::Keys::create`].
    pub async fn create_api_key(
        &self,
        new: NewKey,
        text: ApiKeyText,
        now: Timestamp,
    ) -> Result<KeyRecord, Problem> {
        let mut write = self.write().await?;
        let made = KeyRecord {
            id: ApiKeyId(Uuid::new_v4()),
            organisation_id: new.organisation_id,
            name: new.name,
            prefix: text.shown(),
            last4: text.last4.clone(),
            permissions: sorted(new.permissions),
            preset: new.preset,
            allow: new.allow,
            rate_per_minute: new.rate_per_minute,
            created_at: now,
            updated_at: now,
        };
        write.require_free_key_name(made.organisation_id, &made.name, made.id).await?;
        write.insert_api_key(&made, &text).await?;
        write.commit().await?;
        Ok(made)
    }

    /// Changes a key inside `scope`.
    ///
    /// # Errors
    /// As [`sidetone_model::key::Keys::change`].
    pub async fn change_api_key(
        &self,
        scope: Scope,
        id: ApiKeyId,
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyRecord, Problem> {
        let mut write = self.write().await?;
        let (before, text) = write.key_inside(scope, id).await?;
        let (permissions, preset) =
            change.permissions.unwrap_or_else(|| (before.permissions.clone(), before.preset.clone()));
        let after = KeyRecord {
            name: change.name.unwrap_or_else(|| before.name.clone()),
            permissions: sorted(permissions),
            preset,
            allow: change.allow.unwrap_or_else(|| before.allow.clone()),
            rate_per_minute: change.rate_per_minute.unwrap_or(before.rate_per_minute),
            updated_at: now,
            ..before.clone()
        };
        write.require_free_key_name(after.organisation_id, &after.name, id).await?;
        write.update_api_key(&before, &after, &text).await?;
        write.commit().await?;
        Ok(after)
    }

    /// Removes a key inside `scope`.
    ///
    /// # Errors
    /// As [`sidetone_model::key::Keys::delete`].
    pub async fn delete_api_key(&self, scope: Scope, id: ApiKeyId) -> Result<(), Problem> {
        let mut write = self.write().await?;
        let (key, _) = write.key_inside(scope, id).await?;
        let statement = sql("DELETE FROM api_keys WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(key.organisation_id.to_string());
        write.transaction.changes(Changed::Credentials);
        write.finish(statement, Change::Changed).await?;
        Ok(())
    }
}

impl WriteTransaction {
    async fn key_inside(&mut self, scope: Scope, id: ApiKeyId) -> Result<(KeyRecord, ApiKeyText), Problem> {
        let query = sql("SELECT * FROM api_keys WHERE id = $1").bind(id.to_string());
        let found = self.one(query, record_with_text).await?;
        found
            .filter(|(key, _)| scope.covers(key.organisation_id, None))
            .ok_or_else(|| Problem::NotFound("there is no such key".to_owned()))
    }

    async fn require_free_key_name(
        &mut self,
        organisation: OrganisationId,
        name: &str,
        own: ApiKeyId,
    ) -> Result<(), Problem> {
        match self.find_api_key(organisation, name).await? {
            Some(other) if other != own => {
                Err(Problem::Conflict(format!("name: the organisation already has a key \"{name}\"")))
            }
            _ => Ok(()),
        }
    }
}
