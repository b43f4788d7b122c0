//! Agents.

use sidetone_model::access::Scope;
use sidetone_model::ids::AgentId;
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::{FieldProblem, Problem};
use sidetone_model::team::{Agent, AgentChange, AgentKind, Agents, NewAgent};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{instant, parsed, parsed_opt, word};
use crate::listing::Table;
use crate::paging::SortColumn;
use crate::references::{named, refer};
use crate::search::searchable;
use crate::sql::{Row, sql};
use crate::{Change, Store, StoreError, WriteTransaction};

const TABLE: Table = Table {
    count: "SELECT COUNT(*) AS total FROM agents",
    select: "SELECT id, organisation_id, team_id, name, kind, extension_id, user_id, created_at_us,
             updated_at_us FROM agents",
    team: Some(" AND team_id = "),
    by_name: &[SortColumn::Text("name"), SortColumn::Text("id")],
};

impl Agents for Store {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Agent>> {
        Box::pin(async move { Ok(self.page(scope, listing, &TABLE, agent).await?) })
    }

    fn find(&self, id: AgentId) -> PortFuture<'_, Option<Agent>> {
        Box::pin(async move {
            let row =
                sql("SELECT id, organisation_id, team_id, name, kind, extension_id, user_id, created_at_us,
                 updated_at_us FROM agents WHERE id = $1")
                .bind(id.to_string())
                .fetch_optional(self.readers())
                .await
                .map_err(StoreError::from)?;
            Ok(row.map(|row| agent(&row)).transpose()?)
        })
    }

    fn create(&self, new: NewAgent, now: Timestamp) -> PortFuture<'_, Agent> {
        Box::pin(async move {
            let NewAgent { organisation_id, team_id, name, kind, extension_id, user_id } = new;
            let id = AgentId(Uuid::new_v4());
            let agent = Agent {
                id,
                organisation_id,
                team_id,
                name,
                kind,
                extension_id,
                user_id,
                created_at: now,
                updated_at: now,
            };
            let mut write = self.write().await?;
            write.require_possible(&agent).await?;
            let statement = sql(
                "INSERT INTO agents (id, organisation_id, team_id, name, kind, extension_id, user_id, search,
                 created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
            )
            .bind(id.to_string())
            .bind(agent.organisation_id.to_string())
            .bind(agent.team_id.map(|team| team.to_string()))
            .bind(&agent.name)
            .bind(agent.kind.as_str())
            .bind(agent.extension_id.map(|extension| extension.to_string()))
            .bind(agent.user_id.map(|user| user.to_string()))
            .bind(searchable([Some(agent.name.as_str())]))
            .bind(now.as_micros());
            write.finish(statement, Change::Created).await?;
            Ok(agent)
        })
    }

    fn change(
        &self,
        scope: Scope,
        id: AgentId,
        change: AgentChange,
        now: Timestamp,
    ) -> PortFuture<'_, Agent> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let before = write.agent_inside(scope, id).await?;
            let after = Agent {
                team_id: change.team_id.unwrap_or(before.team_id),
                name: change.name.unwrap_or(before.name),
                kind: change.kind.unwrap_or(before.kind),
                extension_id: change.extension_id.unwrap_or(before.extension_id),
                user_id: change.user_id.unwrap_or(before.user_id),
                updated_at: now,
                ..before
            };
            write.require_possible(&after).await?;
            let statement =
                sql("UPDATE agents SET team_id = $1, name = $2, kind = $3, extension_id = $4, user_id = $5,
                 search = $6, updated_at_us = $7 WHERE id = $8 AND organisation_id = $9")
                .bind(after.team_id.map(|team| team.to_string()))
                .bind(&after.name)
                .bind(after.kind.as_str())
                .bind(after.extension_id.map(|extension| extension.to_string()))
                .bind(after.user_id.map(|user| user.to_string()))
                .bind(searchable([Some(after.name.as_str())]))
                .bind(now.as_micros())
                .bind(id.to_string())
                .bind(after.organisation_id.to_string());
            write.finish(statement, Change::Changed).await?;
            Ok(after)
        })
    }

    fn delete(&self, scope: Scope, id: AgentId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let mut write = self.write().await?;
            let agent = write.agent_inside(scope, id).await?;
            let statement = sql("DELETE FROM agents WHERE id = $1 AND organisation_id = $2")
                .bind(id.to_string())
                .bind(agent.organisation_id.to_string());
            write.finish(statement, Change::Changed).await?;
            Ok(())
        })
    }
}

impl WriteTransaction {
    async fn agent_inside(&mut self, scope: Scope, id: AgentId) -> Result<Agent, Problem> {
        let query =
            sql("SELECT id, organisation_id, team_id, name, kind, extension_id, user_id, created_at_us,
             updated_at_us FROM agents WHERE id = $1")
            .bind(id.to_string());
        let agent = self.one(query, agent).await?;
        agent
            .filter(|agent| scope.covers(agent.organisation_id, agent.team_id))
            .ok_or_else(|| Problem::NotFound("there is no such agent".to_owned()))
    }

    /// Checks that everything `agent` refers to belongs to the same organisation.
    async fn require_possible(&mut self, agent: &Agent) -> Result<(), Problem> {
        if agent.kind == AgentKind::Virtual && agent.user_id.is_some() {
            let message = "a virtual agent does not log in, leave it out or make the kind human".to_owned();
            return Err(Problem::InvalidRequest(vec![FieldProblem { field: "user_id".to_owned(), message }]));
        }
        let refers = [
            refer("team_id", agent.team_id),
            refer("extension_id", agent.extension_id),
            refer("user_id", agent.user_id),
        ];
        self.require_own(agent.organisation_id, &refers).await?;
        let taken = [
            (
                "extension_id",
                "extension",
                agent.extension_id.map(|id| id.to_string()),
                "SELECT name FROM agents WHERE extension_id = $1 AND id <> $2 AND organisation_id = $3",
            ),
            (
                "user_id",
                "user",
                agent.user_id.map(|id| id.to_string()),
                "SELECT name FROM agents WHERE user_id = $1 AND id <> $2 AND organisation_id = $3",
            ),
        ];
        for (field, what, id, text) in taken {
            let Some(id) = id else { continue };
            let rows = sql(text)
                .bind(id)
                .bind(agent.id.to_string())
                .bind(agent.organisation_id.to_string())
                .fetch_all(&mut *self.transaction)
                .await
                .map_err(StoreError::from)?;
            if !rows.is_empty() {
                let other = named(&rows, "name")?;
                return Err(Problem::Conflict(format!("{field}: the {what} is already that of {other}")));
            }
        }
        Ok(())
    }
}

fn agent(row: &Row) -> Result<Agent, StoreError> {
    Ok(Agent {
        id: parsed(row, "id")?,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        name: row.try_get("name")?,
        kind: word(row, "kind", AgentKind::from_name)?,
        extension_id: parsed_opt(row, "extension_id")?,
        user_id: parsed_opt(row, "user_id")?,
        created_at: instant(row, "created_at_us")?,
        updated_at: instant(row, "updated_at_us")?,
    })
}
