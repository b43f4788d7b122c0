//! The owner of a room among the nodes of a cluster.

use std::net::SocketAddr;

use sidetone_model::ids::{OrganisationId, RoomId};
use sidetone_sip::flow::Flow;

/// The owner of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomOwner {
    /// This node, under this fence.
    Here(u64),
    /// A lost node: the owner failed without giving up the room.
    Lost,
    /// Another node.
    There {
        /// Its fence.
        fence: u64,
        /// The flow to it.
        way: Flow,
        /// The address of its listener for other nodes.
        address: SocketAddr,
    },
    /// No node.
    Unowned,
}

/// The rooms that need an owner, in the view of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedRooms(pub Vec<(OrganisationId, RoomId)>);
