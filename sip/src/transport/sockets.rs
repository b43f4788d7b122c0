//! All sockets of one element as one: receives from all of them, and sends on the one that a flow names.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use crate::flow::{Flow, ListenerId, Protocol};
use crate::transport::arrival::Arrival;
use crate::transport::error::{BindError, SendError};
use crate::transport::tcp::{TcpConfig, TcpSender, TcpTransport};
use crate::transport::udp::{UdpSender, UdpTransport};

/// The receiving side of all listeners.
pub struct Sockets {
    udp: UdpTransport,
    tcp: TcpTransport,
}

/// The sending side; cheap to clone.
#[derive(Clone)]
pub struct Sender {
    udp: UdpSender,
    tcp: TcpSender,
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
        Ok(Sockets { udp: UdpTransport::bind(udp)?, tcp: TcpTransport::bind(connections, config)? })
    }

    /// A handle for sending.
    pub fn sender(&self) -> Sender {
        Sender { udp: self.udp.sender(), tcp: self.tcp.sender() }
    }

    /// The next arrival. Safe to drop while it waits: nothing is lost.
    pub async fn recv(&mut self) -> Arrival {
        if let Some(arrival) = self.refused() {
            return arrival;
        }
        tokio::select! {
            (flow, bytes) = self.udp.recv() => Arrival::Datagram { flow, bytes },
            arrival = self.tcp.recv() => arrival,
        }
    }

    /// The next datagram, if there is one already.
    pub fn try_recv_datagram(&mut self) -> Option<(Flow, Bytes)> {
        self.udp.try_recv()
    }

    /// The next arrival other than a datagram, if there is one already.
    pub fn try_recv_message(&mut self) -> Option<Arrival> {
        self.refused().or_else(|| self.tcp.try_recv())
    }

    fn refused(&mut self) -> Option<Arrival> {
        let (flow, bytes) = self.udp.refused()?;
        Some(Arrival::Refused { flow, bytes })
    }
}

impl Sender {
    /// Sends a message on a flow, at once or not at all; a connection sends its queue as fast as its peer
    /// reads.
    ///
    /// # Errors
    /// When it was not sent.
    pub fn try_send(&self, flow: &Flow, bytes: &Bytes) -> Result<(), SendError> {
        match flow.protocol {
            Protocol::Udp => self.udp.try_send(flow, bytes),
            _ => self.tcp.try_send(flow, bytes.clone()),
        }
    }

    /// Marks the peer of a flow as authenticated; its connection may stay open.
    pub fn trust(&self, flow: &Flow) {
        if flow.protocol.is_reliable() {
            self.tcp.trust(flow);
        }
    }

    /// Holds the connection of a flow open while it is silent, because a call uses it, or stops that.
    pub fn hold(&self, flow: &Flow, is_held: bool) {
        if flow.protocol.is_reliable() {
            self.tcp.hold(flow, is_held);
        }
    }

    /// Closes the connection of a flow, whose peer may not use it any more.
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

    /// UDP.
    pub fn udp(&self) -> &UdpSender {
        &self.udp
    }

    /// TCP and what runs over it.
    pub fn tcp(&self) -> &TcpSender {
        &self.tcp
    }
}
