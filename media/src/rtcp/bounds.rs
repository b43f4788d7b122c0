//! What no party can truly say: bounds that keep one bad report from spoiling a figure.

/// A party sends no more packets a second than this; ten times what any audio codec does.
const PACKETS_PER_S_MAX: i64 = 1_000;
/// Beside what the time allows: RFC 3550 A.1 `MAX_DROPOUT`.
const SLACK_PACKETS: i64 = 3_000;
/// Jitter beyond a second is a timestamp that jumped, never a network.
pub(super) const JITTER_US_MAX: i64 = 1_000_000;
/// A round trip beyond ten seconds is a delay that was stated wrongly.
pub(super) const ROUND_TRIP_US_MAX: i64 = 10_000_000;

/// How many packets can have been sent within `elapsed_us` at most.
pub(super) fn packets_within(elapsed_us: i64) -> i64 {
    let seconds = elapsed_us.max(0) / 1_000_000 + 1;
    seconds.saturating_mul(PACKETS_PER_S_MAX).saturating_add(SLACK_PACKETS)
}
