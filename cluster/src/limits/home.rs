//! The home of a limit: the member with the highest hash of its own id and the limit's key.

use sidetone_model::ids::NodeId;
use sidetone_model::rendezvous::{SEED, home, mix};
use uuid::Uuid;

use crate::membership::RunId;

/// One member that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its run: a restarted node has lost its counts.
    pub run: RunId,
}

/// The members as one node sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Members that are up, including this node, sorted.
    up: Vec<Member>,
    /// Nodes that are down, but may be cut off with live calls; sorted.
    absent: Vec<NodeId>,
    /// The number of nodes that are up, down or cut off; at least one.
    known: u32,
    hash: u64,
}

impl Members {
    /// From the members that are up, and the number of all members that have not left in order.
    pub fn new(mut up: Vec<Member>, known: usize) -> Self {
        up.sort_unstable();
        up.dedup();
        let known = u32::try_from(known.max(up.len()).max(1)).unwrap_or(u32::MAX);
        let hash = up.iter().fold(SEED, |hash, member| mix(mix(hash, member.node.0), member.run.0));
        Members { up, absent: Vec::new(), known, hash }
    }

    /// Adds the nodes that are down, but may be cut off with live calls.
    #[must_use]
    pub fn with_absent(mut self, absent: impl IntoIterator<Item = NodeId>) -> Self {
        let is_up = |node: &NodeId| self.up.iter().any(|member| member.node == *node);
        self.absent = absent.into_iter().filter(|node| !is_up(node)).collect();
        self.absent.sort_unstable();
        self.absent.dedup();
        self
    }

    /// The members that are up.
    pub fn up(&self) -> &[Member] {
        &self.up
    }

    /// The nodes that are down, but may be cut off with live calls.
    pub fn absent(&self) -> &[NodeId] {
        &self.absent
    }

    /// A hash of the members that are up; equal at two nodes that see the same ones.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The part of a limit that one node may use on its own. The shares of all nodes add up to the limit, plus at most
    /// one for each node but one.
    pub fn share(&self, limit: u32) -> u32 {
        limit.div_ceil(self.known.max(1))
    }
}

/// The home of a key; `None` without members.
pub fn home_of(members: &Members, key: Uuid) -> Option<NodeId> {
    home(members.up.iter().map(|member| member.node), key)
}

/// The home of a key when `node` is gone; `None` when no other member is up.
pub fn heir_of(members: &Members, key: Uuid, node: NodeId) -> Option<NodeId> {
    home(members.up.iter().map(|member| member.node).filter(|other| *other != node), key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: impl IntoIterator<Item = u128>) -> Members {
        let up = ids
            .into_iter()
            .map(|id| Member { node: NodeId(Uuid::from_u128(id)), run: RunId(Uuid::from_u128(id)) });
        Members::new(up.collect(), 0)
    }

    fn homes(members: &Members) -> Vec<Option<NodeId>> {
        (0..3_000).map(|key| home_of(members, Uuid::from_u128(1 << 64 | key))).collect()
    }

    #[test]
    fn keys_are_spread_and_only_those_of_a_lost_node_move() {
        let all = members(1..=3);
        let before = homes(&all);
        for member in all.up() {
            let own = before.iter().filter(|home| **home == Some(member.node)).count();
            assert!((850..1_150).contains(&own), "{own} of 3000");
        }
        let after = homes(&members([1, 3]));
        let lost = NodeId(Uuid::from_u128(2));
        for (key, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!(*before == Some(lost) || before == after);
            assert!(after.is_some_and(|after| after != lost));
            let heir = heir_of(&all, Uuid::from_u128(1 << 64 | key as u128), lost);
            assert_eq!(heir, *after, "the heir is the home that follows");
        }
        assert_eq!(home_of(&members([]), Uuid::nil()), None);
    }

    #[test]
    fn the_order_of_members_is_of_no_consequence_and_a_new_run_is() {
        assert_eq!(members([1, 2, 3]), members([3, 1, 2]));
        let mut again: Vec<Member> = members([1, 2, 3]).up().to_vec();
        again[1].run = RunId(Uuid::from_u128(9));
        let again = Members::new(again, 0);
        assert_ne!(again.hash(), members([1, 2, 3]).hash());
        assert_eq!(homes(&again), homes(&members([1, 2, 3])));
    }

    #[test]
    fn shares_add_up_to_the_limit() {
        let three = members([1, 2, 3]);
        assert_eq!([0, 1, 3, 10].map(|limit| three.share(limit)), [0, 1, 1, 4]);
        // One of the three members is seen; the others are cut off.
        assert_eq!(Members::new(three.up()[..1].to_vec(), 3).share(30), 10);
    }
}
