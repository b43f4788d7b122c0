//! The stored conversations.

use crate::access::Scope;
use crate::conversation::{Conversation, ConversationDraft};
use crate::ids::{CallId, ConversationId, OrganisationId, TeamId};
use crate::ports::PortFuture;
use crate::time::Timestamp;

/// The stored conversations.
pub trait Conversations: Send + Sync {
    /// Returns one conversation, of any organisation; the caller decides with [`FoundConversation::is_in`]
    /// whether it may be shown, because "foreign" (403) and "none" (404) get different answers.
    fn find(&self, id: ConversationId) -> PortFuture<'_, Option<FoundConversation>>;

    /// Returns the conversation of a call: that of the record's organisation once the call has a record,
    /// before that the one in `scope`, or else another organisation's, so that it can be refused.
    fn find_by_call(&self, scope: Scope, call: CallId) -> PortFuture<'_, Option<FoundConversation>>;

    /// Stores a report of the conversation `id`: see [`crate::conversation::Update`]. The report that
    /// completes it settles its charge and stores the event, in the same transaction.
    ///
    /// # Errors
    /// [`crate::problem::Problem::Conflict`] when it contradicts what is stored,
    /// [`crate::problem::Problem::Forbidden`] when the conversation or the call is another organisation's or
    /// outside the reporter's scope, [`crate::problem::Problem::InvalidRequest`] when it names an agent that
    /// does not exist.
    fn report(
        &self,
        reporter: Reporter,
        id: ConversationId,
        draft: ConversationDraft,
        now: Timestamp,
    ) -> PortFuture<'_, ReportedConversation>;
}

/// The reporter of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The reporter's scope.
    pub scope: Scope,
    /// The reporter's organisation: a new conversation belongs to it unless the report names another.
    pub home: OrganisationId,
    /// The organisation named in the report.
    pub named: Option<OrganisationId>,
}

/// A conversation with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundConversation {
    /// The conversation.
    pub conversation: Conversation,
    /// The team of the call's record, or else that of the agent.
    pub team_id: Option<TeamId>,
}

impl FoundConversation {
    /// Whether a caller of that scope may see it.
    pub fn is_in(&self, scope: Scope) -> bool {
        scope.covers(self.conversation.organisation_id, self.team_id)
    }
}

/// The state after a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedConversation {
    /// The conversation with all its turns.
    pub conversation: Conversation,
    /// Whether it is new.
    pub created: bool,
}
