//! Reads and writes the rows of keys.

use sidetone_model::access::Permission;
use sidetone_model::key::KeyRecord;

use crate::bell::Changed;
use crate::columns::{from_hex, instant, items, networks, networks_text, number, parsed, to_hex};
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, StoreError, WriteTransaction};

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

impl ApiKeyText {
    /// The part of the text before the secret.
    pub(super) fn shown(&self) -> String {
        format!("{}_{}", self.prefix, self.short_id)
    }
}

impl WriteTransaction {
    pub(super) async fn insert_api_key(
        &mut self,
        made: &KeyRecord,
        text: &ApiKeyText,
    ) -> Result<(), StoreError> {
        sql("INSERT INTO api_keys (id, organisation_id, name, prefix, short_id, secret_sha256, last4,
             permissions, preset, allow, rate_per_minute, search, created_at_us, updated_at_us)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)")
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(&made.name)
        .bind(&text.prefix)
        .bind(&text.short_id)
        .bind(to_hex(&text.secret_sha256))
        .bind(&text.last4)
        .bind(permissions_text(&made.permissions))
        .bind(&made.preset)
        .bind(networks_text(&made.allow))
        .bind(i64::from(made.rate_per_minute))
        .bind(searchable([Some(made.name.as_str())]))
        .bind(made.created_at.as_micros())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    /// Stores a changed key. Unchanged permissions are not written: the row may contain others, of a newer version.
    pub(super) async fn update_api_key(
        &mut self,
        before: &KeyRecord,
        after: &KeyRecord,
        text: &ApiKeyText,
    ) -> Result<(), StoreError> {
        let has_others = after.permissions != before.permissions;
        sql("UPDATE api_keys SET name = $1, prefix = $2, short_id = $3, secret_sha256 = $4, last4 = $5,
             permissions = COALESCE($6, permissions), preset = $7, allow = $8, rate_per_minute = $9, search = $10,
             updated_at_us = $11 WHERE id = $12 AND organisation_id = $13")
        .bind(&after.name)
        .bind(&text.prefix)
        .bind(&text.short_id)
        .bind(to_hex(&text.secret_sha256))
        .bind(&text.last4)
        .bind(has_others.then(|| permissions_text(&after.permissions)))
        .bind(&after.preset)
        .bind(networks_text(&after.allow))
        .bind(i64::from(after.rate_per_minute))
        .bind(searchable([Some(after.name.as_str())]))
        .bind(after.updated_at.as_micros())
        .bind(after.id.to_string())
        .bind(after.organisation_id.to_string())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Changed);
        self.transaction.changes(Changed::Credentials);
        Ok(())
    }
}

/// A key as lists show it.
pub(super) fn record(row: &Row) -> Result<KeyRecord, StoreError> {
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

/// A key with its text.
pub(super) fn record_with_text(row: &Row) -> Result<(KeyRecord, ApiKeyText), StoreError> {
    let text = ApiKeyText {
        prefix: row.try_get("prefix")?,
        short_id: row.try_get("short_id")?,
        secret_sha256: from_hex(row.try_get("secret_sha256")?)
            .ok_or(StoreError::Corrupt { column: "secret_sha256" })?,
        last4: row.try_get("last4")?,
    };
    Ok((record(row)?, text))
}

/// The permissions of a row; a permission of a newer version grants nothing here.
pub(super) fn permissions(row: &Row) -> Result<Vec<Permission>, StoreError> {
    Ok(items(row, "permissions")?.iter().filter_map(|name| Permission::from_name(name)).collect())
}

/// The stored form of permissions.
fn permissions_text(permissions: &[Permission]) -> String {
    let names: Vec<&str> = sorted(permissions.to_vec()).into_iter().map(Permission::as_str).collect();
    names.join(",")
}

/// Permissions in order, each once.
pub(super) fn sorted(mut permissions: Vec<Permission>) -> Vec<Permission> {
    permissions.sort_unstable();
    permissions.dedup();
    permissions
}
