//! The body of `PUT /conversations/{id}` for the API document; `conversation_body` reads it.
#![expect(
    dead_code,
    reason = "described, never made: the reader names every wrong field, which no derived one does"
)]

use sidetone_model::call::Direction;
use sidetone_model::conversation::{AiBillingMode, TurnRole};
use sidetone_model::ids::{AgentId, CallId, ContactId, OrganisationId, VirtualAgentProfileId};
use sidetone_model::team::AgentKind;
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;

/// A report of a conversation. Where null is allowed it is the same as leaving the field out.
#[derive(ToSchema)]
#[schema(as = ConversationReport)]
pub(crate) struct ConversationBody {
    /// The organisation; the caller's own when it is left out.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    organisation_id: Option<OrganisationId>,
    /// The call; it may be running still.
    call_uuid: CallId,
    /// `inbound` or `outbound`: an internal call has no conversation.
    #[schema(value_type = String, pattern = "^(inbound|outbound)$")]
    direction: Direction,
    /// When the agent took the call.
    started_at: Timestamp,
    /// When the agent was done with it: completes the conversation.
    #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
    ended_at: Option<Timestamp>,
    /// The agent's record, when there is one.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    agent_id: Option<AgentId>,
    /// Who handles the call.
    agent_kind: AgentKind,
    /// The customer.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    contact_id: Option<ContactId>,
    /// The customer's number.
    #[schema(pattern = r"^\+[1-9][0-9]{1,14}$", example = "+442071230000", extensions(("x-nullable" = json!(true))))]
    contact_e164: Option<String>,
    /// What it was about.
    #[schema(max_length = 20_000, extensions(("x-nullable" = json!(true))))]
    summary: Option<String>,
    /// Who runs the model; required for a virtual agent. This field and the next eight belong to virtual agents
    /// alone.
    #[schema(min_length = 1, max_length = 200, extensions(("x-nullable" = json!(true))))]
    provider: Option<String>,
    /// The model's name at that provider; required for a virtual agent.
    #[schema(min_length = 1, max_length = 200, extensions(("x-nullable" = json!(true))))]
    model: Option<String>,
    /// Whose credential pays the provider: the tenant's own (`byo`) or the operator's (`rated`); required for a
    /// virtual agent.
    ai_billing_mode: Option<AiBillingMode>,
    /// The virtual agent's profile as it is now.
    #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
    virtual_agent_profile_id: Option<VirtualAgentProfileId>,
    /// The profile's name as it is now.
    #[schema(max_length = 200, extensions(("x-nullable" = json!(true))))]
    virtual_agent_profile_name: Option<String>,
    /// Tokens that the model read so far, audio included; 0 when it is left out.
    #[schema(minimum = 0, maximum = 10_000_000_000_i64, extensions(("x-nullable" = json!(true))))]
    tokens_input: Option<i64>,
    /// Tokens that the model wrote so far; 0 when it is left out.
    #[schema(minimum = 0, maximum = 10_000_000_000_i64, extensions(("x-nullable" = json!(true))))]
    tokens_output: Option<i64>,
    /// The part of `tokens_input` that was audio.
    #[schema(minimum = 0, maximum = 10_000_000_000_i64, extensions(("x-nullable" = json!(true))))]
    tokens_audio: Option<i64>,
    /// Whether the provider itemises audio; when it is left out, whether `tokens_audio` is given.
    #[schema(extensions(("x-nullable" = json!(true))))]
    audio_split_known: Option<bool>,
    /// What the agent was told before it spoke.
    #[schema(max_length = 500_000, extensions(("x-nullable" = json!(true))))]
    assembled_context: Option<String>,
    /// What the review after the call goes by; kept from an earlier report when it is left out. It is not shown.
    profile: Option<ReviewProfileBody>,
    /// Turns, those that are new or all of them; 10,000 and 8 MiB in all.
    #[schema(max_items = 10_000)]
    turns: Option<Vec<TurnBody>>,
}

/// What the review after the call needs to know of the virtual agent's profile.
#[derive(ToSchema)]
#[schema(as = ReviewProfile)]
pub(crate) struct ReviewProfileBody {
    /// Names that the agent should not bring up; found as whole words in any case (`competitor`).
    #[schema(max_items = 200)]
    competitors: Option<Vec<String>>,
    /// What the agent could look things up in (`never_searched`).
    knowledge_base: Option<KnowledgeBaseBody>,
}

/// A knowledge base as this conversation has it.
#[derive(ToSchema)]
#[schema(as = KnowledgeBase)]
pub(crate) struct KnowledgeBaseBody {
    /// Whether it was small enough to be part of `assembled_context`.
    handed_over_whole: bool,
    /// The `tool_name`s that search it.
    #[schema(max_items = 200)]
    search_tools: Option<Vec<String>>,
}

/// One turn of the transcript.
#[derive(ToSchema)]
#[schema(as = TurnReport)]
pub(crate) struct TurnBody {
    /// Its place; unique within the conversation.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    seq: i64,
    /// When it began.
    at: Timestamp,
    /// Whose turn it was.
    role: TurnRole,
    /// Who spoke, when several people could have.
    #[schema(max_length = 200, extensions(("x-nullable" = json!(true))))]
    speaker: Option<String>,
    /// What was said.
    #[schema(max_length = 20_000, extensions(("x-nullable" = json!(true))))]
    text: Option<String>,
    /// The tool that was used.
    #[schema(min_length = 1, max_length = 200, extensions(("x-nullable" = json!(true))))]
    tool_name: Option<String>,
    /// What the tool was given; at most 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    tool_args: Option<serde_json::Value>,
    /// What the tool gave back; at most 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    tool_result: Option<serde_json::Value>,
}
