//! The prompts that callers hear, by name, and the organisations' own versions; also the sounds that an organisation
//! can play into a room: the prompts, and sounds under names that it chooses.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::ids::OrganisationId;
use crate::port_future::PortFuture;
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
    /// To the room, after the spoken name of a member: has joined.
    HasJoined = "has-joined",
    /// To the room, after the spoken name of a member: has left.
    HasLeft = "has-left",
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
    /// Asks for the name of the caller and the hash key.
    SayName = "say-name",
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
    /// The longest file that an organisation may store for a prompt.
    pub const WAV_BYTES_MAX: usize = 4 * 1024 * 1024;
}

impl Serialize for Prompt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SoundName {
    /// A sound that only the organisation has.
    Own(OwnSound),
    /// A prompt: the organisation's version, or the built-in one.
    Prompt(Prompt),
}

/// The name of a sound that only one organisation has: `own-` and 1 to [`OwnSound::LEN_MAX`] lower-case letters, digits
/// and hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnSound {
    /// The text after `own-`, then zeros.
    text: [u8; Self::LEN_MAX],
}

impl SoundName {
    /// The sound of that name; `None` if the name is not valid.
    pub fn from_name(name: &str) -> Option<Self> {
        OwnSound::from_name(name)
            .map(SoundName::Own)
            .or_else(|| Prompt::from_name(name).map(SoundName::Prompt))
    }
}

impl OwnSound {
    /// The maximum length after `own-`.
    pub const LEN_MAX: usize = 32;
    /// The most sounds of its own that an organisation may have.
    pub const COUNT_MAX: usize = 20;
    /// The beginning of every name.
    const PREFIX: &'static str = "own-";

    /// The sound of that name; `None` if the name does not have this form.
    pub fn from_name(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(Self::PREFIX)?.as_bytes();
        let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        if rest.is_empty() || !rest.iter().all(is_plain) {
            return None;
        }
        let mut text = [0; Self::LEN_MAX];
        text.get_mut(..rest.len())?.copy_from_slice(rest);
        Some(OwnSound { text })
    }
}

impl From<Prompt> for SoundName {
    fn from(prompt: Prompt) -> Self {
        SoundName::Prompt(prompt)
    }
}

impl fmt::Display for SoundName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SoundName::Own(own) => own.fmt(f),
            SoundName::Prompt(prompt) => prompt.fmt(f),
        }
    }
}

impl fmt::Display for OwnSound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        self.text
            .iter()
            .take_while(|byte| **byte != 0)
            .try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl fmt::Debug for OwnSound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SoundName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The sound of a prompt of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptRecord {
    /// The prompt or sound.
    pub name: SoundName,
    /// When the organisation's own version was stored; `None` if the built-in one is played.
    pub own_since: Option<Timestamp>,
    /// Its playing time.
    pub duration_ms: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl PromptRecord {
    /// The prompt as clients see it.
    pub fn view(&self) -> PromptView {
        PromptView {
            name: self.name,
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
    /// Its name, such as `enter-pin`, or `own-` and the organisation's name of the sound.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    name: SoundName,
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
    /// Every prompt, by name: the organisation's own version or the built-in one; also the sounds that only
    /// it has.
    fn list(&self, organisation: OrganisationId) -> PortFuture<'_, Vec<PromptRecord>>;

    /// Returns the WAV file of one sound.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when the organisation has no such sound.
    fn wav(&self, organisation: OrganisationId, name: SoundName) -> PortFuture<'_, Vec<u8>>;

    /// Makes a sound immediately playable on this node; returns its duration in milliseconds, `None` if the
    /// organisation has no such sound.
    fn ready(&self, organisation: OrganisationId, name: SoundName) -> PortFuture<'_, Option<u64>>;

    /// Stores `wav` as the organisation's own version; every node plays it within two seconds.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::problem::Problem::InvalidRequest) when it cannot be played,
    /// [`Conflict`](crate::problem::Problem::Conflict) when there is no space for it.
    fn put(
        &self,
        organisation: OrganisationId,
        name: SoundName,
        wav: Vec<u8>,
        now: Timestamp,
    ) -> PortFuture<'_, PromptRecord>;

    /// Restores the built-in prompt, or removes a sound that only the organisation has.
    ///
    /// # Errors
    /// [`NotFound`](crate::problem::Problem::NotFound) when the organisation has no such sound of its own.
    fn remove(&self, organisation: OrganisationId, name: SoundName) -> PortFuture<'_, ()>;
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

    #[test]
    fn names_of_sounds_round_trip() {
        let long = format!("own-{}", "x".repeat(OwnSound::LEN_MAX));
        for name in ["own-welcome", "own-2-am", "own-a", "hold-music", long.as_str()] {
            assert_eq!(SoundName::from_name(name).unwrap().to_string(), name);
        }
        let longer = format!("{long}x");
        for name in
            ["own-", "own", "own-A", "own-ä", "own-a b", "own-../x", "own-\0", "louder", "", longer.as_str()]
        {
            assert_eq!(SoundName::from_name(name), None, "{name}");
        }
        assert_eq!(SoundName::from_name("alone"), Some(Prompt::Alone.into()));
    }
}
