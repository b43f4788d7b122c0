//! Keys as the API manages them.

use sidetone_model::access::{Permission, Scope};
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::key::{KeyChange, KeyRecord, NewKey};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::api_keys::ApiKeyText;
use crate::api_keys::declare::{permissions, permissions_text};
use crate::columns::{instant, networks, networks_text, number, parsed, to_hex};
use crate::listing::Table;
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, Store, StoreError, WriteTransaction};

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM api_keys",
    select: "SELECT id, organisation_id, name, prefix, short_id, last4, permissions, preset, allow,
             rate_per_minute, created_at_us, updated_at_us FROM api_keys",
    team: None,
    by_name: [" ORDER BY name ASC, id ASC", " ORDER BY name DESC, id DESC"],
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
        let id = ApiKeyId(Uuid::new_v4());
        write.require_free_key_name(new.organisation_id, &new.name, id).await?;
        let statement =
            sql("INSERT INTO api_keys (id, organisation_id, name, prefix, short_id, secret_sha256, last4, permissions,
             preset, allow, rate_per_minute, search, created_at_us, updated_at_us)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)")
        .bind(id.to_string())
        .bind(new.organisation_id.to_string())
        .bind(&new.name)
        .bind(&text.prefix)
        .bind(&text.short_id)
        .bind(to_hex(&text.secret_sha256))
        .bind(&text.last4)
        .bind(permissions_text(&new.permissions))
        .bind(&new.preset)
        .bind(networks_text(&new.allow))
        .bind(i64::from(new.rate_per_minute))
        .bind(searchable([Some(new.name.as_str())]))
        .bind(now.as_micros());
        write.finish(statement, Change::Created).await?;
        let prefix = format!("{}_{}", text.prefix, text.short_id);
        Ok(KeyRecord {
            id,
            organisation_id: new.organisation_id,
            name: new.name,
            prefix,
            last4: text.last4,
            permissions: sorted(new.permissions),
            preset: new.preset,
            allow: new.allow,
            rate_per_minute: new.rate_per_minute,
            created_at: now,
            updated_at: now,
        })
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
        let before = write.key_inside(scope, id).await?;
        let (permissions, preset) = change.permissions.unwrap_or((before.permissions, before.preset));
        let after = KeyRecord {
            name: change.name.unwrap_or(before.name),
            permissions: sorted(permissions),
            preset,
            allow: change.allow.unwrap_or(before.allow),
            rate_per_minute: change.rate_per_minute.unwrap_or(before.rate_per_minute),
            updated_at: now,
            ..before
        };
        write.require_free_key_name(after.organisation_id, &after.name, id).await?;
        let statement = sql(
            "UPDATE api_keys SET name = $1, permissions = $2, preset = $3, allow = $4, rate_per_minute = $5,
             search = $6, updated_at_us = $7 WHERE id = $8 AND organisation_id = $9",
        )
        .bind(&after.name)
        .bind(permissions_text(&after.permissions))
        .bind(&after.preset)
        .bind(networks_text(&after.allow))
        .bind(i64::from(after.rate_per_minute))
        .bind(searchable([Some(after.name.as_str())]))
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(after.organisation_id.to_string());
        write.finish(statement, Change::Changed).await?;
        Ok(after)
    }

    /// Removes a key inside `scope`.
    ///
    /// # Errors
    /// As [`sidetone_model::key::Keys::delete`].
    pub async fn delete_api_key(&self, scope: Scope, id: ApiKeyId) -> Result<(), Problem> {
        let mut write = self.write().await?;
        let key = write.key_inside(scope, id).await?;
        let statement = sql("DELETE FROM api_keys WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(key.organisation_id.to_string());
        write.finish(statement, Change::Changed).await?;
        Ok(())
    }
}

impl WriteTransaction {
    async fn key_inside(&mut self, scope: Scope, id: ApiKeyId) -> Result<KeyRecord, Problem> {
        let query =
            sql("SELECT id, organisation_id, name, prefix, short_id, last4, permissions, preset, allow,
             rate_per_minute, created_at_us, updated_at_us FROM api_keys WHERE id = $1")
            .bind(id.to_string());
        let key = self.one(query, record).await?;
        key.filter(|key| scope.covers(key.organisation_id, None))
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

fn record(row: &Row) -> Result<KeyRecord, StoreError> {
    let (prefix, short_id): (&str, &str) = (row.try_get("prefix")?, row.try_get("short_id")?);
    Ok(KeyRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        name: row.try_get("name")?,
        prefix: format!("{prefix}_{short_id}"),
        last4: row.try_get("last4")?,
        permissions: permissions(row)?,
        preset: row.try_get("preset")?,
        allow: networks(row, "allow")?,
        rate_per_minute: number(row, "rate_per_minute")?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}

fn sorted(mut permissions: Vec<Permission>) -> Vec<Permission> {
    permissions.sort_unstable();
    permissions.dedup();
    permissions
}
