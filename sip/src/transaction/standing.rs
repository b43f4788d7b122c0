//! Finds the transaction of a message from its top Via, before the message is parsed.

use crate::message::{Hop, Method};
use crate::transaction::Layer;
use crate::transaction::key::{self, COOKIE};

impl Layer {
    /// Whether this layer created this branch; a response with another branch is stray.
    pub fn is_own_branch(&self, branch: &str) -> bool {
        let parts = branch.strip_prefix(COOKIE).and_then(|digits| digits.split_at_checked(RANDOM_DIGITS));
        let Some((random, seal)) = parts else { return false };
        let Ok(random) = u64::from_str_radix(random, 16) else { return false };
        // Written as we write it: without a sign, in lower case.
        seal.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && seal.len() == RANDOM_DIGITS
            && u64::from_str_radix(seal, 16) == Ok(self.sealer.seal_of(&random.to_be_bytes()).tag)
    }

    /// The server transaction of a request, also one whose response is stored, as a unique number. `None`
    /// also for branches of RFC 2543, which do not identify a transaction.
    pub(crate) fn transaction_of(&self, hop: &Hop<'_>, method: &Method) -> Option<u64> {
        let wire = self.sealer.seal_with(|mac| key::write_hop(mac, hop, method))?;
        (self.servers_by_wire.contains_key(&wire.id) || self.finished.contains(wire.id)).then_some(wire.tag)
    }
}

/// Hex digits of a branch before its seal.
const RANDOM_DIGITS: usize = 16;
