//! The sounds that an organisation can play into a room: the prompts, and sounds under names that it chooses.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::prompt::Prompt;

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
    /// The sound of that name; `None` when no sound can have it.
    pub fn from_name(name: &str) -> Option<Self> {
        OwnSound::from_name(name)
            .map(SoundName::Own)
            .or_else(|| Prompt::from_name(name).map(SoundName::Prompt))
    }
}

impl OwnSound {
    /// The longest text after `own-`.
    pub const LEN_MAX: usize = 32;
    /// Sounds of its own that an organisation may have.
    pub const COUNT_MAX: usize = 20;
    /// The beginning of every name.
    const PREFIX: &'static str = "own-";

    /// The sound of that name; `None` when it is no such name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
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
