//! The stored form of a conversation.

use serde::{Deserialize, Serialize};

use crate::call::{Direction, words};
use crate::exact_json::ExactJson;
use crate::ids::{AgentId, CallId, ContactId, ConversationId, OrganisationId, VirtualAgentProfileId};
use crate::money::{Amount, Currency};
use crate::team::AgentKind;
use crate::time::Timestamp;

words! {
    /// Whose credential paid the provider of the AI.
    AiBillingMode {
        /// The tenant's own: no amount appears.
        Byo = "byo",
        /// The operator's: sold by price.
        Rated = "rated",
    }
}

words! {
    /// The role of the speaker.
    TurnRole {
        /// The agent spoke.
        Agent = "agent",
        /// The customer spoke.
        Caller = "caller",
        /// The platform sent a message to the agent.
        System = "system",
        /// The agent used a tool.
        Tool = "tool",
    }
}

words! {
    /// The kinds of findings; more may follow.
    FlagKind {
        /// An agent turn named one of the profile's competitors.
        Competitor = "competitor",
        /// The agent answered without searching a knowledge base that it had not been handed whole.
        NeverSearched = "never_searched",
    }
}

/// A conversation with its transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Primary key, chosen by the reporter.
    pub id: ConversationId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The call; an organisation has one conversation for each.
    pub call_uuid: CallId,
    /// Inbound or outbound; internal calls have none.
    pub direction: Direction,
    /// When the agent took the call.
    pub started_at: Timestamp,
    /// When the agent finished it; `None` while it runs.
    pub ended_at: Option<Timestamp>,
    /// The agent's record, when there is one.
    pub agent_id: Option<AgentId>,
    /// See [`AgentKind`].
    pub agent_kind: AgentKind,
    /// The customer.
    pub contact_id: Option<ContactId>,
    /// The customer's number.
    pub contact_e164: Option<String>,
    /// A summary in a few sentences.
    pub summary: Option<String>,
    /// The AI that spoke; `None` exactly when the agent is a person.
    pub ai: Option<AiUse>,
    /// The agent's instructions before it spoke, verbatim.
    pub assembled_context: Option<String>,
    /// The input of the review.
    pub profile: ReviewProfile,
    /// What the AI cost; empty before the conversation is complete.
    pub charge: Charge,
    /// The findings of the review; empty before the conversation is complete.
    pub flags: Vec<Flag>,
    /// The transcript, by `seq`.
    pub turns: Vec<Turn>,
}

impl Conversation {
    /// Whether it has ended: its price is settled and it was reviewed.
    pub fn is_complete(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Input plus output tokens, the `ai_tokens` of the call's record; `None` when a person handled the call.
    pub fn ai_tokens(&self) -> Option<u64> {
        self.ai.as_ref().map(AiUse::tokens)
    }
}

/// The AI of a conversation and its usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AiUse {
    /// The provider of the model.
    pub provider: String,
    /// The model's name at that provider.
    pub model: String,
    /// See [`AiBillingMode`].
    pub billing_mode: AiBillingMode,
    /// The virtual agent's profile at the time; not a live reference.
    pub profile_id: Option<VirtualAgentProfileId>,
    /// The profile's name at the time.
    pub profile_name: Option<String>,
    /// Tokens read by the model, audio included.
    pub tokens_input: u64,
    /// Tokens written by the model.
    pub tokens_output: u64,
    /// The part of `tokens_input` that was audio; 0 when the split is not known.
    pub tokens_audio: u64,
    /// Whether the provider reported how much of the input was audio.
    pub audio_split_known: bool,
}

impl AiUse {
    /// Input plus output; audio is part of the input.
    pub fn tokens(&self) -> u64 {
        self.tokens_input.saturating_add(self.tokens_output)
    }
}

/// The sell price and the cost of the AI of one conversation, each if a price matched; final once it is
/// complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// What the customer pays.
    pub sell: Option<(Amount, Currency)>,
    /// What the operator paid the provider.
    pub cost: Option<(Amount, Currency)>,
}

/// What a review uses of the virtual agent's profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewProfile {
    /// Names that the agent should not bring up.
    pub competitors: Vec<String>,
    /// The knowledge base that the agent could search, if any.
    pub knowledge_base: Option<KnowledgeBase>,
}

/// A knowledge base, as in one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnowledgeBase {
    /// Whether it was small enough to be part of the agent's context.
    pub handed_over_whole: bool,
    /// The tools that search it.
    pub search_tools: Vec<String>,
}

/// A finding of the review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// See [`FlagKind`].
    pub kind: FlagKind,
    /// The turn that it is about.
    pub seq: u64,
    /// The finding in words.
    pub detail: String,
}

/// One turn of the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its position; unique within the conversation.
    pub seq: u64,
    /// When it began.
    pub at: Timestamp,
    /// See [`TurnRole`].
    pub role: TurnRole,
    /// The speaker, if several people may speak; empty on an ordinary call.
    pub speaker: String,
    /// The text.
    pub text: String,
    /// The tool that was used.
    pub tool_name: Option<String>,
    /// The arguments of the tool.
    pub tool_args: Option<ExactJson>,
    /// The result of the tool.
    pub tool_result: Option<ExactJson>,
}

impl Turn {
    /// Whether `other` reports the same. The values of tools may be written differently: before every digit was kept,
    /// `1.10` was stored as `1.1`.
    pub fn is_same(&self, other: &Turn) -> bool {
        let same = |one: &Option<ExactJson>, other: &Option<ExactJson>| match (one, other) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one == other,
        };
        let without_values = |turn: &Turn| Turn { tool_args: None, tool_result: None, ..turn.clone() };
        self == other
            || (same(&self.tool_args, &other.tool_args)
                && same(&self.tool_result, &other.tool_result)
                && without_values(self) == without_values(other))
    }
}
