//! The prompts that callers hear, by name, and the organisations' own versions.

use serde::{Serialize, Serializer};

use crate::ids::OrganisationId;
use crate::ports::PortFuture;
use crate::time::Timestamp;

macro_rules! prompts {
    ($($(#[$doc:meta])* $variant:ident = $text:tt,)*) => {
        /// A spoken announcement or a piece of music; an organisation may have its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Prompt { $($(#[$doc])* $variant,)* }

        impl Prompt {
            /// Every prompt, by its name.
            pub const ALL: &'static [Prompt] = &[$(Prompt::$variant,)*];

            /// The name that files, the database and the API use.
            pub const fn as_str(self) -> &'static str {
                match self { $(Prompt::$variant => $text,)* }
            }

            /// The prompt of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Prompt::$variant),)* _ => None }
            }
        }
    };
}

prompts! {
    /// To a member, when everyone except the moderators was muted.
    AllMuted = "all-muted",
    /// To a member, when everyone was unmuted.
    AllUnmuted = "all-unmuted",
    /// To the first member: no other member has joined yet.
    Alone = "alone",
    /// To a party that the room called: asks for the 1, so that no mailbox is seated.
    ConfirmJoin = "confirm-join",
    /// The conference is over: the moderator ended it, or the last one has left.
    Ended = "ended",
    /// Asks for the PIN and the hash key.
    EnterPin = "enter-pin",
    /// Asks for the room's number and the hash key.
    EnterRoom = "enter-room",
    /// There is no place left in the room.
    Full = "full",
    /// Played before the switch hangs up.
    Goodbye = "goodbye",
    /// The music until another member joins; it is repeated.
    HoldMusic = "hold-music",
    /// To the room: a member joined.
    Joined = "joined",
    /// To a member who was removed from the room.
    Kicked = "kicked",
    /// To the room: a member left.
    Left = "left",
    /// The room is locked: to its members when it happens, and to callers who try to join.
    Locked = "locked",
    /// To a member who was muted.
    Muted = "muted",
    /// There is no room of the number.
    NoSuchRoom = "no-such-room",
    /// To the last party of merged calls, which is hung up a minute later.
    OthersLeft = "others-left",
    /// To the room: it is not recorded any more.
    RecordingOff = "recording-off",
    /// To the room: it is recorded.
    RecordingOn = "recording-on",
    /// The room is not locked any more.
    Unlocked = "unlocked",
    /// To a member who was unmuted.
    Unmuted = "unmuted",
    /// To members who wait for the moderator.
    WaitForModerator = "wait-for-moderator",
    /// The PIN is not right.
    WrongPin = "wrong-pin",
}

impl Prompt {
    /// The longest file that an organisation may have for a prompt.
    pub const WAV_BYTES_MAX: usize = 4 * 1024 * 1024;
}

impl Serialize for Prompt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl std::fmt::Display for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The sound of a prompt of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptRecord {
    /// Which.
    pub prompt: Prompt,
    /// When the organisation's own was stored; `None` where the built-in one is played.
    pub own_since: Option<Timestamp>,
    /// How long it plays.
    pub duration_ms: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl PromptRecord {
    /// The prompt as callers see it.
    pub fn view(&self) -> PromptView {
        PromptView {
            name: self.prompt.as_str(),
            own: self.own_since.is_some(),
            duration_ms: self.duration_ms,
            bytes: self.bytes,
            updated_at: self.own_since,
        }
    }
}

/// The sound of a prompt of an organisation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Prompt))]
pub struct PromptView {
    /// Its name, such as `enter-pin`.
    name: &'static str,
    /// Whether it is the organisation's own sound, not the built-in one.
    own: bool,
    /// The duration in milliseconds.
    duration_ms: u64,
    /// Bytes of the file.
    bytes: u64,
    /// When the organisation's own sound was stored; absent for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
}

/// The prompts that organisations use.
pub trait Prompts: Send + Sync {
    /// Every prompt, by name: the organisation's own or the built-in one.
    fn list(&self, organisation: OrganisationId) -> PortFuture<'_, Vec<PromptRecord>>;

    /// Returns the WAV file of one prompt.
    fn wav(&self, organisation: OrganisationId, prompt: Prompt) -> PortFuture<'_, Vec<u8>>;

    /// Stores `wav` as the organisation's own; every node plays it within two seconds.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::problem::Problem::InvalidRequest) when it cannot be played,
    /// [`Conflict`](crate::problem::Problem::Conflict) when there is no space for it.
    fn put(
        &self,
        organisation: OrganisationId,
        prompt: Prompt,
        wav: Vec<u8>,
        now: Timestamp,
    ) -> PortFuture<'_, PromptRecord>;

    /// Restores the built-in prompt.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when the organisation has no prompt of its own.
    fn remove(&self, organisation: OrganisationId, prompt: Prompt) -> PortFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_in_order() {
        for prompt in Prompt::ALL {
            assert_eq!(Prompt::from_name(prompt.as_str()), Some(*prompt));
        }
        assert!(Prompt::ALL.is_sorted_by_key(|prompt| prompt.as_str()));
        assert_eq!(Prompt::from_name("../../etc/passwd"), None);
    }
}
