//! The edge of this node towards the other nodes of its cluster: its listener, and the signing of its tokens.

use std::net::SocketAddr;

use sidetone_model::ids::NodeId;
use sidetone_sip::edge::Edge;
use sidetone_sip::flow::ListenerId;
use sidetone_sip::transaction::Local;
use sidetone_sip::transport::{NodeLinkSender, NodeLinkTask, Sender, Sockets};

use super::engine::StartError;
use super::switching::local_towards;
use crate::config::Config;
use crate::tls::{NodeNames, node_tls};

/// The edge, and the address at which other nodes reach it.
pub(super) struct NodeEdge {
    pub(super) edge: Edge,
    pub(super) listener: ListenerId,
    pub(super) address: SocketAddr,
    /// The connections with the other nodes; `None` if their SIP is sent over UDP.
    pub(super) links: Option<NodeLinks>,
}

/// TLS with the other nodes: the task of the connections, which is not started yet, and the names of the nodes.
pub(super) struct NodeLinks {
    pub(super) task: NodeLinkTask,
    pub(super) sender: NodeLinkSender,
    pub(super) names: NodeNames,
}

impl NodeLinks {
    /// Replaces the UDP listener for the other nodes; `None` without TLS files.
    pub(super) async fn open(config: &Config, sip: &mut Sockets) -> Result<Option<NodeLinks>, StartError> {
        let edge = config.cluster.as_ref().and_then(|cluster| cluster.edge.as_ref());
        let files = edge.and_then(|edge| Some((edge.listen, edge.tls.as_ref()?)));
        let Some(((address, files), listener)) = files.zip(config.internal_listener()) else {
            return Ok(None);
        };
        let names = NodeNames::default();
        let task = sip.link_nodes(listener, address, node_tls(files, names.clone())?).await?;
        let sender = sip.sender().links().cloned();
        Ok(sender.map(|sender| NodeLinks { task, sender, names }))
    }
}

impl NodeEdge {
    /// The edge of a node whose sockets are open; `None` without `[cluster] listen`.
    pub(super) fn of(
        config: &Config,
        node: NodeId,
        sender: &Sender,
        links: Option<NodeLinks>,
    ) -> Option<NodeEdge> {
        let settings = config.cluster.as_ref()?.edge.as_ref()?;
        let listener = config.internal_listener()?;
        let (_, address) = sender.udp().listeners().find(|(id, _)| *id == listener)?;
        let addresses = (config.sip.external_address, Some(listener));
        let local = sender.clone();
        let local = Local::new(move |flow| local_towards(&local, addresses, flow));
        let edge = Edge::new(settings.key.as_bytes(), node.0.as_bytes(), listener, local);
        Some(NodeEdge { edge, listener, address, links })
    }
}
