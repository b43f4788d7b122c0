//! The body of `PUT /conversations/{id}`; fields that an answer contains and the platform sets are ignored, so
//! that an answer can be sent back.

use serde::Deserialize;
use serde_json::value::RawValue;
use sidetone_model::call::Direction;
use sidetone_model::conversation::{
    AiBillingMode, AiUse, ConversationDraft, KnowledgeBase, LIMITS, ReviewProfile, Turn, TurnRole,
};
use sidetone_model::exact_json::ExactJson;
use sidetone_model::ids::{
    AgentId, CallId, ContactId, ConversationId, OrganisationId, VirtualAgentProfileId,
};
use sidetone_model::rules::e164;
use sidetone_model::team::AgentKind;
use sidetone_model::time::Timestamp;

use crate::body::declare::{
    Read, integer, items, lines, null_or, object, optional, parsed, required, text as one_line, word,
};
use crate::body::{Fields, body};

body! {
    /// A report of a conversation. Null means the same as leaving the field out, where it is allowed.
    #[schema(as = ConversationReport)]
    pub(crate) struct ConversationBody {
        /// The organisation; the caller's own when it is left out.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        organisation_id: Option<OrganisationId> = null_or(Fields::uuid),
        /// The call, which may still be running.
        call_uuid: CallId = required(Fields::uuid),
        /// `inbound` or `outbound`: an internal call has no conversation.
        #[schema(value_type = String, pattern = "^(inbound|outbound)$")]
        direction: Direction = required(word(&DIRECTIONS)),
        /// When the agent took the call.
        started_at: Timestamp = required(instant),
        /// When the conversation ended; completes the conversation.
        #[schema(value_type = Option<String>, format = DateTime, extensions(("x-nullable" = json!(true))))]
        ended_at: Option<Timestamp> = null_or(instant),
        /// The agent's record, when there is one.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        agent_id: Option<AgentId> = null_or(Fields::uuid),
        /// The kind of agent that handles the call.
        agent_kind: AgentKind = required(word(&AgentKind::ALL)),
        /// The customer.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        contact_id: Option<ContactId> = null_or(Fields::uuid),
        /// The customer's number.
        #[schema(pattern = r"^\+[1-9][0-9]{1,14}$", example = "+442071230000", extensions(("x-nullable" = json!(true))))]
        contact_e164: Option<String> = null_or(parsed(e164)),
        /// A summary of the conversation.
        #[schema(max_length = 20_000, extensions(("x-nullable" = json!(true))))]
        summary: Option<String> = null_or(lines(LIMITS.summary)),
        /// The provider of the model; required for a virtual agent. This field and the next eight are only for
        /// virtual agents.
        #[schema(min_length = 1, max_length = 200, extensions(("x-nullable" = json!(true))))]
        provider: Option<String> = ai(agent_kind, required_name),
        /// The model's name at that provider; required for a virtual agent.
        #[schema(min_length = 1, max_length = 200, extensions(("x-nullable" = json!(true))))]
        model: Option<String> = ai(agent_kind, required_name),
        /// Whose credential pays the provider: the tenant's own (`byo`) or the operator's (`rated`); required for a
        /// virtual agent.
        ai_billing_mode: Option<AiBillingMode> = ai(agent_kind, required(word(&BILLING_MODES))),
        /// The virtual agent's profile as it is now.
        #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
        virtual_agent_profile_id: Option<VirtualAgentProfileId> = ai(agent_kind, or_null(Fields::uuid)),
        /// The profile's name as it is now.
        #[schema(max_length = 200, extensions(("x-nullable" = json!(true))))]
        virtual_agent_profile_name: Option<String> = ai(agent_kind, or_null(one_line(0..=LIMITS.name))),
        /// Tokens that the model read so far, audio included; 0 when it is left out.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 10_000_000_000_i64, extensions(("x-nullable" = json!(true))))]
        tokens_input: Option<u64> = ai(agent_kind, tokens),
        /// Tokens that the model wrote so far; 0 when it is left out.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 10_000_000_000_i64, extensions(("x-nullable" = json!(true))))]
        tokens_output: Option<u64> = ai(agent_kind, tokens),
        /// The part of `tokens_input` that was audio.
        #[schema(value_type = Option<i64>, minimum = 0, maximum = 10_000_000_000_i64, extensions(("x-nullable" = json!(true))))]
        tokens_audio: Option<u64> = ai(agent_kind, tokens),
        /// Whether the provider itemises audio; by default true when `tokens_audio` is given.
        #[schema(extensions(("x-nullable" = json!(true))))]
        audio_split_known: Option<bool> = ai(agent_kind, or_null(Fields::boolean)),
        /// The agent's instructions before it spoke.
        #[schema(max_length = 500_000, extensions(("x-nullable" = json!(true))))]
        assembled_context: Option<String> = null_or(lines(LIMITS.context)),
        /// The profile that the review after the call uses; an earlier report's when it is left out. It is not shown.
        profile: Option<ReviewProfileBody> = optional(object(ReviewProfileBody::read)),
        /// New turns or all turns; at most 10,000 and 8 MiB in total.
        #[schema(max_items = 10_000)]
        turns: Option<Vec<TurnBody>> = optional(items(0..=LIMITS.turns, TurnBody::read)),
    }
    ignores SHOWN;
    checks |fields: &mut Fields| {
        if let (Some(start), Some(Some(end))) = (started_at, ended_at)
            && end < start
        {
            fields.refuse::<()>("ended_at", "must not be before started_at");
        }
        check_tokens(fields, tokens_input.flatten(), tokens_audio.flatten(), audio_split_known.flatten());
        check_unique(fields, turns.iter().flatten().flatten());
    };
}

body! {
    /// The part of the virtual agent's profile that the review uses.
    #[schema(as = ReviewProfile)]
    pub(crate) struct ReviewProfileBody {
        /// Names that the agent must not mention; matched as whole words, ignoring case (`competitor`).
        #[schema(max_items = 200)]
        competitors: Option<Vec<String>> = optional(names),
        /// The knowledge base that the agent can search (`never_searched`).
        knowledge_base: Option<KnowledgeBaseBody> = optional(object(KnowledgeBaseBody::read)),
    }
}

body! {
    /// The knowledge base of this conversation.
    #[schema(as = KnowledgeBase)]
    pub(crate) struct KnowledgeBaseBody {
        /// Whether it was small enough to be part of `assembled_context`.
        handed_over_whole: bool = required(Fields::boolean),
        /// The `tool_name`s that search it.
        #[schema(max_items = 200)]
        search_tools: Option<Vec<String>> = optional(names),
    }
}

body! {
    /// One turn of the transcript.
    #[schema(as = TurnReport)]
    pub(crate) struct TurnBody {
        /// Its position; unique within the conversation.
        #[schema(value_type = i64, minimum = 0, maximum = 1_000_000_000)]
        seq: u64 = required(integer(0..=LIMITS.seq.cast_signed())),
        /// When it began.
        at: Timestamp = required(instant),
        /// The role of the speaker.
        role: TurnRole = required(word(&ROLES)),
        /// The speaker's name, when several people can speak.
        #[schema(max_length = 200, extensions(("x-nullable" = json!(true))))]
        speaker: Option<String> = null_or(one_line(0..=LIMITS.name)),
        /// The text.
        #[schema(max_length = 20_000, extensions(("x-nullable" = json!(true))))]
        text: Option<String> = null_or(lines(LIMITS.text)),
        /// The tool that was used.
        #[schema(min_length = 1, max_length = 200, extensions(("x-nullable" = json!(true))))]
        tool_name: Option<String> = null_or(one_line(1..=LIMITS.name)),
        /// The arguments of the tool; at most 64 KiB of JSON.
        #[schema(value_type = Option<Object>)]
        tool_args: Option<ExactJson> = optional(json_object),
        /// The result of the tool; at most 64 KiB of JSON.
        #[schema(value_type = Option<Object>)]
        tool_result: Option<ExactJson> = optional(json_object),
    }
}

/// A report as received.
pub(crate) struct Report {
    /// The organisation it is for, if the caller names one.
    pub(crate) organisation_id: Option<OrganisationId>,
    pub(crate) draft: ConversationDraft,
}

/// Reads a report of the conversation `id`; `sent` is its text.
pub(crate) fn report(fields: &mut Fields, id: ConversationId, sent: &[u8]) -> Option<Report> {
    let own = fields.or_null("id", Fields::uuid::<ConversationId>).flatten();
    if own.is_some_and(|own| own != id) {
        fields.refuse::<()>("id", "must be the id in the path");
    }
    let body = ConversationBody::read(fields)?;
    let ai = match body.agent_kind {
        AgentKind::Human => None,
        AgentKind::Virtual => Some(AiUse {
            provider: body.provider?,
            model: body.model?,
            billing_mode: body.ai_billing_mode?,
            profile_id: body.virtual_agent_profile_id,
            profile_name: body.virtual_agent_profile_name,
            tokens_input: body.tokens_input.unwrap_or(0),
            tokens_output: body.tokens_output.unwrap_or(0),
            tokens_audio: body.tokens_audio.unwrap_or(0),
            audio_split_known: body.audio_split_known.unwrap_or(body.tokens_audio.is_some()),
        }),
    };
    let mut turns: Vec<Turn> = body.turns.unwrap_or_default().into_iter().map(Turn::from).collect();
    take_tools(fields, &mut turns, sent);
    turns.sort_by_key(|turn| turn.seq);
    let draft = ConversationDraft {
        call_uuid: body.call_uuid,
        direction: body.direction,
        started_at: body.started_at,
        ended_at: body.ended_at,
        agent_id: body.agent_id,
        agent_kind: body.agent_kind,
        contact_id: body.contact_id,
        contact_e164: body.contact_e164,
        summary: body.summary,
        ai,
        assembled_context: body.assembled_context,
        profile: body.profile.map(ReviewProfile::from),
        turns,
    };
    Some(Report { organisation_id: body.organisation_id, draft })
}

impl From<ReviewProfileBody> for ReviewProfile {
    fn from(body: ReviewProfileBody) -> Self {
        let knowledge_base = body.knowledge_base.map(|base| KnowledgeBase {
            handed_over_whole: base.handed_over_whole,
            search_tools: base.search_tools.unwrap_or_default(),
        });
        ReviewProfile { competitors: body.competitors.unwrap_or_default(), knowledge_base }
    }
}

impl From<TurnBody> for Turn {
    fn from(body: TurnBody) -> Self {
        Turn {
            seq: body.seq,
            at: body.at,
            role: body.role,
            speaker: body.speaker.unwrap_or_default(),
            text: body.text.unwrap_or_default(),
            tool_name: body.tool_name,
            tool_args: body.tool_args,
            tool_result: body.tool_result,
        }
    }
}

/// The turns of a report, to read the values of tools as they were sent.
#[derive(Default, Deserialize)]
struct SentTurns<'s> {
    #[serde(borrow, default)]
    turns: Vec<SentTools<'s>>,
}

#[derive(Deserialize)]
struct SentTools<'s> {
    #[serde(borrow)]
    tool_args: Option<&'s RawValue>,
    #[serde(borrow)]
    tool_result: Option<&'s RawValue>,
}

/// Replaces the values of tools by those in `sent`, which have every digit. The turns are in the order of `sent`.
fn take_tools(fields: &mut Fields, turns: &mut [Turn], sent: &[u8]) {
    // The body was read before, so this does not fail.
    let sent: SentTurns<'_> = serde_json::from_slice(sent).unwrap_or_default();
    for (at, (turn, tools)) in turns.iter_mut().zip(sent.turns).enumerate() {
        (turn.tool_args, turn.tool_result) =
            (tools.tool_args.map(ExactJson::of), tools.tool_result.map(ExactJson::of));
        for (name, value) in [("tool_args", &turn.tool_args), ("tool_result", &turn.tool_result)] {
            if value.as_ref().is_some_and(|value| value.as_str().len() > LIMITS.tool_json_bytes) {
                fields.refuse::<()>(&format!("turns[{at}].{name}"), too_long());
            }
        }
    }
}

fn too_long() -> String {
    format!("must be at most {} bytes of JSON", LIMITS.tool_json_bytes)
}

/// A field of virtual agents: read for a virtual agent, refused for a human one, ignored if the kind is
/// unknown.
fn ai<T>(kind: Option<AgentKind>, read: impl Read<T>) -> impl Read<Option<T>> {
    move |fields: &mut Fields, name| {
        match kind {
            Some(AgentKind::Virtual) => return Some(read(fields, name)),
            Some(AgentKind::Human) => {
                if fields.or_null(name, Fields::value).flatten().is_some() {
                    fields.refuse::<()>(name, "belongs to a virtual agent, agent_kind is human");
                }
            }
            None => fields.read_only(&[name]),
        }
        Some(None)
    }
}

fn or_null<T>(read: impl Read<T>) -> impl Read<T> {
    move |fields: &mut Fields, name| fields.or_null(name, read).flatten()
}

fn required_name(fields: &mut Fields, name: &'static str) -> Option<String> {
    fields.required_text(name, 1..=LIMITS.name)
}

fn tokens(fields: &mut Fields, name: &'static str) -> Option<u64> {
    or_null(integer(0..=LIMITS.tokens.cast_signed()))(fields, name)
}

/// Reads an instant in whole milliseconds: the stored value equals the one in answers, which can be sent back
/// unchanged.
fn instant(fields: &mut Fields, name: &'static str) -> Option<Timestamp> {
    fields.timestamp(name).map(Timestamp::whole_millis)
}

fn check_tokens(fields: &mut Fields, input: Option<u64>, audio: Option<u64>, split_known: Option<bool>) {
    let (input, audio) = (input.unwrap_or(0), audio.unwrap_or(0));
    if audio > input {
        fields.refuse::<()>("tokens_audio", "must not be more than tokens_input, of which it is a part");
    }
    if split_known == Some(false) && audio > 0 {
        fields.refuse::<()>("audio_split_known", "must be true when tokens_audio is known");
    }
}

/// Refuses turns with the same `seq`.
fn check_unique<'a>(fields: &mut Fields, turns: impl Iterator<Item = &'a TurnBody>) {
    let mut places: Vec<u64> = turns.map(|turn| turn.seq).collect();
    places.sort_unstable();
    let twice = places.windows(2).find_map(|pair| match pair {
        [first, second] if first == second => Some(*first),
        _ => None,
    });
    if let Some(seq) = twice {
        fields.refuse::<()>("turns", format!("seq {seq} is given more than once"));
    }
}

fn names(fields: &mut Fields, name: &'static str) -> Option<Vec<String>> {
    fields.texts(name, 0..=LIMITS.names, |text| {
        let fits = !text.trim().is_empty()
            && text.chars().count() <= LIMITS.name
            && !text.chars().any(char::is_control);
        if fits { Ok(text.to_owned()) } else { Err(format!("must be 1 to {} characters", LIMITS.name)) }
    })
}

/// Reads an object with any content: the arguments or the result of a tool. Numbers lose digits here.
fn json_object(fields: &mut Fields, name: &'static str) -> Option<ExactJson> {
    let value = fields.value(name)?;
    if !value.is_object() {
        return fields.refuse(name, "must be an object");
    }
    let text = value.to_string();
    if text.len() > LIMITS.tool_json_bytes {
        return fields.refuse(name, too_long());
    }
    ExactJson::parse(text).ok()
}

const SHOWN: &[&str] =
    &["turn_count", "flags", "ai_cost_amount", "ai_cost_currency", "ai_sell_amount", "ai_sell_currency"];
const BILLING_MODES: [(&str, AiBillingMode); 2] =
    [("byo", AiBillingMode::Byo), ("rated", AiBillingMode::Rated)];
const DIRECTIONS: [(&str, Direction); 2] =
    [("inbound", Direction::Inbound), ("outbound", Direction::Outbound)];
const ROLES: [(&str, TurnRole); 4] = [
    ("agent", TurnRole::Agent),
    ("caller", TurnRole::Caller),
    ("system", TurnRole::System),
    ("tool", TurnRole::Tool),
];
