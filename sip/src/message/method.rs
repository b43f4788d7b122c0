//! Request methods: an open, case-sensitive set (RFC 3261 §7.1).

use std::fmt;

use crate::message::scan::is_token;

/// The method of a request. `invite` is not INVITE: methods are case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are the RFCs' own method names")]
pub enum Method {
    Ack,
    Bye,
    Cancel,
    Info,
    Invite,
    Message,
    Notify,
    Options,
    Prack,
    Publish,
    Refer,
    Register,
    Subscribe,
    Update,
    /// An unknown method; answer 405 or 501, never drop it.
    Other(String),
}

impl Method {
    /// Parses a method; `None` when the text is not a token.
    #[must_use]
    pub fn from_bytes(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"ACK" => Self::Ack,
            b"BYE" => Self::Bye,
            b"CANCEL" => Self::Cancel,
            b"INFO" => Self::Info,
            b"INVITE" => Self::Invite,
            b"MESSAGE" => Self::Message,
            b"NOTIFY" => Self::Notify,
            b"OPTIONS" => Self::Options,
            b"PRACK" => Self::Prack,
            b"PUBLISH" => Self::Publish,
            b"REFER" => Self::Refer,
            b"REGISTER" => Self::Register,
            b"SUBSCRIBE" => Self::Subscribe,
            b"UPDATE" => Self::Update,
            other if is_token(other) => Self::Other(std::str::from_utf8(other).ok()?.to_owned()),
            _ => return None,
        })
    }

    /// The method as in the start line and in CSeq.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Ack => "ACK",
            Self::Bye => "BYE",
            Self::Cancel => "CANCEL",
            Self::Info => "INFO",
            Self::Invite => "INVITE",
            Self::Message => "MESSAGE",
            Self::Notify => "NOTIFY",
            Self::Options => "OPTIONS",
            Self::Prack => "PRACK",
            Self::Publish => "PUBLISH",
            Self::Refer => "REFER",
            Self::Register => "REGISTER",
            Self::Subscribe => "SUBSCRIBE",
            Self::Update => "UPDATE",
            Self::Other(name) => name,
        }
    }

    /// Whether the method is a known one.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_case_sensitive_whole_tokens() {
        for (input, expected) in [
            ("INVITE", Some(Method::Invite)),
            ("invite", Some(Method::Other("invite".into()))),
            ("INVITEX", Some(Method::Other("INVITEX".into()))),
            ("", None),
            ("IN VITE", None),
            ("a/b", None),
        ] {
            assert_eq!(Method::from_bytes(input.as_bytes()), expected, "{input}");
        }
    }
}
