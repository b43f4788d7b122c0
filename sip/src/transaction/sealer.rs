//! Keyed hashes (HMAC, RFC 2104) for To tags and branches: equal for a retransmission, and computable by this element
//! only.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use rand::Rng;
use sha2::Sha256;

use crate::transaction::key::{Seal, WireId};

/// Creates tags and branches that others cannot guess, and that are equal for a retransmission.
pub(super) struct Sealer {
    mac: Hmac<Sha256>,
}

impl Sealer {
    /// With a secret from `rng`.
    pub(super) fn new(rng: &mut impl Rng) -> Self {
        // As long as a block, the longest useful key of an HMAC; half of it already gives the full strength.
        let mut secret = [0; 64];
        if let Some(secret) = secret.get_mut(..32) {
            rng.fill_bytes(secret);
        }
        Self { mac: Hmac::new(&secret.into()) }
    }

    /// The seal of the text that `write` writes; `None` when it finds nothing to seal.
    pub(super) fn seal_with(&self, write: impl FnOnce(&mut MacText) -> Option<()>) -> Option<Seal> {
        let mut mac = MacText(self.mac.clone());
        write(&mut mac)?;
        Some(seal(mac.0))
    }

    pub(super) fn seal_of(&self, bytes: &[u8]) -> Seal {
        let mut mac = self.mac.clone();
        mac.update(bytes);
        seal(mac)
    }
}

/// The input of a seal; nothing is stored.
pub(super) struct MacText(Hmac<Sha256>);

impl fmt::Write for MacText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

fn seal(mac: Hmac<Sha256>) -> Seal {
    let sum = mac.finalize().into_bytes();
    let number = |at: std::ops::Range<usize>| {
        sum.get(at).unwrap_or_default().iter().fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte))
    };
    Seal { id: WireId(number(8..24)), tag: u64::try_from(number(0..8)).unwrap_or_default() }
}

/// Our To tag for a transaction: the same for every retransmission, and unguessable.
pub(super) fn tag_of(seal: u64) -> String {
    format!("{seal:016x}")
}
