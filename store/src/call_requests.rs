//! Calls that programs request: stored before anything rings, and changed with the reports of the switch.

use std::collections::BTreeMap;

use sidetone_model::access::Scope;
use sidetone_model::call_request::{CallRequest, NODE_RESTARTED, RequestChange, RequestQuery, RequestState};
use sidetone_model::ids::{CallId, CallRequestId, ExtensionId, NodeId, OrganisationId, TeamId};
use sidetone_model::note::Committed;
use sidetone_model::page::Page;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::{instant, instant_opt, number, parsed, parsed_opt, word};
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::scope::within;
use crate::sql::{Connection, Row, sql};
use crate::statement::Statement;
use crate::{Store, StoreError, call_callbacks};

/// The extension that a field of a request identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedExtension {
    /// The extension.
    pub id: ExtensionId,
    /// The organisation of the extension.
    pub organisation_id: OrganisationId,
    /// The team of its records.
    pub team_id: Option<TeamId>,
}

impl Store {
    /// Returns the extension that `name` identifies: by its id or its agent's, of any organisation; by its number in
    /// `organisation`; or by the email address of its user.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn extension_named(
        &self,
        organisation: OrganisationId,
        name: &str,
    ) -> Result<Option<NamedExtension>, StoreError> {
        let query = if let Ok(id) = name.parse::<Uuid>() {
            sql("SELECT extensions.id, extensions.organisation_id,
                 COALESCE(agents.team_id, extensions.team_id) AS team_id
                 FROM extensions LEFT JOIN agents ON agents.extension_id = extensions.id
                 WHERE extensions.id = $1 OR agents.id = $2")
            .bind(id.to_string())
            .bind(id.to_string())
        } else if name.contains('@') {
            sql("SELECT extensions.id, extensions.organisation_id,
                 COALESCE(agents.team_id, extensions.team_id) AS team_id
                 FROM users JOIN agents ON agents.user_id = users.id
                 JOIN extensions ON extensions.id = agents.extension_id
                 WHERE users.email = $1 ORDER BY extensions.number LIMIT 1")
            .bind(name.to_lowercase())
        } else {
            sql("SELECT extensions.id, extensions.organisation_id,
                 COALESCE(agents.team_id, extensions.team_id) AS team_id
                 FROM extensions LEFT JOIN agents ON agents.extension_id = extensions.id
                 WHERE extensions.organisation_id = $1 AND extensions.number = $2")
            .bind(organisation.to_string())
            .bind(name)
        };
        self.one(query, |row| {
            Ok(NamedExtension {
                id: parsed(row, "id")?,
                organisation_id: parsed(row, "organisation_id")?,
                team_id: parsed_opt(row, "team_id")?,
            })
        })
        .await
    }

    /// Stores a request of `node`, and calls `committed` after the commit.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn insert_request(
        &self,
        node: NodeId,
        request: &CallRequest,
        committed: Committed,
    ) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let variables = serde_json::to_string(&request.variables).unwrap_or_default();
        sql("INSERT INTO call_requests (id, call_uuid, organisation_id, team_id, extension_id, node_id, caller,
             target, reference, variables, state, created_at_us, callback_url)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)")
        .bind(request.id.to_string())
        .bind(request.call_uuid.to_string())
        .bind(request.organisation_id.to_string())
        .bind(request.team_id.map(|team| team.to_string()))
        .bind(request.extension_id.to_string())
        .bind(node.to_string())
        .bind(&request.from)
        .bind(&request.to)
        .bind(&request.reference)
        .bind(variables)
        .bind(request.state.as_str())
        .bind(request.created_at.as_micros())
        .bind(&request.callback_url)
        .execute(&mut *transaction)
        .await?;
        transaction.when_committed(committed);
        transaction.commit().await?;
        Ok(())
    }

    /// Stores a change of a request.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn change_request(&self, change: &RequestChange) -> Result<(), StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        change_requests(&mut transaction, &[change]).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Ends the requests of calls that an earlier run of `node` left unfinished.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_interrupted_requests(&self, node: NodeId, now: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.writer().begin_write().await?;
        let rows = sql("SELECT call_uuid FROM call_requests WHERE node_id = $1 AND ended_at_us IS NULL")
            .bind(node.to_string())
            .fetch_all(&mut *transaction)
            .await?;
        let ended = |row| {
            let (state, reason) = (RequestState::Failed, Some(NODE_RESTARTED.to_owned()));
            Ok(RequestChange { call: parsed(row, "call_uuid")?, state, reason, at: now })
        };
        let changes = rows.iter().map(ended).collect::<Result<Vec<_>, StoreError>>()?;
        change_requests(&mut transaction, &changes.iter().collect::<Vec<_>>()).await?;
        transaction.commit().await?;
        Ok(changes.len().try_into().unwrap_or(u64::MAX))
    }

    /// Returns one request, of any organisation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn request(&self, id: CallRequestId) -> Result<Option<CallRequest>, StoreError> {
        let query = sql("SELECT call_requests.*, (SELECT COUNT(*) FROM cdrs
             WHERE cdrs.call_uuid = call_requests.call_uuid) AS records FROM call_requests WHERE id = $1")
        .bind(id.to_string());
        self.one(query, request).await
    }

    /// Returns the requests inside `scope` that match `query`, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn requests(
        &self,
        scope: Scope,
        query: &RequestQuery,
    ) -> Result<Page<CallRequest>, StoreError> {
        let list = List {
            count: "SELECT COUNT(*) AS total FROM call_requests",
            items: "SELECT call_requests.*, (SELECT COUNT(*) FROM cdrs
                WHERE cdrs.call_uuid = call_requests.call_uuid) AS records FROM call_requests",
            matching: &|statement| matching(statement, scope, query),
            sorting: Sorting::descending(&[SortColumn::Integer("created_at_us"), SortColumn::Text("id")]),
        };
        let mut transaction = self.readers().begin_read().await?;
        rows(&mut transaction, &list, &query.window).await?.try_map(|row| request(&row))
    }

    /// Deletes requests whose retention time is over, a bounded number; returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_requests(&self, now: Timestamp) -> Result<u64, StoreError> {
        let until = now.plus_micros(-KEPT_FOR_US);
        let mut transaction = self.writer().begin_write().await?;
        // A request has three callbacks.
        call_callbacks::purge(&mut transaction, until, PURGE_ROWS_MAX * 3).await?;
        let done = sql("DELETE FROM call_requests WHERE id IN (SELECT id FROM call_requests
             WHERE created_at_us <= $1 ORDER BY created_at_us, id LIMIT $2)")
        .bind(until.as_micros())
        .bind(PURGE_ROWS_MAX)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }

    /// How many requests one [`purge_requests`](Self::purge_requests) deletes at most.
    pub const REQUEST_PURGE_BATCH: u64 = PURGE_ROWS_MAX.unsigned_abs();
}

/// Stores changes in their order, with the callbacks that report them; a request that has ended is not changed again.
pub(super) async fn change_requests(
    connection: &mut Connection,
    changes: &[&RequestChange],
) -> Result<(), StoreError> {
    for change in changes {
        let at = change.at.as_micros();
        let query = match change.state {
            RequestState::Calling => sql("UPDATE call_requests SET state = $1, from_answered_at_us = $2
                     WHERE call_uuid = $3 AND ended_at_us IS NULL")
            .bind(change.state.as_str())
            .bind(at),
            RequestState::Answered => sql("UPDATE call_requests SET state = $1, to_answered_at_us = $2
                     WHERE call_uuid = $3 AND ended_at_us IS NULL")
            .bind(change.state.as_str())
            .bind(at),
            RequestState::Queued | RequestState::Ringing => {
                sql("UPDATE call_requests SET state = $1 WHERE call_uuid = $2 AND ended_at_us IS NULL")
                    .bind(change.state.as_str())
            }
            RequestState::Cancelled | RequestState::Completed | RequestState::Failed => {
                sql("UPDATE call_requests SET state = $1, reason = $2, ended_at_us = $3
                     WHERE call_uuid = $4 AND ended_at_us IS NULL")
                .bind(change.state.as_str())
                .bind(&change.reason)
                .bind(at)
            }
        };
        let done = query.bind(change.call.to_string()).execute(&mut *connection).await?;
        if done.rows_affected() > 0 {
            let row = sql("SELECT (SELECT COUNT(*) FROM cdrs WHERE cdrs.call_uuid = call_requests.call_uuid)
                 AS records, call_requests.* FROM call_requests WHERE call_uuid = $1")
            .bind(change.call.to_string())
            .fetch_one(&mut *connection)
            .await?;
            call_callbacks::report(connection, change, &request(&row)?).await?;
        }
    }
    Ok(())
}

fn matching(statement: &mut Statement, scope: Scope, query: &RequestQuery) {
    within(statement, scope);
    statement.bind_text(" AND organisation_id = ", query.organisation_id);
    statement.bind_text(" AND state = ", query.state.map(RequestState::as_str));
    statement.bind_text(" AND reference = ", query.reference.as_deref());
}

fn request(row: &Row) -> Result<CallRequest, StoreError> {
    let variables: &str = row.try_get("variables")?;
    let variables: BTreeMap<String, String> =
        serde_json::from_str(variables).map_err(|_| StoreError::Corrupt { column: "variables" })?;
    let call_uuid: CallId = parsed(row, "call_uuid")?;
    let recorded = number::<u64>(row, "records")? > 0;
    Ok(CallRequest {
        id: parsed(row, "id")?,
        call_uuid,
        organisation_id: parsed(row, "organisation_id")?,
        team_id: parsed_opt(row, "team_id")?,
        state: word(row, "state", RequestState::from_name)?,
        reason: row.try_get("reason")?,
        from: row.try_get("caller")?,
        extension_id: parsed(row, "extension_id")?,
        to: row.try_get("target")?,
        reference: row.try_get("reference")?,
        variables,
        callback_url: row.try_get("callback_url")?,
        created_at: instant(row, "created_at_us")?,
        from_answered_at: instant_opt(row, "from_answered_at_us")?,
        to_answered_at: instant_opt(row, "to_answered_at_us")?,
        ended_at: instant_opt(row, "ended_at_us")?,
        cdr: recorded.then_some(call_uuid),
    })
}

/// 30 days.
const KEPT_FOR_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;
const PURGE_ROWS_MAX: i64 = 500;
