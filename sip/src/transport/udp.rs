//! UDP listeners: datagrams in with their flow, datagrams out without blocking.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket as StdUdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use crate::flow::{Flow, ListenerId, Protocol, canonical};
use crate::transport::error::{BindError, SendError};
use crate::transport::refused::{request_errors, take_errors};
use crate::transport::routes::Routes;

/// The longest possible UDP datagram, in bytes; no datagram is ever truncated.
pub const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Totals of all listeners since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Errors while receiving; none of them ends the loop.
    pub receive_errors: u64,
    /// Datagrams passed to the system.
    pub sent: u64,
    /// Datagrams lost because a socket's buffer was full.
    pub dropped: u64,
    /// Datagrams that the system refused to send.
    pub send_errors: u64,
}

/// The receiving side of our UDP listeners.
pub struct UdpTransport {
    sockets: Vec<UdpSocket>,
    sender: UdpSender,
    buffer: Vec<u8>,
    /// The listener whose turn it is, so that a flood on one does not block the others.
    turn: usize,
}

/// The sending side; cheap to clone, and usable from any thread.
#[derive(Clone)]
pub struct UdpSender {
    shared: Arc<Shared>,
}

struct Shared {
    listeners: Vec<Listener>,
    /// For listeners on all addresses.
    routes: Mutex<Routes>,
    /// Datagrams that hosts refused; `has_refused` avoids the lock.
    refused: Mutex<VecDeque<(Flow, Bytes)>>,
    has_refused: AtomicBool,
    received: AtomicU64,
    receive_errors: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    send_errors: AtomicU64,
}

struct Listener {
    /// The same socket as the receiver's. A plain system call sends without blocking, and unlike the
    /// runtime's call it works before the runtime has first seen the socket writable.
    socket: StdUdpSocket,
    local: SocketAddr,
}

impl UdpTransport {
    /// Opens a listener on each address; the n-th is [`ListenerId`] n. Port 0 selects a free one. Runs within
    /// a tokio runtime.
    ///
    /// # Errors
    /// The first address that cannot be bound: in use, not ours, not permitted.
    pub fn bind(addresses: &[SocketAddr]) -> Result<Self, BindError> {
        let (mut sockets, mut listeners) = (Vec::new(), Vec::new());
        for address in addresses {
            // An IPv6 listener also serves IPv4 unless that port has its own IPv4 listener.
            let v6_only = addresses.iter().any(|other| other.is_ipv4() && other.port() == address.port());
            let (socket, listener) = listen(*address, v6_only)?;
            sockets.push(socket);
            listeners.push(listener);
        }
        let shared = Shared {
            listeners,
            routes: Mutex::default(),
            refused: Mutex::default(),
            has_refused: AtomicBool::new(false),
            received: AtomicU64::new(0),
            receive_errors: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            send_errors: AtomicU64::new(0),
        };
        let sender = UdpSender { shared: Arc::new(shared) };
        Ok(UdpTransport { sockets, sender, buffer: vec![0; DATAGRAM_BYTES_MAX], turn: 0 })
    }

    /// The address of a listener, with its actual port.
    pub(super) fn address(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.sender.listeners().find(|(id, _)| *id == listener).map(|(_, address)| address)
    }

    /// Opens a listener again, at another port if the port of `configured` is 0.
    ///
    /// # Errors
    /// When the address cannot be bound, there is no such listener, or a sender exists already.
    pub(super) fn reopen(&mut self, id: ListenerId, configured: SocketAddr) -> Result<(), BindError> {
        let at = id.0 as usize;
        let shared = Arc::get_mut(&mut self.sender.shared);
        let places = self.sockets.get_mut(at).zip(shared.and_then(|shared| shared.listeners.get_mut(at)));
        let Some((socket, listener)) = places else {
            let source = io::ErrorKind::NotFound.into();
            return Err(BindError { protocol: Protocol::Udp, address: configured, source });
        };
        // The earlier socket is closed after the new one is bound, so its port is not selected again.
        (*socket, *listener) = listen(configured, false)?;
        Ok(())
    }

    /// A handle for sending.
    pub fn sender(&self) -> UdpSender {
        self.sender.clone()
    }

    /// The next datagram and its flow. Cancel-safe: nothing is lost.
    ///
    /// Each datagram gets a buffer of exactly its length. A slice of a shared arena would save copying some
    /// hundred bytes, but would keep the whole arena for as long as a dialog keeps one message.
    pub async fn recv(&mut self) -> (Flow, Bytes) {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// The next datagram, if one has arrived. A driver calls it after [`UdpTransport::recv`], before it waits again.
    pub fn try_recv(&mut self) -> Option<(Flow, Bytes)> {
        for _ in 0..self.sockets.len() {
            let at = self.next_turn();
            if let Some(socket) = self.sockets.get(at)
                && let Ok((len, remote)) = socket.try_recv_from(&mut self.buffer)
            {
                return Some(self.received(at, len, remote));
            }
        }
        None
    }

    /// The next of our datagrams that the host of its destination refused, with its first bytes. Errors are detected
    /// when the next datagram is sent or received.
    pub fn refused(&mut self) -> Option<(Flow, Bytes)> {
        self.sender.shared.next_refused()
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<(Flow, Bytes)> {
        let mut errors = 0;
        let mut waiting = 0;
        while waiting < self.sockets.len() {
            let at = self.turn;
            let Some(socket) = self.sockets.get(at) else {
                self.turn = 0;
                continue;
            };
            let mut buffer = ReadBuf::new(&mut self.buffer);
            match socket.poll_recv_from(context, &mut buffer) {
                Poll::Ready(Ok(remote)) => {
                    let len = buffer.filled().len();
                    self.next_turn();
                    return Poll::Ready(self.received(at, len, remote));
                }
                Poll::Ready(Err(_)) if errors < ERRORS_AT_ONCE => {
                    // An error caused by an earlier datagram of ours; the socket still works.
                    errors += 1;
                    self.sender.shared.receive_errors.fetch_add(1, Ordering::Relaxed);
                    self.sender.shared.note_errors(at);
                }
                Poll::Ready(Err(_)) => {
                    self.sender.shared.receive_errors.fetch_add(1, Ordering::Relaxed);
                    self.next_turn();
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => {
                    waiting += 1;
                    self.next_turn();
                }
            }
        }
        Poll::Pending
    }

    fn next_turn(&mut self) -> usize {
        let turn = self.turn;
        self.turn = if turn + 1 < self.sockets.len() { turn + 1 } else { 0 };
        turn
    }

    fn received(&self, at: usize, len: usize, remote: SocketAddr) -> (Flow, Bytes) {
        self.sender.shared.received.fetch_add(1, Ordering::Relaxed);
        let listener = ListenerId(u32::try_from(at).unwrap_or(u32::MAX));
        let datagram = Bytes::copy_from_slice(self.buffer.get(..len).unwrap_or_default());
        (Flow::udp(listener, remote), datagram)
    }
}

impl Shared {
    fn routes(&self) -> MutexGuard<'_, Routes> {
        // After a panic the table is still valid: each entry is complete.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the errors of a listener; returns whether there were any.
    fn note_errors(&self, at: usize) -> bool {
        let Some(listener) = self.listeners.get(at) else { return false };
        take_errors(&listener.socket, |destination, bytes| {
            let flow = Flow::udp(ListenerId(u32::try_from(at).unwrap_or(u32::MAX)), canonical(destination));
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() < REFUSED_MAX {
                refused.push_back((flow, bytes));
                self.has_refused.store(true, Ordering::Relaxed);
            }
        })
    }

    fn next_refused(&self) -> Option<(Flow, Bytes)> {
        if !self.has_refused.load(Ordering::Relaxed) {
            return None;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let next = refused.pop_front();
        self.has_refused.store(!refused.is_empty(), Ordering::Relaxed);
        next
    }
}

impl UdpSender {
    /// Sends a datagram on a flow, immediately or not at all.
    ///
    /// # Errors
    /// When it was not sent; every case is also counted.
    pub fn try_send(&self, flow: &Flow, datagram: &[u8]) -> Result<(), SendError> {
        let listener = self.listener(flow.listener).filter(|_| flow.protocol == Protocol::Udp);
        let listener = listener.ok_or(SendError::UnknownListener)?;
        let remote = match flow.remote {
            SocketAddr::V4(v4) if listener.local.is_ipv6() => {
                SocketAddr::new(IpAddr::V6(v4.ip().to_ipv6_mapped()), v4.port())
            }
            remote => remote,
        };
        let mut sent = listener.socket.send_to(datagram, remote);
        for _ in 0..SEND_AGAIN_MAX {
            // The system reports the error of an earlier datagram, to any destination, and does not send this one.
            let at = usize::try_from(flow.listener.0).unwrap_or(usize::MAX);
            match &sent {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock && self.shared.note_errors(at) => {
                    sent = listener.socket.send_to(datagram, remote);
                }
                _ => break,
            }
        }
        match sent {
            Ok(_) => {
                self.shared.sent.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                Err(SendError::Full)
            }
            Err(error) => {
                self.shared.send_errors.fetch_add(1, Ordering::Relaxed);
                Err(SendError::Refused(error))
            }
        }
    }

    /// The addresses of our listeners, with their actual ports.
    pub fn listeners(&self) -> impl Iterator<Item = (ListenerId, SocketAddr)> {
        self.shared.listeners.iter().zip(0..).map(|(listener, id)| (ListenerId(id), listener.local))
    }

    /// The listener that can send to an address: the first of its family, otherwise one of IPv6 that serves
    /// both.
    pub fn listener_towards(&self, remote: IpAddr) -> Option<ListenerId> {
        let same = |(_, local): &(ListenerId, SocketAddr)| local.is_ipv4() == remote.to_canonical().is_ipv4();
        let any = |(_, local): &(ListenerId, SocketAddr)| local.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        self.listeners().find(same).or_else(|| self.listeners().find(any)).map(|(id, _)| id)
    }

    /// Our address as the peer of a flow sees it, for Via, Contact and SDP when no external address is
    /// configured. For a listener on all addresses the routing table decides.
    ///
    /// # Errors
    /// When there is no such listener or no route.
    pub fn local_address(&self, flow: &Flow) -> io::Result<SocketAddr> {
        let listener = self.listener(flow.listener).ok_or(io::ErrorKind::NotFound)?;
        if !listener.local.ip().is_unspecified() {
            return Ok(listener.local);
        }
        let local = self.shared.routes().local_address_towards(now(), flow.remote.ip())?;
        Ok(SocketAddr::new(local, listener.local.port()))
    }

    /// Totals since the start.
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            received: read(&self.shared.received),
            receive_errors: read(&self.shared.receive_errors),
            sent: read(&self.shared.sent),
            dropped: read(&self.shared.dropped),
            send_errors: read(&self.shared.send_errors),
        }
    }

    fn listener(&self, id: ListenerId) -> Option<&Listener> {
        self.shared.listeners.get(usize::try_from(id.0).ok()?)
    }
}

#[expect(clippy::disallowed_methods, reason = "routes are kept for a moment of the real time")]
fn now() -> Instant {
    Instant::now()
}

/// A listener's socket. Without SO_REUSEADDR: with two engines on one port each would receive half of the
/// calls.
/// The two handles of a new socket.
fn listen(address: SocketAddr, v6_only: bool) -> Result<(UdpSocket, Listener), BindError> {
    let failed = |source| BindError { protocol: Protocol::Udp, address, source };
    let socket = open(address, v6_only).map_err(failed)?;
    let local = socket.local_addr().map_err(failed)?;
    let listener = Listener { socket: socket.try_clone().map_err(failed)?, local };
    Ok((UdpSocket::from_std(socket).map_err(failed)?, listener))
}

fn open(address: SocketAddr, v6_only: bool) -> io::Result<StdUdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(SocketProtocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(v6_only)?;
    }
    // The system grants what its own limits allow; a smaller buffer must not prevent the start.
    let _granted = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    let _granted = socket.set_send_buffer_size(SEND_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    request_errors(&socket);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Large enough for some seconds of a flood, so that a busy driver loses nothing.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// Large enough for the responses to such a flood.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// Refused datagrams queued for the driver; further ones count as lost.
const REFUSED_MAX: usize = 1_024;
/// How often a datagram is sent again after errors of earlier ones.
const SEND_AGAIN_MAX: u32 = 3;
/// Errors read from one socket before the others get their turn.
const ERRORS_AT_ONCE: u32 = 16;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    async fn next(transport: &mut UdpTransport) -> (Flow, Bytes) {
        tokio::time::timeout(Duration::from_secs(20), transport.recv()).await.expect("a datagram comes")
    }

    #[tokio::test]
    async fn a_datagram_is_answered_by_its_flow() {
        let mut transport = UdpTransport::bind(&[loopback(), loopback()]).unwrap();
        let sender = transport.sender();
        let listeners: Vec<_> = sender.listeners().collect();
        let phone = StdUdpSocket::bind(loopback()).unwrap();
        phone.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        for (id, local) in listeners {
            phone.send_to(b"ping", local).unwrap();
            let (flow, datagram) = next(&mut transport).await;
            assert_eq!(flow, Flow::udp(id, phone.local_addr().unwrap()));
            assert_eq!(datagram.as_ref(), b"ping");
            sender.try_send(&flow, b"pong").unwrap();
            let mut buffer = [0; 16];
            assert_eq!(phone.recv_from(&mut buffer).unwrap(), (4, local));
            assert_eq!(sender.local_address(&flow).unwrap(), local);
        }
        let expected = Counters { received: 2, sent: 2, ..Counters::default() };
        assert_eq!(sender.counters(), expected);
    }

    #[tokio::test]
    async fn the_longest_datagram_is_whole_and_the_empty_one_is_one() {
        let mut transport = UdpTransport::bind(&[loopback()]).unwrap();
        let (_, local) = transport.sender().listeners().next().unwrap();
        let phone = StdUdpSocket::bind(loopback()).unwrap();
        for len in [65_507, 0, 1] {
            phone.send_to(&vec![b'x'; len], local).unwrap();
            assert_eq!(next(&mut transport).await.1.len(), len);
        }
    }

    #[tokio::test]
    async fn a_flood_at_one_listener_does_not_silence_the_other() {
        let mut transport = UdpTransport::bind(&[loopback(), loopback()]).unwrap();
        let locals: Vec<_> = transport.sender().listeners().map(|(_, local)| local).collect();
        let phone = StdUdpSocket::bind(loopback()).unwrap();
        for _ in 0..50 {
            phone.send_to(b"flood", locals[0]).unwrap();
        }
        phone.send_to(b"call", locals[1]).unwrap();
        let mut heard = vec![next(&mut transport).await.1];
        while let Some((_, datagram)) = transport.try_recv() {
            heard.push(datagram);
        }
        while heard.len() < 51 {
            heard.push(next(&mut transport).await.1);
        }
        let place = heard.iter().position(|datagram| datagram.as_ref() == b"call").unwrap();
        assert!(place < 50, "it came in turn, not last: {place}");
    }

    #[tokio::test]
    async fn a_taken_port_is_an_error_that_names_it() {
        let first = UdpTransport::bind(&[loopback()]).unwrap();
        let (_, taken) = first.sender().listeners().next().unwrap();
        let error = UdpTransport::bind(&[taken]).err().unwrap();
        assert_eq!(error.to_string(), format!("listen on udp://{taken}"));
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn what_cannot_be_sent_is_an_error_and_counted() {
        let transport = UdpTransport::bind(&[loopback()]).unwrap();
        let sender = transport.sender();
        let flow = Flow::udp(ListenerId(0), "127.0.0.1:9".parse().unwrap());
        assert!(matches!(sender.try_send(&flow, &vec![0; 70_000]), Err(SendError::Refused(_))));
        let strange = Flow { listener: ListenerId(7), ..flow };
        assert!(matches!(sender.try_send(&strange, b"x"), Err(SendError::UnknownListener)));
        let stream = Flow { protocol: Protocol::Tcp, ..flow };
        assert!(matches!(sender.try_send(&stream, b"x"), Err(SendError::UnknownListener)));
        assert_eq!(sender.counters().send_errors, 1);
    }

    /// The error of one datagram is reported with its destination, and the next one, to another destination, is sent.
    #[tokio::test]
    async fn a_refused_datagram_is_reported_and_stops_no_other() {
        for local in ["127.0.0.1:0", "[::]:0"] {
            let Ok(mut transport) = UdpTransport::bind(&[local.parse().unwrap()]) else {
                eprintln!("skipped: this host has no IPv6");
                continue;
            };
            let sender = transport.sender();
            let closed = StdUdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
            let phone = StdUdpSocket::bind(loopback()).unwrap();
            phone.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let gone = Flow::udp(ListenerId(0), closed);
            let there = Flow::udp(ListenerId(0), phone.local_addr().unwrap());
            sender.try_send(&gone, b"INVITE sip:gone").unwrap();
            // On the loopback the error is reported immediately; elsewhere after a round trip.
            sender.try_send(&there, b"still sent").unwrap();
            assert_eq!(phone.recv(&mut [0; 16]).unwrap(), 10);
            assert_eq!(transport.refused(), Some((gone, Bytes::from_static(b"INVITE sip:gone"))), "{local}");
            assert_eq!((transport.refused(), sender.counters().send_errors), (None, 0));
        }
    }

    #[tokio::test]
    async fn a_listener_on_all_addresses_names_the_one_that_the_peer_sees() {
        let transport = UdpTransport::bind(&["0.0.0.0:0".parse().unwrap()]).unwrap();
        let sender = transport.sender();
        let (id, local) = sender.listeners().next().unwrap();
        let flow = Flow::udp(id, "127.0.0.1:5060".parse().unwrap());
        assert_eq!(sender.local_address(&flow).unwrap(), SocketAddr::new(flow.remote.ip(), local.port()));
        assert_eq!(sender.listener_towards(flow.remote.ip()), Some(id));
        assert_eq!(sender.listener_towards("2001:db8::1".parse().unwrap()), None);
    }

    #[tokio::test]
    async fn an_ipv6_listener_serves_ipv4_phones_under_their_own_address() {
        let Ok(mut transport) = UdpTransport::bind(&["[::]:0".parse().unwrap()]) else {
            eprintln!("skipped: this host has no IPv6");
            return;
        };
        let sender = transport.sender();
        let (id, local) = sender.listeners().next().unwrap();
        let phone = StdUdpSocket::bind(loopback()).unwrap();
        phone.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        phone.send_to(b"ping", SocketAddr::new(Ipv4Addr::LOCALHOST.into(), local.port())).unwrap();
        let (flow, _) = next(&mut transport).await;
        assert_eq!(flow, Flow::udp(id, phone.local_addr().unwrap()));
        sender.try_send(&flow, b"pong").unwrap();
        assert_eq!(phone.recv(&mut [0; 16]).unwrap(), 4);
        assert_eq!(sender.listener_towards(flow.remote.ip()), Some(id));
    }
}
