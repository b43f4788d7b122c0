//! The public JSON of a conversation: what each reader may see of it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::Direction;
use crate::conversation::{AgentKind, AiBillingMode, AiUse, Conversation, Flag, FlagKind, Turn, TurnRole};
use crate::ids::{AgentId, CallId, ContactId, ConversationId, OrganisationId, VirtualAgentProfileId};
use crate::money::{Amount, Currency};
use crate::time::Timestamp;

/// Which amounts a reader may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// `billing:read`: what the AI was sold for.
    pub billing: bool,
    /// `margin:read`: what the AI cost.
    pub margin: bool,
}

impl Conversation {
    /// The conversation as the public API writes it for a reader of that sight.
    pub fn view(&self, sight: Sight) -> ConversationView<'_> {
        let ai = self.ai.as_ref();
        // Whoever paid the provider with their own credential is shown no amount, whatever is stored.
        let rated = ai.is_some_and(|ai| ai.billing_mode == AiBillingMode::Rated);
        let sell = self.charge.sell.filter(|_| rated && sight.billing);
        let cost = self.charge.cost.filter(|_| rated && sight.margin);
        ConversationView {
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
            turn_count: self.turns.len() as u64,
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
            assembled_context: self.assembled_context.as_deref(),
            turns: self.turns.iter().map(TurnView::from).collect(),
        }
    }

    /// The data of `conversation.completed`: enough to know whether to read the conversation, and nothing that
    /// takes a permission to see.
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

/// The public JSON of a conversation: `agent_id` and `virtual_agent_profile_id` are null when there is none,
/// every other field is left out when it has no value (api-decisions C2, "null or absent").
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `Conversation` under their public names")]
pub struct ConversationView<'a> {
    pub id: ConversationId,
    pub organisation_id: OrganisationId,
    pub call_uuid: CallId,
    pub direction: Direction,
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub agent_id: Option<AgentId>,
    pub agent_kind: AgentKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_e164: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    pub turn_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    pub virtual_agent_profile_id: Option<VirtualAgentProfileId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_agent_profile_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_billing_mode: Option<AiBillingMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_cost_amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_cost_currency: Option<Currency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_sell_amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_sell_currency: Option<Currency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_audio: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_split_known: Option<bool>,
    pub flags: Vec<FlagView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assembled_context: Option<&'a str>,
    pub turns: Vec<TurnView<'a>>,
}

/// The public JSON of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `Flag`")]
pub struct FlagView<'a> {
    pub kind: FlagKind,
    pub seq: u64,
    pub detail: &'a str,
}

impl<'a> From<&'a Flag> for FlagView<'a> {
    fn from(flag: &'a Flag) -> Self {
        FlagView { kind: flag.kind, seq: flag.seq, detail: &flag.detail }
    }
}

/// The public JSON of a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `Turn`")]
pub struct TurnView<'a> {
    pub seq: u64,
    pub at: Timestamp,
    pub role: TurnRole,
    pub speaker: &'a str,
    pub text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_args: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<&'a Map<String, Value>>,
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
