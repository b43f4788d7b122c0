//! The stored conversations.

use crate::access::Scope;
use crate::conversation::{Conversation, ConversationDraft};
use crate::ids::{CallId, ConversationId, OrganisationId, TeamId};
use crate::ports::PortFuture;
use crate::time::Timestamp;

/// The stored conversations.
pub trait Conversations: Send + Sync {
    /// One conversation, whoever owns it; the caller decides by [`FoundConversation::is_in`] whether it may be
    /// shown, since "foreign" (403) and "none" (404) are told apart.
    fn find(&self, id: ConversationId) -> PortFuture<'_, Option<FoundConversation>>;

    /// The conversation of a call: that of the record's organisation once the call has a record, before that the
    /// one of `scope`, or else anybody's, so that it can be refused.
    fn find_by_call(&self, scope: Scope, call: CallId) -> PortFuture<'_, Option<FoundConversation>>;

    /// Takes a report of the conversation `id`: see [`crate::conversation::Update`]. The one that
    /// completes it settles its charge and stores the event, in the same transaction.
    ///
    /// # Errors
    /// [`crate::problem::Problem::Conflict`] when it contradicts what is stored,
    /// [`crate::problem::Problem::Forbidden`] when the conversation or the call is another organisation's or
    /// outside the reporter's scope, [`crate::problem::Problem::InvalidRequest`] when it names an agent that is not there.
    fn report(
        &self,
        reporter: Reporter,
        id: ConversationId,
        draft: ConversationDraft,
        now: Timestamp,
    ) -> PortFuture<'_, ReportedConversation>;
}

/// Who reports a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// What they see.
    pub scope: Scope,
    /// Where they belong: a new conversation is of this organisation unless they name another.
    pub home: OrganisationId,
    /// The organisation that they name.
    pub named: Option<OrganisationId>,
}

/// A conversation and whose it is.
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

/// What a report left stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedConversation {
    /// The conversation with all its turns.
    pub conversation: Conversation,
    /// Whether it was not there before.
    pub created: bool,
}
