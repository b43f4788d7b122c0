//! Trunks.

use sidetone_model::access::Scope;
use sidetone_model::directory::{Secret, StrictSource};
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::{
    Claims, NewTrunk, TrunkChange, TrunkRecord, Trunks, beyond_tenants, require_possible,
};
use uuid::Uuid;

use crate::columns::{
    instant, items, networks, networks_text, number, number_opt, parsed, parsed_opt, word_opt,
};
use crate::listing::Table;
use crate::managed::extensions::no_organisation;
use crate::sql::{Row, sql};
use crate::trunks::{CLASH, trunk_search};
use crate::{Change, Store, StoreError, WriteTransaction};

/// Rows without an organisation are inside no organisation's scope.
const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM trunks",
    select: "SELECT * FROM trunks",
    team: None,
    by_name: [" ORDER BY name ASC, id ASC", " ORDER BY name DESC, id DESC"],
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
                max_call_seconds: new.max_call_seconds,
                created_at: now,
                updated_at: now,
            };
            let mut write = self.write().await?;
            require_within(scope, None, &made)?;
            write.require_possible_trunk(scope, &made).await?;
            write.insert_trunk(&made, &new.password).await?;
            write.note(Change::Created);
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
                max_call_seconds: change.max_call_seconds.unwrap_or(before.max_call_seconds),
                updated_at: now,
                ..before
            };
            require_within(scope, Some(&beforehand), &after)?;
            write.require_possible_trunk(scope, &after).await?;
            write.update_trunk(&after, &password).await?;
            write.note(Change::Changed);
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
        let row = sql("SELECT * FROM trunks WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        let found = row
            .map(|row| Ok::<_, StoreError>((trunk(&row)?, Secret(row.try_get("password")?))))
            .transpose()?;
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
        require_possible(trunk.register, trunk.address.as_deref(), &trunk.username)
            .map_err(|wrong| Problem::InvalidRequest(vec![wrong]))?;
        if let Some(organisation) = trunk.organisation_id {
            let known = sql("SELECT id FROM organisations WHERE id = $1")
                .bind(organisation.to_string())
                .fetch_optional(&mut *self.transaction)
                .await
                .map_err(StoreError::from)?;
            if known.is_none() {
                return Err(no_organisation());
            }
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
        let claims = Claims::of(trunk.address.as_deref(), &trunk.accept_from);
        let is_operator = scope == Scope::Everything;
        let clash = self.clashing_field(Some(trunk.id), trunk.organisation_id, &claims, is_operator).await?;
        match clash {
            Some(field) => Err(Problem::Conflict(format!("{field}: {CLASH}"))),
            None => Ok(()),
        }
    }

    async fn insert_trunk(&mut self, trunk: &TrunkRecord, password: &Secret) -> Result<(), StoreError> {
        sql("INSERT INTO trunks (id, organisation_id, name, address, accept_from, priority, username, password,
             realm, register, short_numbers, search, created_at_us, updated_at_us, strict_source, max_call_seconds)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15)")
        .bind(trunk.id.to_string())
        .bind(trunk.organisation_id.map(|owner| owner.to_string()))
        .bind(&trunk.name)
        .bind(&trunk.address)
        .bind(networks_text(&trunk.accept_from))
        .bind(i64::from(trunk.priority))
        .bind(&trunk.username)
        .bind(&password.0)
        .bind(&trunk.realm)
        .bind(trunk.register)
        .bind(trunk.short_numbers.join(","))
        .bind(trunk_search(&trunk.name, trunk.address.as_deref()))
        .bind(trunk.created_at.as_micros())
        .bind(trunk.strict_source.map(StrictSource::as_str))
        .bind(trunk.max_call_seconds.map(i64::from))
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    async fn update_trunk(&mut self, trunk: &TrunkRecord, password: &Secret) -> Result<(), StoreError> {
        sql("UPDATE trunks SET organisation_id = $1, name = $2, address = $3, accept_from = $4, priority = $5,
             username = $6, password = $7, realm = $8, register = $9, short_numbers = $10, search = $11,
             updated_at_us = $12, strict_source = $14, max_call_seconds = $15 WHERE id = $13")
        .bind(trunk.organisation_id.map(|owner| owner.to_string()))
        .bind(&trunk.name)
        .bind(&trunk.address)
        .bind(networks_text(&trunk.accept_from))
        .bind(i64::from(trunk.priority))
        .bind(&trunk.username)
        .bind(&password.0)
        .bind(&trunk.realm)
        .bind(trunk.register)
        .bind(trunk.short_numbers.join(","))
        .bind(trunk_search(&trunk.name, trunk.address.as_deref()))
        .bind(trunk.updated_at.as_micros())
        .bind(trunk.id.to_string())
        .bind(trunk.strict_source.map(StrictSource::as_str))
        .bind(trunk.max_call_seconds.map(i64::from))
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }
}

/// Checks that an organisation sets on a trunk only what it may set; what an operator has set is kept.
fn require_within(scope: Scope, before: Option<&TrunkRecord>, after: &TrunkRecord) -> Result<(), Problem> {
    if scope == Scope::Everything {
        return Ok(());
    }
    let address = after.address.as_deref().filter(|address| {
        before.and_then(|before| before.address.as_deref()).is_none_or(|before| before != *address)
    });
    let networks = if before.is_some_and(|before| before.accept_from == after.accept_from) {
        &[]
    } else {
        after.accept_from.as_slice()
    };
    let wrong = beyond_tenants(address, networks);
    if wrong.is_empty() { Ok(()) } else { Err(Problem::InvalidRequest(wrong)) }
}

/// Whether the caller owns the trunk; a shared one is the operator's.
fn owned(scope: Scope, owner: Option<OrganisationId>) -> bool {
    owner.map_or(scope == Scope::Everything, |owner| scope.covers(owner, None))
}

fn trunk(row: &Row) -> Result<TrunkRecord, StoreError> {
    Ok(TrunkRecord {
        id: parsed(row, "id")?,
        organisation_id: parsed_opt(row, "organisation_id")?,
        name: row.try_get("name")?,
        address: row.try_get("address")?,
        accept_from: networks(row, "accept_from")?,
        priority: number(row, "priority")?,
        username: row.try_get("username")?,
        has_password: !row.try_get::<&str>("password")?.is_empty(),
        realm: row.try_get("realm")?,
        register: row.try_get::<i64>("register")? != 0,
        short_numbers: items(row, "short_numbers")?,
        strict_source: word_opt(row, "strict_source", StrictSource::from_name)?,
        max_call_seconds: number_opt(row, "max_call_seconds")?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}
