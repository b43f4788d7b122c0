//! A brake on guessing passwords: too many wrong answers for one account from one source, and no more are looked at.
//!
//! Only an answer to a nonce that we sent to that source counts, so nobody can lock a phone out by forging its
//! address, and another source of the same account is not affected.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Wrong answers within a [`WINDOW`] after which an account is closed to a source.
pub const FAILURES_MAX: u32 = 10;
/// How long failures are remembered, counted from the first.
pub const WINDOW: Duration = Duration::from_secs(300);
/// The most pairs of account and source that are remembered; beyond it the oldest is forgotten.
pub const TRACKED_MAX: usize = 65_536;

/// Counts failures for each pair of account and source.
#[derive(Debug, Default)]
pub struct FailureLimiter {
    failures: HashMap<Key, Failures>,
    /// The pairs by the start of their window, oldest first.
    order: VecDeque<(Instant, Key)>,
}

/// The account's name is cut, or a flood of long names would be a flood of memory.
type Key = (String, IpAddr);

#[derive(Clone, Copy, Debug)]
struct Failures {
    since: Instant,
    count: u32,
}

impl FailureLimiter {
    /// A limiter that has seen nothing.
    pub fn new() -> Self {
        FailureLimiter::default()
    }

    /// Whether the account is closed to the source.
    pub fn is_closed(&self, now: Instant, account: &str, source: IpAddr) -> bool {
        self.failures
            .get(&key(account, source))
            .is_some_and(|f| f.count >= FAILURES_MAX && now.saturating_duration_since(f.since) < WINDOW)
    }

    /// Counts a wrong answer. True when it is the one that closes the account to the source.
    pub fn fail(&mut self, now: Instant, account: &str, source: IpAddr) -> bool {
        self.forget(now);
        let key = key(account, source);
        if let Some(failures) = self.failures.get_mut(&key) {
            failures.count = failures.count.saturating_add(1);
            return failures.count == FAILURES_MAX;
        }
        self.order.push_back((now, key.clone()));
        self.failures.insert(key, Failures { since: now, count: 1 });
        FAILURES_MAX == 1
    }

    /// How many pairs are remembered.
    pub fn len(&self) -> usize {
        self.failures.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    fn forget(&mut self, now: Instant) {
        while let Some((since, _)) = self.order.front() {
            let over = now.saturating_duration_since(*since) >= WINDOW;
            if !over && self.order.len() < TRACKED_MAX {
                break;
            }
            if let Some((_, key)) = self.order.pop_front() {
                self.failures.remove(&key);
            }
        }
    }
}

fn key(account: &str, source: IpAddr) -> Key {
    (account.chars().take(ACCOUNT_CHARS_MAX).collect(), source.to_canonical())
}

/// Characters of an account's name that are remembered.
const ACCOUNT_CHARS_MAX: usize = 64;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
mod tests {
    use super::*;

    #[test]
    fn ten_failures_close_an_account_to_one_source_for_the_window() {
        let start = Instant::now();
        let mut limiter = FailureLimiter::new();
        let (here, there): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for attempt in 1..=12 {
            assert_eq!(limiter.is_closed(start, "1001", here), attempt > FAILURES_MAX);
            assert_eq!(limiter.fail(start, "1001", here), attempt == FAILURES_MAX, "told once");
        }
        assert!(!limiter.is_closed(start, "1001", there), "the owner elsewhere still gets in");
        assert!(!limiter.is_closed(start, "1002", here));
        assert!(limiter.is_closed(start + WINDOW - Duration::from_millis(1), "1001", here));
        assert!(!limiter.is_closed(start + WINDOW, "1001", here));
        limiter.fail(start + WINDOW, "1001", here);
        assert!(!limiter.is_closed(start + WINDOW, "1001", here), "a new window counts from one");
        assert_eq!(limiter.len(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let start = Instant::now();
        let mut limiter = FailureLimiter::new();
        for number in 0..TRACKED_MAX + 10 {
            limiter.fail(start, &format!("{number}{}", "x".repeat(200)), "192.0.2.1".parse().unwrap());
        }
        assert_eq!((limiter.len(), limiter.order.len()), (TRACKED_MAX, TRACKED_MAX));
    }
}
