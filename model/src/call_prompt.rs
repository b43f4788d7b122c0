//! Prompts that programs play into live calls: the current one, and how one ended.

use serde::Serialize;

use crate::call::words;
use crate::event::{Event, EventKind};
use crate::ids::{CallId, OrganisationId, PlayId, TeamId};
use crate::prompt::Prompt;
use crate::time::Timestamp;

words! {
    /// Who hears a prompt.
    PlaySide {
        /// Both parties; they do not hear each other meanwhile.
        Both = "both",
        /// The called party.
        Callee = "callee",
        /// The calling party.
        Caller = "caller",
    }
}

words! {
    /// How a prompt ended.
    PlayResult {
        /// The call ended before it.
        CallEnded = "call_ended",
        /// It was played to its end.
        Finished = "finished",
        /// A hold, a resumption, a transfer, parking or a move into a room ended it.
        Interrupted = "interrupted",
        /// Another prompt took its place.
        Replaced = "replaced",
        /// A program stopped it.
        Stopped = "stopped",
    }
}

/// A prompt that plays into a call now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LivePrompt {
    /// The play, as the answer of the request named it.
    pub play_id: PlayId,
    /// The name of the prompt.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "goodbye"))]
    pub prompt: Prompt,
    /// Who hears it.
    pub side: PlaySide,
}

/// A prompt that has ended; the data of `call.prompt_ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PromptEnded {
    /// The organisation of the call.
    #[serde(skip)]
    pub organisation_id: OrganisationId,
    /// The team of the call.
    #[serde(skip)]
    pub team_id: Option<TeamId>,
    /// The call.
    pub call_uuid: CallId,
    /// What played.
    #[serde(flatten)]
    pub prompt: LivePrompt,
    /// How it ended.
    pub result: PlayResult,
    /// When it ended.
    pub at: Timestamp,
}

impl PromptEnded {
    /// Returns a new event with these data.
    pub fn event(&self) -> Event {
        Event::of(EventKind::CallPromptEnded, self.organisation_id, self.team_id, self.at, self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_event_names_the_prompt_and_its_result() {
        let prompt = LivePrompt {
            play_id: Uuid::from_u128(7).into(),
            prompt: Prompt::Goodbye,
            side: PlaySide::Callee,
        };
        let ended = PromptEnded {
            organisation_id: Uuid::from_u128(1).into(),
            team_id: Some(Uuid::from_u128(2).into()),
            call_uuid: Uuid::from_u128(3).into(),
            prompt,
            result: PlayResult::CallEnded,
            at: Timestamp::from_micros(1_767_225_600_000_000),
        };
        let event = ended.event();
        assert_eq!((event.kind, event.team_id), (EventKind::CallPromptEnded, ended.team_id));
        let expected = json!({
            "call_uuid": "00000000-0000-0000-0000-000000000003",
            "play_id": "00000000-0000-0000-0000-000000000007", "prompt": "goodbye", "side": "callee",
            "result": "call_ended", "at": "2026-01-01T00:00:00.000Z"
        });
        assert_eq!(Value::Object(event.data), expected);
    }
}
