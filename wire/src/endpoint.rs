//! One UDP socket with the options that a relay needs.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// A bound, non-blocking UDP socket with its per-socket state.
#[derive(Debug)]
pub struct Endpoint {
    socket: Socket,
    local: SocketAddr,
    /// The socket's drop counter (`SO_RXQ_OVFL`) in the last packet; it wraps. Kept here for the owner.
    pub drops_seen: u32,
    /// How many datagrams the next read requests, see [`Pace`].
    pub(crate) pace: Pace,
}

/// How many datagrams a read requests.
///
/// The socket of a leg usually holds one packet, and a batch read of one packet costs more than a single read. A read
/// therefore requests one datagram. It requests four times as many when the last read was full and the socket is ready
/// again in the next turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    turn: u32,
    asked: u8,
    /// Whether the last read returned as many datagrams as requested.
    was_full: bool,
}

impl Endpoint {
    /// Binds a socket to `local` and switches on kernel receive times and the drop counter.
    ///
    /// `UDP_GRO` stays off: several packets would share one receive time. The port is not shared (no
    /// `SO_REUSEADDR`): a second program on the same port would take half of the packets.
    ///
    /// # Errors
    /// The port is taken, the address is not of this host, or no descriptor is left.
    pub fn bind(local: SocketAddr) -> io::Result<Endpoint> {
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
        let local = match local.port() {
            0 => socket.local_addr()?.as_socket().unwrap_or(local),
            _ => local,
        };
        Ok(Endpoint { socket, local, drops_seen: 0, pace: Pace::default() })
    }

    /// Asks the kernel to queue ICMP errors (`IP_RECVERR`); an unconnected UDP socket gets none otherwise.
    ///
    /// # Errors
    /// The system refuses the option.
    pub fn hear_unreachable(&self) -> io::Result<()> {
        match self.local {
            SocketAddr::V4(_) => setsockopt(&self.socket, sockopt::Ipv4RecvErr, &true)?,
            SocketAddr::V6(_) => setsockopt(&self.socket, sockopt::Ipv6RecvErr, &true)?,
        }
        Ok(())
    }

    /// The address that it is bound to.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Pace {
    /// How many datagrams to request in this turn, `most` at most.
    pub(crate) fn ask(&mut self, turn: u32, most: usize) -> usize {
        let goes_on = self.was_full && turn.wrapping_sub(self.turn) <= 1;
        let most = u8::try_from(most).unwrap_or(u8::MAX);
        self.asked = if goes_on { self.asked.saturating_mul(4).min(most) } else { 1 };
        self.turn = turn;
        usize::from(self.asked)
    }

    /// Records how many of the requested datagrams arrived.
    pub(crate) fn came(&mut self, came: usize) {
        self.was_full = came >= usize::from(self.asked);
    }
}

/// DSCP 46 in the upper six bits of the TOS and traffic class octets.
const EXPEDITED_FORWARDING: u32 = 46 << 2;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

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

    #[test]
    fn a_socket_that_stays_ready_is_asked_for_more() {
        let mut pace = Pace::default();
        // The turn, the number requested then, and the number that arrives.
        for (turn, asked, came) in [
            (5, 1, 1),
            // A packet each twenty turns is one packet each time.
            (25, 1, 1),
            (26, 4, 4),
            (27, 16, 16),
            (28, 32, 32),
            (29, 32, 7),
            (30, 1, 1),
            (31, 4, 0),
            (32, 1, 0),
            (u32::MAX, 1, 1),
            (0, 4, 1),
        ] {
            assert_eq!(pace.ask(turn, 32), asked, "turn {turn}");
            pace.came(came);
        }
    }
}
