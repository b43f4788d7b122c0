//! Extensions as the API manages them. The caller makes the credentials; nothing here computes a digest.

use sidetone_model::access::Scope;
use sidetone_model::directory::Ha1;
use sidetone_model::extension::{ExtensionChange, ExtensionRecord, NewExtension};
use sidetone_model::forwarding::Forwarding;
use sidetone_model::ids::{ExtensionId, OrganisationId, UserId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::extensions::rows::{extension, extension_with_ha1};
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::references::{named, no_organisation, refer};
use crate::sql::sql;
use crate::{Change, Store, StoreError, WriteTransaction};

/// Makes the credential for a number in a SIP domain.
pub type MakeHa1<'a> = &'a (dyn Fn(&str, &str) -> Ha1 + Send + Sync);

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM extensions",
    select: "SELECT * FROM extensions",
    team: Some(" AND team_id = "),
    by_name: &[SortColumn::Text("number"), SortColumn::Text("id")],
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

    /// Returns the extension on which the agent of a user takes calls.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn extension_of_user(&self, user: UserId) -> Result<Option<ExtensionId>, Problem> {
        let query =
            sql("SELECT extensions.id FROM agents JOIN extensions ON extensions.id = agents.extension_id
             WHERE agents.user_id = $1")
            .bind(user.to_string());
        Ok(self.one(query, |row| parsed(row, "id")).await?)
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
            srtp: new.srtp,
            video: new.video,
            forwarding: new.forwarding.clone(),
            do_not_disturb: new.do_not_disturb,
            language: new.language,
            max_registrations: new.max_registrations,
            notify_message_waiting: new.notify_message_waiting,
            created_at: now,
            updated_at: now,
        };
        write.require_possible_extension(scope, &made).await?;
        write.require_forward_targets(&made, &Forwarding::default()).await?;
        let ha1 = ha1(&made.number, &domain);
        write.insert_extension(&made, &ha1).await?;
        write.commit().await?;
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
        let forwarding_before = before.forwarding.clone();
        let forwarding = change.forwarding.unwrap_or_default();
        let after = ExtensionRecord {
            team_id: change.team_id.unwrap_or(before.team_id),
            number: change.number.unwrap_or_else(|| before.number.clone()),
            name: change.name.unwrap_or(before.name),
            codec_string: change.codecs.map_or(before.codec_string, |codecs| codecs.join(",")),
            strict_source: change.strict_source.unwrap_or(before.strict_source),
            srtp: change.srtp.unwrap_or(before.srtp),
            video: change.video.unwrap_or(before.video),
            forwarding: before.forwarding.changed(forwarding),
            do_not_disturb: change.do_not_disturb.unwrap_or(before.do_not_disturb),
            language: change.language.unwrap_or(before.language),
            max_registrations: change.max_registrations.unwrap_or(before.max_registrations),
            notify_message_waiting: change.notify_message_waiting.unwrap_or(before.notify_message_waiting),
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
        write.require_forward_targets(&after, &forwarding_before).await?;
        let ha1 = match ha1 {
            Some(ha1) => ha1(&after.number, &write.domain_of(after.organisation_id).await?),
            None => stored,
        };
        write.update_extension(&after, &ha1).await?;
        write.commit().await?;
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
        write.refuse_if_dialled(&organisation, id.to_string(), "extension").await?;
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
    pub(super) async fn extension_inside(
        &mut self,
        scope: Scope,
        id: ExtensionId,
    ) -> Result<(ExtensionRecord, Ha1), Problem> {
        let query = sql("SELECT * FROM extensions WHERE id = $1").bind(id.to_string());
        let found = self.one(query, extension_with_ha1).await?;
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
