//! Lists of conversations.

use sidetone_model::access::Scope;
use sidetone_model::conversation::{ConversationQuery, ListedConversation};
use sidetone_model::page::Page;

use crate::columns::number;
use crate::conversation_rows::conversation;
use crate::paging::{List, SortColumn, Sorting, rows};
use crate::scope::within;
use crate::sql::Row;
use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    /// The conversations inside `scope` that the query selects, newest first.
    pub(super) async fn list_conversations(
        &self,
        scope: Scope,
        query: &ConversationQuery,
    ) -> Result<Page<ListedConversation>, StoreError> {
        let list = List {
            count: "SELECT COUNT(*) AS total FROM ",
            items:
                "SELECT listed.*, (SELECT COUNT(*) FROM conversation_turns WHERE conversation_id = listed.id
                AND conversation_turns.organisation_id = listed.organisation_id) AS turn_count FROM ",
            matching: &|statement| matching(statement, scope, query),
            sorting: Sorting::descending(&[SortColumn::Integer("started_at_us"), SortColumn::Text("id")]),
        };
        let mut transaction = self.readers().begin_read().await?;
        rows(&mut transaction, &list, &query.window).await?.try_map(|row| listed(&row))
    }
}

/// The team of a conversation is that of its record; without one, that of its agent.
fn matching(statement: &mut Statement, scope: Scope, query: &ConversationQuery) {
    statement.push(
        "(SELECT conversations.*, COALESCE(cdrs.team_id, agents.team_id) AS team_id FROM conversations
         LEFT JOIN cdrs ON cdrs.call_uuid = conversations.call_uuid
                       AND cdrs.organisation_id = conversations.organisation_id
         LEFT JOIN agents ON agents.id = conversations.agent_id
                         AND agents.organisation_id = conversations.organisation_id) AS listed",
    );
    let ConversationQuery { agent_id, from, organisation_id, running, to, window: _ } = query;
    within(statement, scope);
    statement.bind_text(" AND organisation_id = ", *organisation_id);
    statement.bind_text(" AND agent_id = ", *agent_id);
    match running {
        Some(true) => statement.push(" AND ended_at_us IS NULL"),
        Some(false) => statement.push(" AND ended_at_us IS NOT NULL"),
        None => {}
    }
    if let Some(from) = from {
        statement.bind(" AND started_at_us >= ", from.as_micros(), "");
    }
    if let Some(to) = to {
        statement.bind(" AND started_at_us < ", to.as_micros(), "");
    }
}

fn listed(row: &Row) -> Result<ListedConversation, StoreError> {
    Ok(ListedConversation {
        conversation: conversation(row, Vec::new())?,
        turn_count: number(row, "turn_count")?,
    })
}
