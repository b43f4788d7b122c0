//! Extensions as the API manages them. The caller makes the credentials; nothing here computes a digest.

use sidetone_model::access::Scope;
use sidetone_model::directory::{Ha1, StrictSource};
use sidetone_model::extension::{ExtensionChange, ExtensionRecord, NewExtension};
use sidetone_model::ids::{ExtensionId, OrganisationId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{instant, parsed, parsed_opt, word_opt};
use crate::extensions::extension_search;
use crate::listing::Table;
use crate::references::{named, refer};
use crate::sql::{Row, sql};
use crate::{Change, Store, StoreError, WriteTransaction};

/// Makes the credential for a number in a SIP domain.
pub type MakeHa1<'a> = &'a (dyn Fn(&str, &str) -> Ha1 + Send + Sync);

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM extensions",
    select: "SELECT * FROM extensions",
    team: Some(" AND team_id = "),
    by_name: [" ORDER BY number ASC, id ASC", " ORDER BY number DESC, id DESC"],
};

impl Store {
    /// The extensions inside `scope`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_extensions(
        &self,
        scope: Scope,
        listing: &Listing,
    ) -> Result<Page<ExtensionRecord>, Problem> {
        Ok(self.page(scope, listing, &TABLE, extension).await?)
    }

    /// Returns one extension, of any organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn extension_by_id(&self, id: ExtensionId) -> Result<Option<ExtensionRecord>, Problem> {
        let query = sql("SELECT * FROM extensions WHERE id = $1").bind(id.to_string());
        Ok(self.one(query, extension).await?)
    }

    /// Creates an extension inside `scope` with the credential that `ha1` makes.
    ///
    /// # Errors
    /// The reason why it is not possible.
    pub async fn create_extension(
        &self,
        scope: Scope,
        new: &NewExtension,
        ha1: MakeHa1<'_>,
        now: Timestamp,
    ) -> Result<ExtensionRecord, Problem> {
        let mut write = self.write().await?;
        let domain = write.domain_of(new.organisation_id).await?;
        let made = ExtensionRecord {
            id: ExtensionId(Uuid::new_v4()),
            organisation_id: new.organisation_id,
            team_id: new.team_id,
            number: new.number.clone(),
            name: new.name.clone(),
            codec_string: new.codecs.join(","),
            strict_source: new.strict_source,
            created_at: now,
            updated_at: now,
        };
        write.require_possible_extension(scope, &made).await?;
        let ha1 = ha1(&made.number, &domain);
        let statement = sql(
            "INSERT INTO extensions (id, organisation_id, team_id, number, name, ha1_md5, ha1_sha256, codecs,
             search, created_at_us, updated_at_us, strict_source)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11)",
        )
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(made.team_id.map(|team| team.to_string()))
        .bind(&made.number)
        .bind(&made.name)
        .bind(&ha1.md5)
        .bind(&ha1.sha256)
        .bind(&made.codec_string)
        .bind(extension_search(&made.number, &made.name))
        .bind(now.as_micros())
        .bind(made.strict_source.map(StrictSource::as_str));
        write.finish(statement, Change::Created).await?;
        Ok(made)
    }

    /// Changes an extension inside `scope`; `ha1` makes the credential of a new password.
    ///
    /// # Errors
    /// The reason why it is not possible.
    pub async fn change_extension(
        &self,
        scope: Scope,
        id: ExtensionId,
        change: ExtensionChange,
        ha1: Option<MakeHa1<'_>>,
        now: Timestamp,
    ) -> Result<ExtensionRecord, Problem> {
        let mut write = self.write().await?;
        let (before, stored) = write.extension_inside(scope, id).await?;
        let after = ExtensionRecord {
            team_id: change.team_id.unwrap_or(before.team_id),
            number: change.number.unwrap_or_else(|| before.number.clone()),
            name: change.name.unwrap_or(before.name),
            codec_string: change.codecs.map_or(before.codec_string, |codecs| codecs.join(",")),
            strict_source: change.strict_source.unwrap_or(before.strict_source),
            updated_at: now,
            ..before
        };
        if after.number != before.number && ha1.is_none() {
            return Err(Problem::InvalidRequest(vec![FieldProblem {
                field: "number".to_owned(),
                message: "needs a new password along with it: a password belongs to a number".to_owned(),
            }]));
        }
        write.require_possible_extension(scope, &after).await?;
        let ha1 = match ha1 {
            Some(ha1) => ha1(&after.number, &write.domain_of(after.organisation_id).await?),
            None => stored,
        };
        let statement =
            sql("UPDATE extensions SET team_id = $1, number = $2, name = $3, ha1_md5 = $4, ha1_sha256 = $5,
             codecs = $6, search = $7, updated_at_us = $8, strict_source = $11
             WHERE id = $9 AND organisation_id = $10")
            .bind(after.team_id.map(|team| team.to_string()))
            .bind(&after.number)
            .bind(&after.name)
            .bind(&ha1.md5)
            .bind(&ha1.sha256)
            .bind(&after.codec_string)
            .bind(extension_search(&after.number, &after.name))
            .bind(now.as_micros())
            .bind(id.to_string())
            .bind(after.organisation_id.to_string())
            .bind(after.strict_source.map(StrictSource::as_str));
        write.finish(statement, Change::Changed).await?;
        Ok(after)
    }

    /// Removes an extension inside `scope`.
    ///
    /// # Errors
    /// The reason why it is not possible.
    pub async fn delete_extension(&self, scope: Scope, id: ExtensionId) -> Result<(), Problem> {
        let mut write = self.write().await?;
        let (extension, _) = write.extension_inside(scope, id).await?;
        let organisation = extension.organisation_id.to_string();
        let numbers = sql("SELECT number FROM numbers WHERE destination_id = $1 AND organisation_id = $2
             ORDER BY number")
        .bind(id.to_string())
        .bind(&organisation)
        .fetch_all(&mut *write.transaction)
        .await
        .map_err(StoreError::from)?;
        if !numbers.is_empty() {
            let numbers = named(&numbers, "number")?;
            return Err(Problem::Conflict(format!(
                "the phone numbers {numbers} lead to the extension: let them lead elsewhere first"
            )));
        }
        let agents = sql("SELECT name FROM agents WHERE extension_id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(&organisation)
            .fetch_all(&mut *write.transaction)
            .await
            .map_err(StoreError::from)?;
        if !agents.is_empty() {
            let agents = named(&agents, "name")?;
            return Err(Problem::Conflict(format!(
                "the agent {agents} takes the calls of the extension: give them another one first"
            )));
        }
        let statement = sql("DELETE FROM extensions WHERE id = $1 AND organisation_id = $2")
            .bind(id.to_string())
            .bind(organisation);
        write.finish(statement, Change::Changed).await?;
        Ok(())
    }
}

impl WriteTransaction {
    async fn extension_inside(
        &mut self,
        scope: Scope,
        id: ExtensionId,
    ) -> Result<(ExtensionRecord, Ha1), Problem> {
        let row = sql("SELECT * FROM extensions WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        let found = row
            .map(|row| {
                let ha1 = Ha1 { md5: row.try_get("ha1_md5")?, sha256: row.try_get("ha1_sha256")? };
                Ok::<_, StoreError>((extension(&row)?, ha1))
            })
            .transpose()?;
        found
            .filter(|(found, _)| scope.covers(found.organisation_id, found.team_id))
            .ok_or_else(|| Problem::NotFound("there is no such extension".to_owned()))
    }

    /// Returns the SIP domain of an organisation named in a request.
    async fn domain_of(&mut self, organisation: OrganisationId) -> Result<String, Problem> {
        let row = sql("SELECT sip_domain FROM organisations WHERE id = $1")
            .bind(organisation.to_string())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        match row {
            Some(row) => Ok(row.try_get("sip_domain").map_err(StoreError::from)?),
            None => Err(no_organisation()),
        }
    }

    async fn require_possible_extension(
        &mut self,
        scope: Scope,
        extension: &ExtensionRecord,
    ) -> Result<(), Problem> {
        let organisation = extension.organisation_id;
        if !scope.covers(organisation, extension.team_id) {
            return Err(Problem::Forbidden("team_id: the team is not the caller's".to_owned()));
        }
        self.require_own(organisation, &[refer("team_id", extension.team_id)]).await?;
        match self.find_extension(organisation, &extension.number).await? {
            Some(other) if other != extension.id => Err(Problem::Conflict(format!(
                "number: the organisation already has an extension {}",
                extension.number
            ))),
            _ => Ok(()),
        }
    }
}

/// What is said of an organisation that does not exist.
pub(crate) fn no_organisation() -> Problem {
    Problem::InvalidRequest(vec![FieldProblem {
        field: "organisation_id".to_owned(),
        message: "there is no such organisation".to_owned(),
    }])
}

fn extension(row: &Row) -> Result<ExtensionRecord, StoreError> {
    Ok(ExtensionRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        number: row.try_get("number")?,
        name: row.try_get("name")?,
        codec_string: row.try_get("codecs")?,
        strict_source: word_opt(row, "strict_source", StrictSource::from_name)?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}
