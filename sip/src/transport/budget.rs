//! How many requests a source may send before it has authenticated: a token bucket for each address.
//!
//! Pure: fed with time. A source over its budget is not banned, because over UDP anyone can write its address;
//! it is served again as soon as its bucket refills.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Requests a second that a source may send, by default.
pub const RATE_PER_SECOND: u32 = 30;
/// Requests that a source may send at once, by default.
pub const BURST: u32 = 60;
/// The most sources with a bucket of their own; strangers beyond it share one.
pub const SOURCES_MAX: usize = 65_536;

/// A token bucket for each source address, an IPv6 one by its /64.
///
/// Kept as the instant at which the bucket will be full again (the generic cell rate algorithm), which is one value
/// for each source and nothing to refill.
#[derive(Debug)]
pub struct SourceBudget {
    interval: Duration,
    tolerance: Duration,
    full_at: HashMap<IpAddr, Instant>,
    /// The sources in the order of their first request, to be visited when room is needed.
    order: VecDeque<IpAddr>,
    /// The bucket of all strangers for whom there is no room.
    shared: Option<Instant>,
    refused: u64,
}

impl SourceBudget {
    /// A budget of `rate_per_second` with bursts of `burst`; zero counts as one.
    pub fn new(rate_per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / rate_per_second.max(1);
        SourceBudget {
            interval,
            tolerance: interval * (burst.max(1) - 1),
            full_at: HashMap::new(),
            order: VecDeque::new(),
            shared: None,
            refused: 0,
        }
    }

    /// Takes one request out of the source's bucket. False when it is empty: drop the request unanswered.
    pub fn admit(&mut self, now: Instant, source: IpAddr) -> bool {
        let source = network(source);
        let (interval, tolerance) = (self.interval, self.tolerance);
        let own = self.full_at.contains_key(&source) || self.make_room(now);
        let bucket = if own {
            self.full_at.entry(source).or_insert_with(|| {
                self.order.push_back(source);
                now
            })
        } else {
            self.shared.get_or_insert(now)
        };
        let full_at = (*bucket).max(now);
        let admitted = full_at.saturating_duration_since(now) <= tolerance;
        if admitted {
            *bucket = full_at + interval;
        } else {
            self.refused = self.refused.saturating_add(1);
        }
        admitted
    }

    /// How many requests were refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How many sources have a bucket.
    pub fn len(&self) -> usize {
        self.full_at.len()
    }

    /// Whether no source has a bucket.
    pub fn is_empty(&self) -> bool {
        self.full_at.is_empty()
    }

    /// Forgets sources whose bucket is full, which loses nothing; a few at a time. True when there is room.
    fn make_room(&mut self, now: Instant) -> bool {
        for _ in 0..VISITS {
            let Some(source) = self.order.pop_front() else {
                break;
            };
            match self.full_at.get(&source) {
                Some(full_at) if *full_at > now => self.order.push_back(source),
                _ => {
                    self.full_at.remove(&source);
                }
            }
        }
        self.full_at.len() < SOURCES_MAX
    }
}

impl Default for SourceBudget {
    fn default() -> Self {
        SourceBudget::new(RATE_PER_SECOND, BURST)
    }
}

/// What counts as one source: an IPv4 address, or the /64 that one IPv6 customer has at least.
fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64))),
    }
}

/// Sources visited for each new one: more than one, so that idle ones leave faster than new ones come.
const VISITS: usize = 4;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_then_the_rate() {
        let start = Instant::now();
        let mut budget = SourceBudget::new(10, 5);
        let admitted = |budget: &mut SourceBudget, ms, source: &str, requests: u32| {
            let now = start + Duration::from_millis(ms);
            (0..requests).filter(|_| budget.admit(now, ip(source))).count()
        };
        assert_eq!(admitted(&mut budget, 0, "192.0.2.1", 20), 5);
        assert_eq!(admitted(&mut budget, 0, "192.0.2.2", 20), 5, "another source has its own");
        assert_eq!(admitted(&mut budget, 0, "::ffff:192.0.2.2", 1), 0, "and only one");
        assert_eq!(admitted(&mut budget, 200, "192.0.2.1", 20), 2);
        assert_eq!(admitted(&mut budget, 10_000, "192.0.2.1", 20), 5, "never more than a burst");
        assert_eq!(admitted(&mut budget, 0, "2001:db8::1", 5), 5);
        assert_eq!(admitted(&mut budget, 0, "2001:db8::ffff:1", 5), 0, "one /64 is one source");
        assert_eq!(budget.refused(), 15 + 15 + 1 + 18 + 15 + 5);
    }

    #[test]
    fn a_flood_of_forged_sources_costs_bounded_memory_and_shares_one_bucket() {
        let start = Instant::now();
        let mut budget = SourceBudget::new(10, 5);
        let forged =
            |number: usize| IpAddr::V4(std::net::Ipv4Addr::from_bits(u32::try_from(number).unwrap()));
        let admitted = (0..SOURCES_MAX + 100).filter(|number| budget.admit(start, forged(*number))).count();
        assert_eq!((admitted, budget.len()), (SOURCES_MAX + 5, SOURCES_MAX));
        assert!(budget.admit(start, forged(0)), "who was there keeps its own bucket");
        let later = start + Duration::from_secs(1);
        assert!(budget.admit(later, ip("203.0.113.1")));
        assert!(budget.len() <= SOURCES_MAX - 2, "the idle ones leave");
    }
}
