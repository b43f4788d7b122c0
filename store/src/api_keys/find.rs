//! Finds the key that a caller presents.

use sidetone_model::ports::{ApiKey, ApiKeys, PortFuture};

use crate::api_keys::rows::permissions;
use crate::columns::{from_hex, networks, number, parsed};
use crate::sql::{Row, sql};
use crate::{Store, StoreError};

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
