//! The body of `PUT /conference-rooms/{id}/sessions/{sid}/meeting`.

use sidetone_model::ids::AgentId;
use sidetone_model::room::meeting::{
    MEETING_LIMITS as LIMITS, MeetingAgent, MeetingNote, MeetingReport, MeetingState, MeetingTurn,
};
use sidetone_model::time::Timestamp;
use utoipa::ToSchema;

use crate::body::Fields;

/// Reads a report. Fields that an answer contains and the path sets are ignored, so that an answer can be
/// sent back; where null is allowed it means the same as leaving the field out.
pub(crate) fn report(fields: &mut Fields) -> Option<MeetingReport> {
    fields.read_only(&["session_id", "room_id"]);
    let agent = fields.required("agent", |fields, name| fields.object(name, agent));
    let state = fields.required("state", |fields, name| fields.word(name, &STATES));
    let minutes = optional(fields, "minutes", |fields, name| fields.lines(name, LIMITS.minutes));
    let minutes_error = optional(fields, "minutes_error", |fields, name| fields.lines(name, LIMITS.line));
    if let Some(state) = state {
        check(fields, state, minutes.as_deref(), minutes_error.as_deref());
    }
    let notes = optional(fields, "notes", |fields, name| fields.items(name, 0..=LIMITS.notes, note));
    let turns = optional(fields, "turns", |fields, name| fields.items(name, 0..=LIMITS.turns, turn));
    let turns = sorted(fields, turns.unwrap_or_default());
    let unheard =
        optional(fields, "replies_unheard", |fields, name| fields.items(name, 0..=LIMITS.notes, note));
    let addresses =
        optional(fields, "delivered_to", |fields, name| fields.texts(name, 0..=LIMITS.addresses, address));
    Some(MeetingReport {
        agent: agent?,
        state: state?,
        minutes,
        minutes_error,
        notes: notes.unwrap_or_default(),
        turns,
        replies_unheard: unheard.unwrap_or_default(),
        delivered_to: addresses.unwrap_or_default(),
    })
}

/// Refuses minutes without `ready` and `ready` without minutes, and the same for the reason of a failure.
fn check(fields: &mut Fields, state: MeetingState, minutes: Option<&str>, error: Option<&str>) {
    let is_given = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
    let is_ready = state == MeetingState::Ready;
    if is_ready != is_given(minutes) && (is_ready || minutes.is_some()) {
        let message =
            if is_ready { "must be given when state is ready" } else { "belongs to state ready alone" };
        fields.refuse::<()>("minutes", message);
    }
    let is_failed = state == MeetingState::Failed;
    if is_failed != is_given(error) && (is_failed || error.is_some()) {
        let message =
            if is_failed { "must be given when state is failed" } else { "belongs to state failed alone" };
        fields.refuse::<()>("minutes_error", message);
    }
}

/// Returns the field if it is present and not null.
fn optional<T>(
    fields: &mut Fields,
    name: &'static str,
    read: impl FnOnce(&mut Fields, &'static str) -> Option<T>,
) -> Option<T> {
    fields.or_null(name, read).flatten()
}

fn agent(fields: &mut Fields) -> Option<MeetingAgent> {
    let id = fields.required("id", Fields::uuid::<AgentId>);
    let name = fields.required("name", |fields, name| fields.text(name, 0..=LIMITS.line));
    Some(MeetingAgent { id: id?, name: name? })
}

/// Answers contain milliseconds: the stored value is the answered one, so that it can be sent back unchanged.
fn instant(fields: &mut Fields) -> Option<Timestamp> {
    fields.required("at", Fields::timestamp).map(Timestamp::whole_millis)
}

fn note(fields: &mut Fields) -> Option<MeetingNote> {
    let at = instant(fields);
    let text = fields.required("text", |fields, name| fields.lines(name, LIMITS.text));
    Some(MeetingNote { at: at?, text: text? })
}

fn turn(fields: &mut Fields) -> Option<MeetingTurn> {
    let seq_max = i64::try_from(LIMITS.seq).unwrap_or(i64::MAX);
    let seq = fields.required("seq", |fields, name| fields.integer(name, 0..=seq_max));
    let at = instant(fields);
    let speaker = fields.required("speaker", |fields, name| fields.text(name, 0..=LIMITS.line));
    let text = fields.required("text", |fields, name| fields.lines(name, LIMITS.text));
    Some(MeetingTurn {
        seq: seq.and_then(|seq| u64::try_from(seq).ok())?,
        at: at?,
        speaker: speaker?,
        text: text?,
    })
}

/// Sorts the turns by `seq`, which must be unique in a report.
fn sorted(fields: &mut Fields, mut turns: Vec<MeetingTurn>) -> Vec<MeetingTurn> {
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

/// Reads an address to which something was sent; its form is not checked, because it was already used.
fn address(text: &str) -> Result<String, String> {
    let plain = !text.is_empty()
        && text.chars().count() <= ADDRESS_LEN_MAX
        && text.contains('@')
        && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    if plain {
        Ok(text.to_owned())
    } else {
        Err("must be a mail address such as minutes@example.com".to_owned())
    }
}

/// A meeting, all of it.
#[derive(ToSchema)]
#[schema(as = MeetingReport)]
#[expect(dead_code, reason = "described, never made: `report` names every wrong field")]
pub(crate) struct MeetingBody {
    /// Who sat in the room; the same in every report of a session.
    agent: MeetingAgentBody,
    /// How far it is.
    state: MeetingState,
    /// The minutes; with `ready`, and only then.
    #[schema(max_length = 50_000, extensions(("x-nullable" = json!(true))))]
    minutes: Option<String>,
    /// Why none were written; with `failed`, and only then.
    #[schema(max_length = 500, extensions(("x-nullable" = json!(true))))]
    minutes_error: Option<String>,
    /// What was noted as it was decided.
    #[schema(max_items = 1_000, extensions(("x-nullable" = json!(true))))]
    notes: Option<Vec<MeetingNoteBody>>,
    /// What people said; `seq` is unique.
    #[schema(max_items = 10_000, extensions(("x-nullable" = json!(true))))]
    turns: Option<Vec<MeetingTurnBody>>,
    /// Replies that nobody had asked for.
    #[schema(max_items = 1_000, extensions(("x-nullable" = json!(true))))]
    replies_unheard: Option<Vec<MeetingNoteBody>>,
    /// The addresses that the minutes were queued to.
    #[schema(max_items = 50, extensions(("x-nullable" = json!(true))))]
    delivered_to: Option<Vec<String>>,
}

/// The virtual agent of a meeting.
#[derive(ToSchema)]
#[schema(as = MeetingAgentReport)]
#[expect(dead_code, reason = "described, never made")]
pub(crate) struct MeetingAgentBody {
    /// The agent.
    id: AgentId,
    /// Its name as it is now.
    #[schema(max_length = 500, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    name: String,
}

/// Something that was noted, or not said.
#[derive(ToSchema)]
#[schema(as = MeetingNoteReport)]
#[expect(dead_code, reason = "described, never made")]
pub(crate) struct MeetingNoteBody {
    /// When.
    at: Timestamp,
    /// What.
    #[schema(max_length = 4_000)]
    text: String,
}

/// Something that somebody said.
#[derive(ToSchema)]
#[schema(as = MeetingTurnReport)]
#[expect(dead_code, reason = "described, never made")]
pub(crate) struct MeetingTurnBody {
    /// Its place in the meeting.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    seq: i64,
    /// When.
    at: Timestamp,
    /// Who; a name.
    #[schema(max_length = 500)]
    speaker: String,
    /// What.
    #[schema(max_length = 4_000)]
    text: String,
}

const ADDRESS_LEN_MAX: usize = 254;
const STATES: [(&str, MeetingState); 4] = [
    ("running", MeetingState::Running),
    ("writing", MeetingState::Writing),
    ("ready", MeetingState::Ready),
    ("failed", MeetingState::Failed),
];
