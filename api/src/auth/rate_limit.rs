//! Rate limits: a fixed window of a minute per key, per user, and per address of unauthenticated clients.
//!
//! In a cluster the nodes count keys and users together ([`Peers::count_requests`]). This table holds the last answer
//! of the cluster and the number of requests that this node has admitted. Each node counts addresses by itself.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use sidetone_model::access::Who;
use sidetone_model::cluster::{Peers, RateKind, RateTake, RateTaken};
use sidetone_model::time::Timestamp;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The unit that shares one allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bucket {
    /// An address; for IPv6 its /64, because a household has one.
    Address(IpAddr),
    /// A key, or a user with all sessions.
    Caller(Who),
    /// The calls that a key or a user places.
    Placements(Who),
    /// All addresses that did not fit into the table, together.
    Overflow,
}

impl Bucket {
    /// The bucket of an address.
    pub(super) fn of_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Address(address),
            IpAddr::V6(v6) => {
                Self::Address(IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))))
            }
        }
    }

    /// The key or user, if all nodes count it together.
    fn shared(self) -> Option<(Who, RateKind)> {
        match self {
            Bucket::Caller(who) => Some((who, RateKind::Requests)),
            Bucket::Placements(who) => Some((who, RateKind::Placements)),
            Bucket::Address(_) | Bucket::Overflow => None,
        }
    }
}

/// The current windows.
#[derive(Default)]
pub(crate) struct RateLimits {
    /// The nodes that count together; `None` without a cluster.
    peers: Option<Arc<dyn Peers>>,
    table: Mutex<Table>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct Table {
    windows: HashMap<Bucket, Window>,
    /// A full table is searched for ended windows once a second, not at every request.
    sweep_after: Timestamp,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    ends_at: Timestamp,
    used: u32,
    /// The part of `used` that this node has admitted.
    own: u32,
    /// Requests that may still count: their senders are being authenticated.
    pending: u32,
}

/// The answer to a request that may still turn out not to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The allowance is used up.
    Full(Quota),
    /// It may proceed; end it with [`RateLimits::settle`] and this bucket.
    Taken(Bucket),
    /// The rest of the allowance is pending; call again when a pending request is settled.
    Wait,
}

/// The state of an allowance after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quota {
    limit: u32,
    remaining: u32,
    ends_at: Timestamp,
    retry_after_s: Option<u64>,
}

impl RateLimits {
    /// Rate limits; `peers` are the nodes that count together, if any.
    pub(crate) fn new(peers: Option<Arc<dyn Peers>>) -> Self {
        Self { peers, ..Self::default() }
    }

    /// Takes `cost` requests from the allowance of `bucket`, over all nodes.
    pub(super) async fn take_shared(&self, bucket: Bucket, limit: u32, cost: u32, now: Timestamp) -> Quota {
        let (Some(peers), Some((who, kind))) = (&self.peers, bucket.shared()) else {
            return self.take(bucket, limit, cost, now);
        };
        let (used, ends_in_us) = self.own(bucket, now);
        let taken = peers.count_requests(RateTake { who, kind, limit, cost, used, ends_in_us }).await;
        match taken {
            Ok(RateTaken::Counted { allowed, remaining, ends_in_us }) => {
                let ends_at = now.plus_micros(ends_in_us);
                let mut table = self.table.lock();
                let window = table.window(bucket, now);
                (window.ends_at, window.used) = (ends_at, limit.saturating_sub(remaining));
                if allowed {
                    window.own = window.own.saturating_add(cost);
                }
                let retry_after_s = (!allowed).then(|| seconds_up(ends_in_us).max(1));
                Quota { limit, remaining, ends_at, retry_after_s }
            }
            Ok(RateTaken::Share(share)) => self.take_share(bucket, (limit, share), cost, now),
            // The port's implementation does not fail.
            Err(_) => self.take(bucket, limit, cost, now),
        }
    }

    /// Takes requests from the share of a limit that this node may use by itself.
    fn take_share(&self, bucket: Bucket, (limit, share): (u32, u32), cost: u32, now: Timestamp) -> Quota {
        let mut table = self.table.lock();
        let window = table.window(bucket, now);
        let allowed = window.own.saturating_add(cost) <= share;
        if allowed {
            window.own = window.own.saturating_add(cost);
            window.used = window.used.saturating_add(cost).min(limit);
        }
        let retry_after_s = (!allowed).then(|| seconds_up(window.ends_at.since(now)).max(1));
        let remaining = share.saturating_sub(window.own);
        Quota { limit, remaining, ends_at: window.ends_at, retry_after_s }
    }

    /// The requests that this node has admitted in its window, and the microseconds until the window ends.
    fn own(&self, bucket: Bucket, now: Timestamp) -> (u32, i64) {
        let table = self.table.lock();
        let window = table.windows.get(&bucket);
        window
            .filter(|window| window.ends_at > now)
            .map_or((0, 0), |window| (window.own, window.ends_at.since(now)))
    }

    /// Takes `cost` requests from the allowance of `bucket`, which is `limit` a minute.
    ///
    /// *Bounds*: addresses beyond [`WINDOWS_LEN_MAX`] share one allowance; keys and users are limited by
    /// their number in the store.
    pub(super) fn take(&self, bucket: Bucket, limit: u32, cost: u32, now: Timestamp) -> Quota {
        let mut table = self.table.lock();
        let bucket = table.place_for(bucket, now);
        let window = table.window(bucket, now);
        let allowed = window.used.saturating_add(cost) <= limit;
        if allowed {
            window.used = window.used.saturating_add(cost);
            window.own = window.own.saturating_add(cost);
        }
        Quota {
            limit,
            remaining: limit.saturating_sub(window.used),
            ends_at: window.ends_at,
            retry_after_s: (!allowed).then(|| seconds_up(window.ends_at.since(now)).max(1)),
        }
    }
}

impl RateLimits {
    /// Returns the state of an allowance, without taking from it.
    pub(super) fn look(&self, bucket: Bucket, limit: u32, now: Timestamp) -> Quota {
        let mut quota = self.take(bucket, limit, 0, now);
        if quota.remaining == 0 {
            quota.retry_after_s = Some(seconds_up(quota.ends_at.since(now)).max(1));
        }
        quota
    }

    /// Reserves a place for a call that is counted only if it is placed. While as many calls are pending as may still
    /// be counted, it waits for the end of one, so that the limit is never exceeded at this node.
    ///
    /// # Errors
    /// The seconds to wait when the allowance is used up.
    pub(crate) async fn place_call(
        &self,
        who: Who,
        clock: &(dyn Fn() -> Timestamp + Send + Sync),
    ) -> Result<CallPlace<'_>, u64> {
        let bucket = Bucket::Placements(who);
        loop {
            let mut settled = pin!(self.settled());
            settled.as_mut().enable();
            let quota = self.take_shared(bucket, PLACEMENTS_PER_MINUTE, 0, clock()).await;
            let now = clock();
            if quota.remaining == 0 {
                return Err(seconds_up(quota.ends_at.since(now)).max(1));
            }
            if self.reserve(bucket, quota.remaining, now) {
                return Ok(CallPlace { limits: self, bucket, is_settled: false });
            }
            settled.await;
        }
    }

    /// Reserves a place if fewer than `remaining` are reserved. It is refused only while others are pending, whose end
    /// wakes the caller.
    fn reserve(&self, bucket: Bucket, remaining: u32, now: Timestamp) -> bool {
        let mut table = self.table.lock();
        let window = table.window(bucket, now);
        let is_free = window.pending < remaining;
        window.pending += u32::from(is_free);
        is_free
    }

    /// Counts a request that has a place.
    fn count_pending(&self, bucket: Bucket) {
        if let Some(window) = self.table.lock().windows.get_mut(&bucket) {
            window.used = window.used.saturating_add(1);
            window.own = window.own.saturating_add(1);
        }
    }

    /// Reserves a place for a request that counts against `bucket` only if it turns out to be wrong. No more
    /// are pending than may still be counted, so the limit of wrong requests is never exceeded.
    pub(super) fn place(&self, bucket: Bucket, limit: u32, now: Timestamp) -> Place {
        let quota = self.look(bucket, limit, now);
        if quota.retry_after_s.is_some() {
            return Place::Full(quota);
        }
        let mut table = self.table.lock();
        let bucket = table.place_for(bucket, now);
        let Some(window) = table.windows.get_mut(&bucket) else { return Place::Wait };
        if window.used.saturating_add(window.pending) >= limit {
            return Place::Wait;
        }
        window.pending += 1;
        Place::Taken(bucket)
    }

    /// Ends a reservation of [`RateLimits::place`].
    pub(super) fn settle(&self, bucket: Bucket) {
        let mut table = self.table.lock();
        if let Some(window) = table.windows.get_mut(&bucket) {
            window.pending = window.pending.saturating_sub(1);
        }
        drop(table);
        self.settled.notify_waiters();
    }

    /// Completes when a pending request is settled; create it before calling [`RateLimits::place`].
    pub(super) fn settled(&self) -> Notified<'_> {
        self.settled.notified()
    }
}

/// The place of a call in the allowance of its key or user, until the call is placed or refused. Without a decision, as
/// when the client has gone, the call is counted.
pub(crate) struct CallPlace<'l> {
    limits: &'l RateLimits,
    bucket: Bucket,
    is_settled: bool,
}

impl CallPlace<'_> {
    /// Counts the call, over all nodes: it is placed.
    pub(crate) async fn count(mut self, now: Timestamp) {
        self.limits.take_shared(self.bucket, PLACEMENTS_PER_MINUTE, 1, now).await;
        self.is_settled = true;
    }

    /// Counts nothing: the call is refused.
    pub(crate) fn give_back(mut self) {
        self.is_settled = true;
    }
}

impl Drop for CallPlace<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.limits.count_pending(self.bucket);
        }
        self.limits.settle(self.bucket);
    }
}

impl Table {
    /// Returns the present window of a bucket, a new one if the last one has ended.
    fn window(&mut self, bucket: Bucket, now: Timestamp) -> &mut Window {
        let fresh = Window { ends_at: now.plus_micros(WINDOW_US), used: 0, own: 0, pending: 0 };
        let window = self.windows.entry(bucket).or_insert(fresh);
        // A clock that was set back must not lock out a client for longer than a window.
        if window.ends_at <= now || window.ends_at > fresh.ends_at {
            *window = Window { pending: window.pending, ..fresh };
        }
        window
    }

    /// Returns `bucket` itself if the table has space for it.
    fn place_for(&mut self, bucket: Bucket, now: Timestamp) -> Bucket {
        if self.windows.len() < WINDOWS_LEN_MAX || self.windows.contains_key(&bucket) {
            return bucket;
        }
        if now >= self.sweep_after {
            self.windows.retain(|_, window| window.ends_at > now || window.pending > 0);
            self.sweep_after = now.plus_micros(SWEEP_EVERY_US);
        }
        let full = self.windows.len() >= WINDOWS_LEN_MAX;
        if full && matches!(bucket, Bucket::Address(_)) { Bucket::Overflow } else { bucket }
    }
}

impl Quota {
    /// The seconds to wait if the allowance was used up.
    pub(super) fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_s
    }

    /// Writes the three `X-RateLimit-*` headers.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(self.limit));
        headers.insert(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(self.remaining));
        let reset = seconds_up(self.ends_at.as_micros());
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(reset));
    }
}

/// Whole seconds, rounded up: after that time there is a new window.
pub(super) fn seconds_up(micros: i64) -> u64 {
    micros.max(0).unsigned_abs().div_ceil(1_000_000)
}

/// Calls that a key or a user may place in a minute.
const PLACEMENTS_PER_MINUTE: u32 = 60;
/// Requests a minute of an unauthenticated address.
pub(super) const UNAUTHENTICATED_PER_MINUTE: u32 = 60;
/// Requests a minute of a user.
pub(super) const USER_PER_MINUTE: u32 = 1200;
const SWEEP_EVERY_US: i64 = 1_000_000;
const WINDOWS_LEN_MAX: usize = 65_536;
const WINDOW_US: i64 = 60_000_000;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;
    use sidetone_model::cluster::{Gathered, LiveThing, Owner, PeerAnswer, PeerRequest};
    use sidetone_model::ids::{ApiKeyId, NodeId};
    use sidetone_model::ports::PortFuture;
    use uuid::Uuid;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_500_000 + ms * 1000)
    }

    fn address(number: u32) -> Bucket {
        Bucket::of_address(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn the_limit_is_exact_in_every_window() {
        let limits = RateLimits::default();
        for minute in 0..3 {
            let accepted = (0..1200).filter(|n| {
                limits.take(address(1), 600, 1, at(minute * 60_000 + n * 50)).retry_after_s.is_none()
            });
            assert_eq!(accepted.count(), 600, "minute {minute}");
        }
    }

    #[test]
    fn the_headers_count_down_and_retry_after_is_the_rest_of_the_window() {
        let limits = RateLimits::default();
        let first = limits.take(address(1), 2, 1, at(0));
        assert_eq!((first.remaining, first.retry_after_s), (1, None));
        let second = limits.take(address(1), 2, 1, at(10_000));
        assert_eq!((second.remaining, second.ends_at), (0, at(60_000)));
        let third = limits.take(address(1), 2, 1, at(58_100));
        assert_eq!((third.remaining, third.retry_after_s), (0, Some(2)));
        let mut headers = HeaderMap::new();
        third.write(&mut headers);
        assert_eq!(headers["x-ratelimit-limit"], "2");
        assert_eq!(headers["x-ratelimit-remaining"], "0");
        assert_eq!(headers["x-ratelimit-reset"], "1767225661");
        assert_eq!(limits.take(address(1), 2, 1, at(60_000)).retry_after_s, None, "a new window");
    }

    #[test]
    fn allowances_are_apart_and_a_free_request_costs_nothing() {
        let limits = RateLimits::default();
        assert_eq!(limits.take(address(1), 1, 1, at(0)).retry_after_s, None);
        assert_eq!(limits.take(address(2), 1, 1, at(0)).retry_after_s, None);
        assert_eq!(limits.take(address(1), 1, 0, at(0)).retry_after_s, None);
        assert!(limits.take(address(1), 1, 1, at(0)).retry_after_s.is_some());
        let v6 = |text: &str| Bucket::of_address(text.parse().unwrap());
        assert_eq!(v6("2001:db8::1"), v6("2001:db8::ffff:1"));
        assert_ne!(v6("2001:db8::1"), v6("2001:db8:0:1::1"));
    }

    #[test]
    fn the_table_is_bounded_and_recovers() {
        let limits = RateLimits::default();
        for number in 0..WINDOWS_LEN_MAX as u32 + 10 {
            limits.take(address(number), 60, 1, at(0));
        }
        assert!(limits.table.lock().windows.len() <= WINDOWS_LEN_MAX + 1);
        limits.take(address(u32::MAX), 60, 1, at(61_000));
        assert_eq!(limits.table.lock().windows.len(), 1);
    }

    /// A cluster: its answer, and the requests that it received.
    struct Cluster(Mutex<(RateTaken, Vec<RateTake>)>);

    impl Peers for Cluster {
        fn ask_all(&self, _: PeerRequest) -> PortFuture<'_, Gathered> {
            unreachable!("limits ask no such question")
        }

        fn owner(&self, _: LiveThing) -> PortFuture<'_, Owner> {
            unreachable!("limits ask no such question")
        }

        fn forward(&self, _: NodeId, _: PeerRequest) -> PortFuture<'_, PeerAnswer> {
            unreachable!("limits ask no such question")
        }

        fn count_requests(&self, take: RateTake) -> PortFuture<'_, RateTaken> {
            let mut state = self.0.lock();
            state.1.push(take);
            let taken = state.0;
            Box::pin(async move { Ok(taken) })
        }
    }

    #[tokio::test]
    async fn keys_are_counted_by_all_nodes_and_by_the_share_where_they_cannot_be() {
        let cluster = Arc::new(Cluster(Mutex::new((RateTaken::Share(2), Vec::new()))));
        let limits = RateLimits::new(Some(cluster.clone()));
        let who = Who::Key(ApiKeyId(Uuid::from_u128(1)));
        let bucket = Bucket::Caller(who);
        cluster.0.lock().0 = RateTaken::Counted { allowed: true, remaining: 4, ends_in_us: 30_000_000 };
        let quota = limits.take_shared(bucket, 6, 1, at(0)).await;
        assert_eq!((quota.remaining, quota.ends_at, quota.retry_after_s), (4, at(30_000), None));
        // The other nodes have counted one: only the own count of this node is sent.
        limits.take_shared(bucket, 6, 1, at(10_000)).await;
        let asked = cluster.0.lock().1[1];
        assert_eq!((asked.used, asked.ends_in_us, asked.cost, asked.who), (1, 20_000_000, 1, who));
        cluster.0.lock().0 = RateTaken::Counted { allowed: false, remaining: 0, ends_in_us: 5_000_000 };
        assert_eq!(limits.take_shared(bucket, 6, 1, at(25_000)).await.retry_after_s, Some(5));
        assert_eq!(limits.look(bucket, 6, at(25_000)).retry_after_s, Some(5), "without a question");
        // The other nodes are not reachable: two requests in a new window.
        cluster.0.lock().0 = RateTaken::Share(2);
        let later = at(40_000);
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(limits.take_shared(bucket, 6, 1, later).await.retry_after_s);
        }
        assert_eq!(taken, [None, None, Some(60)]);
        // Addresses are counted per node.
        let asked = cluster.0.lock().1.len();
        limits.take_shared(address(1), 6, 1, later).await;
        assert_eq!(cluster.0.lock().1.len(), asked);
    }

    /// Refused calls are not counted, and those that are pending are never more than may still be counted.
    #[tokio::test]
    async fn only_placed_calls_are_counted() {
        let limits = RateLimits::default();
        let who = Who::Key(ApiKeyId(Uuid::from_u128(1)));
        let clock = || at(0);
        for _ in 0..100 {
            limits.place_call(who, &clock).await.ok().unwrap().give_back();
        }
        for _ in 0..58 {
            limits.place_call(who, &clock).await.ok().unwrap().count(at(0)).await;
        }
        let first = limits.place_call(who, &clock).await.ok().unwrap();
        let second = limits.place_call(who, &clock).await.ok().unwrap();
        let mut third = pin!(limits.place_call(who, &clock));
        assert!(third.as_mut().now_or_never().is_none(), "two calls are pending");
        first.give_back();
        let third = third.now_or_never().unwrap().ok().unwrap();
        // The client of this one has gone.
        drop(second);
        third.count(at(0)).await;
        assert_eq!(limits.place_call(who, &clock).await.err(), Some(60));
        assert!(limits.place_call(who, &|| at(60_000)).await.is_ok(), "a new window");
    }

    #[test]
    fn a_clock_that_is_set_back_opens_a_new_window() {
        let limits = RateLimits::default();
        limits.take(address(1), 1, 1, at(3_600_000));
        assert_eq!(limits.take(address(1), 1, 1, at(0)).retry_after_s, None);
    }
}
