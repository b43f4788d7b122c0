//! The body of `PUT /conversations/{id}`.

use serde_json::{Map, Value};
use sidetone_model::call::Direction;
use sidetone_model::conversation::{
    AiBillingMode, AiUse, ConversationDraft, KnowledgeBase, LIMITS, ReviewProfile, Turn, TurnRole,
};
use sidetone_model::ids::{ConversationId, OrganisationId};
use sidetone_model::rules::e164;
use sidetone_model::team::AgentKind;
use sidetone_model::time::Timestamp;

use crate::body::Fields;

/// A report as received.
pub(crate) struct Report {
    /// The organisation it is for, if the caller names one.
    pub(crate) organisation_id: Option<OrganisationId>,
    pub(crate) draft: ConversationDraft,
}

/// Reads a report of the conversation `id`. Fields that an answer contains and the platform sets are ignored,
/// so that an answer can be sent back; where null is allowed it means the same as leaving the field out.
pub(crate) fn report(fields: &mut Fields, id: ConversationId) -> Option<Report> {
    fields.read_only(&[
        "turn_count",
        "flags",
        "ai_cost_amount",
        "ai_cost_currency",
        "ai_sell_amount",
        "ai_sell_currency",
    ]);
    if optional(fields, "id", Fields::uuid::<ConversationId>).is_some_and(|own| own != id) {
        fields.refuse::<()>("id", "must be the id in the path");
    }
    let organisation_id = optional(fields, "organisation_id", Fields::uuid);
    let call_uuid = fields.required("call_uuid", Fields::uuid);
    let direction = fields.required("direction", |fields, name| fields.word(name, &DIRECTIONS));
    let started_at = fields.required("started_at", instant);
    let ended_at = optional(fields, "ended_at", instant);
    if let (Some(start), Some(end)) = (started_at, ended_at)
        && end < start
    {
        fields.refuse::<()>("ended_at", "must not be before started_at");
    }
    let agent_id = optional(fields, "agent_id", Fields::uuid);
    let agent_kind = fields.required("agent_kind", |fields, name| fields.word(name, &AgentKind::ALL));
    let contact_id = optional(fields, "contact_id", Fields::uuid);
    let contact_e164 = optional(fields, "contact_e164", |fields, name| fields.parsed(name, e164));
    let summary = optional(fields, "summary", |fields, name| fields.lines(name, LIMITS.summary));
    let ai = match agent_kind {
        Some(AgentKind::Virtual) => ai(fields),
        Some(AgentKind::Human) => {
            refuse_ai(fields);
            None
        }
        None => {
            fields.read_only(&AI_FIELDS);
            None
        }
    };
    let context = optional(fields, "assembled_context", |fields, name| fields.lines(name, LIMITS.context));
    let profile = fields.object("profile", profile);
    let turns = fields.items("turns", 0..=LIMITS.turns, turn);
    let turns = sorted(fields, turns.unwrap_or_default());
    let draft = ConversationDraft {
        call_uuid: call_uuid?,
        direction: direction?,
        started_at: started_at?,
        ended_at,
        agent_id,
        agent_kind: agent_kind?,
        contact_id,
        contact_e164,
        summary,
        ai,
        assembled_context: context,
        profile,
        turns,
    };
    Some(Report { organisation_id, draft })
}

/// Returns the field if it is present and not null.
fn optional<T>(
    fields: &mut Fields,
    name: &'static str,
    read: impl FnOnce(&mut Fields, &'static str) -> Option<T>,
) -> Option<T> {
    fields.or_null(name, read).flatten()
}

/// Answers contain milliseconds: the stored value is the answered one, so that it can be sent back unchanged.
fn instant(fields: &mut Fields, name: &'static str) -> Option<Timestamp> {
    fields.timestamp(name).map(Timestamp::whole_millis)
}

fn ai(fields: &mut Fields) -> Option<AiUse> {
    let name = |fields: &mut Fields, name| fields.required_text(name, 1..=LIMITS.name);
    let provider = name(fields, "provider");
    let model = name(fields, "model");
    let billing_mode = fields.required("ai_billing_mode", |fields, name| fields.word(name, &BILLING_MODES));
    let profile_id = optional(fields, "virtual_agent_profile_id", Fields::uuid);
    let profile_name =
        optional(fields, "virtual_agent_profile_name", |fields, name| fields.text(name, 0..=LIMITS.name));
    let tokens_input = tokens(fields, "tokens_input");
    let tokens_output = tokens(fields, "tokens_output");
    let tokens_audio = tokens(fields, "tokens_audio");
    let split_known =
        optional(fields, "audio_split_known", Fields::boolean).unwrap_or(tokens_audio.is_some());
    let (tokens_input, tokens_audio) = (tokens_input.unwrap_or(0), tokens_audio.unwrap_or(0));
    if tokens_audio > tokens_input {
        fields.refuse::<()>("tokens_audio", "must not be more than tokens_input, of which it is a part");
    }
    if !split_known && tokens_audio > 0 {
        fields.refuse::<()>("audio_split_known", "must be true when tokens_audio is known");
    }
    Some(AiUse {
        provider: provider?,
        model: model?,
        billing_mode: billing_mode?,
        profile_id,
        profile_name,
        tokens_input,
        tokens_output: tokens_output.unwrap_or(0),
        tokens_audio,
        audio_split_known: split_known,
    })
}

fn tokens(fields: &mut Fields, name: &'static str) -> Option<u64> {
    let max = i64::try_from(LIMITS.tokens).unwrap_or(i64::MAX);
    let tokens = optional(fields, name, |fields, name| fields.integer(name, 0..=max));
    tokens.and_then(|tokens| u64::try_from(tokens).ok())
}

/// Refuses AI figures in the conversation of a human agent: they are a mistake of the sender.
fn refuse_ai(fields: &mut Fields) {
    for name in AI_FIELDS {
        if optional(fields, name, Fields::value).is_some() {
            fields.refuse::<()>(name, "belongs to a virtual agent, agent_kind is human");
        }
    }
}

fn profile(fields: &mut Fields) -> Option<ReviewProfile> {
    let competitors = names(fields, "competitors").unwrap_or_default();
    let knowledge_base = fields.object("knowledge_base", knowledge_base);
    Some(ReviewProfile { competitors, knowledge_base })
}

fn knowledge_base(fields: &mut Fields) -> Option<KnowledgeBase> {
    let whole = fields.required("handed_over_whole", Fields::boolean);
    let search_tools = names(fields, "search_tools").unwrap_or_default();
    Some(KnowledgeBase { handed_over_whole: whole?, search_tools })
}

fn names(fields: &mut Fields, name: &'static str) -> Option<Vec<String>> {
    fields.texts(name, 0..=LIMITS.names, |text| {
        let fits = !text.trim().is_empty()
            && text.chars().count() <= LIMITS.name
            && !text.chars().any(char::is_control);
        if fits { Ok(text.to_owned()) } else { Err(format!("must be 1 to {} characters", LIMITS.name)) }
    })
}

fn turn(fields: &mut Fields) -> Option<Turn> {
    let seq_max = i64::try_from(LIMITS.seq).unwrap_or(i64::MAX);
    let seq = fields.required("seq", |fields, name| fields.integer(name, 0..=seq_max));
    let at = fields.required("at", instant);
    let role = fields.required("role", |fields, name| fields.word(name, &ROLES));
    let speaker = optional(fields, "speaker", |fields, name| fields.text(name, 0..=LIMITS.name));
    let text = optional(fields, "text", |fields, name| fields.lines(name, LIMITS.text));
    let tool_name = optional(fields, "tool_name", |fields, name| fields.text(name, 1..=LIMITS.name));
    let tool_args = json(fields, "tool_args");
    let tool_result = json(fields, "tool_result");
    Some(Turn {
        seq: seq.and_then(|seq| u64::try_from(seq).ok())?,
        at: at?,
        role: role?,
        speaker: speaker.unwrap_or_default(),
        text: text.unwrap_or_default(),
        tool_name,
        tool_args,
        tool_result,
    })
}

/// Reads an object with any content, as a tool takes or returns it.
fn json(fields: &mut Fields, name: &'static str) -> Option<Map<String, Value>> {
    let Value::Object(object) = fields.value(name)? else {
        return fields.refuse(name, "must be an object");
    };
    let len = serde_json::to_string(&object).map_or(usize::MAX, |text| text.len());
    if len > LIMITS.tool_json_bytes {
        return fields.refuse(name, format!("must be at most {} bytes of JSON", LIMITS.tool_json_bytes));
    }
    Some(object)
}

/// Sorts the turns by `seq`, which must be unique in a report.
fn sorted(fields: &mut Fields, mut turns: Vec<Turn>) -> Vec<Turn> {
    turns.sort_by_key(|turn| turn.seq);
    let twice = turns.windows(2).find_map(|pair| match pair {
        [first, second] if first.seq == second.seq => Some(first.seq),
        _ => None,
    });
    if let Some(seq) = twice {
        fields.refuse::<()>("turns", format!("seq {seq} is given more than once"));
    }
    turns
}

const AI_FIELDS: [&str; 9] = [
    "provider",
    "model",
    "ai_billing_mode",
    "virtual_agent_profile_id",
    "virtual_agent_profile_name",
    "tokens_input",
    "tokens_output",
    "tokens_audio",
    "audio_split_known",
];
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
