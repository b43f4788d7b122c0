//! The wire of one thread with `epoll`: one wait for all its sockets, one read for each that is ready, its buffers.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::arrival::{Arrival, Calls, Event, IcmpError, Sent};
use crate::endpoint::Endpoint;
use crate::limits::{BATCH, DATAGRAM_BYTES_MAX};
use crate::receiving::Receiver;
use crate::sending::Sender;
use crate::waker::Waker;

/// The sockets that a thread waits for, and the buffers into which it receives.
pub(crate) struct EpollWire {
    epoll: Epoll,
    events: Box<[EpollEvent]>,
    ready: usize,
    /// Number of the wait; it wraps.
    turn: u32,
    receiver: Receiver,
    arrivals: Vec<Arrival>,
    sender: Sender,
    waits: u64,
}

impl EpollWire {
    /// A wire without sockets, whose wait `waker` ends.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn open(waker: &Waker) -> io::Result<EpollWire> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(waker, EpollEvent::new(EpollFlags::EPOLLIN, WAKER_TOKEN))?;
        Ok(EpollWire {
            epoll,
            events: vec![EpollEvent::empty(); EVENTS_MAX].into_boxed_slice(),
            ready: 0,
            turn: 0,
            receiver: Receiver::new(),
            arrivals: Vec::with_capacity(BATCH),
            sender: Sender::default(),
            waits: 0,
        })
    }

    /// Waits for `endpoint` from now on; its events carry `token`, which is never `u64::MAX`.
    ///
    /// # Errors
    /// The system's limit is reached, or it is already watched.
    pub(crate) fn watch(&self, endpoint: &Endpoint, token: u64) -> io::Result<()> {
        Ok(self.epoll.add(endpoint, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    /// Ceases to wait for `endpoint`; waiting datagrams stay in the socket. Closing it also ends the wait.
    ///
    /// # Errors
    /// It was not watched.
    pub(crate) fn unwatch(&self, endpoint: &Endpoint) -> io::Result<()> {
        Ok(self.epoll.delete(endpoint)?)
    }

    /// Lets datagrams gather for `gather`, then waits for an event, `patience` at most from then on, rounded up to
    /// milliseconds; without `patience` it waits without limit. Returns the number of events.
    ///
    /// `gather` is no longer than `patience`. The waker does not end it.
    ///
    /// # Errors
    /// Only errors that a bug in this program causes; a signal is not an error.
    pub(crate) fn wait(&mut self, patience: Option<Duration>, gather: Duration) -> io::Result<usize> {
        let gather = patience.map_or(gather, |patience| gather.min(patience));
        if !gather.is_zero() {
            self.waits += 1;
            std::thread::sleep(gather);
        }
        self.turn = self.turn.wrapping_add(1);
        self.waits += 1;
        let timeout = patience.map_or(EpollTimeout::NONE, |patience| {
            let left_ms = patience.saturating_sub(gather).as_micros().div_ceil(1_000);
            EpollTimeout::from(u16::try_from(left_ms).unwrap_or(u16::MAX))
        });
        self.ready = 0;
        self.ready = match self.epoll.wait(&mut self.events, timeout) {
            Err(Errno::EINTR) => 0,
            ready => ready?,
        };
        Ok(self.ready)
    }

    /// An event of the last wait.
    pub(crate) fn event(&self, place: usize) -> Option<Event> {
        let event = self.events.get(..self.ready)?.get(place)?;
        Some(match event.data() {
            WAKER_TOKEN => Event::Woken,
            token => Event::Ready { token, error: event.events().contains(EpollFlags::EPOLLERR) },
        })
    }

    /// Receives datagrams that wait in the socket into the buffers, and returns their number.
    ///
    /// It need not receive all: a socket with more is ready again at the next wait, and is then read again. Errors of
    /// earlier sends are not returned, see [`EpollWire::unreachable`].
    pub(crate) fn receive(&mut self, endpoint: &mut Endpoint) -> usize {
        let most = endpoint.pace.ask(self.turn, BATCH);
        self.arrivals.clear();
        let count = self.receiver.receive(endpoint, most, &mut self.arrivals);
        endpoint.pace.came(count);
        count
    }

    /// Like [`EpollWire::receive`]; a result below [`BATCH`](crate::BATCH) means that no more datagrams wait.
    pub(crate) fn drain(&mut self, endpoint: &Endpoint) -> usize {
        self.arrivals.clear();
        self.receiver.receive(endpoint, BATCH, &mut self.arrivals)
    }

    /// The datagram at `index` of those last received, and its information.
    pub(crate) fn datagram(&mut self, index: usize) -> Option<(Arrival, &mut [u8])> {
        let arrival = *self.arrivals.get(index)?;
        let datagram = self.receiver.buffer_mut(index)?.get_mut(..arrival.len)?;
        Some((arrival, datagram))
    }

    /// The length of the datagram at `index` of those last received, and its complete buffer of
    /// [`DATAGRAM_BYTES_MAX`](crate::DATAGRAM_BYTES_MAX) bytes.
    pub(crate) fn buffer(&mut self, index: usize) -> Option<(usize, &mut [u8])> {
        let len = self.arrivals.get(index)?.len;
        Some((len, self.receiver.buffer_mut(index)?))
    }

    /// Sets the length of the datagram at `index` of those last received, at most
    /// [`DATAGRAM_BYTES_MAX`](crate::DATAGRAM_BYTES_MAX); added bytes keep the content of its buffer.
    pub(crate) fn resize(&mut self, index: usize, len: usize) {
        if let Some(arrival) = self.arrivals.get_mut(index) {
            arrival.len = len.min(DATAGRAM_BYTES_MAX);
        }
    }

    /// Sends the datagrams at `indices` of those last received to one address, in order.
    pub(crate) fn send(&mut self, endpoint: &Endpoint, to: SocketAddr, indices: &[u8]) -> Sent {
        let datagram = |index: u8| {
            let index = usize::from(index);
            let len = self.arrivals.get(index)?.len;
            self.receiver.buffer(index)?.get(..len).map(IoSlice::new)
        };
        if let [index] = indices {
            let datagram = datagram(*index);
            return datagram
                .map_or_else(Sent::default, |datagram| self.sender.send(endpoint, to, &[datagram]));
        }
        let mut slices = [IoSlice::new(&[]); BATCH];
        let mut count = 0;
        let datagrams = indices.iter().filter_map(|index| datagram(*index));
        for (slot, datagram) in slices.iter_mut().zip(datagrams) {
            *slot = datagram;
            count += 1;
        }
        self.sender.send(endpoint, to, slices.get(..count).unwrap_or_default())
    }

    /// Sends a datagram that was not received; returns whether the system accepted it.
    pub(crate) fn send_own(&mut self, endpoint: &Endpoint, to: SocketAddr, datagram: &[u8]) -> bool {
        self.sender.send_one(endpoint, to, datagram)
    }

    /// Takes one entry from the socket's error queue; `None` when it is empty.
    pub(crate) fn unreachable(&mut self, endpoint: &Endpoint) -> Option<IcmpError> {
        self.receiver.unreachable(endpoint)
    }

    /// The system calls since the last call of this function.
    pub(crate) fn take_calls(&mut self) -> Calls {
        Calls {
            wait: std::mem::take(&mut self.waits),
            receive: std::mem::take(&mut self.receiver.calls),
            send: std::mem::take(&mut self.sender.calls),
        }
    }
}

impl fmt::Debug for EpollWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpollWire").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// No socket has this token.
const WAKER_TOKEN: u64 = u64::MAX;
/// Sockets that are reported by one wait.
const EVENTS_MAX: usize = 256;
