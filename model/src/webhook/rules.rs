//! The limits of webhooks, and the two rules for more than one field.

use crate::access::Permission;
use crate::event::EventPattern;
use crate::time::Timestamp;

/// Webhooks of one organisation.
pub const WEBHOOKS_MAX: u64 = 50;
/// Characters of a description.
pub const DESCRIPTION_LEN_MAX: usize = 200;
/// How long the previous secret stays in use after a rotation; receivers change theirs in this time.
pub const SECRET_OVERLAP_US: i64 = 24 * 60 * 60 * 1_000_000;
/// How long an endpoint may fail without a success before its webhook is disabled.
pub const FAILING_MAX_US: i64 = 72 * 60 * 60 * 1_000_000;
/// How long deliveries are kept.
pub const KEPT_FOR_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;
/// The stored attempts of one delivery, the newest ones: two rounds of ten.
pub const ATTEMPTS_KEPT_MAX: i64 = 20;
/// The bytes of a response that an attempt stores.
pub const ANSWER_BYTES_KEPT_MAX: usize = 1024;
/// The event that a test sends; no webhook subscribes to it, but each can request it.
pub const TEST_KIND: &str = "webhook.test";

/// Whether deliveries to an endpoint are given up: it fails at `at` and has had no success since
/// `failing_since`.
pub fn is_hopeless(failing_since: Timestamp, at: Timestamp) -> bool {
    at.since(failing_since) > FAILING_MAX_US
}

/// The permissions that `held` lacks to read every event of `events`: a webhook must not bypass permissions.
pub fn require_readable(events: &[EventPattern], held: impl Fn(Permission) -> bool) -> Vec<Permission> {
    let mut lacking: Vec<Permission> =
        events.iter().flat_map(EventPattern::permissions).filter(|permission| !held(*permission)).collect();
    lacking.sort_unstable();
    lacking.dedup();
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_given_up_after_three_days() {
        let at = Timestamp::from_micros;
        assert!(!is_hopeless(at(5), at(5)));
        assert!(!is_hopeless(at(5), at(5 + FAILING_MAX_US)));
        assert!(is_hopeless(at(5), at(6 + FAILING_MAX_US)));
    }
}
