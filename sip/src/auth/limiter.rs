//! Limits password guessing: per account and source, per source over all accounts, per account over all
//! sources.
//!
//! Only an answer to a nonce that this engine sent to the source counts, so an attacker with a forged source
//! address cannot block anyone. No limit locks an account for all sources: a source with a registration of
//! the account keeps its own limit, and the first answer of a source without failures is always checked,
//! however many other sources guess.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::auth::SECRET_BYTES;
use crate::flow::source_of;

/// Wrong answers within a [`WINDOW`] after which an account is blocked for a source.
pub const FAILURES_MAX: u32 = 10;
/// Wrong answers of one source over all accounts within a [`WINDOW`] after which all accounts are blocked for
/// it, except those with a registration from there.
pub const SOURCE_FAILURES_MAX: u32 = 50;
/// Wrong answers for one account over all sources within a [`WINDOW`] after which each source may give one
/// wrong answer instead of [`FAILURES_MAX`]; a source with a registration of the account keeps its
/// [`FAILURES_MAX`].
pub const ACCOUNT_FAILURES_MAX: u32 = 100;
/// How long failures are stored, counted from the first.
pub const WINDOW: Duration = Duration::from_secs(300);
/// The largest number of stored sources; then the oldest is removed. One source has one entry.
pub const SOURCES_MAX: usize = 16_384;
/// The largest number of stored accounts; then the oldest is removed. One source adds at most
/// [`SOURCE_FAILURES_MAX`] in a [`WINDOW`], and one for each registration.
pub const ACCOUNTS_MAX: usize = 65_536;

/// The limit that a wrong answer reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// [`FAILURES_MAX`]: one source at one account.
    Account,
    /// [`ACCOUNT_FAILURES_MAX`]: one account over all sources.
    AllSources,
    /// [`SOURCE_FAILURES_MAX`]: one source over all accounts.
    Source,
}

impl Limit {
    /// The wrong answers within a [`WINDOW`] that reach it.
    pub const fn failures(self) -> u32 {
        match self {
            Limit::Account => FAILURES_MAX,
            Limit::AllSources => ACCOUNT_FAILURES_MAX,
            Limit::Source => SOURCE_FAILURES_MAX,
        }
    }
}

/// Counts failures.
#[derive(Debug)]
pub struct FailureLimiter {
    secret: [u8; SECRET_BYTES],
    sources: Table<IpAddr, SourceFailures>,
    accounts: Table<AccountKey, Failures>,
}

/// A keyed hash of realm and user name: long names take no memory, and an attacker cannot choose names that
/// collide.
type AccountKey = u64;

#[derive(Clone, Copy, Debug)]
struct Failures {
    since: Instant,
    count: u32,
}

#[derive(Clone, Debug)]
struct SourceFailures {
    all: Failures,
    /// At most [`PAIRS_MAX`] entries.
    pairs: Vec<(AccountKey, Failures)>,
}

/// A user name in one realm, tried by one source.
#[derive(Clone, Copy, Debug)]
pub struct Guess<'a> {
    /// The realm, which is the organisation's domain.
    pub realm: &'a str,
    /// The user name.
    pub username: &'a str,
    /// Source of the request.
    pub source: IpAddr,
}

impl FailureLimiter {
    /// A limiter without failures. `secret` keys the hashes of accounts.
    pub fn new(secret: [u8; SECRET_BYTES]) -> Self {
        FailureLimiter { secret, sources: Table::new(SOURCES_MAX), accounts: Table::new(ACCOUNTS_MAX) }
    }

    /// Whether the account is blocked for the source; `is_registered` means that it has a registration from
    /// there.
    pub fn is_closed(&self, now: Instant, guess: Guess<'_>, is_registered: bool) -> bool {
        self.closed_for(now, guess, is_registered).is_some()
    }

    /// The time for which the account stays blocked for the source; `None` when it is not blocked. The result does not
    /// depend on whether the account exists.
    pub fn closed_for(&self, now: Instant, guess: Guess<'_>, is_registered: bool) -> Option<Duration> {
        let account = self.key(guess.realm, guess.username);
        let source = self.sources.map.get(&source_of(guess.source))?;
        let pair = source.pair(account);
        let of_pair = pair.filter(|pair| pair.at(now) >= FAILURES_MAX);
        // A further account, when the source has no free entry, waits until the source's failures expire.
        let of_pairs = (pair.is_none() && source.pairs.len() >= PAIRS_MAX).then_some(source.all);
        let of_source = Some(source.all).filter(|all| !is_registered && all.at(now) >= SOURCE_FAILURES_MAX);
        let of_account = self.accounts.map.get(&account).copied().filter(|over_all_sources| {
            !is_registered
                && over_all_sources.at(now) >= ACCOUNT_FAILURES_MAX
                && pair.is_some_and(|pair| pair.at(now) > 0)
        });
        [of_pair, of_pairs, of_source, of_account]
            .into_iter()
            .flatten()
            .map(|failures| failures.left(now))
            .max()
    }

    /// Counts a wrong answer. Returns the limit that it reaches; if it reaches several, the one with the most failures.
    pub fn fail(&mut self, now: Instant, guess: Guess<'_>) -> Option<Limit> {
        let account = self.key(guess.realm, guess.username);
        let fresh = Failures { since: now, count: 0 };
        let over_all_sources = self.accounts.entry(now, account, || fresh).note(now);
        let source = source_of(guess.source);
        let source = self.sources.entry(now, source, || SourceFailures { all: fresh, pairs: Vec::new() });
        let (over_all_accounts, pair) = source.note(now, account);
        [(Limit::AllSources, over_all_sources), (Limit::Source, over_all_accounts), (Limit::Account, pair)]
            .into_iter()
            .find_map(|(limit, count)| (count == limit.failures()).then_some(limit))
    }

    /// Removes the failures for an account, because its password was changed.
    pub fn forget(&mut self, realm: &str, username: &str) {
        let account = self.key(realm, username);
        self.accounts.map.remove(&account);
        for source in self.sources.map.values_mut() {
            source.pairs.retain(|(key, _)| *key != account);
        }
    }

    /// Number of stored sources.
    pub fn len(&self) -> usize {
        self.sources.map.len()
    }

    /// Whether no source is stored.
    pub fn is_empty(&self) -> bool {
        self.sources.map.is_empty()
    }

    fn key(&self, realm: &str, username: &str) -> AccountKey {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(realm.len().to_be_bytes());
        hash.update(realm);
        hash.update(username);
        hash.finalize().iter().take(8).fold(0, |key, byte| (key << 8) | u64::from(*byte))
    }
}

impl Failures {
    /// The failures that count at `now`.
    fn at(self, now: Instant) -> u32 {
        if now.saturating_duration_since(self.since) < WINDOW { self.count } else { 0 }
    }

    /// The time for which they still count.
    fn left(self, now: Instant) -> Duration {
        WINDOW.saturating_sub(now.saturating_duration_since(self.since))
    }

    /// Counts one more, in a new window when the last one is over; returns the current count.
    fn note(&mut self, now: Instant) -> u32 {
        if self.at(now) == 0 {
            *self = Failures { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count
    }
}

impl SourceFailures {
    fn pair(&self, account: AccountKey) -> Option<Failures> {
        self.pairs.iter().find(|(key, _)| *key == account).map(|(_, failures)| *failures)
    }

    /// Counts one more for an account; returns the counts over all accounts and for this one.
    fn note(&mut self, now: Instant, account: AccountKey) -> (u32, u32) {
        let all = self.all.note(now);
        if let Some((_, failures)) = self.pairs.iter_mut().find(|(key, _)| *key == account) {
            return (all, failures.note(now));
        }
        self.pairs.retain(|(_, failures)| failures.at(now) > 0);
        if self.pairs.len() < PAIRS_MAX {
            self.pairs.push((account, Failures { since: now, count: 1 }));
        }
        (all, 1)
    }
}

/// A bounded map. Entries are removed two windows after their creation; when it is full, the oldest first.
#[derive(Debug)]
struct Table<K, V> {
    map: HashMap<K, V>,
    order: VecDeque<(Instant, K)>,
    len_max: usize,
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    fn new(len_max: usize) -> Self {
        Table { map: HashMap::new(), order: VecDeque::new(), len_max }
    }

    fn entry(&mut self, now: Instant, key: K, fresh: impl FnOnce() -> V) -> &mut V {
        if !self.map.contains_key(&key) {
            self.make_room(now);
            self.order.push_back((now, key));
        }
        self.map.entry(key).or_insert_with(fresh)
    }

    fn make_room(&mut self, now: Instant) {
        while let Some((made, _)) = self.order.front() {
            // A window that began at the end of an earlier one is over after two windows.
            let is_over = now.saturating_duration_since(*made) >= WINDOW * 2;
            if !is_over && self.order.len() < self.len_max {
                break;
            }
            if let Some((_, key)) = self.order.pop_front() {
                self.map.remove(&key);
            }
        }
    }
}

/// Accounts per source for which failures are stored: those of its own limit, and registered ones.
const PAIRS_MAX: usize = 64;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
mod tests {
    use super::*;

    const HERE: &str = "192.0.2.1";
    const THERE: &str = "192.0.2.2";

    fn guess<'a>(username: &'a str, source: &str) -> Guess<'a> {
        Guess { realm: "acme.test", username, source: source.parse().unwrap() }
    }

    fn limiter() -> FailureLimiter {
        FailureLimiter::new([7; SECRET_BYTES])
    }

    #[test]
    fn ten_failures_close_an_account_to_one_source_for_the_window() {
        let start = Instant::now();
        let mut limiter = limiter();
        let here = guess("1001", HERE);
        for attempt in 1..=12 {
            assert_eq!(limiter.is_closed(start, here, false), attempt > FAILURES_MAX);
            let reached = (attempt == FAILURES_MAX).then_some(Limit::Account);
            assert_eq!(limiter.fail(start, here), reached, "reported once");
        }
        assert!(limiter.is_closed(start, here, true), "a registration is no licence to guess");
        assert!(!limiter.is_closed(start, guess("1001", THERE), false), "the owner elsewhere");
        assert!(!limiter.is_closed(start, guess("1002", HERE), false));
        assert!(!limiter.is_closed(start, Guess { realm: "other.test", ..here }, false));
        assert!(limiter.is_closed(start + WINDOW - Duration::from_millis(1), here, false));
        let left = limiter.closed_for(start + Duration::from_secs(1), here, false);
        assert_eq!(left, Some(WINDOW - Duration::from_secs(1)));
        assert!(!limiter.is_closed(start + WINDOW, here, false));
        limiter.fail(start + WINDOW, here);
        assert!(!limiter.is_closed(start + WINDOW, here, false), "a new window counts from one");
        assert_eq!(limiter.len(), 1);
    }

    #[test]
    fn a_source_that_is_closed_keeps_what_is_registered_from_there() {
        let start = Instant::now();
        let mut limiter = limiter();
        for account in 0..SOURCE_FAILURES_MAX {
            let reached = limiter.fail(start, guess(&account.to_string(), HERE));
            assert_eq!(reached, (account + 1 == SOURCE_FAILURES_MAX).then_some(Limit::Source));
        }
        assert!(limiter.is_closed(start, guess("1001", HERE), false));
        assert!(!limiter.is_closed(start, guess("1001", HERE), true));
        assert!(!limiter.is_closed(start, guess("1001", THERE), false));
        for _ in 0..FAILURES_MAX {
            limiter.fail(start, guess("1001", HERE));
        }
        assert!(limiter.is_closed(start, guess("1001", HERE), true));
    }

    #[test]
    fn an_account_under_attack_is_slow_and_never_closed() {
        let start = Instant::now();
        let mut limiter = limiter();
        for source in 0..ACCOUNT_FAILURES_MAX {
            let last = source + 1 == ACCOUNT_FAILURES_MAX;
            let source = IpAddr::V4((0xC000_0200 + source).into());
            let reached = limiter.fail(start, Guess { source, ..guess("1001", HERE) });
            assert_eq!(reached, last.then_some(Limit::AllSources));
        }
        let new = guess("1001", "198.51.100.1");
        assert!(!limiter.is_closed(start, new, false), "the first answer of a source is checked");
        limiter.fail(start, new);
        assert!(limiter.is_closed(start, new, false), "and no second one");
        assert!(!limiter.is_closed(start, new, true), "but where the account is registered");
        limiter.forget("acme.test", "1001");
        assert!(!limiter.is_closed(start, new, false), "a new password begins anew");
    }

    #[test]
    fn memory_is_bounded_and_one_source_forgets_no_other() {
        let start = Instant::now();
        let mut limiter = limiter();
        for _ in 0..FAILURES_MAX {
            limiter.fail(start, guess("1001", THERE));
        }
        for number in 0..ACCOUNTS_MAX + 10 {
            let name = format!("{number}{}", "x".repeat(200));
            let guess = guess(&name, HERE);
            if !limiter.is_closed(start, guess, false) {
                limiter.fail(start, guess);
            }
        }
        assert_eq!((limiter.len(), limiter.accounts.map.len()), (2, 1 + SOURCE_FAILURES_MAX as usize));
        assert!(limiter.is_closed(start, guess("1001", THERE), false));
        for source in 0..u32::try_from(SOURCES_MAX).unwrap() + 10 {
            let source = IpAddr::V4((0x0A00_0000 + source).into());
            limiter.fail(start, Guess { source, ..guess("1001", HERE) });
        }
        assert_eq!((limiter.len(), limiter.sources.order.len()), (SOURCES_MAX, SOURCES_MAX));
    }
}
