//! Rendezvous hashing (Thaler and Ravishankar 1998): decides which of several nodes owns a key. When a node joins or
//! leaves, only its own keys move.

use uuid::Uuid;

use crate::ids::NodeId;

/// The owner of a key: the node with the highest hash of itself and the key; `None` without nodes.
pub fn home(nodes: impl Iterator<Item = NodeId>, key: Uuid) -> Option<NodeId> {
    nodes.max_by_key(|node| (mix(mix(SEED, node.0), key), *node))
}

/// Mixes an id into a hash: the finalizer of SplitMix64 (Steele, Lea, Flood 2014) over both halves. It must be the same in
/// all versions that run side by side, which the hasher of the standard library does not promise.
pub fn mix(hash: u64, id: Uuid) -> u64 {
    let (high, low) = id.as_u64_pair();
    [high, low].into_iter().fold(hash, |hash, half| {
        let mut word = (hash ^ half).wrapping_add(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

/// The initial value of the hash of ids.
pub const SEED: u64 = 0x5157_4c49_4d49_5453;
