//! Finds the transaction of a message from its top Via, before the message is parsed.

use crate::message::{Method, Via};
use crate::transaction::Layer;
use crate::transaction::key::{COOKIE, WireKey};

impl Layer {
    /// Whether this layer created this branch; a response with another branch belongs to nothing here.
    pub fn is_own_branch(&self, branch: &str) -> bool {
        let parts = branch.strip_prefix(COOKIE).and_then(|digits| digits.split_at_checked(RANDOM_DIGITS));
        let Some((random, seal)) = parts else { return false };
        let Ok(random) = u64::from_str_radix(random, 16) else { return false };
        seal == format!("{:016x}", self.seal_of(&random.to_be_bytes()).tag)
    }

    /// The server transaction of a request, also one whose response is stored, as a unique number. `None`
    /// also for branches of RFC 2543, which do not identify a transaction.
    pub fn transaction_of(&self, via: &Via, method: &Method) -> Option<u64> {
        let wire = self.seal(&WireKey::of_via(via, method)?);
        (self.servers_by_wire.contains_key(&wire.id) || self.finished.contains(wire.id)).then_some(wire.tag)
    }
}

/// Hex digits of a branch before its seal.
const RANDOM_DIGITS: usize = 16;
