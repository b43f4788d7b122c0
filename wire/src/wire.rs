//! The wire of one thread, through one of two kernel interfaces.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::arrival::{Arrival, Calls, Event, IcmpError, Sent};
use crate::endpoint::Endpoint;
use crate::epoll::EpollWire;
use crate::ring::RingWire;
use crate::waker::Waker;

/// The kernel interface of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// `epoll`, with a call for each read and for the sends of each socket: every Linux.
    #[default]
    Epoll,
    /// io_uring, with a call for many datagrams: Linux 6.1 and later, where it is allowed.
    IoUring,
}

/// The sockets that a thread waits for, and the buffers into which it receives.
///
/// Life of a turn: [`wait`](Wire::wait), then for each [`event`](Wire::event) [`receive`](Wire::receive),
/// [`datagram`](Wire::datagram) and [`send`](Wire::send), then [`flush`](Wire::flush). A wire may be opened by another
/// thread, but only one waits.
#[derive(Debug)]
pub struct Wire(Backend);

#[derive(Debug)]
enum Backend {
    Epoll(Box<EpollWire>),
    Ring(Box<RingWire>),
}

impl Wire {
    /// A wire without sockets, whose wait `waker` ends; the waker outlives the wire.
    ///
    /// # Errors
    /// No descriptor is left; with [`Io::IoUring`] also where the kernel is older than 6.1 or refuses it.
    pub fn open(waker: &Waker, io: Io) -> io::Result<Wire> {
        Ok(Wire(match io {
            Io::Epoll => Backend::Epoll(Box::new(EpollWire::open(waker)?)),
            Io::IoUring => Backend::Ring(Box::new(RingWire::open(waker)?)),
        }))
    }

    /// Checks that the kernel supports [`Io::IoUring`]: a datagram is received and sent back over it.
    ///
    /// # Errors
    /// Why not.
    pub fn try_io_uring() -> io::Result<()> {
        let waker = Waker::new()?;
        let mut wire = Wire::open(&waker, Io::IoUring)?;
        let mut endpoint = Endpoint::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let peer = UdpSocket::bind(("127.0.0.1", 0))?;
        peer.set_read_timeout(Some(TRIAL_MAX))?;
        wire.watch(&endpoint, 0)?;
        peer.send_to(TRIAL, endpoint.local())?;
        wire.wait(Some(TRIAL_MAX), Duration::ZERO)?;
        if wire.receive(&mut endpoint) != 1 {
            return Err(io::Error::other("a datagram was not received"));
        }
        let back = peer.local_addr()?;
        wire.send(&endpoint, back, &[0]);
        let sent = wire.flush();
        let mut buffer = [0; TRIAL.len()];
        let (len, from) = receive_from(&peer, &mut buffer)?;
        if (sent.sent, len, from) != (1, TRIAL.len(), endpoint.local()) || buffer != *TRIAL {
            return Err(io::Error::other("a datagram was not sent"));
        }
        wire.unwatch(&endpoint)
    }

    /// Waits for `endpoint` from now on; its events carry `token`, which is never `u64::MAX`.
    ///
    /// # Errors
    /// The system's limit is reached, or it is already watched.
    pub fn watch(&mut self, endpoint: &Endpoint, token: u64) -> io::Result<()> {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.watch(endpoint, token),
            Backend::Ring(wire) => wire.watch(endpoint, token),
        }
    }

    /// Ceases to wait for `endpoint`. Datagrams that arrived and were not received are returned by [`Wire::drain`], as
    /// long as this wire alone has the socket.
    ///
    /// # Errors
    /// It was not watched.
    pub fn unwatch(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.unwatch(endpoint),
            Backend::Ring(wire) => wire.unwatch(endpoint),
        }
    }

    /// Ceases to wait for two sockets that are about to be closed, and sends queued datagrams.
    pub fn forget(&mut self, endpoints: [&Endpoint; 2]) {
        match &mut self.0 {
            // Closing a socket ends its wait.
            Backend::Epoll(_) => {}
            Backend::Ring(wire) => wire.forget(endpoints),
        }
    }

    /// Lets datagrams gather for `gather`, then waits for an event, `patience` at most from then on; without `patience`
    /// it waits without limit. Returns the number of events. `epoll` rounds up to milliseconds; io_uring ends the
    /// gathering when there are enough datagrams.
    ///
    /// `gather` is no longer than `patience`. The waker does not end it.
    ///
    /// # Errors
    /// Only errors that a bug in this program causes; a signal is not an error.
    pub fn wait(&mut self, patience: Option<Duration>, gather: Duration) -> io::Result<usize> {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.wait(patience, gather),
            Backend::Ring(wire) => wire.wait(patience, gather),
        }
    }

    /// An event of the last wait.
    pub fn event(&self, place: usize) -> Option<Event> {
        match &self.0 {
            Backend::Epoll(wire) => wire.event(place),
            Backend::Ring(wire) => wire.event(place),
        }
    }

    /// Receives datagrams that wait in the socket into the buffers, and returns their number.
    ///
    /// It need not receive all: a socket with more is ready again at the next wait, and is then read again. Errors of
    /// earlier sends are not returned, see [`Wire::unreachable`].
    #[inline]
    pub fn receive(&mut self, endpoint: &mut Endpoint) -> usize {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.receive(endpoint),
            Backend::Ring(wire) => wire.receive(endpoint),
        }
    }

    /// Like [`Wire::receive`]; a result below [`BATCH`](crate::BATCH) means that no more datagrams wait.
    pub fn drain(&mut self, endpoint: &Endpoint) -> usize {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.drain(endpoint),
            Backend::Ring(wire) => wire.drain(endpoint),
        }
    }

    /// The datagram at `index` of those last received, and its information.
    #[inline]
    pub fn datagram(&mut self, index: usize) -> Option<(Arrival, &mut [u8])> {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.datagram(index),
            Backend::Ring(wire) => wire.datagram(index),
        }
    }

    /// The length of the datagram at `index` of those last received, and its complete buffer of
    /// [`DATAGRAM_BYTES_MAX`](crate::DATAGRAM_BYTES_MAX) bytes.
    #[inline]
    pub fn buffer(&mut self, index: usize) -> Option<(usize, &mut [u8])> {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.buffer(index),
            Backend::Ring(wire) => wire.buffer(index),
        }
    }

    /// Sets the length of the datagram at `index` of those last received, at most
    /// [`DATAGRAM_BYTES_MAX`](crate::DATAGRAM_BYTES_MAX); added bytes keep the content of its buffer.
    pub fn resize(&mut self, index: usize, len: usize) {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.resize(index, len),
            Backend::Ring(wire) => wire.resize(index, len),
        }
    }

    /// Sends the datagrams at `indices` of those last received to one address, in order, or queues them for
    /// [`Wire::flush`]. A datagram is not changed after it was sent.
    #[inline]
    pub fn send(&mut self, endpoint: &Endpoint, to: SocketAddr, indices: &[u8]) -> Sent {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.send(endpoint, to, indices),
            Backend::Ring(wire) => wire.send(endpoint, to, indices),
        }
    }

    /// Sends queued datagrams, and returns the results of all datagrams queued since the last call.
    pub fn flush(&mut self) -> Sent {
        match &mut self.0 {
            Backend::Epoll(_) => Sent::default(),
            Backend::Ring(wire) => wire.flush(),
        }
    }

    /// Sends a datagram that was not received; returns whether the system accepted it.
    pub fn send_own(&mut self, endpoint: &Endpoint, to: SocketAddr, datagram: &[u8]) -> bool {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.send_own(endpoint, to, datagram),
            Backend::Ring(wire) => wire.send_own(endpoint, to, datagram),
        }
    }

    /// Takes one entry from the socket's error queue; `None` when it is empty.
    pub fn unreachable(&mut self, endpoint: &Endpoint) -> Option<IcmpError> {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.unreachable(endpoint),
            Backend::Ring(wire) => wire.unreachable(endpoint),
        }
    }

    /// The system calls since the last call of this function.
    pub fn take_calls(&mut self) -> Calls {
        match &mut self.0 {
            Backend::Epoll(wire) => wire.take_calls(),
            Backend::Ring(wire) => wire.take_calls(),
        }
    }
}

/// Receives from a socket with a timeout. A signal to its thread, perhaps by the end of a ring, interrupts it.
fn receive_from(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

/// The datagram that is sent to this process to try io_uring.
const TRIAL: &[u8; 5] = b"trial";
const TRIAL_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
#[allow(clippy::duplicate_mod, reason = "the same tests with both ways to the kernel")]
#[path = "wire_tests.rs"]
mod epoll_tests;

#[cfg(test)]
#[allow(clippy::duplicate_mod, reason = "the same tests with both ways to the kernel")]
#[path = "wire_tests.rs"]
mod io_uring_tests;
