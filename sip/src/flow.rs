//! The path on which a SIP message arrived and on which its response is sent (RFC 5626 §3, "flow").
//!
//! A plain value for the cores; `transport/` maps a listener to a socket.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Identifies one of our listening sockets; chosen by the transport, constant for its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u32);

impl ListenerId {
    /// Used in a flow for a connection that we open to the remote address when there is none.
    pub const OUTBOUND: Self = Self(u32::MAX);

    /// Like [`ListenerId::OUTBOUND`], for a TLS connection to the server whose name has this number: servers of
    /// different names may share an address, and each must show a certificate for its own name.
    pub const fn to_server(number: u32) -> Self {
        Self(SERVERS_FIRST | number)
    }

    /// The number of the server's name; `None` for a listener and for [`ListenerId::OUTBOUND`].
    pub const fn server(self) -> Option<u32> {
        if self.is_outbound() && self.0 != Self::OUTBOUND.0 { Some(self.0 & !SERVERS_FIRST) } else { None }
    }

    /// Whether the connection of such a flow is opened by us.
    pub const fn is_outbound(self) -> bool {
        self.0 >= SERVERS_FIRST
    }
}

/// The lowest identifier of connections that we open; no element has that many listeners.
const SERVERS_FIRST: u32 = 1 << 31;

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listener {}", self.0)
    }
}

/// The transport protocol of a flow, as named in a Via header (RFC 3261 §20.42, RFC 7118).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP: a stream.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// UDP: one message per datagram.
    #[default]
    Udp,
    /// WebSocket over TCP (RFC 7118).
    Ws,
    /// WebSocket over TLS (RFC 7118).
    Wss,
}

impl Protocol {
    /// The token of a Via header: `UDP`, `TCP`, …
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Tls => "TLS",
            Protocol::Udp => "UDP",
            Protocol::Ws => "WS",
            Protocol::Wss => "WSS",
        }
    }

    /// Whether the transport is reliable, so that transactions need not retransmit (RFC 3261 §17).
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Protocol::Udp)
    }

    /// Whether the transport is encrypted, as a `sips:` URI requires (RFC 3261 §26.2.2).
    pub const fn is_secure(self) -> bool {
        matches!(self, Protocol::Tls | Protocol::Wss)
    }

    /// The value of the `transport` parameter of a URI (RFC 3261 §19.1.1, RFC 7118 §5.2.1), where `ws` stands for
    /// both kinds of WebSocket; only the Via distinguishes them.
    pub const fn uri_transport(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Tls => "tls",
            Protocol::Udp => "udp",
            Protocol::Ws | Protocol::Wss => "ws",
        }
    }

    /// The default port of a URI or a Via (RFC 3261 §18.1.1, §19.1.2).
    pub const fn default_port(self) -> u16 {
        match self {
            Protocol::Tls => 5061,
            Protocol::Ws => 80,
            Protocol::Wss => 443,
            Protocol::Tcp | Protocol::Udp => 5060,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One of our sockets, or a connection that we opened, and one remote address: enough to answer a message.
///
/// A phone behind a NAT is reachable only on its flow, so bindings store flows besides Contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Our socket.
    pub listener: ListenerId,
    /// The remote address, as the socket reported it (an IPv4 peer of an IPv6 socket in its IPv4 form).
    pub remote: SocketAddr,
    /// The transport of the socket.
    pub protocol: Protocol,
}

impl Flow {
    /// The flow of the TCP connection that we open to `remote`.
    pub fn tcp_to(remote: SocketAddr) -> Self {
        Flow { listener: ListenerId::OUTBOUND, remote: canonical(remote), protocol: Protocol::Tcp }
    }

    /// A UDP flow; `remote` is converted to canonical form, an IPv4-mapped IPv6 address to IPv4.
    pub fn udp(listener: ListenerId, remote: SocketAddr) -> Self {
        Flow { listener, remote: canonical(remote), protocol: Protocol::Udp }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.protocol, self.remote, self.listener)
    }
}

/// `address` with an IPv4-mapped IPv6 address converted to IPv4.
///
/// Every address of a peer must be converted once, otherwise one peer would have two identities (and two
/// budgets).
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The unit of limits for an address: an IPv4 address, or the /64 of an IPv6 address, because one host can
/// use all of its addresses.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_ipv4_address_or_an_ipv6_network_of_64_bits() {
        for (address, source) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
        ] {
            assert_eq!(source_of(address.parse().unwrap()), source.parse::<IpAddr>().unwrap(), "{address}");
        }
    }

    #[test]
    fn listeners_servers_and_other_connections_are_distinct() {
        for (id, is_outbound, server) in [
            (ListenerId(0), false, None),
            (ListenerId(63), false, None),
            (ListenerId::to_server(0), true, Some(0)),
            (ListenerId::to_server(70_000), true, Some(70_000)),
            (ListenerId::OUTBOUND, true, None),
        ] {
            assert_eq!((id.is_outbound(), id.server()), (is_outbound, server), "{id}");
        }
    }

    #[test]
    fn a_mapped_peer_is_the_ipv4_peer() {
        let mapped = Flow::udp(ListenerId(1), "[::ffff:192.0.2.1]:5060".parse().unwrap());
        let plain = Flow::udp(ListenerId(1), "192.0.2.1:5060".parse().unwrap());
        assert_eq!(mapped, plain);
        assert_eq!(plain.to_string(), "UDP 192.0.2.1:5060 (listener 1)");
    }
}
