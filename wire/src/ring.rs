//! The wire of one thread with io_uring: datagrams arrive in provided buffers without a call for each, and many are
//! sent with one call (`io_uring_setup(2)`, `io_uring_prep_recvmsg_multishot(3)`).
//!
//! Every socket has one receive that stays (multishot). The kernel carries it out within a call of this thread
//! (`DEFER_TASKRUN`): then it moves waiting datagrams from the sockets into buffers. A datagram that is sent on stays
//! in its buffer until the call that submits it has returned.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::SockaddrStorage;

use crate::address;
use crate::arrival::{Arrival, Calls, Event, IcmpError, Sent};
use crate::control::facts;
use crate::endpoint::Endpoint;
use crate::limits::{BATCH, DATAGRAM_BYTES_MAX};
use crate::outgoing::Outgoing;
use crate::provided::{BUFFERS, GROUP, Head, PAYLOAD, Provided, template};
use crate::receiving::Receiver;
use crate::sending::{Sender, is_of_earlier};
use crate::system::{self, Wait};
use crate::waker::Waker;

/// The sockets that a thread waits for, and the buffers into which it receives.
pub(crate) struct RingWire {
    /// Dropped before the memory that it uses.
    ring: IoUring,
    is_enabled: bool,
    provided: Provided,
    outgoing: Outgoing,
    template: Box<libc::msghdr>,
    sockets: Sockets,
    /// Sockets with datagrams or errors; the first `reported` of them are events of the last wait.
    ready: Vec<u32>,
    reported: usize,
    /// Sockets whose receive must be started again.
    due: Vec<u32>,
    waker: RawFd,
    is_waker_watched: bool,
    is_woken: bool,
    /// The datagrams that were last received: in these buffers, or in those of `receiver`.
    arrivals: Vec<Arrival>,
    held: Vec<u16>,
    receiver: Receiver,
    sender: Sender,
    completions: Vec<(u64, i32, u32)>,
    done: Sent,
    waits: u64,
    sends: u64,
}

/// Sockets by their places and by their descriptors.
#[derive(Default)]
struct Sockets {
    places: Vec<Socket>,
    free: Vec<u32>,
    /// The place of each descriptor, plus one.
    by_fd: Vec<u32>,
    /// The next buffer in a socket's list, by buffer.
    next: Box<[u16]>,
}

/// A socket and the datagrams that arrived at it.
#[derive(Clone, Copy, Debug)]
struct Socket {
    token: u64,
    fd: RawFd,
    /// The first and the last buffer with a datagram that was not received yet.
    first: u16,
    last: u16,
    /// Whether the kernel has its receive.
    is_armed: bool,
    is_watched: bool,
    is_ready: bool,
    has_error: bool,
}

impl RingWire {
    /// A wire without sockets, whose wait `waker` ends. The waker must outlive it.
    ///
    /// # Errors
    /// The kernel has no io_uring, one before 6.1, or refuses it.
    pub(crate) fn open(waker: &Waker) -> io::Result<RingWire> {
        // The ring belongs to the thread that enables it, which is not the one that opens it.
        let ring = IoUring::builder()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let provided = Provided::register(&ring)?;
        let next = vec![NONE; usize::from(BUFFERS)].into_boxed_slice();
        Ok(RingWire {
            ring,
            is_enabled: false,
            provided,
            outgoing: Outgoing::new(),
            template: Box::new(template()),
            sockets: Sockets { next, ..Sockets::default() },
            ready: Vec::new(),
            reported: 0,
            due: Vec::new(),
            waker: waker.as_fd().as_raw_fd(),
            is_waker_watched: false,
            is_woken: false,
            arrivals: Vec::with_capacity(BATCH),
            held: Vec::with_capacity(BATCH),
            receiver: Receiver::new(),
            sender: Sender::default(),
            completions: Vec::with_capacity(usize::from(BUFFERS)),
            done: Sent::default(),
            waits: 0,
            sends: 0,
        })
    }

    /// See [`Wire::watch`](crate::Wire::watch).
    pub(crate) fn watch(&mut self, endpoint: &Endpoint, token: u64) -> io::Result<()> {
        let fd = endpoint.fd();
        if let Some(place) = self.sockets.place(fd) {
            if self.sockets.get(place).is_some_and(|socket| socket.is_watched) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.forget_place(place);
        }
        let place = self.sockets.add(fd, token);
        self.receive_on(place);
        Ok(())
    }

    /// See [`Wire::unwatch`](crate::Wire::unwatch). Datagrams that arrived until now are returned by
    /// [`RingWire::drain`].
    pub(crate) fn unwatch(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        let watched = self.sockets.place(endpoint.fd()).filter(|place| {
            self.sockets.get(*place).is_some_and(|socket| std::mem::take(&mut socket.is_watched))
        });
        let place = watched.ok_or(io::ErrorKind::NotFound)?;
        self.cancel(&[place]);
        Ok(())
    }

    /// See [`Wire::forget`](crate::Wire::forget).
    pub(crate) fn forget(&mut self, endpoints: [&Endpoint; 2]) {
        let places: Vec<u32> =
            endpoints.iter().filter_map(|endpoint| self.sockets.place(endpoint.fd())).collect();
        for place in &places {
            if let Some(socket) = self.sockets.get(*place) {
                socket.is_watched = false;
            }
        }
        self.cancel(&places);
        places.iter().for_each(|place| self.forget_place(*place));
    }

    /// See [`Wire::wait`](crate::Wire::wait). Gathering ends as soon as there are enough datagrams.
    pub(crate) fn wait(&mut self, patience: Option<Duration>, gather: Duration) -> io::Result<usize> {
        self.release();
        self.is_woken = false;
        self.keep_ready();
        self.receive_again();
        if !self.is_waker_watched {
            self.is_waker_watched = true;
            let poll = opcode::PollAdd::new(Fd(self.waker), libc::POLLIN as u32);
            self.push(poll.build().user_data(WAKER));
        }
        let gather = patience.map_or(gather, |patience| gather.min(patience));
        let rest = patience.map(|patience| patience.saturating_sub(gather));
        if !self.ready.is_empty() {
            self.enter(0, None)?;
        } else if gather.is_zero() {
            self.enter(1, rest)?;
        } else {
            self.enter(ENOUGH, Some(gather))?;
            if self.ready.is_empty() && !self.is_woken {
                self.enter(1, rest)?;
            }
        }
        self.reported = self.ready.len();
        Ok(self.reported + usize::from(self.is_woken))
    }

    /// See [`Wire::event`](crate::Wire::event).
    pub(crate) fn event(&self, place: usize) -> Option<Event> {
        let Some(ready) = self.ready.get(..self.reported).and_then(|ready| ready.get(place)) else {
            return (place == self.reported && self.is_woken).then_some(Event::Woken);
        };
        let socket = self.sockets.places.get(*ready as usize)?;
        Some(Event::Ready { token: socket.token, error: socket.has_error })
    }

    /// See [`Wire::receive`](crate::Wire::receive).
    pub(crate) fn receive(&mut self, endpoint: &Endpoint) -> usize {
        self.release();
        let Some(place) = self.sockets.place(endpoint.fd()) else { return 0 };
        self.take_arrived(place)
    }

    /// See [`Wire::drain`](crate::Wire::drain).
    pub(crate) fn drain(&mut self, endpoint: &Endpoint) -> usize {
        self.release();
        if let Some(place) = self.sockets.place(endpoint.fd()) {
            let is_watched = self.sockets.get(place).is_some_and(|socket| socket.is_watched);
            // A receive that ended with the error of an earlier datagram is started again, and reads the datagrams
            // after it.
            for _ in 0..CATCH_UPS_MAX {
                if !is_watched || !self.catch_up(place) {
                    break;
                }
            }
            let count = self.take_arrived(place);
            if is_watched || count > 0 {
                return count;
            }
            self.forget_place(place);
        }
        self.receiver.receive(endpoint, BATCH, &mut self.arrivals)
    }

    /// See [`Wire::datagram`](crate::Wire::datagram).
    #[inline]
    pub(crate) fn datagram(&mut self, index: usize) -> Option<(Arrival, &mut [u8])> {
        let arrival = *self.arrivals.get(index)?;
        let (_, buffer) = self.buffer(index)?;
        Some((arrival, buffer.get_mut(..arrival.len)?))
    }

    /// See [`Wire::buffer`](crate::Wire::buffer).
    #[inline]
    pub(crate) fn buffer(&mut self, index: usize) -> Option<(usize, &mut [u8])> {
        let len = self.arrivals.get(index)?.len;
        match self.held.get(index) {
            Some(buffer) => Some((len, self.provided.buffer_mut(*buffer)?.get_mut(PAYLOAD..)?)),
            None => Some((len, self.receiver.buffer_mut(index)?)),
        }
    }

    /// See [`Wire::resize`](crate::Wire::resize).
    pub(crate) fn resize(&mut self, index: usize, len: usize) {
        if let Some(arrival) = self.arrivals.get_mut(index) {
            arrival.len = len.min(DATAGRAM_BYTES_MAX);
        }
    }

    /// See [`Wire::send`](crate::Wire::send): they are queued, unless they were received without the ring.
    pub(crate) fn send(&mut self, endpoint: &Endpoint, to: SocketAddr, indices: &[u8]) -> Sent {
        let mut outcome = Sent::default();
        let is_of_family = to.is_ipv4() == endpoint.local().is_ipv4();
        let name = SockaddrStorage::from(to);
        for index in indices.iter().map(|index| usize::from(*index)) {
            let Some(len) = self.arrivals.get(index).map(|arrival| arrival.len) else { continue };
            let Some(buffer) = self.held.get(index).copied() else {
                let datagram = self.receiver.buffer(index).and_then(|buffer| buffer.get(..len));
                let slice = [IoSlice::new(datagram.unwrap_or_default())];
                outcome += self.sender.send(endpoint, to, &slice);
                continue;
            };
            if is_of_family && self.queue(endpoint.fd(), buffer, name, len) {
                outcome.queued += 1;
            } else {
                outcome.failed += 1;
            }
        }
        outcome
    }

    /// See [`Wire::flush`](crate::Wire::flush).
    pub(crate) fn flush(&mut self) -> Sent {
        self.submit_outgoing();
        std::mem::take(&mut self.done)
    }

    /// See [`Wire::send_own`](crate::Wire::send_own).
    pub(crate) fn send_own(&mut self, endpoint: &Endpoint, to: SocketAddr, datagram: &[u8]) -> bool {
        self.sender.send_one(endpoint, to, datagram)
    }

    /// See [`Wire::unreachable`](crate::Wire::unreachable).
    pub(crate) fn unreachable(&mut self, endpoint: &Endpoint) -> Option<IcmpError> {
        self.receiver.unreachable(endpoint)
    }

    /// See [`Wire::take_calls`](crate::Wire::take_calls).
    pub(crate) fn take_calls(&mut self) -> Calls {
        Calls {
            wait: std::mem::take(&mut self.waits),
            receive: std::mem::take(&mut self.receiver.calls),
            send: std::mem::take(&mut self.sends) + std::mem::take(&mut self.sender.calls),
        }
    }

    /// Submits queued entries, lets the kernel receive, and waits for `want` completions, for `patience` at most.
    fn enter(&mut self, want: u32, patience: Option<Duration>) -> io::Result<()> {
        self.waits += 1;
        if !self.is_enabled {
            self.ring.submitter().register_enable_rings()?;
            self.is_enabled = true;
        }
        let submitted = u32::try_from(self.ring.submission().len()).unwrap_or(u32::MAX);
        let outcome = system::enter_ring(&self.ring, submitted, Wait { want, patience });
        self.reap();
        match outcome.map_err(|error| (Errno::from_raw(error.raw_os_error().unwrap_or(0)), error)) {
            Ok(_) | Err((Errno::ETIME | Errno::EINTR | Errno::EAGAIN | Errno::EBUSY, _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    /// Reads the completions.
    fn reap(&mut self) {
        let mut completions = std::mem::take(&mut self.completions);
        let new = self.ring.completion().map(|entry| (entry.user_data(), entry.result(), entry.flags()));
        completions.extend(new);
        for (data, result, flags) in completions.drain(..) {
            match data {
                WAKER => (self.is_waker_watched, self.is_woken) = (false, true),
                CANCEL => {}
                data if data >= SEND => self.refused(data - SEND, result),
                place => self.arrived(u32::try_from(place).unwrap_or(u32::MAX), result, flags),
            }
        }
        self.completions = completions;
    }

    fn arrived(&mut self, place: u32, result: i32, flags: u32) {
        let goes_on = cqueue::more(flags);
        if let Some(buffer) = cqueue::buffer_select(flags) {
            self.provided.take(buffer);
            if result < 0 || !self.sockets.append(place, buffer) {
                self.provided.give(buffer);
            }
        }
        let Some(socket) = self.sockets.get(place) else { return };
        socket.is_armed = goes_on;
        let errno = Errno::from_raw(-result);
        socket.has_error |= result < 0 && errno != Errno::ENOBUFS && socket.is_watched;
        let (is_watched, is_news) = (socket.is_watched, socket.first != NONE || socket.has_error);
        if is_news && !std::mem::replace(&mut socket.is_ready, true) {
            self.ready.push(place);
        }
        // The receive continues when it had no buffer, after the error of an earlier datagram, and when the kernel
        // ended it because a queued error keeps the socket ready. Any other error would occur again immediately.
        let may_go_on = matches!(errno, Errno::ENOBUFS | Errno::ECANCELED) || is_of_earlier(errno);
        if is_watched && !goes_on && (result >= 0 || may_go_on) {
            self.due.push(place);
        }
    }

    /// A datagram that was not sent. The kernel reports no others.
    fn refused(&mut self, index: u64, result: i32) {
        let errno = Errno::from_raw(-result);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some((fd, header)) = self.outgoing.refused(index, is_of_earlier(errno)) {
            self.push(send_entry(fd, header, index));
        }
    }

    fn queue(&mut self, fd: RawFd, buffer: u16, to: SockaddrStorage, len: usize) -> bool {
        if self.outgoing.is_full() {
            self.submit_outgoing();
        }
        let datagram = self.provided.buffer(buffer).and_then(|bytes| bytes.get(PAYLOAD..)?.get(..len));
        let Some((index, header)) =
            datagram.and_then(|datagram| self.outgoing.add((fd, buffer), to, datagram))
        else {
            return false;
        };
        self.provided.hold(buffer);
        self.push(send_entry(fd, header, index));
        true
    }

    /// Sends queued datagrams. The kernel carries out a send without waiting when it is submitted, and has then copied
    /// the datagram.
    fn submit_outgoing(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        // Those that met the error of an earlier datagram are queued once more by the first call.
        for _ in 0..SUBMITS_MAX {
            if self.ring.submission().is_empty() {
                break;
            }
            let waits = self.waits;
            // A failure leaves the rest for the next call; only a bug in this program causes one.
            let _ = self.enter(0, None);
            (self.waits, self.sends) = (waits, self.sends + 1);
        }
        self.done += self.outgoing.take(|buffer| self.provided.give(buffer));
        self.provided.publish();
    }

    /// Lets the kernel move waiting datagrams of a socket into buffers; returns whether there may be more although none
    /// arrived.
    fn catch_up(&mut self, place: u32) -> bool {
        if let Some(at) = self.due.iter().position(|due| *due == place) {
            self.due.swap_remove(at);
            self.receive_on(place);
        }
        // As in `submit_outgoing`.
        let _ = self.enter(0, None);
        self.due.contains(&place) && self.sockets.get(place).is_some_and(|socket| socket.first == NONE)
    }

    /// Ends the receives of sockets; their last completions have arrived afterwards.
    fn cancel(&mut self, places: &[u32]) {
        self.submit_outgoing();
        self.due.retain(|due| !places.contains(due));
        for place in places {
            if self.sockets.get(*place).is_some_and(|socket| socket.is_armed) {
                self.push(opcode::AsyncCancel::new(u64::from(*place)).build().user_data(CANCEL));
            }
        }
        for _ in 0..CANCELS_MAX {
            let is_armed = |place: &u32| self.sockets.get(*place).is_some_and(|socket| socket.is_armed);
            if !places.iter().any(is_armed) || self.enter(1, Some(CANCEL_MAX)).is_err() {
                break;
            }
        }
    }

    /// Begins the receive of a socket.
    fn receive_on(&mut self, place: u32) {
        let Some(socket) = self.sockets.get(place).filter(|socket| socket.is_watched && !socket.is_armed)
        else {
            return;
        };
        socket.is_armed = true;
        let receive = opcode::RecvMsgMulti::new(Fd(socket.fd), &raw const *self.template, GROUP);
        self.push(receive.build().user_data(u64::from(place)));
    }

    fn push(&mut self, entry: Entry) {
        // SAFETY: what an entry points to outlives it: `template` and `outgoing` stay in their places until this wire
        // is dropped, a place of `outgoing` is not used again before the entry was submitted, and the buffers that it
        // refers to are held until then.
        while !unsafe { system::push_entry(&mut self.ring, &entry) } {
            // The queue is full: the kernel takes it. As in `submit_outgoing`.
            if self.enter(0, None).is_err() {
                return;
            }
        }
    }

    /// Moves datagrams that arrived at a socket to `arrivals`, [`BATCH`] at most.
    fn take_arrived(&mut self, place: u32) -> usize {
        while self.arrivals.len() < BATCH
            && let Some(buffer) = self.sockets.pop(place)
        {
            match self.provided.buffer(buffer).and_then(arrival) {
                Some(arrival) => {
                    self.arrivals.push(arrival);
                    self.held.push(buffer);
                }
                None => self.provided.give(buffer),
            }
        }
        self.arrivals.len()
    }

    /// Gives the buffers of the datagrams last received back.
    fn release(&mut self) {
        self.arrivals.clear();
        if self.held.is_empty() {
            return;
        }
        self.held.drain(..).for_each(|buffer| self.provided.give(buffer));
        self.provided.publish();
    }

    /// Keeps those sockets ready that still have datagrams, or an error that was not reported.
    fn keep_ready(&mut self) {
        let (sockets, mut reported) = (&mut self.sockets, std::mem::take(&mut self.reported));
        self.ready.retain(|place| {
            let was_reported = reported > 0;
            reported = reported.saturating_sub(1);
            let Some(socket) = sockets.get(*place) else { return false };
            socket.has_error &= !was_reported;
            socket.is_ready = socket.is_watched && (socket.first != NONE || socket.has_error);
            socket.is_ready
        });
    }

    /// Restarts receives that have ended, except those whose error is still to be reported: until the owner has read
    /// it, the error would keep the socket ready.
    fn receive_again(&mut self) {
        for place in std::mem::take(&mut self.due) {
            if self.sockets.get(place).is_some_and(|socket| socket.has_error) {
                self.due.push(place);
            } else {
                self.receive_on(place);
            }
        }
    }

    fn forget_place(&mut self, place: u32) {
        while let Some(buffer) = self.sockets.pop(place) {
            self.provided.give(buffer);
        }
        self.provided.publish();
        if let Some(at) = self.ready.iter().position(|ready| *ready == place) {
            self.ready.remove(at);
            self.reported -= usize::from(at < self.reported);
        }
        self.due.retain(|due| *due != place);
        self.sockets.remove(place);
    }
}

impl Sockets {
    fn place(&self, fd: RawFd) -> Option<u32> {
        self.by_fd.get(usize::try_from(fd).ok()?)?.checked_sub(1)
    }

    #[inline]
    fn get(&mut self, place: u32) -> Option<&mut Socket> {
        self.places.get_mut(place as usize)
    }

    fn add(&mut self, fd: RawFd, token: u64) -> u32 {
        let socket = Socket {
            token,
            fd,
            first: NONE,
            last: NONE,
            is_armed: false,
            is_watched: true,
            is_ready: false,
            has_error: false,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(socket);
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(free) = self.get(place) {
            *free = socket;
        }
        self.set(fd, place + 1);
        place
    }

    fn remove(&mut self, place: u32) {
        let Some(socket) = self.get(place) else { return };
        socket.is_watched = false;
        // A receive that the kernel still has would be mistaken for that of the next socket there.
        if !socket.is_armed {
            let fd = socket.fd;
            self.set(fd, 0);
            self.free.push(place);
        }
    }

    fn set(&mut self, fd: RawFd, value: u32) {
        let Ok(fd) = usize::try_from(fd) else { return };
        if self.by_fd.len() <= fd {
            self.by_fd.resize(fd + 1, 0);
        }
        if let Some(place) = self.by_fd.get_mut(fd) {
            *place = value;
        }
    }

    /// Adds a buffer to the list of a socket; returns whether there is such a socket.
    fn append(&mut self, place: u32, buffer: u16) -> bool {
        let Some(socket) = self.places.get_mut(place as usize) else { return false };
        let before = std::mem::replace(&mut socket.last, buffer);
        if socket.first == NONE {
            socket.first = buffer;
        } else if let Some(next) = self.next.get_mut(usize::from(before)) {
            *next = buffer;
        }
        if let Some(next) = self.next.get_mut(usize::from(buffer)) {
            *next = NONE;
        }
        true
    }

    /// Takes the first buffer from the list of a socket.
    fn pop(&mut self, place: u32) -> Option<u16> {
        let socket = self.places.get_mut(place as usize)?;
        let buffer = Some(socket.first).filter(|first| *first != NONE)?;
        socket.first = self.next.get(usize::from(buffer)).copied().unwrap_or(NONE);
        Some(buffer)
    }
}

/// The information about the datagram in a buffer; `None` without an address of a known family.
#[inline]
fn arrival(buffer: &[u8]) -> Option<Arrival> {
    let head = Head::read(buffer)?;
    let facts = facts(head.control(buffer));
    Some(Arrival {
        source: address::read(Head::name(buffer)?)?,
        len: head.len,
        truncated: head.flags & libc::MSG_TRUNC != 0,
        stamp_us: facts.stamp_us,
        drops: facts.drops,
    })
}

/// A send that is reported only when it fails.
fn send_entry(fd: RawFd, header: *const libc::msghdr, index: usize) -> Entry {
    opcode::SendMsg::new(Fd(fd), header)
        .flags(libc::MSG_DONTWAIT as u32)
        .build()
        .flags(Flags::SKIP_SUCCESS)
        .user_data(SEND + index as u64)
}

impl fmt::Debug for RingWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingWire").field("sockets", &self.sockets.places.len()).finish_non_exhaustive()
    }
}

// SAFETY: the pointers in `template` are null. The ring is used by one thread at a time, which `&mut self` ensures;
// the kernel refuses calls of any thread but the first that waits.
unsafe impl Send for RingWire {}

/// No buffer.
const NONE: u16 = u16::MAX;
const SUBMISSIONS: u32 = 1_024;
/// As many as there are buffers, and some for each of several thousand sockets; the kernel keeps those beyond it.
const COMPLETIONS: u32 = 8_192;
/// Gathering ends at this number of datagrams.
const ENOUGH: u32 = 12;
/// Calls until everything queued is sent: the first one, and one for those queued again.
const SUBMITS_MAX: usize = 4;
/// Receives that a drain begins again.
const CATCH_UPS_MAX: usize = 4;
/// Calls until a receive has ended; one is enough.
const CANCELS_MAX: usize = 100;
const CANCEL_MAX: Duration = Duration::from_millis(10);
/// The owner of a completion; a receive has the place of its socket.
const WAKER: u64 = 1 << 62;
const CANCEL: u64 = WAKER + 1;
const SEND: u64 = 1 << 63;
