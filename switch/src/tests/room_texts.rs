//! The outputs of rooms and the commands to their media, as text.

use sidetone_model::prompt::Prompt;
use sidetone_model::room::event::RoomChange;

/// The names of prompts.
pub(super) fn names(prompts: &[Prompt]) -> String {
    prompts.iter().map(|prompt| prompt.as_str()).collect::<Vec<_>>().join(" ")
}

/// A change of a room as text.
pub(super) fn room_news(what: &RoomChange) -> String {
    match what {
        RoomChange::Joined(person) => {
            format!("news {} joined as {} {}", person.number, person.role, person.member)
        }
        RoomChange::Invited(invite) => {
            format!("news invite {} {} {}", invite.number, invite.state, invite.last_reason)
        }
        RoomChange::Left { member, cause, talked_ms: 0 } => {
            format!("news Left {{ member: {member}, cause: {cause:?} }}")
        }
        RoomChange::Merged { .. } => "news merged".into(),
        other => format!("news {other:?}"),
    }
}
