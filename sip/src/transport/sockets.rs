//! All sockets of one element as one: receives from all of them, and sends on the one that a flow names.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use tokio::net::TcpListener;

use crate::flow::{Flow, ListenerId, Protocol};
use crate::transport::arrival::Arrival;
use crate::transport::error::{BindError, SendError};
use crate::transport::links::{NodeLinkSender, NodeLinkTask, NodeTls, Received};
use crate::transport::tcp::{TcpConfig, TcpSender, TcpTransport};
use crate::transport::udp::{UdpSender, UdpTransport};

/// The receiving side of all listeners.
pub struct Sockets {
    udp: UdpTransport,
    tcp: TcpTransport,
    /// The TLS connections to other nodes, in place of the UDP listener for them.
    links: Option<(NodeLinkSender, Received)>,
}

/// The sending side; cheap to clone.
#[derive(Clone)]
pub struct Sender {
    udp: UdpSender,
    tcp: TcpSender,
    links: Option<NodeLinkSender>,
}

impl Sockets {
    /// Opens a listener on each address; the n-th for datagrams is [`ListenerId`] n, and so is the n-th for
    /// connections. Runs within a tokio runtime.
    ///
    /// # Errors
    /// The first address that cannot be bound.
    pub fn bind(
        udp: &[SocketAddr],
        connections: &[(Protocol, SocketAddr)],
        config: TcpConfig,
    ) -> Result<Self, BindError> {
        let tcp = TcpTransport::bind(connections, config)?;
        Ok(Sockets { udp: UdpTransport::bind(udp)?, tcp, links: None })
    }

    /// Replaces the UDP listener that was opened at `configured` by TLS connections between nodes, at the same address:
    /// UDP datagrams to it are dropped from now on. The caller must run the returned task.
    ///
    /// With port 0, the listener gets another port when the one that the system selected for UDP is in use for TCP; this
    /// is possible only before the first [`Sender`] exists.
    ///
    /// # Errors
    /// When the address cannot be bound for connections, or there is no such listener.
    pub async fn link_nodes(
        &mut self,
        listener: ListenerId,
        configured: SocketAddr,
        tls: NodeTls,
    ) -> Result<NodeLinkTask, BindError> {
        let failed = |address, source| BindError { protocol: Protocol::Tls, address, source };
        let mut tries_left = if configured.port() == 0 { PORT_TRIES } else { 0 };
        loop {
            let address = self.udp.address(listener);
            let address = address.ok_or_else(|| failed(configured, io::ErrorKind::NotFound.into()))?;
            match TcpListener::bind(address).await {
                Ok(socket) => {
                    let (task, sender, received) = NodeLinkTask::new(socket, (listener, address), tls);
                    self.links = Some((sender, received));
                    return Ok(task);
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries_left > 0 => {
                    tries_left -= 1;
                    self.udp.reopen(listener, configured)?;
                }
                Err(error) => return Err(failed(address, error)),
            }
        }
    }

    /// A handle for sending.
    pub fn sender(&self) -> Sender {
        let links = self.links.as_ref().map(|(sender, _)| sender.clone());
        Sender { udp: self.udp.sender(), tcp: self.tcp.sender(), links }
    }

    /// The next arrival. Cancel-safe: nothing is lost.
    pub async fn recv(&mut self) -> Arrival {
        if let Some(arrival) = self.refused() {
            return arrival;
        }
        loop {
            let Sockets { udp, tcp, links } = self;
            let (sender, received) = links.as_mut().map(|(sender, received)| (&*sender, received)).unzip();
            tokio::select! {
                (flow, bytes) = udp.recv() => match sender {
                    Some(links) if links.listener() == flow.listener => {}
                    _ => return Arrival::Datagram { flow, bytes },
                },
                Some((flow, bytes)) = next_of(received) => return Arrival::Datagram { flow, bytes },
                arrival = tcp.recv() => return arrival,
            }
        }
    }

    /// The next datagram, if one has arrived.
    pub fn try_recv_datagram(&mut self) -> Option<(Flow, Bytes)> {
        let linked = self.links.as_ref().map(|(sender, _)| sender.listener());
        while let Some((flow, bytes)) = self.udp.try_recv() {
            if Some(flow.listener) != linked {
                return Some((flow, bytes));
            }
        }
        self.links.as_mut().and_then(|(_, received)| received.try_recv().ok())
    }

    /// The next arrival other than a datagram, if there is one.
    pub fn try_recv_message(&mut self) -> Option<Arrival> {
        self.refused().or_else(|| self.tcp.try_recv())
    }

    fn refused(&mut self) -> Option<Arrival> {
        let (flow, bytes) = self.udp.refused()?;
        Some(Arrival::Refused { flow, bytes })
    }
}

impl Sender {
    /// Sends a message on a flow, immediately or not at all; a connection sends its queue as fast as its peer reads.
    ///
    /// # Errors
    /// When it was not sent.
    pub fn try_send(&self, flow: &Flow, bytes: &Bytes) -> Result<(), SendError> {
        match flow.protocol {
            Protocol::Udp => match &self.links {
                Some(links) if links.listener() == flow.listener => links.try_send(flow.remote, bytes),
                _ => self.udp.try_send(flow, bytes),
            },
            _ => self.tcp.try_send(flow, bytes.clone()),
        }
    }

    /// Marks the peer of a flow as authenticated; its connection may stay open.
    pub fn trust(&self, flow: &Flow) {
        if flow.protocol.is_reliable() {
            self.tcp.trust(flow);
        }
    }

    /// Holds the connection of a flow open while it is silent, because a call uses it, or stops holding it.
    pub fn hold(&self, flow: &Flow, is_held: bool) {
        if flow.protocol.is_reliable() {
            self.tcp.hold(flow, is_held);
        }
    }

    /// Closes the connection of a flow, whose peer may no longer use it.
    pub fn close(&self, flow: &Flow) {
        if flow.protocol.is_reliable() {
            self.tcp.close(flow);
        }
    }

    /// The UDP listener that can send to an address.
    pub fn listener_towards(&self, remote: IpAddr) -> Option<ListenerId> {
        self.udp.listener_towards(remote)
    }

    /// Our address as the peer of a flow sees it.
    ///
    /// # Errors
    /// When there is no such listener or no route.
    pub fn local_address(&self, flow: &Flow) -> io::Result<SocketAddr> {
        match flow.protocol {
            Protocol::Udp => self.udp.local_address(flow),
            _ => self.tcp.local_address(flow),
        }
    }

    /// The connections to other nodes; `None` if their datagrams use UDP.
    pub fn links(&self) -> Option<&NodeLinkSender> {
        self.links.as_ref()
    }

    /// UDP.
    pub fn udp(&self) -> &UdpSender {
        &self.udp
    }

    /// TCP, TLS and WebSocket.
    pub fn tcp(&self) -> &TcpSender {
        &self.tcp
    }
}

/// The next datagram of another node; without such connections, `None` immediately.
async fn next_of(received: Option<&mut Received>) -> Option<(Flow, Bytes)> {
    received?.recv().await
}

/// How many ports that the system selects for UDP are tried for TCP.
const PORT_TRIES: u32 = 16;
