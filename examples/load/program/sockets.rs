//! The sockets of a run: bound on loopback, watched together, read and written in batches.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt};

use crate::program::clock::{MILLISECOND, Nanos};
use crate::program::error::LoadError;
use crate::program::outbox::{Datagram, Outbox};
use crate::program::wire::{BATCH, Wire};

/// The sockets of a run.
pub(crate) struct Sockets {
    sockets: Vec<UdpSocket>,
    addresses: Vec<SocketAddrV4>,
    epoll: Epoll,
    events: Vec<EpollEvent>,
    wire: Wire,
    refused: u64,
}

impl Sockets {
    /// Has no socket yet.
    ///
    /// # Errors
    /// The system has no room for another descriptor.
    pub(crate) fn new() -> Result<Self, LoadError> {
        Ok(Sockets {
            sockets: Vec::new(),
            addresses: Vec::new(),
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: vec![EpollEvent::empty(); EVENTS_MAX],
            wire: Wire::new(),
            refused: 0,
        })
    }

    /// Binds a socket at an address; port 0 lets the system choose. Returns the index of the socket.
    ///
    /// # Errors
    /// The address is taken, or no descriptor is left.
    pub(crate) fn bind(&mut self, ip: Ipv4Addr, port: u16) -> Result<usize, LoadError> {
        let socket = UdpSocket::bind(SocketAddrV4::new(ip, port))?;
        self.add(socket)
    }

    /// Binds sockets for RTP and RTCP at an even port and the next one; returns the index of the first.
    ///
    /// RTCP that arrives is read and ignored; without a socket the kernel would answer each packet with an ICMP error.
    ///
    /// # Errors
    /// No pair of ports is free, or no descriptor is left.
    pub(crate) fn bind_pair(&mut self, ip: Ipv4Addr) -> Result<usize, LoadError> {
        for _ in 0..PAIR_TRIES_MAX {
            let first = UdpSocket::bind(SocketAddrV4::new(ip, 0))?;
            let port = first.local_addr()?.port();
            if port % 2 != 0 {
                continue;
            }
            if let Ok(second) = UdpSocket::bind(SocketAddrV4::new(ip, port + 1)) {
                let index = self.add(first)?;
                self.add(second)?;
                return Ok(index);
            }
        }
        Err(LoadError::SetUp(format!("no pair of ports is free at {ip}")))
    }

    /// Returns the address of a socket.
    pub(crate) fn address(&self, index: usize) -> SocketAddrV4 {
        self.addresses.get(index).copied().unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }

    /// Returns a socket by its index.
    pub(crate) fn socket(&self, index: usize) -> Option<&UdpSocket> {
        self.sockets.get(index)
    }

    /// Returns the number of datagrams that the system refused to send.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Waits until a datagram arrives or `patience` is over, and passes every waiting datagram to `each`, with the
    /// index of its socket and its source.
    ///
    /// # Errors
    /// The sockets cannot be watched.
    pub(crate) fn receive(
        &mut self,
        patience: Nanos,
        mut each: impl FnMut(usize, SocketAddrV4, &[u8]),
    ) -> Result<(), LoadError> {
        let ready = self.wait(patience)?;
        for event in self.events.iter().take(ready) {
            let index = usize::try_from(event.data()).unwrap_or(usize::MAX);
            let Some(socket) = self.sockets.get(index) else { continue };
            for _ in 0..BATCHES_PER_TURN {
                let count = self.wire.receive(socket);
                for (from, bytes) in (0..count).filter_map(|arrival| self.wire.arrival(arrival)) {
                    each(index, from, bytes);
                }
                if count < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends everything in the outbox and clears it.
    pub(crate) fn send(&mut self, outbox: &mut Outbox) {
        let mut batch: Vec<Datagram<'_>> = Vec::with_capacity(BATCH.min(outbox.len()));
        for datagram in outbox.datagrams() {
            let is_other = batch.first().is_some_and(|first| first.socket != datagram.socket);
            if is_other || batch.len() == BATCH {
                self.refused += flush(&self.sockets, &mut self.wire, &mut batch);
            }
            batch.push(datagram);
        }
        self.refused += flush(&self.sockets, &mut self.wire, &mut batch);
        drop(batch);
        outbox.clear();
    }

    fn add(&mut self, socket: UdpSocket) -> Result<usize, LoadError> {
        socket.set_nonblocking(true)?;
        // A size above `net.core.rmem_max` needs CAP_NET_ADMIN.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        }
        let address = match socket.local_addr()? {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(address) => {
                return Err(io::Error::other(format!("{address} is no IPv4 address")).into());
            }
        };
        let index = self.sockets.len();
        let number = u64::try_from(index).unwrap_or(u64::MAX);
        self.epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, number))?;
        self.sockets.push(socket);
        self.addresses.push(address);
        Ok(index)
    }

    /// `epoll` waits in whole milliseconds; the rest of a millisecond is slept in short naps between reads.
    fn wait(&mut self, patience: Nanos) -> Result<usize, LoadError> {
        let millis = u16::try_from(patience / MILLISECOND).unwrap_or(u16::MAX);
        if millis == 0 && patience > 0 {
            std::thread::sleep(Duration::from_nanos(patience.min(NAP)));
        }
        match self.epoll.wait(&mut self.events, EpollTimeout::from(millis)) {
            Ok(ready) => Ok(ready),
            Err(nix::errno::Errno::EINTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn flush(sockets: &[UdpSocket], wire: &mut Wire, batch: &mut Vec<Datagram<'_>>) -> u64 {
    let socket = batch.first().and_then(|first| sockets.get(first.socket));
    let refused = socket.map_or(0, |socket| wire.send(socket, batch));
    batch.clear();
    refused
}

/// Sockets that are read in one turn.
const EVENTS_MAX: usize = 256;
/// Batches read from one socket before the next socket is read.
const BATCHES_PER_TURN: usize = 16;
/// The longest sleep that does not watch the sockets.
const NAP: Nanos = 100_000;
const PAIR_TRIES_MAX: usize = 200;
const RECEIVE_BYTES: usize = 8 << 20;
