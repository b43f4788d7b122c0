//! Organisations as the API manages them.

use sidetone_model::access::Scope;
use sidetone_model::ids::OrganisationId;
use sidetone_model::listing::Listing;
use sidetone_model::money::Amount;
use sidetone_model::organisation::{NewOrganisation, OrganisationChange, OrganisationRecord, Organisations};
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::number;
use crate::listing::Table;
use crate::organisations::rows::organisation;
use crate::paging::SortColumn;
use crate::references::named;
use crate::sql::sql;
use crate::{Change, Store, StoreError, WriteTransaction};

/// `scope` is compared with the organisation's own id.
const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM (SELECT *, id AS organisation_id FROM organisations) AS own",
    select: "SELECT * FROM (SELECT *, id AS organisation_id FROM organisations) AS own",
    team: None,
    by_name: &[SortColumn::Text("name"), SortColumn::Text("id")],
};

impl Organisations for Store {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<OrganisationRecord>> {
        // A user who sees one team of an organisation also sees the organisation's name.
        let scope = scope.organisation().map_or(Scope::Everything, Scope::Organisation);
        Box::pin(async move { Ok(self.page(scope, listing, &TABLE, organisation).await?) })
    }

    fn find(&self, id: OrganisationId) -> PortFuture<'_, Option<OrganisationRecord>> {
        Box::pin(async move {
            let query = sql("SELECT * FROM organisations WHERE id = $1").bind(id.to_string());
            Ok(self.one(query, organisation).await?)
        })
    }

    fn create(&self, new: NewOrganisation, now: Timestamp) -> PortFuture<'_, OrganisationRecord> {
        Box::pin(async move {
            let NewOrganisation {
                name,
                sip_domain,
                currency,
                credit,
                numbering,
                max_outbound_calls,
                max_call_seconds,
                call_info,
                callback_secret,
                recording_retention_days,
                language,
                star_codes,
            } = new;
            let has_call_info_secret = call_info.is_some();
            let (call_info_url, secret) =
                call_info.map(|target| (target.url, target.secret.0)).unwrap_or_default();
            let id = OrganisationId(Uuid::new_v4());
            let made = OrganisationRecord {
                id,
                name,
                sip_domain,
                currency,
                credit,
                spent: Amount::ZERO,
                numbering,
                max_outbound_calls,
                max_call_seconds,
                call_info_url,
                has_call_info_secret,
                has_callback_secret: !callback_secret.0.is_empty(),
                recording_retention_days,
                language,
                star_codes,
                created_at: now,
                updated_at: now,
            };
            let mut write = self.write().await?;
            write.require_free_organisation(&made).await?;
            write.insert_organisation(&made, [&secret, &callback_secret.0]).await?;
            write.commit().await?;
            Ok(made)
        })
    }

    fn change(
        &self,
        scope: Scope,
        id: OrganisationId,
        change: OrganisationChange,
        now: Timestamp,
    ) -> PortFuture<'_, OrganisationRecord> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let before = write.organisation_reached(scope, id).await?;
            let domain = before.sip_domain.clone();
            change
                .require_signed_call_info(before.has_call_info_secret, !before.call_info_url.is_empty())
                .map_err(|problem| Problem::InvalidRequest(vec![problem]))?;
            let secret = if change.clears_call_info() {
                Some(String::new())
            } else {
                change.call_info_secret.as_ref().map(|secret| secret.0.clone())
            };
            let callback_secret = change.callback_secret.as_ref().map(|secret| secret.0.clone());
            let after = change.applied(before, now);
            write.require_free_organisation(&after).await?;
            if after.sip_domain != domain {
                write.require_no_passwords(id).await?;
            }
            write.update_organisation(&after, [secret.as_deref(), callback_secret.as_deref()]).await?;
            write.commit().await?;
            Ok(after)
        })
    }

    fn delete(&self, scope: Scope, id: OrganisationId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            write.organisation_reached(scope, id).await?;
            write.require_nothing_owned(id).await?;
            let statement = sql("DELETE FROM organisations WHERE id = $1").bind(id.to_string());
            write.finish(statement, Change::Changed).await?;
            Ok(())
        })
    }
}

impl WriteTransaction {
    async fn organisation_reached(
        &mut self,
        scope: Scope,
        id: OrganisationId,
    ) -> Result<OrganisationRecord, Problem> {
        let query = sql("SELECT * FROM organisations WHERE id = $1").bind(id.to_string());
        let found = self.one(query, organisation).await?;
        found
            .filter(|found| scope.reaches(found.id))
            .ok_or_else(|| Problem::NotFound("there is no such organisation".to_owned()))
    }

    async fn require_free_organisation(&mut self, own: &OrganisationRecord) -> Result<(), Problem> {
        let rows = sql(
            "SELECT name, sip_domain FROM organisations WHERE (name = $1 OR sip_domain = $2) AND id <> $3",
        )
        .bind(&own.name)
        .bind(&own.sip_domain)
        .bind(own.id.to_string())
        .fetch_all(&mut *self.transaction)
        .await
        .map_err(StoreError::from)?;
        if rows.is_empty() {
            return Ok(());
        }
        let same_name = rows.iter().any(|row| row.try_get::<&str>("name").is_ok_and(|name| name == own.name));
        let (field, what) = if same_name { ("name", "name") } else { ("sip_domain", "domain") };
        Err(Problem::Conflict(format!("{field}: another organisation has this {what}")))
    }

    /// A phone's credential is bound to its domain and is not valid in another one.
    async fn require_no_passwords(&mut self, id: OrganisationId) -> Result<(), Problem> {
        let rows = sql("SELECT number FROM extensions WHERE organisation_id = $1 ORDER BY number")
            .bind(id.to_string())
            .fetch_all(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        if rows.is_empty() {
            return Ok(());
        }
        let numbers = named(&rows, "number")?;
        Err(Problem::Conflict(format!(
            "sip_domain: phone passwords belong to a domain and the organisation has the extensions {numbers}: \
             change the domain before there are any, or with sidetone apply, which takes new passwords along"
        )))
    }

    async fn require_nothing_owned(&mut self, id: OrganisationId) -> Result<(), Problem> {
        let row = sql("SELECT (SELECT COUNT(*) FROM teams WHERE organisation_id = $1) AS teams,
             (SELECT COUNT(*) FROM extensions WHERE organisation_id = $1) AS extensions,
             (SELECT COUNT(*) FROM numbers WHERE organisation_id = $1) AS numbers,
             (SELECT COUNT(*) FROM trunks WHERE organisation_id = $1) AS trunks,
             (SELECT COUNT(*) FROM agents WHERE organisation_id = $1) AS agents,
             (SELECT COUNT(*) FROM users WHERE organisation_id = $1) AS users,
             (SELECT COUNT(*) FROM api_keys WHERE organisation_id = $1) AS api_keys,
             (SELECT COUNT(*) FROM conference_rooms WHERE organisation_id = $1) AS conference_rooms,
             (SELECT COUNT(*) FROM sell_rates WHERE organisation_id = $1) AS sell_rates,
             (SELECT COUNT(*) FROM webhooks WHERE organisation_id = $1) AS webhooks")
        .bind(id.to_string())
        .fetch_one(&mut *self.transaction)
        .await
        .map_err(StoreError::from)?;
        let mut owned = Vec::new();
        let columns = [
            ("teams", "teams"),
            ("extensions", "extensions"),
            ("numbers", "phone numbers"),
            ("trunks", "trunks"),
            ("agents", "agents"),
            ("users", "users"),
            ("api_keys", "API keys"),
            ("conference_rooms", "conference rooms"),
            ("sell_rates", "sell rates"),
            ("webhooks", "webhooks"),
        ];
        for (column, what) in columns {
            let count: u64 = number(&row, column)?;
            if count > 0 {
                owned.push(format!("{what} ({count})"));
            }
        }
        if owned.is_empty() {
            return Ok(());
        }
        Err(Problem::Conflict(format!("the organisation still has {}: remove them first", owned.join(", "))))
    }
}
