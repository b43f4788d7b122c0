//! Datagrams that the host of their destination refused, read from the socket's queue of ICMP errors (ip(7),
//! `IP_RECVERR`).
//!
//! Only "port unreachable" counts: other errors may be temporary. An error quotes the start of its datagram, so the
//! user can check by the branch that the datagram was really sent; a forged error has no effect.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use bytes::Bytes;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use socket2::Socket;

/// Requests errors for a socket. If that fails, the socket still works, and a refused datagram counts as lost.
pub(super) fn request_errors(socket: &Socket) {
    let _granted = setsockopt(socket, sockopt::Ipv4RecvErr, &true);
    let _granted = setsockopt(socket, sockopt::Ipv6RecvErr, &true);
}

/// Passes the refused datagrams to `take`, each with its destination; returns whether there was an error of any kind.
pub(super) fn take_errors(socket: &UdpSocket, mut take: impl FnMut(SocketAddr, Bytes)) -> bool {
    let mut quoted = [0; QUOTED_BYTES_MAX];
    let mut control = nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
    for count in 0..ERRORS_AT_ONCE {
        let mut slices = [IoSliceMut::new(&mut quoted)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let read = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags);
        let Ok(message) = read else { return count > 0 };
        let is_refused = message.cmsgs().is_ok_and(|mut all| all.any(|one| is_port_unreachable(&one)));
        let (length, destination) = (message.bytes, message.address.as_ref().and_then(address_of));
        if let Some(destination) = destination.filter(|_| is_refused) {
            take(destination, Bytes::copy_from_slice(quoted.get(..length).unwrap_or_default()));
        }
    }
    true
}

fn is_port_unreachable(message: &ControlMessageOwned) -> bool {
    let (ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)) = message
    else {
        return false;
    };
    i32::try_from(error.ee_errno) == Ok(libc::ECONNREFUSED)
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from((v6.ip(), v6.port()))))
}

/// Bytes of a datagram that are read from its error; the top Via is among the first.
const QUOTED_BYTES_MAX: usize = 1_500;
/// Errors read in a row.
const ERRORS_AT_ONCE: usize = 64;
