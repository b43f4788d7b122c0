//! Trunks as the API manages them.

use sidetone_model::access::Scope;
use sidetone_model::directory::Secret;
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::{
    Claims, NewTrunk, TrunkChange, TrunkRecord, Trunks, beyond_owner, require_possible,
};
use uuid::Uuid;

use crate::listing::Table;
use crate::paging::SortColumn;
use crate::sql::sql;
use crate::trunks::declare::CLASH;
use crate::trunks::rows::{trunk, trunk_with_password};
use crate::{Change, Store, StoreError, WriteTransaction};

/// Rows without an organisation are inside no organisation's scope.
const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM trunks",
    select: "SELECT * FROM trunks",
    team: None,
    by_name: &[SortColumn::Text("name"), SortColumn::Text("id")],
};

impl Trunks for Store {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<TrunkRecord>> {
        Box::pin(async move { Ok(self.page(scope, listing, &TABLE, trunk).await?) })
    }

    fn find(&self, id: TrunkId) -> PortFuture<'_, Option<TrunkRecord>> {
        Box::pin(async move {
            let query = sql("SELECT * FROM trunks WHERE id = $1").bind(id.to_string());
            Ok(self.one(query, trunk).await?)
        })
    }

    fn create(&self, scope: Scope, new: NewTrunk, now: Timestamp) -> PortFuture<'_, TrunkRecord> {
        Box::pin(async move {
            let made = TrunkRecord {
                id: TrunkId(Uuid::new_v4()),
                organisation_id: new.organisation_id,
                name: new.name,
                address: new.address,
                accept_from: new.accept_from,
                priority: new.priority,
                username: new.username,
                has_password: !new.password.0.is_empty(),
                realm: new.realm,
                register: new.register,
                short_numbers: new.short_numbers,
                strict_source: new.strict_source,
                srtp: new.srtp,
                video: new.video,
                max_call_seconds: new.max_call_seconds,
                interop: new.interop,
                created_at: now,
                updated_at: now,
            };
            let mut write = self.write().await?;
            require_within(scope, None, &made)?;
            write.require_possible_trunk(scope, &made).await?;
            write.insert_trunk(&made, &new.password).await?;
            write.commit().await?;
            Ok(made)
        })
    }

    fn change(
        &self,
        scope: Scope,
        id: TrunkId,
        change: TrunkChange,
        now: Timestamp,
    ) -> PortFuture<'_, TrunkRecord> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let (before, stored) = write.trunk_inside(scope, id).await?;
            let password = change.password.unwrap_or(stored);
            let beforehand = before.clone();
            let after = TrunkRecord {
                organisation_id: change.organisation_id.unwrap_or(before.organisation_id),
                name: change.name.unwrap_or(before.name),
                address: change.address.unwrap_or(before.address),
                accept_from: change.accept_from.unwrap_or(before.accept_from),
                priority: change.priority.unwrap_or(before.priority),
                username: change.username.unwrap_or(before.username),
                has_password: !password.0.is_empty(),
                realm: change.realm.unwrap_or(before.realm),
                register: change.register.unwrap_or(before.register),
                short_numbers: change.short_numbers.unwrap_or(before.short_numbers),
                strict_source: change.strict_source.unwrap_or(before.strict_source),
                srtp: change.srtp.unwrap_or(before.srtp),
                video: change.video.unwrap_or(before.video),
                max_call_seconds: change.max_call_seconds.unwrap_or(before.max_call_seconds),
                interop: before.interop.changed(change.interop),
                updated_at: now,
                ..before
            };
            require_within(scope, Some(&beforehand), &after)?;
            write.require_possible_trunk(scope, &after).await?;
            write.update_trunk(&after, &password).await?;
            write.commit().await?;
            Ok(after)
        })
    }

    fn delete(&self, scope: Scope, id: TrunkId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let (trunk, _) = write.trunk_inside(scope, id).await?;
            write.require_no_cost_rates(id).await?;
            let statement =
                sql("DELETE FROM trunks WHERE id = $1 AND (organisation_id = $2 OR organisation_id IS NULL)")
                    .bind(id.to_string())
                    .bind(trunk.organisation_id.map(|owner| owner.to_string()));
            write.finish(statement, Change::Changed).await?;
            Ok(())
        })
    }
}

impl WriteTransaction {
    async fn trunk_inside(&mut self, scope: Scope, id: TrunkId) -> Result<(TrunkRecord, Secret), Problem> {
        let query = sql("SELECT * FROM trunks WHERE id = $1").bind(id.to_string());
        let found = self.one(query, trunk_with_password).await?;
        found
            .filter(|(found, _)| owned(scope, found.organisation_id))
            .ok_or_else(|| Problem::NotFound("there is no such trunk".to_owned()))
    }

    async fn require_possible_trunk(&mut self, scope: Scope, trunk: &TrunkRecord) -> Result<(), Problem> {
        if !owned(scope, trunk.organisation_id) {
            return Err(Problem::Forbidden(
                "organisation_id: the trunk would not be the caller's".to_owned(),
            ));
        }
        let address = trunk.address.as_deref();
        let registers = require_possible(trunk.register, address, &trunk.username).err();
        let wrong: Vec<_> = registers.into_iter().chain(trunk.interop.wrong_together(address)).collect();
        if !wrong.is_empty() {
            return Err(Problem::InvalidRequest(wrong));
        }
        if let Some(organisation) = trunk.organisation_id {
            self.require_organisation(organisation).await?;
        }
        // Names are unique over all organisations, because apply files name trunks by them.
        let taken = sql("SELECT organisation_id FROM trunks WHERE name = $1 AND id <> $2")
            .bind(&trunk.name)
            .bind(trunk.id.to_string())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        if taken.is_some() {
            return Err(Problem::Conflict("name: another trunk has this name".to_owned()));
        }
        let claims = Claims::of(trunk.address.as_deref(), &trunk.interop, &trunk.accept_from);
        let is_operator = scope == Scope::Everything;
        let clash = self.clashing_field(Some(trunk.id), trunk.organisation_id, &claims, is_operator).await?;
        match clash {
            Some(field) => Err(Problem::Conflict(format!("{field}: {CLASH}"))),
            None => Ok(()),
        }
    }
}

/// Checks that an organisation changes only the settings of a trunk that it may change; those of an operator are
/// kept.
fn require_within(scope: Scope, before: Option<&TrunkRecord>, after: &TrunkRecord) -> Result<(), Problem> {
    if scope == Scope::Everything {
        return Ok(());
    }
    let wrong = beyond_owner(before, after.address.as_deref(), &after.interop, &after.accept_from);
    if wrong.is_empty() { Ok(()) } else { Err(Problem::InvalidRequest(wrong)) }
}

/// Whether the caller owns the trunk; a shared trunk belongs to the operator.
fn owned(scope: Scope, owner: Option<OrganisationId>) -> bool {
    owner.map_or(scope == Scope::Everything, |owner| scope.covers(owner, None))
}
