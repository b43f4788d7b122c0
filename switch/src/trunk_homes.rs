//! The node of a cluster that registers with a trunk.
//!
//! A carrier calls every registered contact of an account, or only the last one (RFC 3261 §16.6), so only one node
//! registers: the home of the trunk.

use sidetone_model::ids::{NodeId, TrunkId};
use sidetone_model::rendezvous::home;

/// The nodes that may register with trunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrunkHomes {
    /// This node is the only one.
    #[default]
    Alone,
    /// The nodes of the cluster are not known yet.
    Unknown,
    /// The nodes of the cluster that are up.
    Members {
        /// This node.
        node: NodeId,
        /// All of them, including this node unless it drains.
        up: Vec<NodeId>,
    },
}

impl TrunkHomes {
    /// Whether this node registers with a trunk.
    pub(super) fn is_ours(&self, trunk: TrunkId) -> bool {
        match self {
            TrunkHomes::Alone => true,
            TrunkHomes::Unknown => false,
            TrunkHomes::Members { node, up } => home(up.iter().copied(), trunk.0) == Some(*node),
        }
    }
}
