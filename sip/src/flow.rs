//! The path a SIP message came by, and the one its answer takes back (RFC 5626 §3, "flow").
//!
//! A plain value for the cores; what a listener is in the world of sockets is the affair of `transport/`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Names one of our listening sockets; chosen by the transport, stable for its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u32);

impl ListenerId {
    /// Stands in a flow for the connection that we open to its far address, whenever there is none.
    pub const OUTBOUND: Self = Self(u32::MAX);
}

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listener {}", self.0)
    }
}

/// The transport protocol of a flow, in the words of a Via header (RFC 3261 §20.42, RFC 7118).
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

    /// Whether the transport delivers by itself, so that transactions need not retransmit (RFC 3261 §17).
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Protocol::Udp)
    }

    /// The port of a URI or a Via that names none (RFC 3261 §18.1.1, §19.1.2).
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

/// One of our sockets, or a connection that we opened, and one far address: enough to answer where a message came from.
///
/// Behind a NAT nothing else reaches a phone, therefore bindings keep flows and not only Contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Which of our sockets.
    pub listener: ListenerId,
    /// The far address, as the socket reported it (an IPv4 peer of an IPv6 socket in its IPv4 form).
    pub remote: SocketAddr,
    /// The transport of the socket.
    pub protocol: Protocol,
}

impl Flow {
    /// The flow of the TCP connection that we open to `remote`.
    pub fn tcp_to(remote: SocketAddr) -> Self {
        Flow { listener: ListenerId::OUTBOUND, remote: canonical(remote), protocol: Protocol::Tcp }
    }

    /// A UDP flow; `remote` is taken in canonical form, an IPv4-mapped IPv6 address as IPv4.
    pub fn udp(listener: ListenerId, remote: SocketAddr) -> Self {
        Flow { listener, remote: canonical(remote), protocol: Protocol::Udp }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.protocol, self.remote, self.listener)
    }
}

/// `address` with an IPv4-mapped IPv6 address turned into the IPv4 address it means.
///
/// Every address of a peer goes through here once, or one peer would have two identities (and two budgets).
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The source that limits count an address as: an IPv4 address, or the /64 of an IPv6 address, of which one host has
/// every address.
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
    fn a_mapped_peer_is_the_ipv4_peer() {
        let mapped = Flow::udp(ListenerId(1), "[::ffff:192.0.2.1]:5060".parse().unwrap());
        let plain = Flow::udp(ListenerId(1), "192.0.2.1:5060".parse().unwrap());
        assert_eq!(mapped, plain);
        assert_eq!(plain.to_string(), "UDP 192.0.2.1:5060 (listener 1)");
    }
}
