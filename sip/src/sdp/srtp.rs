//! SRTP of a dialog (RFC 4568): which lines are offered, and which are accepted.
//!
//! Not here: DTLS-SRTP.

use std::fmt;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::sdp::crypto::{Crypto, CryptoKey, CryptoSuite, SrtpTerms};
use crate::sdp::description::{RTP_SAVP, is_secure};
use crate::sdp::{NegotiationError, SessionDescription};

/// Whether a party has SRTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SrtpRule {
    /// Never: lines of a party are ignored, and a section that has nothing but SRTP is refused.
    #[default]
    Off,
    /// When the party has it too: offered beside plain RTP (RFC 8643), and accepted in any form.
    Optional,
    /// Always: plain RTP is neither offered nor accepted.
    Required,
}

impl SrtpRule {
    /// The party's offer with what the rule allows.
    ///
    /// # Errors
    /// SRTP is required, and no audio has it.
    pub fn admit(self, mut offer: SessionDescription) -> Result<SessionDescription, NegotiationError> {
        for media in &mut offer.media {
            match self {
                SrtpRule::Off => media.crypto.clear(),
                SrtpRule::Optional => {}
                SrtpRule::Required if media.crypto.is_empty() => media.port = 0,
                SrtpRule::Required => {}
            }
        }
        if self == SrtpRule::Required && offer.carried_audio().is_none() {
            return Err(NegotiationError::NoSrtp);
        }
        Ok(offer)
    }
}

/// The source of a leg's keys; never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeySeed([u8; 32]);

impl KeySeed {
    /// A source that gives the keys that follow from `seed`, which comes from the system's randomness.
    pub const fn new(seed: [u8; 32]) -> Self {
        KeySeed(seed)
    }

    /// Another source, independent of what this one gives later.
    #[must_use]
    pub fn split(&mut self) -> KeySeed {
        let mut split = KeySeed::default();
        self.fill(&mut split.0);
        split
    }

    /// Fills `out`, and forgets what it was made of.
    fn fill(&mut self, out: &mut [u8]) {
        let mut random = StdRng::from_seed(self.0);
        random.fill(&mut self.0);
        random.fill(out);
    }
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed(..)")
    }
}

/// SRTP of one dialog: the rule, and our keys.
#[derive(Clone, Debug)]
pub(super) struct Srtp {
    rule: SrtpRule,
    seed: KeySeed,
    /// Whether our next offer has a new key.
    renews: bool,
}

impl Srtp {
    /// `None` for a leg without SRTP.
    pub(super) fn new(rule: SrtpRule, seed: KeySeed) -> Option<Srtp> {
        (rule != SrtpRule::Off).then_some(Srtp { rule, seed, renews: false })
    }

    /// Gives our next offer a new key.
    pub(super) fn renew(&mut self) {
        self.renews = true;
    }

    /// Puts our lines into our offer. An exchange before keeps its suite, and our key unless it is to be new.
    pub(super) fn offer(&mut self, offer: &mut SessionDescription, before: Option<Option<&SrtpTerms>>) {
        let renews = std::mem::take(&mut self.renews);
        let lines = match before {
            Some(Some(terms)) if renews => vec![self.line(terms.send.tag, terms.send.suite)],
            Some(terms) => terms.map(|terms| terms.send.clone()).into_iter().collect(),
            None => {
                let lines = (1..).zip(OFFERED).map(|(tag, suite)| self.line(tag, suite));
                lines.collect::<Vec<Crypto>>()
            }
        };
        for media in offer.media.iter_mut().filter(|media| media.is_rtp_audio() && media.port != 0) {
            media.crypto.clone_from(&lines);
            if before.is_none() && self.rule == SrtpRule::Required {
                media.protocol = RTP_SAVP.into();
            }
        }
    }

    /// Puts our line into our answer to the section at `place` of an offer. Our key stays while the party's does.
    ///
    /// # Errors
    /// SRTP is required, or the section has nothing else, and it has no line that we accept.
    pub(super) fn answer(
        &mut self,
        offer: &SessionDescription,
        answer: &mut SessionDescription,
        place: usize,
        before: Option<&SrtpTerms>,
    ) -> Result<(), NegotiationError> {
        let Some((offered, answered)) = offer.media.get(place).zip(answer.media.get_mut(place)) else {
            return Ok(());
        };
        let known = before.and_then(|terms| {
            Some((offered.crypto.iter().find(|line| line.has_key_of(&terms.receive))?, terms))
        });
        let line = match (known, offered.crypto.first()) {
            (Some((theirs, terms)), _) => Crypto { tag: theirs.tag, ..terms.send.clone() },
            (None, Some(theirs)) => self.line(theirs.tag, theirs.suite),
            (None, None) => return self.without(&offered.protocol),
        };
        answered.crypto = vec![line];
        Ok(())
    }

    /// Whether our offer may be answered without SRTP.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn without(&self, protocol: &str) -> Result<(), NegotiationError> {
        if self.rule == SrtpRule::Required || is_secure(protocol) {
            Err(NegotiationError::NoSrtp)
        } else {
            Ok(())
        }
    }

    /// A line with a new key.
    fn line(&mut self, tag: u32, suite: CryptoSuite) -> Crypto {
        let mut key = vec![0; suite.material_bytes()].into_boxed_slice();
        self.seed.fill(&mut key);
        Crypto { tag, suite, key: CryptoKey::new(key), mki_bytes: 0 }
    }
}

/// What we offer: first what every phone with SRTP has. More lines would make an INVITE too long for UDP.
const OFFERED: [CryptoSuite; 2] = [CryptoSuite::AesCm128HmacSha1Tag80, CryptoSuite::AeadAes128Gcm];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_are_not_printed() {
        let mut seed = KeySeed::new([7; 32]);
        let mut srtp = Srtp::new(SrtpRule::Optional, seed.split()).unwrap();
        let mut other = Srtp::new(SrtpRule::Optional, seed.split()).unwrap();
        let lines: Vec<Crypto> = [&mut srtp, &mut other]
            .into_iter()
            .flat_map(|srtp| [1, 2, 3].map(|tag| srtp.line(tag, CryptoSuite::AeadAes256Gcm)))
            .collect();
        for (place, line) in lines.iter().enumerate() {
            assert!(lines[..place].iter().all(|before| before.key != line.key), "{place}");
            assert_eq!(line.key.material().len(), 44);
        }
        let printed = format!("{srtp:?} {:?}", lines.first());
        assert!(printed.contains("KeySeed(..)") && printed.contains("CryptoKey(..)"), "{printed}");
        assert!(!printed.contains("[7") && !printed.contains("key: ["), "{printed}");
    }
}
