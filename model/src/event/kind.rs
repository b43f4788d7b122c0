//! The kinds of event, and the permissions to read them.

use serde::{Deserialize, Serialize};

use crate::access::Permission;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:tt,)*) => {
        /// The kinds of event that this engine generates.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum EventKind { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        impl EventKind {
            /// Every kind.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$variant,)*];

            /// The dotted name.
            pub const fn as_str(self) -> &'static str {
                match self { $(EventKind::$variant => $text,)* }
            }

            /// The kind of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(EventKind::$variant),)* _ => None }
            }
        }
    };
}

kinds! {
    /// The called party answered a call.
    CallAnswered = "call.answered",
    /// Two calls were merged into one room.
    CallConferenced = "call.conferenced",
    /// A call was over; its record is stored.
    CallEnded = "call.ended",
    /// A person acknowledged a note.
    CallInfoAcked = "call.info.acked",
    /// A note was sent.
    CallInfoSent = "call.info.sent",
    /// The media quality of a live call has become worse, or is good again.
    CallMediaWarning = "call.media_warning",
    /// A call ended without an answer.
    CallMissed = "call.missed",
    /// A prompt that a program played into a call is over.
    CallPromptEnded = "call.prompt_ended",
    /// A call rings.
    CallRinging = "call.ringing",
    /// A party that a client had dialled into a room did not join it.
    ConferenceDialFailed = "conference.dial_failed",
    /// The minutes of a session of a room were written.
    ConferenceMinutes = "conference.minutes",
    /// Something changed in a live room: a reason to read it again.
    ConferenceUpdated = "conference.updated",
    /// A conversation was over; its price is settled and it was reviewed.
    ConversationCompleted = "conversation.completed",
    /// A recording of a room could not begin, or ended early.
    RecordingFailed = "recording.failed",
    /// A session of a room is over and its recording can be played.
    RecordingReady = "recording.ready",
    /// Wrong passwords of extensions reached a limit.
    SecurityGuessing = "security.guessing",
    /// Wrong PINs of rooms reached a limit.
    SecurityPinGuessing = "security.pin_guessing",
}

impl EventKind {
    /// The permission that receiving such events requires.
    pub fn permission(self) -> Permission {
        permission_of(self.as_str())
    }
}

/// The permission that receiving events of that name requires.
pub(super) fn permission_of(name: &str) -> Permission {
    match name.split_once('.') {
        Some(("conference", _)) => Permission::ConferencesRead,
        Some(("recording", _)) => Permission::RecordingsListen,
        // For callers who may set the password of an extension.
        Some(("security", _)) => Permission::DirectoryWrite,
        _ => Permission::CallsRead,
    }
}

/// Every known name: the kinds that this engine generates, and the kinds of the public document that it does not
/// generate yet. Integrators may request those as well.
pub(super) fn known_names() -> impl Iterator<Item = &'static str> {
    EventKind::ALL.iter().map(|kind| kind.as_str()).chain(NOT_CAUSED_YET.iter().copied())
}

const NOT_CAUSED_YET: &[&str] = &[
    "callback.requested",
    "campaign.completed",
    "campaign.contact.completed",
    "contact.created",
    "csat.submitted",
    "ticket.created",
    "ticket.updated",
    "voicemail.received",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_not_kept_twice() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_name(kind.as_str()), Some(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!(!NOT_CAUSED_YET.contains(&kind.as_str()), "{kind:?} is caused");
        }
        assert_eq!(EventKind::from_name("stream.gap"), None);
    }

    #[test]
    fn conferences_have_a_permission_of_their_own() {
        for name in known_names() {
            let expected = match name {
                "conference.dial_failed" | "conference.minutes" | "conference.updated" => {
                    Permission::ConferencesRead
                }
                "recording.failed" | "recording.ready" => Permission::RecordingsListen,
                "security.guessing" | "security.pin_guessing" => Permission::DirectoryWrite,
                _ => Permission::CallsRead,
            };
            assert_eq!(permission_of(name), expected, "{name}");
        }
    }
}
