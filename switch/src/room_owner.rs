//! Who owns a room, among the nodes of a cluster.

use std::net::SocketAddr;

use sidetone_model::ids::{OrganisationId, RoomId};
use sidetone_sip::flow::Flow;

/// Who owns a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomOwner {
    /// This node, under this fence.
    Here(u64),
    /// No node that is there: its owner is gone without leaving it.
    Lost,
    /// Another node.
    There {
        /// Its fence.
        fence: u64,
        /// The way to it.
        way: Flow,
        /// The address of its listener for other nodes.
        address: SocketAddr,
    },
    /// No node.
    Unowned,
}

/// The rooms that this node needs an owner of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedRooms(pub Vec<(OrganisationId, RoomId)>);
