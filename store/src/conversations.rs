//! Conversations as the API reads and reports them.

use sidetone_model::access::Scope;
use sidetone_model::conversation::{
    ConversationDraft, ConversationQuery, Conversations, FoundConversation, ListedConversation,
    ReportedConversation, Reporter,
};
use sidetone_model::ids::{CallId, ConversationId};
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::columns::parsed;
use crate::conversation_rows::find;
use crate::sql::sql;
use crate::{Store, StoreError};

impl Conversations for Store {
    fn find(&self, id: ConversationId) -> PortFuture<'_, Option<FoundConversation>> {
        Box::pin(async move {
            let mut transaction = self.readers().begin_read().await.map_err(StoreError::from)?;
            Ok(find(&mut transaction, id).await?)
        })
    }

    fn find_by_call(&self, scope: Scope, call: CallId) -> PortFuture<'_, Option<FoundConversation>> {
        Box::pin(async move { Ok(self.find_conversation_of_call(scope, call).await?) })
    }

    fn list<'a>(
        &'a self,
        scope: Scope,
        query: &'a ConversationQuery,
    ) -> PortFuture<'a, Page<ListedConversation>> {
        Box::pin(async move { Ok(self.list_conversations(scope, query).await?) })
    }

    fn report(
        &self,
        reporter: Reporter,
        id: ConversationId,
        draft: ConversationDraft,
        now: Timestamp,
    ) -> PortFuture<'_, ReportedConversation> {
        Box::pin(async move { self.report_conversation(reporter, id, draft, now).await })
    }
}

impl Store {
    async fn find_conversation_of_call(
        &self,
        scope: Scope,
        call: CallId,
    ) -> Result<Option<FoundConversation>, StoreError> {
        let mut transaction = self.readers().begin_read().await?;
        let rows = sql("SELECT conversations.id, conversations.organisation_id FROM conversations
             LEFT JOIN cdrs ON cdrs.call_uuid = conversations.call_uuid
             WHERE conversations.call_uuid = $1
               AND (cdrs.organisation_id IS NULL OR cdrs.organisation_id = conversations.organisation_id)
             ORDER BY conversations.id LIMIT 100")
        .bind(call.to_string())
        .fetch_all(&mut *transaction)
        .await?;
        let mut other = None;
        for row in rows {
            let id = parsed(&row, "id")?;
            if scope.reaches(parsed(&row, "organisation_id")?) {
                return find(&mut transaction, id).await;
            }
            other = Some(id);
        }
        match other {
            Some(id) => find(&mut transaction, id).await,
            None => Ok(None),
        }
    }
}
