//! The wall clock of this host.

use std::time::{SystemTime, UNIX_EPOCH};

use sidetone_model::time::Timestamp;

/// The instant at which a page is asked for: one of the last day begins a day before it, and the events since it are not
/// on the page yet.
#[expect(clippy::disallowed_methods, reason = "pages are read by people, at the time of their clocks")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or_default())
}
