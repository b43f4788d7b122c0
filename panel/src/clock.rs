//! The wall clock of this host.

use std::time::{SystemTime, UNIX_EPOCH};

use sidetone_model::time::Timestamp;

/// The time of the request for a page. The last 24 hours end at this time; the page may not contain events
/// after it.
#[expect(clippy::disallowed_methods, reason = "pages are read by people, at the time of their clocks")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or_default())
}
