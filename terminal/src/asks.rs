//! The requests of the live view to the HTTP API.

use std::time::Duration;

use serde_json::Value;

use crate::json::raw;

/// A request: `GET /api/v1` and the path. A new request replaces an unanswered one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Its number, which identifies its response.
    pub number: u64,
    /// The path below `/api/v1`, with its query.
    pub path: String,
}

/// Why there is no usable response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The status of the response; `None` when the server was not reached.
    pub status: Option<u16>,
    /// A description of the failure.
    pub reason: String,
    /// The time that the server asks the client to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// The server was not reached.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Failure { reason: reason.into(), ..Failure::default() }
    }

    /// The failure for a response with an error status: its message, or the status alone.
    pub fn of(status: u16, body: &Value, retry_after: Option<Duration>) -> Self {
        let message = body.get("error").map_or("", |error| raw(error, "message"));
        let reason =
            if message.is_empty() { format!("the server answers {status}") } else { message.to_owned() };
        Failure { status: Some(status), reason, retry_after }
    }
}

/// A view of live data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    #[default]
    Calls,
    Registrations,
    Rooms,
    Trunks,
}

impl View {
    pub(crate) const ALL: [View; 4] = [View::Calls, View::Registrations, View::Rooms, View::Trunks];

    /// The view `count` places after this one; after the last, the first follows.
    pub(crate) fn after(self, count: usize) -> View {
        let all = Self::ALL;
        all.get((self.place() + count) % all.len()).copied().unwrap_or_default()
    }

    /// Its index among all views.
    pub(crate) fn place(self) -> usize {
        match self {
            View::Calls => 0,
            View::Registrations => 1,
            View::Rooms => 2,
            View::Trunks => 3,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            View::Calls => "Calls",
            View::Registrations => "Registrations",
            View::Rooms => "Rooms",
            View::Trunks => "Trunks",
        }
    }

    fn path(self) -> &'static str {
        match self {
            View::Calls => "calls",
            View::Registrations => "registrations",
            View::Rooms => "conferences",
            View::Trunks => "trunks",
        }
    }
}

/// Whether a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over(pub(crate) bool);

/// A request for one kind of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A page of a view, by its cursor; empty for the first one.
    List(View, String),
    /// The figures of a live call, with its timeline or without.
    Quality(String, bool),
    /// The final figures of a call that has ended.
    Record(String),
    /// The SIP messages of a live or ended call.
    Signalling(String, Over),
    /// The state of a trunk.
    TrunkStatus(String),
}

impl Ask {
    /// The path below `/api/v1`.
    pub(crate) fn path(&self) -> String {
        match self {
            Ask::List(view, cursor) => {
                format!("/{}?limit={PAGE_ITEMS}&cursor={}", view.path(), encoded(cursor))
            }
            Ask::Quality(uuid, timeline) => format!("/calls/{}/quality?timeline={timeline}", encoded(uuid)),
            Ask::Record(uuid) => format!("/cdrs/{}/quality", encoded(uuid)),
            Ask::Signalling(uuid, Over(false)) => format!("/calls/{}/signalling", encoded(uuid)),
            Ask::Signalling(uuid, Over(true)) => format!("/cdrs/{}/signalling", encoded(uuid)),
            Ask::TrunkStatus(id) => format!("/trunks/{}/status", encoded(id)),
        }
    }
}

/// A text of a response, percent-encoded as a part of a URL (RFC 3986 §2.1).
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Items per page; the API's maximum.
const PAGE_ITEMS: u32 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_answers_cannot_change_the_path() {
        let path = Ask::Record("../keys?x=1&y#é".to_owned()).path();
        assert_eq!(path, "/cdrs/..%2Fkeys%3Fx%3D1%26y%23%C3%A9/quality");
        assert_eq!(Ask::List(View::Rooms, String::new()).path(), "/conferences?limit=500&cursor=");
        assert_eq!(View::Trunks.after(1), View::Calls);
    }
}
