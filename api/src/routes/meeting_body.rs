//! The body of `PUT /conference-rooms/{id}/sessions/{sid}/meeting`.

use sidetone_model::ids::AgentId;
use sidetone_model::room::meeting::{
    MEETING_LIMITS as LIMITS, MeetingAgent, MeetingNote, MeetingReport, MeetingState, MeetingTurn,
};
use sidetone_model::time::Timestamp;

use crate::body::declare::{integer, items, lines, null_or, object, required, text as one_line, texts, word};
use crate::body::{Fields, body};

impl From<MeetingBody> for MeetingReport {
    fn from(body: MeetingBody) -> Self {
        let MeetingAgentBody { id, name } = body.agent;
        let notes = |notes: Option<Vec<MeetingNoteBody>>| {
            let note = |MeetingNoteBody { at, text }| MeetingNote { at, text };
            notes.unwrap_or_default().into_iter().map(note).collect()
        };
        let turn = |MeetingTurnBody { seq, at, speaker, text }| MeetingTurn { seq, at, speaker, text };
        let mut turns: Vec<MeetingTurn> = body.turns.unwrap_or_default().into_iter().map(turn).collect();
        turns.sort_by_key(|turn| turn.seq);
        MeetingReport {
            agent: MeetingAgent { id, name },
            state: body.state,
            minutes: body.minutes,
            minutes_error: body.minutes_error,
            notes: notes(body.notes),
            turns,
            replies_unheard: notes(body.replies_unheard),
            delivered_to: body.delivered_to.unwrap_or_default(),
        }
    }
}

/// Refuses minutes unless the state is `ready`, `ready` without minutes, and the same for the failure reason.
fn check(fields: &mut Fields, state: MeetingState, minutes: Option<&str>, error: Option<&str>) {
    let is_given = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
    let is_ready = state == MeetingState::Ready;
    if is_ready != is_given(minutes) && (is_ready || minutes.is_some()) {
        let message = if is_ready {
            "must be given when state is ready"
        } else {
            "is allowed only when state is ready"
        };
        fields.refuse::<()>("minutes", message);
    }
    let is_failed = state == MeetingState::Failed;
    if is_failed != is_given(error) && (is_failed || error.is_some()) {
        let message = if is_failed {
            "must be given when state is failed"
        } else {
            "is allowed only when state is failed"
        };
        fields.refuse::<()>("minutes_error", message);
    }
}

fn text(field: &Option<Option<String>>) -> Option<&str> {
    field.as_ref().and_then(Option::as_deref)
}

/// Reads an instant in whole milliseconds: the stored value equals the one in answers, which can be sent back
/// unchanged.
fn instant(fields: &mut Fields, name: &'static str) -> Option<Timestamp> {
    fields.timestamp(name).map(Timestamp::whole_millis)
}

/// Refuses turns with the same `seq`.
fn check_unique<'a>(fields: &mut Fields, turns: impl Iterator<Item = &'a MeetingTurnBody>) {
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

/// Reads a mail address that was already used; its form is therefore checked only roughly.
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

body! {
    /// A whole meeting.
    #[schema(as = MeetingReport)]
    pub(crate) struct MeetingBody {
        /// The virtual agent in the room; the same in every report of a session.
        agent: MeetingAgentBody = required(object(MeetingAgentBody::read)),
        /// The state of the meeting.
        state: MeetingState = required(word(&STATES)),
        /// The minutes; only with `ready`.
        #[schema(max_length = 50_000, extensions(("x-nullable" = json!(true))))]
        minutes: Option<String> = null_or(lines(LIMITS.minutes)),
        /// Why no minutes were written; only with `failed`.
        #[schema(max_length = 500, extensions(("x-nullable" = json!(true))))]
        minutes_error: Option<String> = null_or(lines(LIMITS.line)),
        /// The notes on decisions.
        #[schema(max_items = 1_000, extensions(("x-nullable" = json!(true))))]
        notes: Option<Vec<MeetingNoteBody>> = null_or(items(0..=LIMITS.notes, MeetingNoteBody::read)),
        /// The transcript; `seq` is unique.
        #[schema(max_items = 10_000, extensions(("x-nullable" = json!(true))))]
        turns: Option<Vec<MeetingTurnBody>> = null_or(items(0..=LIMITS.turns, MeetingTurnBody::read)),
        /// Unrequested replies.
        #[schema(max_items = 1_000, extensions(("x-nullable" = json!(true))))]
        replies_unheard: Option<Vec<MeetingNoteBody>> = null_or(items(0..=LIMITS.notes, MeetingNoteBody::read)),
        /// The addresses that the minutes were queued to.
        #[schema(max_items = 50, extensions(("x-nullable" = json!(true))))]
        delivered_to: Option<Vec<String>> = null_or(texts(0..=LIMITS.addresses, address)),
    }
    ignores &["session_id", "room_id"];
    checks |fields: &mut Fields| {
        if let Some(state) = state {
            check(fields, state, text(&minutes), text(&minutes_error));
        }
        check_unique(fields, turns.iter().flatten().flatten());
    };
}

body! {
    /// The virtual agent of a meeting.
    #[schema(as = MeetingAgentReport)]
    pub(crate) struct MeetingAgentBody {
        /// The agent.
        id: AgentId = required(Fields::uuid),
        /// Its name as it is now.
        #[schema(max_length = 500, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
        name: String = required(one_line(0..=LIMITS.line)),
    }
}

body! {
    /// A note, or a reply that was held back.
    #[schema(as = MeetingNoteReport)]
    pub(crate) struct MeetingNoteBody {
        /// When.
        at: Timestamp = required(instant),
        /// What.
        #[schema(max_length = 4_000)]
        text: String = required(lines(LIMITS.text)),
    }
}

body! {
    /// A turn of the transcript.
    #[schema(as = MeetingTurnReport)]
    pub(crate) struct MeetingTurnBody {
        /// Its position in the meeting.
        #[schema(value_type = i64, minimum = 0, maximum = 1_000_000_000)]
        seq: u64 = required(integer(0..=LIMITS.seq.cast_signed())),
        /// When.
        at: Timestamp = required(instant),
        /// Who; a name.
        #[schema(max_length = 500)]
        speaker: String = required(one_line(0..=LIMITS.line)),
        /// What.
        #[schema(max_length = 4_000)]
        text: String = required(lines(LIMITS.text)),
    }
}

const ADDRESS_LEN_MAX: usize = 254;
const STATES: [(&str, MeetingState); 4] = [
    ("running", MeetingState::Running),
    ("writing", MeetingState::Writing),
    ("ready", MeetingState::Ready),
    ("failed", MeetingState::Failed),
];
