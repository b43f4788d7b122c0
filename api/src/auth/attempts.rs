//! How often a password may be tried: so many failures per account and address.
//!
//! Per account and address, so that nobody locks the owner of an account out from elsewhere. What one address
//! may try over all accounts is bounded by its own rate.

use std::collections::HashMap;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use sidetone_model::time::Timestamp;

use crate::auth::rate_limit::{Bucket, seconds_up};

/// The tries of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    table: Mutex<HashMap<Key, Window>>,
}

/// Account and address; the account as a hash, so that its text is neither kept nor bounds the table.
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

impl Key {
    /// The tries of `account` (as it was typed, in any case) from one address.
    pub(super) fn new(account: &str, address: Bucket) -> Self {
        Self { account: Sha256::digest(account.to_lowercase().as_bytes()).into(), address }
    }
}

impl Attempts {
    /// Takes one try; it stays taken unless [`Attempts::succeed`] gives it back. Taken before the password is
    /// looked at: tries sent at the same time are counted as well.
    ///
    /// # Errors
    /// The seconds to wait when there is none left.
    ///
    /// *Bounds*: of more than [`WINDOWS_LEN_MAX`] accounts and addresses those are forgotten that end next.
    pub(crate) fn take(&self, key: Key, now: Timestamp) -> Result<(), u64> {
        let mut table = self.table.lock();
        if table.len() >= WINDOWS_LEN_MAX && !table.contains_key(&key) {
            make_room(&mut table, now);
        }
        let fresh = Window { ends_at: now.plus_micros(WINDOW_US), tries: 0 };
        let window = table.entry(key).or_insert(fresh);
        // A clock that was set back must not lock anybody out for longer than a window.
        if window.ends_at <= now || window.ends_at > fresh.ends_at {
            *window = fresh;
        }
        if window.tries >= TRIES_MAX {
            return Err(seconds_up(window.ends_at.since(now)).max(1));
        }
        window.tries += 1;
        Ok(())
    }

    /// Forgets the tries of who knew the password.
    pub(crate) fn succeed(&self, key: Key) {
        self.table.lock().remove(&key);
    }
}

/// Drops what is over, and when that is too little, the eighth that ends next.
fn make_room(table: &mut HashMap<Key, Window>, now: Timestamp) {
    table.retain(|_, window| window.ends_at > now);
    if table.len() < WINDOWS_LEN_MAX {
        return;
    }
    let mut ends: Vec<Timestamp> = table.values().map(|window| window.ends_at).collect();
    let (_, bound, _) = ends.select_nth_unstable(WINDOWS_LEN_MAX / 8);
    let bound = *bound;
    table.retain(|_, window| window.ends_at > bound);
}

/// Failures that one account may have from one address …
const TRIES_MAX: u32 = 5;
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
    fn a_flood_of_accounts_is_bounded_and_locks_nobody_out() {
        let attempts = Attempts::default();
        for _ in 0..5 {
            attempts.take(key("victim", 1), at(100)).unwrap();
        }
        for number in 0..80_000_u32 {
            attempts.take(key("x", 10 + number), at(i64::from(number) / 1000)).unwrap();
        }
        let len = attempts.table.lock().len();
        assert!(len <= WINDOWS_LEN_MAX, "{len}");
        assert!(attempts.take(key("victim", 1), at(101)).is_err(), "the latest are remembered longest");
        assert_eq!(attempts.take(key("ada", 2), at(101)), Ok(()));
    }
}
