//! Master keys, which are never printed.

use std::fmt;

use super::Suite;

/// A master key with its salt, for packets of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    suite: Suite,
    /// The key and then the salt; the rest is zero.
    material: [u8; MATERIAL_BYTES_MAX],
    mki_bytes: u8,
}

impl MasterKey {
    /// A key from the key and the salt in sequence, as `inline:` of SDP has them (RFC 4568 §6.1); `None` when the
    /// length is not the suite's.
    pub fn new(suite: Suite, material: &[u8]) -> Option<MasterKey> {
        if material.len() != suite.key_bytes() + suite.salt_bytes() {
            return None;
        }
        let mut key = MasterKey { suite, material: [0; MATERIAL_BYTES_MAX], mki_bytes: 0 };
        key.material.get_mut(..material.len())?.copy_from_slice(material);
        Some(key)
    }

    /// The same key, whose packets carry a master key identifier of this length. There is only one key, so the
    /// identifier is skipped.
    #[must_use]
    pub fn with_mki_bytes(self, mki_bytes: u8) -> MasterKey {
        MasterKey { mki_bytes, ..self }
    }

    /// The suite in which it is used.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    pub(super) fn mki_bytes(&self) -> usize {
        self.mki_bytes.into()
    }

    pub(super) fn key(&self) -> &[u8] {
        self.material.get(..self.suite.key_bytes()).unwrap_or_default()
    }

    pub(super) fn salt(&self) -> &[u8] {
        let from = self.suite.key_bytes();
        self.material.get(from..from + self.suite.salt_bytes()).unwrap_or_default()
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.suite.as_str())
    }
}

/// The keys of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrtpKeys {
    /// The party's key, for packets from it.
    pub receive: MasterKey,
    /// Our key, for packets to the party.
    pub send: MasterKey,
}

/// A key of 256 bits and a salt of 112.
const MATERIAL_BYTES_MAX: usize = 46;
