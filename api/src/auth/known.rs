//! Tokens that authenticated recently: their lookups do not count against their address.
//!
//! Lookups of unknown tokens are limited by the rate of their address, so that guessing costs the database
//! little. A caller that has authenticated before is not affected by a client that guesses from the same
//! address.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use sidetone_model::access::Who;
use sidetone_model::time::Timestamp;

/// The tokens, each with the address that it was used from.
#[derive(Debug, Default)]
pub(crate) struct KnownTokens {
    table: Mutex<HashMap<Token, Known>>,
}

/// A hash of a token and an address: the token itself is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Token([u8; 32]);

/// The owner of the token at its last authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) who: Who,
    pub(super) rate_per_minute: u32,
    seen_at: Timestamp,
}

impl Token {
    /// The token `text` used from `address`.
    pub(super) fn new(text: &str, address: IpAddr) -> Self {
        let mut digest = Sha256::new();
        digest.update(address.to_canonical().to_string().as_bytes());
        digest.update([0]);
        digest.update(text.as_bytes());
        Self(digest.finalize().into())
    }
}

impl KnownTokens {
    /// Returns the owner of the token at its last authentication.
    pub(super) fn find(&self, token: Token) -> Option<Known> {
        self.table.lock().get(&token).copied()
    }

    /// Records that the token authenticated.
    ///
    /// *Bounds*: beyond [`TOKENS_LEN_MAX`] the half that was not used for the longest time is forgotten.
    pub(super) fn note(&self, token: Token, who: Who, rate_per_minute: u32, now: Timestamp) {
        let mut table = self.table.lock();
        if table.len() >= TOKENS_LEN_MAX && !table.contains_key(&token) {
            let mut seen: Vec<Timestamp> = table.values().map(|known| known.seen_at).collect();
            let (_, median, _) = seen.select_nth_unstable(TOKENS_LEN_MAX / 2);
            let median = *median;
            table.retain(|_, known| known.seen_at > median);
        }
        table.insert(token, Known { who, rate_per_minute, seen_at: now });
    }

    /// Records that the token no longer authenticates.
    pub(super) fn forget(&self, token: Token) {
        self.table.lock().remove(&token);
    }
}

const TOKENS_LEN_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use sidetone_model::ids::UserId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_token_is_known_from_its_address_until_it_is_forgotten() {
        let (tokens, who) = (KnownTokens::default(), Who::User(UserId(Uuid::nil())));
        let token = |text, address: &str| Token::new(text, address.parse().unwrap());
        tokens.note(token("a", "192.0.2.1"), who, 7, Timestamp::from_micros(1));
        assert_eq!(tokens.find(token("a", "::ffff:192.0.2.1")).map(|known| known.rate_per_minute), Some(7));
        assert_eq!(tokens.find(token("a", "192.0.2.2")), None);
        assert_eq!(tokens.find(token("b", "192.0.2.1")), None);
        tokens.forget(token("a", "192.0.2.1"));
        assert_eq!(tokens.find(token("a", "192.0.2.1")), None);
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_newest() {
        let (tokens, who) = (KnownTokens::default(), Who::User(UserId(Uuid::nil())));
        let token = |number: usize| Token::new(&number.to_string(), "192.0.2.1".parse().unwrap());
        for number in 0..=TOKENS_LEN_MAX {
            let at = Timestamp::from_micros(i64::try_from(number).unwrap());
            tokens.note(token(number), who, 1, at);
        }
        assert!(tokens.table.lock().len() <= TOKENS_LEN_MAX);
        assert!(tokens.find(token(0)).is_none() && tokens.find(token(TOKENS_LEN_MAX)).is_some());
    }
}
