//! Keys as apply files declare them, and the lookup of a presented key.

use sidetone_model::access::Permission;
use sidetone_model::directory::Network;
use sidetone_model::ids::{ApiKeyId, OrganisationId};
use sidetone_model::ports::{ApiKey, ApiKeys, PortFuture};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{from_hex, items, networks, networks_text, number, parsed, parsed_opt, to_hex};
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, Store, StoreError, WriteTransaction};

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

/// The stored form of a key's text `<prefix>_<short id>_<secret>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyText {
    /// The part before the short id.
    pub prefix: String,
    /// Identifies the key.
    pub short_id: String,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// The last four characters, shown in lists.
    pub last4: String,
}

impl ApiKeys for Store {
    fn find(&self, id: &str) -> PortFuture<'_, Option<ApiKey>> {
        let id = id.to_owned();
        Box::pin(async move {
            let query = sql("SELECT id, organisation_id, secret_sha256, permissions, allow, rate_per_minute
                 FROM api_keys WHERE short_id = $1")
            .bind(id);
            Ok(self.one(query, key).await?)
        })
    }
}

fn key(row: &Row) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        key: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        secret_sha256: from_hex(row.try_get("secret_sha256")?)
            .ok_or(StoreError::Corrupt { column: "secret_sha256" })?,
        permissions: permissions(row)?,
        allow: networks(row, "allow")?,
        rate_per_minute: number(row, "rate_per_minute")?,
    })
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
        let row = sql("SELECT id, prefix, short_id, secret_sha256, last4, permissions, preset, allow,
             rate_per_minute FROM api_keys WHERE organisation_id = $1 AND name = $2")
        .bind(declared.organisation_id.to_string())
        .bind(&declared.name)
        .fetch_optional(&mut *self.transaction)
        .await?;
        let Some(row) = row else {
            let text = declared.text.as_ref().ok_or(StoreError::Corrupt { column: "secret_sha256" })?;
            let id = ApiKeyId(Uuid::new_v4());
            self.refuse_taken(text, id).await?;
            self.insert_api_key(id, declared, text, now).await?;
            return Ok((id, self.note(Change::Created)));
        };
        let id: ApiKeyId = parsed(&row, "id")?;
        let stored = ApiKeyText {
            prefix: row.try_get("prefix")?,
            short_id: row.try_get("short_id")?,
            secret_sha256: from_hex(row.try_get("secret_sha256")?)
                .ok_or(StoreError::Corrupt { column: "secret_sha256" })?,
            last4: row.try_get("last4")?,
        };
        let text = declared.text.as_ref().unwrap_or(&stored);
        let stored_permissions: &str = row.try_get("permissions")?;
        let stored_preset: Option<String> = row.try_get("preset")?;
        let copied = declared.preset.is_some() && declared.preset == stored_preset;
        let permissions =
            if copied { stored_permissions.to_owned() } else { permissions_text(&declared.permissions) };
        let allow = networks_text(&declared.allow);
        let same = *text == stored
            && stored_permissions == permissions
            && stored_preset == declared.preset
            && row.try_get::<&str>("allow")? == allow
            && row.try_get::<i64>("rate_per_minute")? == i64::from(declared.rate_per_minute);
        if same {
            return Ok((id, Change::Unchanged));
        }
        self.refuse_taken(text, id).await?;
        sql(
            "UPDATE api_keys SET prefix = $1, short_id = $2, secret_sha256 = $3, last4 = $4, permissions = $5,
             preset = $6, allow = $7, rate_per_minute = $8, updated_at_us = $9
             WHERE id = $10 AND organisation_id = $11",
        )
        .bind(&text.prefix)
        .bind(&text.short_id)
        .bind(to_hex(&text.secret_sha256))
        .bind(&text.last4)
        .bind(permissions)
        .bind(&declared.preset)
        .bind(allow)
        .bind(i64::from(declared.rate_per_minute))
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(declared.organisation_id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        Ok((id, self.note(Change::Changed)))
    }

    async fn insert_api_key(
        &mut self,
        id: ApiKeyId,
        declared: &ApiKeyRow,
        text: &ApiKeyText,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sql("INSERT INTO api_keys (id, organisation_id, name, prefix, short_id, secret_sha256, last4,
             permissions, preset, allow, rate_per_minute, search, created_at_us, updated_at_us)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)")
        .bind(id.to_string())
        .bind(declared.organisation_id.to_string())
        .bind(&declared.name)
        .bind(&text.prefix)
        .bind(&text.short_id)
        .bind(to_hex(&text.secret_sha256))
        .bind(&text.last4)
        .bind(permissions_text(&declared.permissions))
        .bind(&declared.preset)
        .bind(networks_text(&declared.allow))
        .bind(i64::from(declared.rate_per_minute))
        .bind(searchable([Some(declared.name.as_str())]))
        .bind(now.as_micros())
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
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

/// The permissions of a row; a permission of a newer version grants nothing here.
pub(super) fn permissions(row: &Row) -> Result<Vec<Permission>, StoreError> {
    Ok(items(row, "permissions")?.iter().filter_map(|name| Permission::from_name(name)).collect())
}

/// The stored form of permissions.
pub(super) fn permissions_text(permissions: &[Permission]) -> String {
    let mut permissions = permissions.to_vec();
    permissions.sort_unstable();
    permissions.dedup();
    let names: Vec<&str> = permissions.into_iter().map(Permission::as_str).collect();
    names.join(",")
}
