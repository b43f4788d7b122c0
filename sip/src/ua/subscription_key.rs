//! The identifier of a subscription, for the events about it.

/// Identifies a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionKey(pub(super) u64);

impl SubscriptionKey {
    /// The smallest key, for ranges.
    pub const MIN: SubscriptionKey = SubscriptionKey(0);
    /// The largest key, for ranges.
    pub const MAX: SubscriptionKey = SubscriptionKey(u64::MAX);
}
