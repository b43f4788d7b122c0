//! The sockets of the node.

use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_sip::flow::Protocol;
use sidetone_sip::transport::{Sockets, TcpConfig, TcpLimits};
use tokio::net::TcpListener;

use super::edge::NodeLinks;
use super::engine::StartError;
use crate::config::{Config, Transport};
use crate::registrations::KeptRegistrations;
use crate::tls::TlsStore;

/// The bound addresses.
pub(super) struct Listeners {
    pub(super) sip: Sockets,
    /// The connections with other nodes; `None` if their SIP is sent over UDP.
    pub(super) links: Option<NodeLinks>,
    pub(super) http: TcpListener,
    pub(super) http_address: SocketAddr,
}

impl Listeners {
    /// Binds the SIP and HTTP addresses.
    pub(super) async fn bind(config: &Config, tls: &TlsStore) -> Result<Self, StartError> {
        let datagrams = config.datagram_listeners();
        let connections: Vec<(Protocol, SocketAddr)> = config.sip.connection_listeners().collect();
        let tcp = TcpConfig {
            limits: TcpLimits::default(),
            tls: Some(Arc::new(tls.clone())),
            origins: config.sip.websocket_origins.clone(),
        };
        let mut sip = Sockets::bind(&datagrams, &connections, tcp)?;
        let links = NodeLinks::open(config, &mut sip).await?;
        let failed = |source| StartError::Http { address: config.http.listen, source };
        let http = TcpListener::bind(config.http.listen).await.map_err(failed)?;
        let http_address = http.local_addr().map_err(failed)?;
        Ok(Self { sip, links, http, http_address })
    }

    /// The SIP addresses for phones and trunks, over UDP and over connections, with the ports that were bound.
    pub(super) fn sip_addresses(&self, config: &Config) -> (Vec<SocketAddr>, Vec<(Protocol, SocketAddr)>) {
        let sender = self.sip.sender();
        let udp = sender.udp().listeners().map(|(_, local)| local);
        let udp = udp.take(config.sip.listeners(Transport::Udp).count()).collect();
        (udp, sender.tcp().listeners().collect())
    }
}

/// The registrations from before the restart, at the UDP sockets that are configured now.
pub(super) fn kept_registrations(config: &Config) -> KeptRegistrations {
    KeptRegistrations::new(&config.node.data_dir, config.sip.listeners(Transport::Udp).collect())
}
