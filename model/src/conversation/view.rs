//! The public JSON of a conversation, as each reader may see it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::Direction;
use crate::conversation::{AiBillingMode, AiUse, Conversation, Flag, FlagKind, Turn, TurnRole};
use crate::exact_json::ExactJson;
use crate::ids::{AgentId, CallId, ContactId, ConversationId, OrganisationId, VirtualAgentProfileId};
use crate::money::{Amount, Currency};
use crate::team::AgentKind;
use crate::time::Timestamp;

/// The amounts that a reader may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// `billing:read`: the sell price of the AI.
    pub billing: bool,
    /// `margin:read`: the cost of the AI.
    pub margin: bool,
}

impl Conversation {
    /// The conversation as the public API writes it for a reader with these permissions.
    pub fn view(&self, sight: Sight) -> ConversationView<'_> {
        ConversationView {
            item: self.item(sight, self.turns.len() as u64),
            assembled_context: self.assembled_context.as_deref(),
            turns: self.turns.iter().map(TurnView::from).collect(),
        }
    }

    /// The conversation as in lists, without its transcript.
    pub fn item(&self, sight: Sight, turn_count: u64) -> ConversationItem<'_> {
        let ai = self.ai.as_ref();
        // An organisation that paid the provider itself sees no amount, whatever is stored.
        let rated = ai.is_some_and(|ai| ai.billing_mode == AiBillingMode::Rated);
        let sell = self.charge.sell.filter(|_| rated && sight.billing);
        let cost = self.charge.cost.filter(|_| rated && sight.margin);
        ConversationItem {
            id: self.id,
            organisation_id: self.organisation_id,
            call_uuid: self.call_uuid,
            direction: self.direction,
            started_at: self.started_at,
            ended_at: self.ended_at,
            agent_id: self.agent_id,
            agent_kind: self.agent_kind,
            contact_id: self.contact_id,
            contact_e164: self.contact_e164.as_deref(),
            summary: self.summary.as_deref(),
            turn_count,
            provider: ai.map(|ai| ai.provider.as_str()),
            model: ai.map(|ai| ai.model.as_str()),
            virtual_agent_profile_id: ai.and_then(|ai| ai.profile_id),
            virtual_agent_profile_name: ai.and_then(|ai| ai.profile_name.as_deref()),
            ai_billing_mode: ai.map(|ai| ai.billing_mode),
            ai_cost_amount: cost.map(text),
            ai_cost_currency: cost.map(|(_, currency)| currency),
            ai_sell_amount: sell.map(text),
            ai_sell_currency: sell.map(|(_, currency)| currency),
            tokens_input: ai.map(|ai| ai.tokens_input),
            tokens_output: ai.map(|ai| ai.tokens_output),
            tokens_audio: ai.map(|ai| ai.tokens_audio),
            audio_split_known: ai.map(|ai: &AiUse| ai.audio_split_known),
            flags: self.flags.iter().map(FlagView::from).collect(),
        }
    }

    /// The data of `conversation.completed`: enough to decide whether to read the conversation, and nothing
    /// that needs a permission.
    pub fn completed_data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
        put("id", self.id.to_string().into());
        put("call_uuid", self.call_uuid.to_string().into());
        put("direction", self.direction.as_str().into());
        put("started_at", self.started_at.to_string().into());
        if let Some(ended_at) = self.ended_at {
            put("ended_at", ended_at.to_string().into());
        }
        put("agent_id", self.agent_id.map_or(Value::Null, |id| id.to_string().into()));
        put("agent_kind", self.agent_kind.as_str().into());
        if let Some(contact) = self.contact_id {
            put("contact_id", contact.to_string().into());
        }
        put("turn_count", self.turns.len().into());
        let flags: Vec<Value> = self
            .flags
            .iter()
            .map(|flag| serde_json::json!({"kind": flag.kind.as_str(), "seq": flag.seq, "detail": flag.detail}))
            .collect();
        put("flags", flags.into());
        data
    }
}

fn text((amount, currency): (Amount, Currency)) -> String {
    amount.to_text(currency.places())
}

/// A conversation. `agent_id` and `virtual_agent_profile_id` are null when there is none; every other field is absent
/// when it has no value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Conversation))]
pub struct ConversationView<'a> {
    /// What lists show as well.
    #[serde(flatten)]
    pub item: ConversationItem<'a>,
    /// The agent's instructions before it spoke, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assembled_context: Option<&'a str>,
    /// The transcript, by `seq`.
    pub turns: Vec<TurnView<'a>>,
}

/// A conversation in a list: without its transcript and `assembled_context`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConversationItem))]
pub struct ConversationItem<'a> {
    /// Primary key.
    pub id: ConversationId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// The call of this record.
    pub call_uuid: CallId,
    /// `inbound` or `outbound`.
    pub direction: Direction,
    /// When the agent took the call.
    pub started_at: Timestamp,
    /// When the conversation ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The agent; null for a call that no agent record handled.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub agent_id: Option<AgentId>,
    /// The kind of agent that handled the call.
    pub agent_kind: AgentKind,
    /// The customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    /// The customer's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_e164: Option<&'a str>,
    /// A summary of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    /// Number of turns.
    pub turn_count: u64,
    /// The provider of the model; absent for a human agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'a str>,
    /// The model's name at that provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    /// The profile at that time, not a live reference; null for a human agent.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub virtual_agent_profile_id: Option<VirtualAgentProfileId>,
    /// The profile's name when the call ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_agent_profile_name: Option<&'a str>,
    /// `byo`: the tenant's own credential paid the provider, so no amount appears; or `rated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_billing_mode: Option<AiBillingMode>,
    /// The provider's charge to the operator; only with `margin:read` and never with `byo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    pub ai_cost_amount: Option<String>,
    /// The currency of `ai_cost_amount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_cost_currency: Option<Currency>,
    /// The customer's price; only with `billing:read`, when a price matched the model, and never with `byo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    pub ai_sell_amount: Option<String>,
    /// The currency of `ai_sell_amount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_sell_currency: Option<Currency>,
    /// Tokens that the model read, audio included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Tokens that the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// The audio part of `tokens_input`, not an additional total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_audio: Option<u64>,
    /// False when the provider itemised no audio tokens: `tokens_audio` is then not reported, and audio was
    /// priced at the text rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_split_known: Option<bool>,
    /// Findings of the review after the call; empty when there are none or the review did not run.
    pub flags: Vec<FlagView<'a>>,
}

/// A finding of the review.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConversationFlag))]
pub struct FlagView<'a> {
    /// The kind of finding; more kinds may follow.
    pub kind: FlagKind,
    /// The turn that it is about.
    pub seq: u64,
    /// The finding in words.
    pub detail: &'a str,
}

impl<'a> From<&'a Flag> for FlagView<'a> {
    fn from(flag: &'a Flag) -> Self {
        FlagView { kind: flag.kind, seq: flag.seq, detail: &flag.detail }
    }
}

/// One turn of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Turn))]
pub struct TurnView<'a> {
    /// Its position; unique within the conversation.
    pub seq: u64,
    /// When it began.
    pub at: Timestamp,
    /// The role of the speaker; more roles may follow.
    pub role: TurnRole,
    /// The speaker's name when several people can speak; empty on an ordinary call.
    pub speaker: &'a str,
    /// The text.
    pub text: &'a str,
    /// The tool that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// The arguments of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub tool_args: Option<&'a ExactJson>,
    /// The result of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub tool_result: Option<&'a ExactJson>,
}

impl<'a> From<&'a Turn> for TurnView<'a> {
    fn from(turn: &'a Turn) -> Self {
        TurnView {
            seq: turn.seq,
            at: turn.at,
            role: turn.role,
            speaker: &turn.speaker,
            text: &turn.text,
            tool_name: turn.tool_name.as_deref(),
            tool_args: turn.tool_args.as_ref(),
            tool_result: turn.tool_result.as_ref(),
        }
    }
}
