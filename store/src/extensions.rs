//! Extensions of users, with their digest credentials.

use sidetone_model::directory::{Ha1, StrictSource};
use sidetone_model::ids::{ExtensionId, OrganisationId, TeamId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{parsed, parsed_opt};
use crate::search::searchable;
use crate::sql::sql;
use crate::{Change, StoreError, WriteTransaction};

/// An extension as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionRow {
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// Its number, the natural key within the organisation.
    pub number: String,
    /// The person's name.
    pub name: String,
    /// The team that its records belong to.
    pub team_id: Option<TeamId>,
    /// Its credential; `None` keeps the stored one.
    pub ha1: Option<Ha1>,
    /// Codecs in order of preference; empty means every codec.
    pub codecs: Vec<String>,
    /// Which source address its media must have; `None` means the node's setting.
    pub strict_source: Option<StrictSource>,
}

impl WriteTransaction {
    /// Returns the extension of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_extension(
        &mut self,
        organisation: OrganisationId,
        number: &str,
    ) -> Result<Option<ExtensionId>, StoreError> {
        let row = sql("SELECT id FROM extensions WHERE organisation_id = $1 AND number = $2")
            .bind(organisation.to_string())
            .bind(number)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map_or(Ok(None), |row| parsed_opt(&row, "id"))
    }

    /// The numbers of every extension of an organisation, in order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn extension_numbers(
        &mut self,
        organisation: OrganisationId,
    ) -> Result<Vec<String>, StoreError> {
        let rows = sql("SELECT number FROM extensions WHERE organisation_id = $1 ORDER BY number")
            .bind(organisation.to_string())
            .fetch_all(&mut *self.transaction)
            .await?;
        rows.iter().map(|row| Ok(row.try_get("number")?)).collect()
    }

    /// Creates or updates the extension as declared.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a new one has no credential; otherwise when the database fails.
    pub async fn declare_extension(
        &mut self,
        declared: &ExtensionRow,
        now: Timestamp,
    ) -> Result<(ExtensionId, Change), StoreError> {
        let row = sql("SELECT id, name, team_id, ha1_md5, ha1_sha256, codecs, strict_source FROM extensions
             WHERE organisation_id = $1 AND number = $2")
        .bind(declared.organisation_id.to_string())
        .bind(&declared.number)
        .fetch_optional(&mut *self.transaction)
        .await?;
        let codecs = declared.codecs.join(",");
        let search = extension_search(&declared.number, &declared.name);
        let team = declared.team_id.map(|team| team.to_string());
        let strict_source = declared.strict_source.map(StrictSource::as_str);
        let Some(row) = row else {
            let ha1 = declared.ha1.as_ref().ok_or(StoreError::Corrupt { column: "ha1_md5" })?;
            let id = ExtensionId(Uuid::new_v4());
            sql("INSERT INTO extensions (id, organisation_id, team_id, number, name, ha1_md5, ha1_sha256,
                 codecs, search, created_at_us, updated_at_us, strict_source)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11)")
            .bind(id.to_string())
            .bind(declared.organisation_id.to_string())
            .bind(team)
            .bind(&declared.number)
            .bind(&declared.name)
            .bind(&ha1.md5)
            .bind(&ha1.sha256)
            .bind(codecs)
            .bind(search)
            .bind(now.as_micros())
            .bind(strict_source)
            .execute(&mut *self.transaction)
            .await?;
            return Ok((id, self.note(Change::Created)));
        };
        let id: ExtensionId = parsed(&row, "id")?;
        let stored = Ha1 { md5: row.try_get("ha1_md5")?, sha256: row.try_get("ha1_sha256")? };
        let same = row.try_get::<&str>("name")? == declared.name
            && row.try_get::<Option<String>>("team_id")? == team
            && row.try_get::<&str>("codecs")? == codecs
            && row.try_get::<Option<&str>>("strict_source")? == strict_source
            && declared.ha1.as_ref().is_none_or(|ha1| *ha1 == stored);
        if same {
            return Ok((id, Change::Unchanged));
        }
        let ha1 = declared.ha1.as_ref().unwrap_or(&stored);
        sql("UPDATE extensions SET name = $1, team_id = $2, ha1_md5 = $3, ha1_sha256 = $4, codecs = $5,
             search = $6, updated_at_us = $7, strict_source = $9 WHERE id = $8")
        .bind(&declared.name)
        .bind(team)
        .bind(&ha1.md5)
        .bind(&ha1.sha256)
        .bind(codecs)
        .bind(search)
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(strict_source)
        .execute(&mut *self.transaction)
        .await?;
        Ok((id, self.note(Change::Changed)))
    }
}

/// The text that a search in a list of extensions covers.
pub(super) fn extension_search(number: &str, name: &str) -> String {
    searchable([Some(number), Some(name)])
}
