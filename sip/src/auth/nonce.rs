//! Nonces without memory: each carries its time and a seal, so a challenge costs nothing to have sent.
//!
//! Memory begins with success: a nonce that authenticated someone keeps a window of the counts it was used with,
//! so that no request authenticates twice (RFC 7616 §5.12).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::auth::Algorithm;
use crate::auth::digest::{equal, hex};

/// How long a nonce is good for.
pub const NONCE_LIFE: Duration = Duration::from_secs(60);
/// The most nonces whose counts are remembered; beyond it the oldest ones age before their time.
pub const GUARDED_MAX: usize = 65_536;
/// The length of the sealing secret, in bytes.
pub const SECRET_BYTES: usize = 32;

/// Makes nonces and knows them again.
pub struct Nonces {
    secret: [u8; SECRET_BYTES],
    epoch: Instant,
    minted: u16,
    used: BTreeMap<Stamp, Counts>,
    /// Nonces up to this one count as aged, because their counts may have been forgotten.
    forgotten: Option<Stamp>,
}

/// What makes a nonce unique: when it was made, in milliseconds since the epoch, and a running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    at_ms: u64,
    number: u16,
}

/// The counts that a nonce was used with: the highest, and a bit for each of the 64 up to it.
#[derive(Clone, Copy, Debug)]
struct Counts {
    highest: u32,
    seen: u64,
}

/// Why a nonce is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NonceFault {
    /// Ours, but older than [`NONCE_LIFE`]: the only case of `stale=true` (RFC 7616 §3.3).
    Aged,
    /// Not made by us for this source, realm and algorithm: invented, stolen, or of another node.
    Foreign,
    /// Used with this count before.
    Replayed,
}

impl Nonces {
    /// Nonces sealed with `secret`, which has to be random and of this process alone. `epoch` is any instant not
    /// after the first use.
    pub fn new(secret: [u8; SECRET_BYTES], epoch: Instant) -> Self {
        Nonces { secret, epoch, minted: 0, used: BTreeMap::new(), forgotten: None }
    }

    /// A new nonce for a challenge: 14 hex digits of stamp and 24 of seal. Short, because a challenge goes to
    /// whoever asks, and to whoever is made to look as if he asked.
    ///
    /// Bound to the source's address, but not its port, which a NAT may change between two requests; and to the
    /// algorithm, so that a stronger challenge cannot be answered with the weaker hash.
    pub fn mint(&mut self, now: Instant, source: IpAddr, realm: &str, algorithm: Algorithm) -> String {
        let stamp = Stamp { at_ms: self.milliseconds(now), number: self.minted };
        self.minted = self.minted.wrapping_add(1);
        let seal = self.seal(stamp, source, realm, algorithm);
        format!("{:010x}{:04x}{seal}", stamp.at_ms, stamp.number)
    }

    /// Whether a nonce is ours and fresh. Touches no memory of its use.
    ///
    /// # Errors
    /// [`NonceFault::Foreign`] and [`NonceFault::Aged`], in this order.
    pub fn check(
        &self,
        now: Instant,
        nonce: &str,
        source: IpAddr,
        realm: &str,
        algorithm: Algorithm,
    ) -> Result<(), NonceFault> {
        let (stamp, seal) = split(nonce).ok_or(NonceFault::Foreign)?;
        if !equal(seal, &self.seal(stamp, source, realm, algorithm)) {
            return Err(NonceFault::Foreign);
        }
        let age_ms = self.milliseconds(now).saturating_sub(stamp.at_ms);
        if u128::from(age_ms) > NONCE_LIFE.as_millis() || self.forgotten >= Some(stamp) {
            return Err(NonceFault::Aged);
        }
        Ok(())
    }

    /// Marks a count of a checked nonce as used. Counts may come out of order, as UDP brings them, within 64.
    ///
    /// # Errors
    /// [`NonceFault::Replayed`] when the count was used, or is too far behind to know.
    pub fn spend(&mut self, now: Instant, nonce: &str, count: u32) -> Result<(), NonceFault> {
        let (stamp, _) = split(nonce).ok_or(NonceFault::Foreign)?;
        if let Some(counts) = self.used.get_mut(&stamp) {
            return counts.spend(count);
        }
        if count == 0 {
            return Err(NonceFault::Replayed);
        }
        self.forget(now);
        self.used.insert(stamp, Counts { highest: count, seen: 1 });
        Ok(())
    }

    /// Drops the counts of aged nonces, and of the oldest when there are too many; at most once each.
    fn forget(&mut self, now: Instant) {
        let life_ms = u64::try_from(NONCE_LIFE.as_millis()).unwrap_or(u64::MAX);
        let oldest_ms = self.milliseconds(now).saturating_sub(life_ms);
        while let Some(entry) = self.used.first_entry() {
            let stamp = *entry.key();
            if stamp.at_ms >= oldest_ms && self.used.len() < GUARDED_MAX {
                break;
            }
            if stamp.at_ms >= oldest_ms {
                self.forgotten = self.forgotten.max(Some(stamp));
            }
            self.used.pop_first();
        }
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        let ms = now.saturating_duration_since(self.epoch).as_millis();
        u64::try_from(ms).unwrap_or(u64::MAX) & TIME_MS_MASK
    }

    /// The head of an HMAC-SHA256 over everything that the nonce is bound to.
    fn seal(&self, stamp: Stamp, source: IpAddr, realm: &str, algorithm: Algorithm) -> String {
        // The key has the length of a block or less, which HMAC always takes.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else {
            return String::new();
        };
        mac.update(&stamp.at_ms.to_be_bytes());
        mac.update(&stamp.number.to_be_bytes());
        mac.update(algorithm.as_str().as_bytes());
        match source.to_canonical() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac.update(&[0]);
        mac.update(realm.as_bytes());
        let full = mac.finalize().into_bytes();
        hex(&full.get(..SEAL_DIGITS / 2).unwrap_or_default())
    }
}

impl Counts {
    fn spend(&mut self, count: u32) -> Result<(), NonceFault> {
        if count > self.highest {
            let ahead = count - self.highest;
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = count;
            return Ok(());
        }
        let bit = 1_u64.checked_shl(self.highest - count).unwrap_or(0);
        if bit == 0 || count == 0 || self.seen & bit != 0 {
            return Err(NonceFault::Replayed);
        }
        self.seen |= bit;
        Ok(())
    }
}

/// The stamp and the seal of a nonce text of the right form.
fn split(nonce: &str) -> Option<(Stamp, &str)> {
    let digits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if nonce.len() != STAMP_DIGITS + SEAL_DIGITS || !nonce.bytes().all(digits) {
        return None;
    }
    let at_ms = u64::from_str_radix(nonce.get(..TIME_DIGITS)?, 16).ok()?;
    let number = u16::from_str_radix(nonce.get(TIME_DIGITS..STAMP_DIGITS)?, 16).ok()?;
    Some((Stamp { at_ms, number }, nonce.get(STAMP_DIGITS..)?))
}

/// Hex digits of the time: 34 years of milliseconds.
const TIME_DIGITS: usize = 10;
/// Milliseconds that they hold.
const TIME_MS_MASK: u64 = 0xff_ffff_ffff;
/// Hex digits of the stamp: the time and 4 of the number, which tells nonces of one millisecond apart.
const STAMP_DIGITS: usize = TIME_DIGITS + 4;
/// Hex digits of the seal: 96 bits, to be guessed within [`NONCE_LIFE`].
const SEAL_DIGITS: usize = 24;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
mod tests {
    use super::*;

    const REALM: &str = "acme.test";

    fn source() -> IpAddr {
        "192.0.2.9".parse().unwrap()
    }

    #[test]
    fn a_nonce_is_good_for_what_it_was_made_for() {
        let start = Instant::now();
        let mut nonces = Nonces::new([7; SECRET_BYTES], start);
        let nonce = nonces.mint(start, source(), REALM, Algorithm::Sha256);
        assert_eq!(nonce.len(), 38);
        let mut other_node = Nonces::new([8; SECRET_BYTES], start);
        let foreign = other_node.mint(start, source(), REALM, Algorithm::Sha256);
        let altered = format!("f{}", &nonce[1..]);
        let at = |seconds| start + Duration::from_secs(seconds);
        let there: IpAddr = "192.0.2.10".parse().unwrap();
        let mapped: IpAddr = "::ffff:192.0.2.9".parse().unwrap();
        use Algorithm::{Md5, Sha256};
        use NonceFault::{Aged, Foreign};
        let table = [
            ("fresh", &nonce, at(60), source(), REALM, Sha256, Ok(())),
            ("the same source, mapped", &nonce, at(0), mapped, REALM, Sha256, Ok(())),
            ("aged", &nonce, at(61), source(), REALM, Sha256, Err(Aged)),
            ("another source", &nonce, at(0), there, REALM, Sha256, Err(Foreign)),
            ("another realm", &nonce, at(0), source(), "other.test", Sha256, Err(Foreign)),
            ("a weaker hash", &nonce, at(0), source(), REALM, Md5, Err(Foreign)),
            ("another node", &foreign, at(0), source(), REALM, Sha256, Err(Foreign)),
            ("altered, and old", &altered, at(99), source(), REALM, Sha256, Err(Foreign)),
        ];
        for (name, nonce, now, source, realm, algorithm, expected) in table {
            assert_eq!(nonces.check(now, nonce, source, realm, algorithm), expected, "{name}");
        }
        for rubbish in ["", "00", "é".repeat(19).as_str(), &"0".repeat(38), &nonce.to_uppercase()] {
            assert_eq!(nonces.check(start, rubbish, source(), REALM, Sha256), Err(Foreign), "{rubbish}");
        }
    }

    #[test]
    fn two_phones_behind_one_nat_get_two_nonces() {
        let start = Instant::now();
        let mut nonces = Nonces::new([7; SECRET_BYTES], start);
        let mut mint = || nonces.mint(start, source(), REALM, Algorithm::Md5);
        assert_ne!(mint(), mint());
    }

    #[test]
    fn each_count_is_good_once_and_may_be_overtaken() {
        let start = Instant::now();
        let mut nonces = Nonces::new([7; SECRET_BYTES], start);
        let nonce = nonces.mint(start, source(), REALM, Algorithm::Md5);
        let table = [
            (1, true),
            (1, false),
            (3, true),
            (2, true),
            (2, false),
            (80, true),
            (3, false),
            (17, true),
            (16, false),
            (0, false),
            (u32::MAX, true),
            (80, false),
        ];
        for (count, good) in table {
            assert_eq!(nonces.spend(start, &nonce, count).is_ok(), good, "{count}");
        }
    }

    #[test]
    fn memory_is_bounded_and_forgetting_never_lets_a_replay_in() {
        let start = Instant::now();
        let mut nonces = Nonces::new([7; SECRET_BYTES], start);
        let check =
            |nonces: &Nonces, nonce: &str| nonces.check(start, nonce, source(), REALM, Algorithm::Md5);
        let first = nonces.mint(start, source(), REALM, Algorithm::Md5);
        nonces.spend(start, &first, 1).unwrap();
        let later = start + Duration::from_millis(1);
        for _ in 0..GUARDED_MAX {
            let nonce = nonces.mint(later, source(), REALM, Algorithm::Md5);
            nonces.spend(later, &nonce, 1).unwrap();
        }
        assert_eq!(nonces.used.len(), GUARDED_MAX);
        assert_eq!(
            check(&nonces, &first),
            Err(NonceFault::Aged),
            "its counts are gone, so it is asked for anew"
        );
        let last = nonces.mint(start + NONCE_LIFE, source(), REALM, Algorithm::Md5);
        assert_eq!(check(&nonces, &last), Ok(()));
        nonces.spend(start + NONCE_LIFE * 2, &last, 1).unwrap();
        assert_eq!(nonces.used.len(), 1, "aged nonces need no memory");
    }
}
