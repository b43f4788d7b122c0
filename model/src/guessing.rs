//! Guessed passwords of extensions, as an event for the organisation.

use std::net::IpAddr;

use serde::Serialize;

use crate::call::words;
use crate::event::{Event, EventKind};
use crate::ids::{ExtensionId, OrganisationId};
use crate::time::Timestamp;

words! {
    /// The limit on wrong passwords that was reached.
    GuessLimit {
        /// One source at one account.
        Account = "account",
        /// One account over all sources.
        AllSources = "all_sources",
        /// One source over all accounts.
        Source = "source",
    }
}

/// Wrong passwords of extensions reached a limit; the data of `security.guessing`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guessing {
    /// The organisation of the account that was tried last.
    #[serde(skip)]
    pub organisation_id: OrganisationId,
    /// The account that was tried last, as the request claims it, with nothing but plain characters.
    pub account: String,
    /// The extension of that account; left out when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The source address of the last wrong password.
    pub source: IpAddr,
    /// The limit that was reached.
    pub limit: GuessLimit,
    /// The wrong passwords that reach it.
    pub failures: u32,
    /// Within how many seconds they came.
    pub window_seconds: u64,
    /// Earlier limits of the organisation that were reached without an event, because there were too many.
    pub left_out: u64,
    /// When it was reached.
    pub at: Timestamp,
}

impl Guessing {
    /// Returns a new event with these data.
    pub fn event(&self) -> Event {
        Event::of(EventKind::SecurityGuessing, self.organisation_id, None, self.at, self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_event_names_the_account_the_source_and_the_limit() {
        let mut guessing = Guessing {
            organisation_id: OrganisationId(Uuid::from_u128(1)),
            account: "1001@acme.test".to_owned(),
            extension_id: Some(ExtensionId(Uuid::from_u128(2))),
            source: "192.0.2.1".parse().unwrap(),
            limit: GuessLimit::AllSources,
            failures: 100,
            window_seconds: 300,
            left_out: 0,
            at: Timestamp::from_micros(1_767_225_600_000_000),
        };
        let expected = json!({
            "account": "1001@acme.test", "extension_id": "00000000-0000-0000-0000-000000000002",
            "source": "192.0.2.1", "limit": "all_sources", "failures": 100, "window_seconds": 300, "left_out": 0,
            "at": "2026-01-01T00:00:00.000Z"
        });
        let event = guessing.event();
        assert_eq!(
            (event.kind, event.organisation_id),
            (EventKind::SecurityGuessing, guessing.organisation_id)
        );
        assert_eq!(serde_json::Value::Object(event.data), expected);
        guessing.extension_id = None;
        assert!(!guessing.event().data.contains_key("extension_id"));
    }
}
