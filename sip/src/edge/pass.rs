//! Passes: assertions of one node to another about a request, signed with the key of the cluster.

use subtle::ConstantTimeEq;

use crate::edge::token::Signer;

/// Signs and checks passes.
#[derive(Clone)]
pub struct NodePass(Signer);

impl NodePass {
    /// With the key of the cluster.
    pub fn new(key: &[u8]) -> Self {
        NodePass(Signer::new(key, b"of all: passes"))
    }

    /// The pass of these parts.
    pub fn sign(&self, parts: &[&[u8]]) -> String {
        self.0.digest(parts)
    }

    /// Whether a text is the pass of these parts.
    pub fn is_valid(&self, parts: &[&[u8]], pass: &str) -> bool {
        self.sign(parts).as_bytes().ct_eq(pass.as_bytes()).into()
    }
}

impl std::fmt::Debug for NodePass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodePass")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_for_its_parts_and_its_key() {
        let pass = NodePass::new(b"one key");
        let text = pass.sign(&[b"a", b"bc"]);
        assert!(pass.is_valid(&[b"a", b"bc"], &text));
        for parts in [[&b"ab"[..], b"c"], [b"a", b"bd"], [b"", b"abc"]] {
            assert!(!pass.is_valid(&parts, &text), "{parts:?}");
        }
        assert!(!NodePass::new(b"another").is_valid(&[b"a", b"bc"], &text));
        assert!(!pass.is_valid(&[b"a", b"bc"], "") && !pass.is_valid(&[b"a", b"bc"], &text[1..]));
    }
}
