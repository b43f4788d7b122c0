//! The content of a report of a conversation, and its limits.

use crate::call::Direction;
use crate::conversation::{AiUse, ReviewProfile, Turn};
use crate::exact_json::ExactJson;
use crate::ids::{AgentId, CallId, ContactId};
use crate::team::AgentKind;
use crate::time::Timestamp;

/// A report of a conversation: everything except the fields that the platform sets.
///
/// Missing fields are cleared, with two exceptions: stored turns stay, so that a report may contain only the
/// new ones, and the profile is kept if a report does not contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `Conversation`")]
pub struct ConversationDraft {
    pub call_uuid: CallId,
    pub direction: Direction,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub agent_id: Option<AgentId>,
    pub agent_kind: AgentKind,
    pub contact_id: Option<ContactId>,
    pub contact_e164: Option<String>,
    pub summary: Option<String>,
    pub ai: Option<AiUse>,
    pub assembled_context: Option<String>,
    pub profile: Option<ReviewProfile>,
    /// Ordered by `seq`, without duplicates.
    pub turns: Vec<Turn>,
}

/// The limits of the parts of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Turns of one conversation.
    pub turns: usize,
    /// Bytes of all turns of one conversation.
    pub transcript_bytes: usize,
    /// Characters of one turn's text.
    pub text: usize,
    /// Bytes of a tool's arguments or result, as JSON.
    pub tool_json_bytes: usize,
    /// Characters of a name: of a provider, model, profile, tool, speaker or competitor.
    pub name: usize,
    /// Characters of a summary.
    pub summary: usize,
    /// Characters of the agent's context.
    pub context: usize,
    /// Competitors of a profile, and tools that search its knowledge base.
    pub names: usize,
    /// Tokens of one conversation, in either direction.
    pub tokens: u64,
    /// The largest `seq`.
    pub seq: u64,
}

/// The limits of this version. An hour of lively conversation has about 1,000 turns and 100 KiB of text.
pub const LIMITS: Limits = Limits {
    turns: 10_000,
    transcript_bytes: 8 * 1024 * 1024,
    text: 20_000,
    tool_json_bytes: 64 * 1024,
    name: 200,
    summary: 20_000,
    context: 500_000,
    names: 200,
    tokens: 10_000_000_000,
    seq: 1_000_000_000,
};

impl Turn {
    /// The turn's part of [`Limits::transcript_bytes`].
    pub fn len_bytes(&self) -> usize {
        let json = |value: &Option<ExactJson>| value.as_ref().map_or(0, |value| value.as_str().len());
        let name = self.tool_name.as_ref().map_or(0, String::len);
        self.speaker.len() + self.text.len() + name + json(&self.tool_args) + json(&self.tool_result)
    }
}
