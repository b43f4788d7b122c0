//! Text that is copied often and never changed: words of the standards use no memory, and a copy of any other text is a
//! reference to it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A short text of a message, such as the name of a codec or of a parameter. It dereferences to `str`.
#[derive(Clone)]
pub struct Text(Place);

#[derive(Clone)]
enum Place {
    Shared(Arc<str>),
    Word(&'static str),
}

impl Text {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Place::Shared(text) => text,
            Place::Word(word) => word,
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        match WORDS.iter().find(|word| **word == text) {
            Some(word) => Self(Place::Word(word)),
            None => Self(Place::Shared(text.into())),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Default for Text {
    fn default() -> Self {
        Self(Place::Word(""))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Frequent words of messages, the most frequent first.
const WORDS: [&str; 31] = [
    "",
    "tag",
    "branch",
    "rport",
    "received",
    "lr",
    "transport",
    "udp",
    "tcp",
    "tls",
    "ob",
    "expires",
    "q",
    "+sip.instance",
    "reg-id",
    "line",
    "user",
    "phone",
    "-",
    "RTP/AVP",
    "PCMU",
    "PCMA",
    "telephone-event",
    "opus",
    "G722",
    "G729",
    "CN",
    "L16",
    "0-16",
    "0-15",
    "useinbandfec=1",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_was_made_of() {
        for text in ["", "tag", "Tag", "PCMA", "pcma", "x-unknown", "useinbandfec=1"] {
            let read = Text::from(text);
            assert_eq!((read.as_str(), &read.clone(), read.to_string()), (text, &read, text.to_owned()));
            assert_eq!(format!("{read:?}"), format!("{text:?}"));
            assert_eq!(read, Text::from(text.to_owned()));
        }
        assert_ne!(Text::from("a"), Text::from("b"));
        assert!(Text::default().is_empty());
    }
}
