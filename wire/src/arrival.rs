//! The information that a [`Wire`](crate::Wire) returns about datagrams, events and system calls.

use std::net::SocketAddr;

/// The kernel's information about one received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its source address.
    pub source: SocketAddr,
    /// Bytes in the buffer at the same position.
    pub len: usize,
    /// Whether the datagram was longer than [`DATAGRAM_BYTES_MAX`](crate::DATAGRAM_BYTES_MAX) and was cut.
    pub truncated: bool,
    /// When the kernel received it, in microseconds since the Unix epoch (`SO_TIMESTAMPNS`).
    pub stamp_us: Option<i64>,
    /// Total of packets that this socket had dropped for lack of space when this one arrived (`SO_RXQ_OVFL`).
    pub drops: Option<u32>,
}

/// The result of sending datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams whose result [`Wire::flush`](crate::Wire::flush) returns.
    pub queued: u32,
    /// Datagrams that the system accepted.
    pub sent: u32,
    /// Their bytes.
    pub sent_bytes: u32,
    /// Datagrams that it refused.
    pub failed: u32,
}

impl std::ops::AddAssign for Sent {
    fn add_assign(&mut self, other: Sent) {
        self.queued += other.queued;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.failed += other.failed;
    }
}

/// An ICMP error about a datagram that a socket sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// The destination of the datagram.
    pub to: Option<SocketAddr>,
    /// Whether it is "destination unreachable" (RFC 792, RFC 4443 §3.1), not for example "fragmentation
    /// needed".
    pub unreachable: bool,
}

/// The event that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A socket has datagrams or errors.
    Ready {
        /// The token with which the socket is watched.
        token: u64,
        /// Whether the socket has an error, for example a queued ICMP error.
        error: bool,
    },
    /// The waker was used.
    Woken,
}

/// System calls of a wire, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Waits for sockets.
    pub wait: u64,
    /// Reads of sockets.
    pub receive: u64,
    /// Sends.
    pub send: u64,
}

impl Calls {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.wait + self.receive + self.send
    }
}
