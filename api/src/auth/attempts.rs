//! Limits password attempts: a number of failures per account and address, per address over all accounts, and
//! fewer for an account with failures from many addresses.
//!
//! The owner of an account is never locked out: the first attempt from an address is always processed,
//! however many from other addresses failed.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use sidetone_model::line_limit::LineLimit;
use sidetone_model::time::Timestamp;

use crate::auth::rate_limit::{Bucket, seconds_up};

/// The attempts of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    tables: Mutex<Tables>,
    lines: Mutex<LineLimit>,
    /// Log lines about tokens: separate, so that they do not use up the lines for logins.
    token_lines: Mutex<LineLimit>,
    refused: [AtomicU64; REASONS.len()],
    tokens: [AtomicU64; TOKEN_REASONS.len()],
}

#[derive(Debug, Default)]
struct Tables {
    pairs: HashMap<Key, Window>,
    addresses: HashMap<Bucket, Window>,
    accounts: HashMap<[u8; 32], Window>,
}

/// Account and address. The account is stored as a hash, so that its text is not kept and the size of an
/// entry is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    account: [u8; 32],
    address: Bucket,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    ends_at: Timestamp,
    tries: u32,
}

/// Why a login is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginRefusal {
    /// Too many failures before: the password was not checked.
    Limited,
    /// An unknown account or a wrong password.
    Wrong,
}

/// Why an API key or a session token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// The key is not allowed from this address.
    Address,
    /// Too many refused requests before: the token was not looked up.
    Limited,
    /// The key or session does not exist, or has expired.
    Wrong,
}

impl Key {
    /// The key for `account` (as typed, in any case) and an address.
    pub(super) fn new(account: &str, address: Bucket) -> Self {
        Self { account: Sha256::digest(account.to_lowercase().as_bytes()).into(), address }
    }
}

impl Attempts {
    /// Counts one attempt; [`Attempts::succeed`] removes it again. It is counted before the password is
    /// checked, so that attempts sent at the same time are counted as well.
    ///
    /// # Errors
    /// The seconds to wait when no attempt is left.
    ///
    /// *Bounds*: beyond [`WINDOWS_LEN_MAX`] entries of a table those that end next are forgotten.
    pub(crate) fn take(&self, key: Key, now: Timestamp) -> Result<(), u64> {
        let mut tables = self.tables.lock();
        let of_pair = Window::of(&tables.pairs, &key, now);
        let of_address = Window::of(&tables.addresses, &key.address, now);
        let of_account = Window::of(&tables.accounts, &key.account, now);
        let is_attacked = of_account.tries >= ACCOUNT_TRIES_MAX;
        let tries_max = if is_attacked { TRIES_MAX_UNDER_ATTACK } else { TRIES_MAX };
        for (window, most) in [(of_pair, tries_max), (of_address, ADDRESS_TRIES_MAX)] {
            if window.tries >= most {
                return Err(seconds_up(window.ends_at.since(now)).max(1));
            }
        }
        count(&mut tables.pairs, key, of_pair, now);
        count(&mut tables.addresses, key.address, of_address, now);
        count(&mut tables.accounts, key.account, of_account, now);
        Ok(())
    }

    /// Forgets the attempts of a client that knew the password.
    pub(crate) fn succeed(&self, key: Key) {
        let mut tables = self.tables.lock();
        tables.pairs.remove(&key);
        let Tables { addresses, accounts, .. } = &mut *tables;
        for window in [addresses.get_mut(&key.address), accounts.get_mut(&key.account)].into_iter().flatten()
        {
            window.tries = window.tries.saturating_sub(1);
        }
    }

    /// Counts a refused login, and logs it: at most one line a second for each source.
    pub(crate) fn refused(&self, now: Timestamp, source: IpAddr, account: &str, why: LoginRefusal) {
        let (at, reason) = match why {
            LoginRefusal::Limited => (0, "limited"),
            LoginRefusal::Wrong => (1, "wrong_credentials"),
        };
        if let Some(count) = self.refused.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let Some(left_out) = self.lines.lock().take(now, source) else { return };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_+@".contains(c);
        let account: String =
            account.chars().take(ACCOUNT_CHARS_MAX).map(|c| if is_plain(c) { c } else { '?' }).collect();
        tracing::warn!(%source, account, reason, left_out, "login failed");
    }

    /// Counts a refused token, and logs it: at most one line a second for each source. No part of the token
    /// is logged.
    pub(crate) fn token_refused(&self, now: Timestamp, source: IpAddr, why: TokenRefusal) {
        let (at, reason) = match why {
            TokenRefusal::Address => (0, "address"),
            TokenRefusal::Limited => (1, "limited"),
            TokenRefusal::Wrong => (2, "wrong_credentials"),
        };
        if let Some(count) = self.tokens.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let Some(left_out) = self.token_lines.lock().take(now, source) else { return };
        tracing::warn!(%source, reason, left_out, "token refused");
    }

    /// The number of refused tokens, by reason.
    pub(crate) fn token_refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TOKEN_REASONS.into_iter().zip(self.tokens.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// The number of refused logins, by reason.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        REASONS.into_iter().zip(self.refused.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

impl Window {
    /// Returns the current window for `key`; a new one when there is none.
    fn of<K: Eq + Hash>(table: &HashMap<K, Window>, key: &K, now: Timestamp) -> Window {
        let fresh = Window { ends_at: now.plus_micros(WINDOW_US), tries: 0 };
        let open = table.get(key).copied();
        // A clock that was set back must not lock out a client for longer than a window.
        open.filter(|window| window.ends_at > now && window.ends_at <= fresh.ends_at).unwrap_or(fresh)
    }
}

fn count<K: Eq + Hash>(table: &mut HashMap<K, Window>, key: K, open: Window, now: Timestamp) {
    if table.len() >= WINDOWS_LEN_MAX && !table.contains_key(&key) {
        make_room(table, now);
    }
    table.insert(key, Window { tries: open.tries + 1, ..open });
}

/// Removes the windows that have ended, and if that is not enough, the eighth that ends next.
fn make_room<K: Eq + Hash>(table: &mut HashMap<K, Window>, now: Timestamp) {
    table.retain(|_, window| window.ends_at > now);
    if table.len() < WINDOWS_LEN_MAX {
        return;
    }
    let mut ends: Vec<Timestamp> = table.values().map(|window| window.ends_at).collect();
    let (_, bound, _) = ends.select_nth_unstable(WINDOWS_LEN_MAX / 8);
    let bound = *bound;
    table.retain(|_, window| window.ends_at > bound);
}

const REASONS: [&str; 2] = ["limited", "wrong_credentials"];
const TOKEN_REASONS: [&str; 3] = ["address", "limited", "wrong_credentials"];
/// Characters of an account that are logged.
const ACCOUNT_CHARS_MAX: usize = 64;
/// Failures of one account from one address …
const TRIES_MAX: u32 = 5;
/// … and where the account has [`ACCOUNT_TRIES_MAX`] failures from all addresses …
const TRIES_MAX_UNDER_ATTACK: u32 = 1;
const ACCOUNT_TRIES_MAX: u32 = 50;
/// … and failures of one address at all accounts …
const ADDRESS_TRIES_MAX: u32 = 30;
/// … in five minutes.
const WINDOW_US: i64 = 5 * 60 * 1_000_000;
const WINDOWS_LEN_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_000_000 + seconds * 1_000_000)
    }

    fn key(account: &str, address: u32) -> Key {
        Key::new(account, Bucket::of_address(IpAddr::V4(Ipv4Addr::from_bits(address))))
    }

    #[test]
    fn the_sixth_try_waits_for_the_rest_of_five_minutes() {
        let attempts = Attempts::default();
        for number in 0..5 {
            assert_eq!(attempts.take(key("ada@acme.test", 1), at(number)), Ok(()), "{number}");
        }
        assert_eq!(attempts.take(key("ada@acme.test", 1), at(10)), Err(290));
        assert_eq!(attempts.take(key("ADA@acme.test", 1), at(299)), Err(1), "in any case");
        assert_eq!(attempts.take(key("ada@acme.test", 2), at(10)), Ok(()), "another address");
        assert_eq!(attempts.take(key("eve@acme.test", 1), at(10)), Ok(()), "another account");
        assert_eq!(attempts.take(key("ada@acme.test", 1), at(300)), Ok(()), "five minutes later");
    }

    #[test]
    fn who_knows_the_password_starts_afresh() {
        let attempts = Attempts::default();
        for _ in 0..4 {
            attempts.take(key("ada", 1), at(0)).unwrap();
        }
        attempts.succeed(key("ada", 1));
        for number in 0..5 {
            assert_eq!(attempts.take(key("ada", 1), at(1)), Ok(()), "{number}");
        }
        assert!(attempts.take(key("ada", 1), at(1)).is_err());
    }

    #[test]
    fn an_address_that_tries_many_accounts_is_stopped_for_all_of_them() {
        let attempts = Attempts::default();
        let accounts = (0..300).map(|number| key(&format!("user{number}"), 1));
        let taken = accounts.filter(|key| attempts.take(*key, at(0)).is_ok()).count();
        assert_eq!(taken, ADDRESS_TRIES_MAX as usize);
        assert_eq!(attempts.take(key("ada", 1), at(0)), Err(300));
        assert_eq!(attempts.take(key("ada", 2), at(0)), Ok(()), "another address");
        assert_eq!(attempts.take(key("ada", 1), at(300)), Ok(()), "five minutes later");
    }

    #[test]
    fn an_account_that_many_addresses_try_is_slow_and_never_closed() {
        let attempts = Attempts::default();
        let tries = (0..200_u32).flat_map(|round| [(round, 10 + round % 100)]);
        let taken = tries.filter(|(_, address)| attempts.take(key("ada", *address), at(0)).is_ok()).count();
        assert_eq!(taken, 100, "the second round is refused");
        assert_eq!(attempts.take(key("ada", 5), at(1)), Ok(()), "the first try from elsewhere");
        attempts.succeed(key("ada", 5));
        assert_eq!(attempts.take(key("ada", 5), at(1)), Ok(()));
    }

    #[test]
    fn those_who_know_their_passwords_use_nothing_up() {
        let attempts = Attempts::default();
        for number in 0..200 {
            let key = key(&format!("user{number}"), 1);
            attempts.take(key, at(0)).unwrap();
            attempts.succeed(key);
        }
    }

    #[test]
    fn a_flood_of_accounts_is_bounded_and_locks_nobody_out() {
        let attempts = Attempts::default();
        for _ in 0..5 {
            attempts.take(key("victim", 1), at(100)).unwrap();
        }
        for number in 0..80_000_u32 {
            attempts.take(key("x", 10 + number), at(i64::from(number) / 1000)).unwrap();
        }
        let len = attempts.tables.lock().pairs.len();
        assert!(len <= WINDOWS_LEN_MAX, "{len}");
        assert!(attempts.take(key("victim", 1), at(101)).is_err(), "the latest are remembered longest");
        assert_eq!(attempts.take(key("ada", 2), at(101)), Ok(()));
    }
}
