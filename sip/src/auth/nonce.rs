//! Nonces without stored state: each contains its time and a seal, so sending a challenge needs no memory.
//!
//! A nonce follows from its time slot, the source and the request (Call-ID and CSeq): a retransmission is
//! challenged with the same bytes, so the answer to either challenge is valid for both.
//!
//! State is stored only after success: for a nonce that authenticated a request, the counts used with it are
//! stored, so that no request authenticates twice (RFC 7616 §5.12).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::auth::Algorithm;
use crate::auth::digest::{equal, hex_digits};

/// The minimum life of a nonce; the maximum is [`SLOT`] longer.
pub const NONCE_LIFE: Duration = Duration::from_secs(60);
/// Length of the time slots of nonces: within one, the same request gets the same nonce. The timers of a
/// transaction over UDP end after 32 seconds (RFC 3261 §17.1.2.2).
pub const SLOT: Duration = Duration::from_secs(32);
/// The largest number of nonces with stored counts; then the oldest ones expire early.
pub const GUARDED_MAX: usize = 524_288;
/// The length of the sealing secret, in bytes.
pub const SECRET_BYTES: usize = 32;

/// Creates and verifies nonces.
pub struct Nonces {
    /// The MAC, initialised with the secret.
    mac: Option<Hmac<Sha256>>,
    guarded_max: usize,
    epoch: Instant,
    used: BTreeMap<Mark, Counts>,
    /// Nonces up to this one are treated as aged, because their counts may have been removed.
    forgotten: Option<Mark>,
}

/// When a nonce was created, in slots since the epoch, and a number derived from its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    slot: u32,
    number: u32,
}

/// A nonce as a key: its stamp and the start of its seal, which distinguishes equal numbers of two sources.
type Mark = (Stamp, u64);

/// The counts used with a nonce: the highest, and one bit for each of the 64 up to it.
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
    /// Not created by us for this source, realm and algorithm: invented, stolen, or from another node.
    Foreign,
    /// The count was used before.
    Replayed,
}

impl Nonces {
    /// Nonces sealed with `secret`, which must be random and known to this process only. `epoch` is any time
    /// not after the first use.
    pub fn new(secret: [u8; SECRET_BYTES], epoch: Instant) -> Self {
        // HMAC accepts a key of a block's length or less.
        let mac = Hmac::new_from_slice(&secret).ok();
        Nonces { mac, guarded_max: GUARDED_MAX, epoch, used: BTreeMap::new(), forgotten: None }
    }

    /// The nonce for a challenge of `request`, a text that is unique among the requests of the source: 14 hex
    /// digits of stamp and 24 of seal. It is short because a challenge is sent to any source address, also to
    /// a forged one.
    ///
    /// It is bound to the source's address, but not to its port, which a NAT may change between two requests;
    /// and to the algorithm, so that a stronger challenge cannot be answered with the weaker hash.
    pub fn mint(
        &self,
        now: Instant,
        request: &str,
        source: IpAddr,
        realm: &str,
        algorithm: Algorithm,
    ) -> String {
        let slot = self.slot(now);
        let number = self.hmac(|mac| {
            mac.update(b"number");
            mac.update(&slot.to_be_bytes());
            update_with(mac, source);
            mac.update(request.as_bytes());
        });
        let stamp = Stamp { slot, number: number.first_chunk().map_or(0, |head| u32::from_be_bytes(*head)) };
        let seal = self.seal(stamp, source, realm, algorithm);
        let mut nonce = String::with_capacity(STAMP_DIGITS + SEAL_DIGITS);
        // Writing to a String cannot fail.
        let _ = write!(nonce, "{:06x}{:08x}{}", stamp.slot, stamp.number, seal.as_str());
        nonce
    }

    /// Whether a nonce is ours and fresh; does not look at its stored counts.
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
        if !equal(seal, self.seal(stamp, source, realm, algorithm).as_str()) {
            return Err(NonceFault::Foreign);
        }
        let is_forgotten =
            self.forgotten.is_some_and(|forgotten| mark(stamp, seal).is_none_or(|it| it <= forgotten));
        if self.has_aged(now, stamp) || is_forgotten {
            return Err(NonceFault::Aged);
        }
        Ok(())
    }

    /// Marks a count of a verified nonce as used. Counts may arrive out of order, as over UDP, within 64.
    ///
    /// # Errors
    /// [`NonceFault::Replayed`] when the count was used, or is too old to tell.
    pub fn spend(&mut self, now: Instant, nonce: &str, count: u32) -> Result<(), NonceFault> {
        let mark = split(nonce).and_then(|(stamp, seal)| mark(stamp, seal)).ok_or(NonceFault::Foreign)?;
        if let Some(counts) = self.used.get_mut(&mark) {
            return counts.spend(count);
        }
        if count == 0 {
            return Err(NonceFault::Replayed);
        }
        self.forget(now);
        self.used.insert(mark, Counts { highest: count, seen: 1 });
        Ok(())
    }

    /// Removes the counts of aged nonces, and those of the oldest nonces when there are too many.
    fn forget(&mut self, now: Instant) {
        while let Some((mark, _)) = self.used.first_key_value() {
            let (mark, has_aged) = (*mark, self.has_aged(now, mark.0));
            if !has_aged && self.used.len() < self.guarded_max {
                break;
            }
            if !has_aged {
                self.forgotten = self.forgotten.max(Some(mark));
            }
            self.used.pop_first();
        }
    }

    /// Measured from the start of its slot, so that the last nonce of a slot also lives for [`NONCE_LIFE`].
    fn has_aged(&self, now: Instant, stamp: Stamp) -> bool {
        let made = SLOT.saturating_mul(stamp.slot);
        now.saturating_duration_since(self.epoch).saturating_sub(made) > SLOT + NONCE_LIFE
    }

    fn slot(&self, now: Instant) -> u32 {
        let slots = now.saturating_duration_since(self.epoch).as_secs() / SLOT.as_secs();
        u32::try_from(slots).unwrap_or(u32::MAX) & SLOT_MASK
    }

    fn hmac(&self, feed: impl FnOnce(&mut Hmac<Sha256>)) -> [u8; 32] {
        let Some(mut mac) = self.mac.clone() else { return [0; 32] };
        feed(&mut mac);
        mac.finalize().into_bytes().into()
    }

    /// The seal as it is written.
    fn seal(&self, stamp: Stamp, source: IpAddr, realm: &str, algorithm: Algorithm) -> Seal {
        let full = self.hmac(|mac| {
            mac.update(&stamp.slot.to_be_bytes());
            mac.update(&stamp.number.to_be_bytes());
            mac.update(algorithm.as_str().as_bytes());
            update_with(mac, source);
            mac.update(&[0]);
            mac.update(realm.as_bytes());
        });
        Seal::of(&full)
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

/// The stamp and the seal of a nonce with the right form.
fn split(nonce: &str) -> Option<(Stamp, &str)> {
    let digits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if nonce.len() != STAMP_DIGITS + SEAL_DIGITS || !nonce.bytes().all(digits) {
        return None;
    }
    let slot = u32::from_str_radix(nonce.get(..SLOT_DIGITS)?, 16).ok()?;
    let number = u32::from_str_radix(nonce.get(SLOT_DIGITS..STAMP_DIGITS)?, 16).ok()?;
    Some((Stamp { slot, number }, nonce.get(STAMP_DIGITS..)?))
}

fn mark(stamp: Stamp, seal: &str) -> Option<Mark> {
    Some((stamp, u64::from_str_radix(seal.get(..16)?, 16).ok()?))
}

/// The first digits of a keyed hash.
struct Seal([u8; SEAL_DIGITS]);

impl Seal {
    fn of(full: &[u8]) -> Self {
        let mut digits = [b'0'; SEAL_DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(full) {
            pair.copy_from_slice(&hex_digits(*byte));
        }
        Seal(digits)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

fn update_with(mac: &mut Hmac<Sha256>, source: IpAddr) {
    match source.to_canonical() {
        IpAddr::V4(ip) => mac.update(&ip.octets()),
        IpAddr::V6(ip) => mac.update(&ip.octets()),
    }
}

/// Hex digits of the slot: 17 years.
const SLOT_DIGITS: usize = 6;
/// Number of slots that they can express.
const SLOT_MASK: u32 = 0xff_ffff;
/// Hex digits of the stamp: the slot and 8 digits of the number, which distinguishes the requests of one
/// slot.
const STAMP_DIGITS: usize = SLOT_DIGITS + 8;
/// Hex digits of the seal: 96 bits that would have to be guessed within [`NONCE_LIFE`].
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
        let nonces = Nonces::new([7; SECRET_BYTES], start);
        let nonce = nonces.mint(start, "1", source(), REALM, Algorithm::Sha256);
        assert_eq!(nonce.len(), 38);
        let other_node = Nonces::new([8; SECRET_BYTES], start);
        let foreign = other_node.mint(start, "1", source(), REALM, Algorithm::Sha256);
        let altered = format!("f{}", &nonce[1..]);
        let at = |seconds| start + Duration::from_secs(seconds);
        let there: IpAddr = "192.0.2.10".parse().unwrap();
        let mapped: IpAddr = "::ffff:192.0.2.9".parse().unwrap();
        use Algorithm::{Md5, Sha256};
        use NonceFault::{Aged, Foreign};
        let table = [
            ("fresh", &nonce, at(92), source(), REALM, Sha256, Ok(())),
            ("the same source, mapped", &nonce, at(0), mapped, REALM, Sha256, Ok(())),
            ("aged", &nonce, at(93), source(), REALM, Sha256, Err(Aged)),
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
    fn a_retransmission_gets_the_same_nonce_and_another_request_another() {
        let start = Instant::now();
        let nonces = Nonces::new([7; SECRET_BYTES], start);
        let mint = |seconds, request: &str, source: IpAddr| {
            nonces.mint(start + Duration::from_secs(seconds), request, source, REALM, Algorithm::Md5)
        };
        let first = mint(0, "call 1", source());
        assert_eq!(mint(31, "call 1", source()), first);
        // Two phones behind one NAT, the next request of one, and the same text from another source.
        assert_ne!(mint(0, "call 2", source()), first);
        assert_ne!(mint(0, "call 1", "192.0.2.10".parse().unwrap()), first);
        assert_ne!(mint(32, "call 1", source()), first);
        // The last nonce of a slot lives as long as the others.
        let last = mint(31, "call 3", source());
        let check =
            |at| nonces.check(start + Duration::from_secs(at), &last, source(), REALM, Algorithm::Md5);
        assert_eq!(check(31 + NONCE_LIFE.as_secs()), Ok(()));
    }

    #[test]
    fn each_count_is_good_once_and_may_be_overtaken() {
        let start = Instant::now();
        let mut nonces = Nonces::new([7; SECRET_BYTES], start);
        let nonce = nonces.mint(start, "1", source(), REALM, Algorithm::Md5);
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
        let mut nonces = Nonces { guarded_max: 4_096, ..Nonces::new([7; SECRET_BYTES], start) };
        let check =
            |nonces: &Nonces, nonce: &str| nonces.check(start, nonce, source(), REALM, Algorithm::Md5);
        let first = nonces.mint(start, "1", source(), REALM, Algorithm::Md5);
        nonces.spend(start, &first, 1).unwrap();
        let later = start + SLOT;
        for number in 0..nonces.guarded_max {
            let nonce = nonces.mint(later, &number.to_string(), source(), REALM, Algorithm::Md5);
            nonces.spend(later, &nonce, 1).unwrap();
        }
        assert_eq!(nonces.used.len(), nonces.guarded_max);
        assert_eq!(
            check(&nonces, &first),
            Err(NonceFault::Aged),
            "its counts are gone, so it is asked for anew"
        );
        let last = nonces.mint(start + NONCE_LIFE, "last", source(), REALM, Algorithm::Md5);
        assert_eq!(check(&nonces, &last), Ok(()));
        nonces.spend(start + NONCE_LIFE * 3, &last, 1).unwrap();
        assert_eq!(nonces.used.len(), 1, "aged nonces need no memory");
    }
}
