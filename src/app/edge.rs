//! The edge of this node for the others of its cluster: its listener, and what signs its tokens.

use std::net::SocketAddr;

use sidetone_model::ids::NodeId;
use sidetone_sip::edge::Edge;
use sidetone_sip::flow::ListenerId;
use sidetone_sip::transaction::Local;
use sidetone_sip::transport::Sender;

use super::switching::local_towards;
use crate::config::Config;

/// The edge, and the address by which other nodes reach it.
#[derive(Clone, Debug)]
pub(super) struct NodeEdge {
    pub(super) edge: Edge,
    pub(super) listener: ListenerId,
    pub(super) address: SocketAddr,
}

impl NodeEdge {
    /// The edge of a node whose sockets are open; `None` without `[cluster] listen`.
    pub(super) fn of(config: &Config, node: NodeId, sender: &Sender) -> Option<NodeEdge> {
        let settings = config.cluster.as_ref()?.edge.as_ref()?;
        let listener = config.internal_listener()?;
        let (_, address) = sender.udp().listeners().find(|(id, _)| *id == listener)?;
        let addresses = (config.sip.external_address, Some(listener));
        let local = sender.clone();
        let local = Local::new(move |flow| local_towards(&local, addresses, flow));
        let edge = Edge::new(settings.key.as_bytes(), node.0.as_bytes(), listener, local);
        Some(NodeEdge { edge, listener, address })
    }
}
