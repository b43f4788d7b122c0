//! The bounds of webhooks, and the two rules that look at more than one field.

use crate::access::Permission;
use crate::event::EventPattern;
use crate::time::Timestamp;

/// Webhooks of one organisation.
pub const WEBHOOKS_MAX: u64 = 50;
/// Characters of a description.
pub const DESCRIPTION_LEN_MAX: usize = 200;
/// How long the secret before the last rotation goes on signing: receivers change theirs in this time.
pub const SECRET_OVERLAP_US: i64 = 24 * 60 * 60 * 1_000_000;
/// How long an endpoint may fail without one success before its webhook is switched off.
pub const FAILING_MAX_US: i64 = 72 * 60 * 60 * 1_000_000;
/// How long deliveries are kept.
pub const KEPT_FOR_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;
/// Attempts of one delivery that are kept, the newest: two rounds of ten.
pub const ATTEMPTS_KEPT_MAX: i64 = 20;
/// How much of an answer an attempt keeps.
pub const ANSWER_BYTES_KEPT_MAX: usize = 1024;
/// The event that a test sends; no webhook subscribes to it, every one can be asked for it.
pub const TEST_KIND: &str = "webhook.test";

/// Whether an endpoint that fails at `at` and has not answered well since `failing_since` is given up.
pub fn is_hopeless(failing_since: Timestamp, at: Timestamp) -> bool {
    at.since(failing_since) > FAILING_MAX_US
}

/// The permissions that reading every event of `events` takes and `held` lacks: a webhook is no way around them.
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
