//! One UDP socket of a leg with the options that the relay needs, and the pair of sockets that each leg
//! opens.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// A bound, non-blocking UDP socket with its per-socket state.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) socket: Socket,
    pub(super) local: SocketAddr,
    /// The socket's drop counter (`SO_RXQ_OVFL`) in the last packet; it wraps.
    pub(super) drops_seen: u32,
    /// At least once a whole batch waited in the socket, so its queue may have overflowed; see
    /// [`Wire::receive`](super::wire::Wire::receive).
    pub(super) crowded: bool,
}

/// The two sockets of a leg: an even port and the odd one above it (RFC 3550 §11).
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) rtp: Endpoint,
    pub(super) rtcp: Endpoint,
}

impl Pair {
    /// Binds both sockets, or none.
    pub(super) fn bind(ip: IpAddr, port: u16) -> io::Result<Pair> {
        let rtp = Endpoint::bind(SocketAddr::new(ip, port))?;
        // A phone without RTCP answers each report with "port unreachable". That is no evidence about audio,
        // so only the RTP socket reads these errors.
        rtp.hear_unreachable()?;
        let rtcp = Endpoint::bind(SocketAddr::new(ip, port.saturating_add(1)))?;
        Ok(Pair { rtp, rtcp })
    }
}

impl Endpoint {
    /// Binds a socket to `local` and switches on kernel receive times and the drop counter.
    ///
    /// `UDP_GRO` stays off: several packets would share one receive time. The port is not shared (no
    /// `SO_REUSEADDR`): a second program on the same port would take half of the packets.
    pub(super) fn bind(local: SocketAddr) -> io::Result<Endpoint> {
        let socket = Socket::new(
            Domain::for_address(local),
            Type::DGRAM.nonblocking().cloexec(),
            Some(Protocol::UDP),
        )?;
        if local.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        // Expedited forwarding (RFC 4594 §4.1) is optional: without it the call still works.
        let _ = match local {
            SocketAddr::V4(_) => socket.set_tos_v4(EXPEDITED_FORWARDING),
            SocketAddr::V6(_) => socket.set_tclass_v6(EXPEDITED_FORWARDING),
        };
        socket.bind(&local.into())?;
        let local = socket.local_addr()?.as_socket().unwrap_or(local);
        Ok(Endpoint { socket, local, drops_seen: 0, crowded: false })
    }

    /// Asks the kernel to queue ICMP errors (`IP_RECVERR`); an unconnected UDP socket gets none otherwise.
    fn hear_unreachable(&self) -> io::Result<()> {
        match self.local {
            SocketAddr::V4(_) => setsockopt(&self.socket, sockopt::Ipv4RecvErr, &true)?,
            SocketAddr::V6(_) => setsockopt(&self.socket, sockopt::Ipv6RecvErr, &true)?,
        }
        Ok(())
    }
}

/// DSCP 46 in the upper six bits of the TOS and traffic class octets.
const EXPEDITED_FORWARDING: u32 = 46 << 2;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_pair_is_bound_wholly_or_not_at_all() {
        // Any free port of the system stands for "taken by another program".
        let taken = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = taken.local.port();
        let even = port & !1;
        assert!(Pair::bind(Ipv4Addr::LOCALHOST.into(), even).is_err(), "half of the pair is taken");
        drop(taken);
        // Another process may take the ports in between; then there is nothing to check.
        if let Ok(pair) = Pair::bind(Ipv4Addr::LOCALHOST.into(), even) {
            assert_eq!(pair.rtp.local.port(), even);
            assert_eq!(pair.rtcp.local.port(), even + 1);
        }
    }

    #[test]
    fn both_families_bind() {
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            match Endpoint::bind(SocketAddr::new(ip, 0)) {
                Ok(endpoint) => endpoint.hear_unreachable().unwrap(),
                Err(error) if ip.is_ipv6() => eprintln!("SKIPPED: no IPv6 loopback here ({error})"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
