//! The stored conversations.

use crate::access::Scope;
use crate::conversation::{Conversation, ConversationDraft};
use crate::ids::{AgentId, CallId, ConversationId, OrganisationId, TeamId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// The stored conversations.
pub trait Conversations: Send + Sync {
    /// Returns one conversation, of any organisation; the caller decides with [`FoundConversation::is_in`]
    /// whether it may be shown, because "of another organisation" (403) and "unknown" (404) get different
    /// answers.
    fn find(&self, id: ConversationId) -> PortFuture<'_, Option<FoundConversation>>;

    /// Returns the conversation of a call. Once the call has a record, this is the conversation of the
    /// record's organisation; before that it is the one in `scope`, or else another organisation's, so that
    /// it can be refused.
    fn find_by_call(&self, scope: Scope, call: CallId) -> PortFuture<'_, Option<FoundConversation>>;

    /// The conversations inside `scope` that the query selects, newest first.
    fn list<'a>(
        &'a self,
        scope: Scope,
        query: &'a ConversationQuery,
    ) -> PortFuture<'a, Page<ListedConversation>>;

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

/// A page of conversations; every given filter must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationQuery {
    /// Those of this agent.
    pub agent_id: Option<AgentId>,
    /// Started at this instant or later.
    pub from: Option<Timestamp>,
    /// One of the organisations in scope.
    pub organisation_id: Option<OrganisationId>,
    /// Whether it has not ended.
    pub running: Option<bool>,
    /// Started before this instant.
    pub to: Option<Timestamp>,
    /// The window.
    pub window: Window,
}

/// A conversation without its turns, and their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConversation {
    /// The conversation.
    pub conversation: Conversation,
    /// Its number of turns.
    pub turn_count: u64,
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
