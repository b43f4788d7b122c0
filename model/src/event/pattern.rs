//! Patterns that select kinds of event: `conference.*`, `call.info.sent`, `*`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::access::Permission;
use crate::event::EventKind;
use crate::event::kind::{known_names, permission_of};

/// One kind or a family of kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventPattern(String);

/// Why a text is not a pattern of events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventPatternError {
    /// It is not a pattern.
    #[error(
        "'{0}' is no event and no family of events; use a name such as call.ended, a family such as call.info.*, or *"
    )]
    Unknown(String),
    /// The list is empty.
    #[error("must name at least one event")]
    Empty,
    /// The list has more than [`EventPatterns::LEN_MAX`].
    #[error("names more than {} patterns", EventPatterns::LEN_MAX)]
    TooMany,
}

impl EventPattern {
    /// Whether the pattern matches `kind`.
    pub fn matches(&self, kind: EventKind) -> bool {
        self.matches_name(kind.as_str())
    }

    /// Whether a caller with `permissions` may receive any event that the pattern matches.
    pub fn is_open_to(&self, permissions: &[Permission]) -> bool {
        self.permissions().any(|needed| permissions.contains(&needed))
    }

    /// The permissions of which one is required to receive any event that the pattern matches.
    pub fn permissions(&self) -> impl Iterator<Item = Permission> + '_ {
        known_names().filter(|name| self.matches_name(name)).map(permission_of)
    }

    /// Every text that is a pattern, sorted: `*`, the families, the names.
    pub fn known() -> BTreeSet<String> {
        let mut known = BTreeSet::from(["*".to_owned()]);
        for name in known_names() {
            known.insert(name.to_owned());
            known.extend(
                name.match_indices('.').filter_map(|(dot, _)| Some(format!("{}.*", name.get(..dot)?))),
            );
        }
        known
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn matches_name(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            // The remaining prefix ends with its dot, or is empty.
            Some(family) => name.starts_with(family),
            None => self.0 == name,
        }
    }
}

impl FromStr for EventPattern {
    type Err = EventPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if Self::known().contains(text) {
            return Ok(Self(text.to_owned()));
        }
        // An error repeats only the beginning of the received text.
        Err(EventPatternError::Unknown(text.chars().take(SHOWN_LEN_MAX).collect()))
    }
}

impl TryFrom<String> for EventPattern {
    type Error = EventPatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<EventPattern> for String {
    fn from(pattern: EventPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The patterns of one stream or one webhook; at least one, at most [`EventPatterns::LEN_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPatterns(Vec<EventPattern>);

impl EventPatterns {
    /// The largest number of patterns.
    pub const LEN_MAX: usize = 32;

    /// Every event.
    pub fn all() -> Self {
        Self(vec![EventPattern("*".to_owned())])
    }

    /// Checks the number of patterns.
    ///
    /// # Errors
    /// If the list is empty or too long.
    pub fn new(patterns: Vec<EventPattern>) -> Result<Self, EventPatternError> {
        match patterns.len() {
            0 => Err(EventPatternError::Empty),
            1..=Self::LEN_MAX => Ok(Self(patterns)),
            _ => Err(EventPatternError::TooMany),
        }
    }

    /// Whether one of the patterns matches `kind`.
    pub fn matches(&self, kind: EventKind) -> bool {
        self.0.iter().any(|pattern| pattern.matches(kind))
    }

    /// Iterates over the patterns.
    pub fn iter(&self) -> impl Iterator<Item = &EventPattern> {
        self.0.iter()
    }
}

impl FromStr for EventPatterns {
    type Err = EventPatternError;

    /// Reads `conference.*,call.info.*`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(EventPatternError::Empty);
        }
        // One more than the limit is enough to know that there are too many.
        let patterns = text.split(',').take(Self::LEN_MAX + 1).map(str::parse);
        Self::new(patterns.collect::<Result<_, _>>()?)
    }
}

const SHOWN_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_families_and_everything_are_patterns() {
        let cases: [(&str, &[EventKind]); 11] = [
            ("*", EventKind::ALL),
            (
                "call.*",
                &[
                    EventKind::CallAnswered,
                    EventKind::CallConferenced,
                    EventKind::CallEnded,
                    EventKind::CallInfoAcked,
                    EventKind::CallInfoSent,
                    EventKind::CallMediaWarning,
                    EventKind::CallMissed,
                    EventKind::CallPromptEnded,
                    EventKind::CallRinging,
                ],
            ),
            ("call.info.*", &[EventKind::CallInfoAcked, EventKind::CallInfoSent]),
            ("call.info.sent", &[EventKind::CallInfoSent]),
            ("conversation.*", &[EventKind::ConversationCompleted]),
            (
                "conference.*",
                &[
                    EventKind::ConferenceDialFailed,
                    EventKind::ConferenceMinutes,
                    EventKind::ConferenceUpdated,
                ],
            ),
            ("conference.updated", &[EventKind::ConferenceUpdated]),
            // Known, but not generated yet.
            ("campaign.contact.*", &[]),
            ("ticket.created", &[]),
            ("recording.*", &[EventKind::RecordingFailed, EventKind::RecordingReady]),
            ("security.*", &[EventKind::SecurityGuessing, EventKind::SecurityPinGuessing]),
        ];
        for (text, expected) in cases {
            let pattern: EventPattern = text.parse().unwrap();
            let matched: Vec<_> =
                EventKind::ALL.iter().copied().filter(|kind| pattern.matches(*kind)).collect();
            assert_eq!(matched, expected, "{text}");
            assert_eq!(serde_json::to_value(&pattern).unwrap(), text);
        }
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        let refused = [
            "",
            "call",
            "call.",
            "call.e*",
            "call*",
            "**",
            "*.*",
            ".*",
            "Call.Ended",
            " call.ended",
            "call.ended ",
            "call.endedx",
            "call.info",
            "stream.gap",
            "webhook.test",
            "call.*.sent",
            "\u{e9}.*",
        ];
        for text in refused {
            let error = text.parse::<EventPattern>().unwrap_err();
            assert_eq!(error, EventPatternError::Unknown(text.to_owned()));
            assert!(serde_json::from_value::<EventPattern>(text.into()).is_err());
        }
        let long = "x".repeat(1_000_000);
        assert!(long.parse::<EventPattern>().unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn the_families_are_those_of_the_names() {
        let families: Vec<String> =
            EventPattern::known().into_iter().filter(|known| known.ends_with(".*")).collect();
        let expected = [
            "call.*",
            "call.info.*",
            "callback.*",
            "campaign.*",
            "campaign.contact.*",
            "conference.*",
            "contact.*",
            "conversation.*",
            "csat.*",
            "recording.*",
            "security.*",
            "ticket.*",
            "voicemail.*",
        ];
        assert_eq!(families, expected);
    }

    #[test]
    fn a_list_has_bounds() {
        let list: EventPatterns = "conference.*,call.info.*".parse().unwrap();
        assert!(list.matches(EventKind::CallInfoAcked) && !list.matches(EventKind::CallEnded));
        assert_eq!("".parse::<EventPatterns>(), Err(EventPatternError::Empty));
        assert!("call.*,".parse::<EventPatterns>().is_err());
        assert!(vec!["*"; 32].join(",").parse::<EventPatterns>().is_ok());
        assert_eq!(vec!["*"; 33].join(",").parse::<EventPatterns>(), Err(EventPatternError::TooMany));
        assert_eq!(EventPatterns::new(Vec::new()), Err(EventPatternError::Empty));
    }

    #[test]
    fn a_pattern_says_who_may_be_told() {
        let open = |text: &str, permission| text.parse::<EventPattern>().unwrap().is_open_to(&[permission]);
        assert!(open("*", Permission::CallsRead) && open("*", Permission::ConferencesRead));
        assert!(!open("*", Permission::BillingRead));
        assert!(
            open("conference.*", Permission::ConferencesRead) && !open("conference.*", Permission::CallsRead)
        );
        assert!(open("security.*", Permission::DirectoryWrite) && !open("security.*", Permission::CallsRead));
        assert!(open("call.*", Permission::CallsRead) && !open("call.*", Permission::ConferencesRead));
    }
}
