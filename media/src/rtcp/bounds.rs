//! Plausibility bounds, so that one wrong report cannot spoil a figure.

/// A party sends at most this many packets per second; ten times the rate of any audio codec.
const PACKETS_PER_S_MAX: i64 = 1_000;
/// Tolerance in addition to what the time allows: RFC 3550 A.1 `MAX_DROPOUT`.
const SLACK_PACKETS: i64 = 3_000;
/// Jitter over a second comes from a timestamp jump, not from a network.
pub(super) const JITTER_US_MAX: i64 = 1_000_000;
/// A round trip over ten seconds comes from a wrong delay in a report.
pub(super) const ROUND_TRIP_US_MAX: i64 = 10_000_000;

/// The largest number of packets sent within `elapsed_us`.
pub(super) fn packets_within(elapsed_us: i64) -> i64 {
    let seconds = elapsed_us.max(0) / 1_000_000 + 1;
    seconds.saturating_mul(PACKETS_PER_S_MAX).saturating_add(SLACK_PACKETS)
}
