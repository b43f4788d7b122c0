//! Teams.

use sidetone_model::access::Scope;
use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::team::{Team, Teams};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{instant, parsed};
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::references::named;
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, Store, StoreError, WriteTransaction};

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM teams",
    select: "SELECT id, organisation_id, name, created_at_us, updated_at_us FROM teams",
    team: Some(" AND id = "),
    by_name: &[SortColumn::Text("name"), SortColumn::Text("id")],
};

impl Teams for Store {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Team>> {
        Box::pin(async move { Ok(self.page(scope, listing, &TABLE, team).await?) })
    }

    fn find(&self, id: TeamId) -> PortFuture<'_, Option<Team>> {
        Box::pin(async move {
            let query = sql(
                "SELECT id, organisation_id, name, created_at_us, updated_at_us FROM teams WHERE id = $1",
            )
            .bind(id.to_string());
            Ok(self.one(query, team).await?)
        })
    }

    fn create(&self, organisation: OrganisationId, name: String, now: Timestamp) -> PortFuture<'_, Team> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let made = made(organisation, &name, now);
            write.require_free_team_name(organisation, &name, made.id).await?;
            write.insert_team(&made).await?;
            write.commit().await?;
            Ok(made)
        })
    }

    fn rename(&self, scope: Scope, id: TeamId, name: String, now: Timestamp) -> PortFuture<'_, Team> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let before = write.team_inside(scope, id).await?;
            write.require_free_team_name(before.organisation_id, &name, id).await?;
            let statement = sql("UPDATE teams SET name = $1, search = $2, updated_at_us = $3
                 WHERE id = $4 AND organisation_id = $5")
            .bind(&name)
            .bind(searchable([Some(name.as_str())]))
            .bind(now.as_micros())
            .bind(id.to_string())
            .bind(before.organisation_id.to_string());
            write.finish(statement, Change::Changed).await?;
            Ok(Team { name, updated_at: now, ..before })
        })
    }

    fn delete(&self, scope: Scope, id: TeamId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let team = write.team_inside(scope, id).await?;
            let members = write.team_members(&team).await?;
            if !members.is_empty() {
                let members = members.join("; ");
                return Err(Problem::Conflict(format!("the team still has {members}: move them first")));
            }
            let statement = sql("DELETE FROM teams WHERE id = $1 AND organisation_id = $2")
                .bind(id.to_string())
                .bind(team.organisation_id.to_string());
            write.finish(statement, Change::Changed).await?;
            Ok(())
        })
    }
}

impl WriteTransaction {
    /// Creates the team of that name if it does not exist.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_team(
        &mut self,
        organisation: OrganisationId,
        name: &str,
        now: Timestamp,
    ) -> Result<(TeamId, Change), StoreError> {
        if let Some(id) = self.find_team(organisation, name).await? {
            return Ok((id, Change::Unchanged));
        }
        let made = made(organisation, name, now);
        self.insert_team(&made).await?;
        Ok((made.id, Change::Created))
    }

    async fn insert_team(&mut self, made: &Team) -> Result<(), StoreError> {
        sql("INSERT INTO teams (id, organisation_id, name, search, created_at_us, updated_at_us)
             VALUES ($1, $2, $3, $4, $5, $5)")
        .bind(made.id.to_string())
        .bind(made.organisation_id.to_string())
        .bind(&made.name)
        .bind(searchable([Some(made.name.as_str())]))
        .bind(made.created_at.as_micros())
        .execute(&mut *self.transaction)
        .await?;
        self.note(Change::Created);
        Ok(())
    }

    /// Returns the team of that name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_team(
        &mut self,
        organisation: OrganisationId,
        name: &str,
    ) -> Result<Option<TeamId>, StoreError> {
        let row = sql("SELECT id FROM teams WHERE organisation_id = $1 AND name = $2")
            .bind(organisation.to_string())
            .bind(name)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map(|row| parsed(&row, "id")).transpose()
    }

    async fn team_inside(&mut self, scope: Scope, id: TeamId) -> Result<Team, Problem> {
        let query =
            sql("SELECT id, organisation_id, name, created_at_us, updated_at_us FROM teams WHERE id = $1")
                .bind(id.to_string());
        let team = self.one(query, team).await?;
        team.filter(|team| scope.covers(team.organisation_id, Some(team.id)))
            .ok_or_else(|| Problem::NotFound("there is no such team".to_owned()))
    }

    async fn require_free_team_name(
        &mut self,
        organisation: OrganisationId,
        name: &str,
        own: TeamId,
    ) -> Result<(), Problem> {
        match self.find_team(organisation, name).await? {
            Some(other) if other != own => {
                Err(Problem::Conflict(format!("name: the organisation already has a team \"{name}\"")))
            }
            _ => Ok(()),
        }
    }

    /// The members of a team, one phrase for each kind.
    async fn team_members(&mut self, team: &Team) -> Result<Vec<String>, StoreError> {
        let kinds = [
            (
                "agents",
                "SELECT name AS member FROM agents WHERE team_id = $1 AND organisation_id = $2 ORDER BY name",
            ),
            (
                "extensions",
                "SELECT number AS member FROM extensions WHERE team_id = $1 AND organisation_id = $2
                 ORDER BY number",
            ),
            (
                "users",
                "SELECT email AS member FROM users WHERE team_id = $1 AND organisation_id = $2 ORDER BY email",
            ),
        ];
        let mut members = Vec::new();
        for (kind, text) in kinds {
            let rows = sql(text)
                .bind(team.id.to_string())
                .bind(team.organisation_id.to_string())
                .fetch_all(&mut *self.transaction)
                .await?;
            if !rows.is_empty() {
                members.push(format!("the {kind} {}", named(&rows, "member")?));
            }
        }
        Ok(members)
    }
}

/// Builds a new team.
fn made(organisation: OrganisationId, name: &str, now: Timestamp) -> Team {
    let id = TeamId(Uuid::new_v4());
    Team { id, organisation_id: organisation, name: name.to_owned(), created_at: now, updated_at: now }
}

fn team(row: &Row) -> Result<Team, StoreError> {
    Ok(Team {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        name: row.try_get("name")?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}
