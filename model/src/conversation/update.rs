//! The effect of a report on a conversation that may already be stored.

use crate::conversation::{Charge, Conversation, ConversationDraft, LIMITS, Turn, review};
use crate::ids::{ConversationId, OrganisationId};

/// The changes that a report makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The new state of the conversation, with all its turns.
    pub conversation: Conversation,
    /// The turns among them that are new.
    pub new_turns: Vec<Turn>,
    /// Whether the conversation is new.
    pub created: bool,
    /// Whether this report completes the conversation: its price is then settled.
    pub completes: bool,
    /// Whether the report differs from the stored state; an equal report writes nothing.
    pub changed: bool,
}

/// Why a report contradicts what is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Fields that are final.
    #[error("the conversation is complete, it cannot change {}", .0.join(", "))]
    Complete(Vec<&'static str>),
    /// Fields that never change, or counters that may only grow.
    #[error("the conversation is stored with another {}", .0.join(", "))]
    Fixed(Vec<&'static str>),
    /// More turns than a conversation may have.
    #[error("the conversation would have more than {} turns", LIMITS.turns)]
    TooManyTurns,
    /// More text than a conversation may have.
    #[error("the turns of the conversation would have more than {} bytes", LIMITS.transcript_bytes)]
    TooMuchText,
    /// A turn is stored with other content.
    #[error("turn {0} is stored with other content")]
    Turn(u64),
}

impl Update {
    /// Applies `draft` to the stored conversation, if any; reviews the conversation when this completes it.
    ///
    /// # Errors
    /// When the draft contradicts what is stored; then nothing changes.
    pub fn of(
        stored: Option<Conversation>,
        id: ConversationId,
        organisation_id: OrganisationId,
        draft: ConversationDraft,
    ) -> Result<Update, Conflict> {
        let Some(stored) = stored else {
            let new_turns = draft.turns.clone();
            return Self::next(None, with(id, organisation_id, None, draft), new_turns);
        };
        refuse_changes(&stored, &draft)?;
        let new_turns = new_turns(&stored, &draft)?;
        let next = with(id, organisation_id, Some(&stored), draft);
        Self::next(Some(stored), next, new_turns)
    }

    fn next(
        stored: Option<Conversation>,
        mut conversation: Conversation,
        new_turns: Vec<Turn>,
    ) -> Result<Update, Conflict> {
        if conversation.turns.len() > LIMITS.turns {
            return Err(Conflict::TooManyTurns);
        }
        if conversation.turns.iter().map(Turn::len_bytes).sum::<usize>() > LIMITS.transcript_bytes {
            return Err(Conflict::TooMuchText);
        }
        let was_complete = stored.as_ref().is_some_and(Conversation::is_complete);
        let completes = conversation.is_complete() && !was_complete;
        if completes {
            conversation.flags = review(&conversation);
        }
        let changed = stored.as_ref() != Some(&conversation);
        Ok(Update { conversation, new_turns, created: stored.is_none(), completes, changed })
    }
}

/// The turns of `draft` that are not stored yet.
fn new_turns(stored: &Conversation, draft: &ConversationDraft) -> Result<Vec<Turn>, Conflict> {
    let mut new = Vec::new();
    for turn in &draft.turns {
        match stored.turns.binary_search_by_key(&turn.seq, |stored| stored.seq) {
            Ok(at) if stored.turns.get(at).is_some_and(|stored| stored.is_same(turn)) => {}
            Ok(_) => return Err(Conflict::Turn(turn.seq)),
            Err(_) => new.push(turn.clone()),
        }
    }
    if stored.is_complete() && !new.is_empty() {
        return Err(Conflict::Complete(vec!["turns"]));
    }
    Ok(new)
}

fn refuse_changes(stored: &Conversation, draft: &ConversationDraft) -> Result<(), Conflict> {
    let identity = [
        ("call_uuid", stored.call_uuid != draft.call_uuid),
        ("direction", stored.direction != draft.direction),
        ("started_at", stored.started_at != draft.started_at),
        ("agent_kind", stored.agent_kind != draft.agent_kind),
    ];
    let mut fixed = named(&identity);
    if !stored.is_complete() {
        // A report that arrives late must not reduce the counters.
        if let (Some(was), Some(is)) = (&stored.ai, &draft.ai) {
            fixed.extend(named(&[
                ("tokens_input, a greater one", is.tokens_input < was.tokens_input),
                ("tokens_output, a greater one", is.tokens_output < was.tokens_output),
            ]));
        }
        return if fixed.is_empty() { Ok(()) } else { Err(Conflict::Fixed(fixed)) };
    }
    fixed.extend(named(&[
        ("ended_at", stored.ended_at != draft.ended_at),
        ("agent_id", stored.agent_id != draft.agent_id),
        ("assembled_context", stored.assembled_context != draft.assembled_context),
        ("profile", draft.profile.as_ref().is_some_and(|profile| *profile != stored.profile)),
    ]));
    if let (Some(was), Some(is)) = (&stored.ai, &draft.ai) {
        fixed.extend(named(&[
            ("provider", was.provider != is.provider),
            ("model", was.model != is.model),
            ("ai_billing_mode", was.billing_mode != is.billing_mode),
            ("virtual_agent_profile_id", was.profile_id != is.profile_id),
            ("virtual_agent_profile_name", was.profile_name != is.profile_name),
            ("tokens_input", was.tokens_input != is.tokens_input),
            ("tokens_output", was.tokens_output != is.tokens_output),
            ("tokens_audio", was.tokens_audio != is.tokens_audio),
            ("audio_split_known", was.audio_split_known != is.audio_split_known),
        ]));
    }
    if fixed.is_empty() { Ok(()) } else { Err(Conflict::Complete(fixed)) }
}

fn named(changes: &[(&'static str, bool)]) -> Vec<&'static str> {
    changes.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
}

/// The conversation after applying `draft` to what is stored.
fn with(
    id: ConversationId,
    organisation_id: OrganisationId,
    stored: Option<&Conversation>,
    draft: ConversationDraft,
) -> Conversation {
    let mut turns: Vec<Turn> = stored.map(|stored| stored.turns.clone()).unwrap_or_default();
    turns.extend(draft.turns);
    turns.sort_by_key(|turn| turn.seq);
    turns.dedup_by_key(|turn| turn.seq);
    let profile = draft.profile.or_else(|| stored.map(|stored| stored.profile.clone()));
    Conversation {
        id,
        organisation_id,
        call_uuid: draft.call_uuid,
        direction: draft.direction,
        started_at: draft.started_at,
        ended_at: draft.ended_at,
        agent_id: draft.agent_id,
        agent_kind: draft.agent_kind,
        contact_id: draft.contact_id,
        contact_e164: draft.contact_e164,
        summary: draft.summary,
        ai: draft.ai,
        assembled_context: draft.assembled_context,
        profile: profile.unwrap_or_default(),
        charge: stored.map_or(Charge::default(), |stored| stored.charge),
        flags: stored.map(|stored| stored.flags.clone()).unwrap_or_default(),
        turns,
    }
}
