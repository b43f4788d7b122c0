//! Sends datagrams: one with `sendto`, several with `sendmmsg`.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrIn, SockaddrIn6, SockaddrLike, sendto};

use crate::arrival::Sent;
use crate::endpoint::Endpoint;
use crate::system;

/// Sends, and counts its system calls.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pub(crate) calls: u64,
}

impl Sender {
    /// Sends every datagram to one address, in order.
    pub(crate) fn send(&mut self, endpoint: &Endpoint, to: SocketAddr, datagrams: &[IoSlice<'_>]) -> Sent {
        if let [datagram] = datagrams {
            let bytes = u32::try_from(datagram.len()).unwrap_or_default();
            return match self.send_one(endpoint, to, datagram) {
                true => Sent { sent: 1, sent_bytes: bytes, ..Sent::default() },
                false => Sent { failed: 1, ..Sent::default() },
            };
        }
        match (to, endpoint.local()) {
            (SocketAddr::V4(to), SocketAddr::V4(_)) => {
                self.send_all(endpoint.fd(), &SockaddrIn::from(to), datagrams)
            }
            (SocketAddr::V6(to), SocketAddr::V6(_)) => {
                self.send_all(endpoint.fd(), &SockaddrIn6::from(to), datagrams)
            }
            _ => Sent { failed: u32::try_from(datagrams.len()).unwrap_or(u32::MAX), ..Sent::default() },
        }
    }

    /// Sends one datagram; returns whether the system accepted it.
    pub(crate) fn send_one(&mut self, endpoint: &Endpoint, to: SocketAddr, datagram: &[u8]) -> bool {
        let (fd, flags) = (endpoint.fd(), MsgFlags::MSG_DONTWAIT);
        let mut send = || {
            self.calls += 1;
            match (to, endpoint.local()) {
                (SocketAddr::V4(to), SocketAddr::V4(_)) => sendto(fd, datagram, &SockaddrIn::from(to), flags),
                (SocketAddr::V6(to), SocketAddr::V6(_)) => {
                    sendto(fd, datagram, &SockaddrIn6::from(to), flags)
                }
                _ => Err(Errno::EAFNOSUPPORT),
            }
        };
        let first = send();
        if first.is_err_and(is_of_earlier) { send().is_ok() } else { first.is_ok() }
    }

    /// Sends every slice or counts it as failed; each slice is tried at most twice.
    fn send_all(&mut self, fd: RawFd, to: &impl SockaddrLike, slices: &[IoSlice<'_>]) -> Sent {
        let mut outcome = Sent::default();
        let mut done = 0;
        let mut tried = false;
        while let Some(rest) = slices.get(done..).filter(|rest| !rest.is_empty()) {
            self.calls += 1;
            match system::send_many(fd, to, rest) {
                Ok(count) if count > 0 => {
                    done += count;
                    outcome.sent += u32::try_from(count).unwrap_or(u32::MAX);
                    let bytes: usize = rest.iter().take(count).map(|slice| slice.len()).sum();
                    outcome.sent_bytes += u32::try_from(bytes).unwrap_or_default();
                    tried = false;
                }
                Err(errno) if is_of_earlier(errno) && !tried => tried = true,
                _ => {
                    done += 1;
                    outcome.failed += 1;
                    tried = false;
                }
            }
        }
        outcome
    }
}

/// Whether an ICMP error about an earlier datagram was returned, once, instead of this one.
pub(crate) fn is_of_earlier(errno: Errno) -> bool {
    matches!(errno, Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EINTR)
}
