//! The listeners, and the receiving and sending side for the driver.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::flow::{Flow, ListenerId, Protocol, canonical};
use crate::transport::arrival::Arrival;
use crate::transport::error::{BindError, SendError};
use crate::transport::routes::local_address_towards;
use crate::transport::tcp::connection::Connection;
use crate::transport::tcp::limits::{ARRIVALS_MAX, PAUSE_MAX, PAUSE_MIN, TcpLimits};
use crate::transport::tcp::table::{Table, TcpCounters};
use crate::transport::tcp::task;
use crate::transport::tcp::tls::{Servers, TlsSettings};

/// The receiving side of our TCP listeners and connections; dropping it ends all of them.
pub struct TcpTransport {
    sender: TcpSender,
    arrivals: mpsc::Receiver<Arrival>,
    _stop: watch::Sender<()>,
}

/// The sending side; cheap to clone.
#[derive(Clone)]
pub struct TcpSender {
    shared: Arc<Shared>,
}

/// Settings of connections.
#[derive(Clone, Default)]
pub struct TcpConfig {
    /// Limits of all connections together.
    pub limits: TcpLimits,
    /// Certificates and authorities; without them no connection over TLS is accepted or opened.
    pub tls: Option<Arc<dyn TlsSettings>>,
    /// The origins of pages that may open a WebSocket, such as `https://phone.example`; any when there are none.
    pub origins: Vec<String>,
}

struct Shared {
    listeners: Vec<(Protocol, SocketAddr)>,
    servers: Servers,
    tls: Option<Arc<dyn TlsSettings>>,
    origins: Arc<[String]>,
    table: Arc<Table>,
    arrivals: mpsc::Sender<Arrival>,
    stop: watch::Receiver<()>,
}

impl TcpTransport {
    /// Opens a listener on each address; the n-th is [`ListenerId`] n, whatever its transport. Port 0 selects a
    /// free one. Runs within a tokio runtime.
    ///
    /// # Errors
    /// The first address that cannot be bound: in use, not ours, not permitted.
    pub fn bind(addresses: &[(Protocol, SocketAddr)], config: TcpConfig) -> Result<Self, BindError> {
        let TcpConfig { limits, tls, origins } = config;
        let (mut sockets, mut listeners) = (Vec::new(), Vec::new());
        for (protocol, address) in addresses {
            let failed = |source| BindError { protocol: *protocol, address: *address, source };
            let v6_only =
                addresses.iter().any(|(_, other)| other.is_ipv4() && other.port() == address.port());
            let socket = open(*address, v6_only).map_err(failed)?;
            listeners.push((*protocol, socket.local_addr().map_err(failed)?));
            sockets.push((*protocol, socket));
        }
        let (sender, arrivals) = mpsc::channel(ARRIVALS_MAX);
        let (stop, stopped) = watch::channel(());
        let table = Arc::new(Table::new(limits));
        let servers = Servers::default();
        let shared = Arc::new(Shared {
            listeners,
            servers,
            tls,
            origins: origins.into(),
            table,
            arrivals: sender,
            stop: stopped,
        });
        for ((protocol, socket), id) in sockets.into_iter().zip(0..) {
            let accepting = Arc::clone(&shared);
            task::listener(Arc::clone(&shared.table), socket, move |socket| {
                accept(socket, (ListenerId(id), protocol), Arc::clone(&accepting))
            });
        }
        Ok(TcpTransport { sender: TcpSender { shared }, arrivals, _stop: stop })
    }

    /// A handle for sending.
    pub fn sender(&self) -> TcpSender {
        self.sender.clone()
    }

    /// The next arrival. Cancel-safe: nothing is lost.
    pub async fn recv(&mut self) -> Arrival {
        match self.arrivals.recv().await {
            Some(arrival) => arrival,
            // Our own sender keeps the channel open.
            None => std::future::pending().await,
        }
    }

    /// The next arrival, if there is one.
    pub fn try_recv(&mut self) -> Option<Arrival> {
        self.arrivals.try_recv().ok()
    }
}

impl TcpSender {
    /// Queues a message for the connection of a flow, immediately or not at all. A flow of [`ListenerId::is_outbound`]
    /// is connected if needed. A closed connection that the peer had opened is not reopened from here, because that
    /// would not reach a phone behind a NAT.
    ///
    /// # Errors
    /// When it was not queued. A later loss is reported by [`Arrival::Closed`] or [`Arrival::Unopened`].
    pub fn try_send(&self, flow: &Flow, bytes: Bytes) -> Result<(), SendError> {
        let outcome = match self.shared.table.outbox(flow) {
            Some(outbox) => outbox.push(bytes),
            None if flow.listener.is_outbound() => {
                let connection = self.shared.connection(*flow, None).ok_or(SendError::Closed);
                connection.and_then(|connection| {
                    // Before the task runs: a connection that is refused immediately drops its queue.
                    let queued = connection.seat.outbox.push(bytes);
                    task::connection(connection.obituary(), connection.dial());
                    queued
                })
            }
            None => Err(SendError::Closed),
        };
        if outcome.is_err() {
            self.shared.table.dropped.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Opens the connection to `remote`, for a caller that first needs to know whether it is possible and
    /// which local address it has.
    ///
    /// # Errors
    /// The system's error, or that there are too many connections.
    pub async fn connect(&self, remote: SocketAddr) -> io::Result<(Flow, SocketAddr)> {
        let flow = Flow::tcp_to(remote);
        let limits = self.shared.table.limits();
        let stream = tokio::time::timeout(limits.stall_max, TcpStream::connect(flow.remote)).await??;
        let local = stream.local_addr()?;
        let connection = self.shared.connection(flow, Some(local)).ok_or(io::ErrorKind::QuotaExceeded)?;
        task::connection(connection.obituary(), connection.serve(stream));
        Ok((flow, local))
    }

    /// The flow of the TLS connection that we open to the server of this name at `remote`; `None` when there
    /// are too many names.
    pub fn tls_to(&self, server: &str, remote: SocketAddr) -> Option<Flow> {
        let listener = self.shared.servers.listener(server)?;
        Some(Flow { listener, remote: canonical(remote), protocol: Protocol::Tls })
    }

    /// Marks the peer of a flow as authenticated; its connection may stay open.
    pub fn trust(&self, flow: &Flow) {
        if let Some(outbox) = self.shared.table.outbox(flow) {
            outbox.trust();
        }
    }

    /// Holds the connection of a flow open while it is silent, because a call uses it, or stops holding it. It also
    /// applies to a connection that is opened later.
    pub fn hold(&self, flow: &Flow, is_held: bool) {
        self.shared.table.hold(flow, is_held);
    }

    /// Closes the connection of a flow, if there is one.
    pub fn close(&self, flow: &Flow) {
        if let Some(outbox) = self.shared.table.outbox(flow) {
            outbox.end();
        }
    }

    /// The transports and addresses of our listeners, with their actual ports.
    pub fn listeners(&self) -> impl Iterator<Item = (Protocol, SocketAddr)> {
        self.shared.listeners.iter().copied()
    }

    /// Our address as the peer of a flow sees it. For a connection that we opened it is that of a listener,
    /// because the connection may be closed when the peer has another request.
    ///
    /// # Errors
    /// When there is no route.
    pub fn local_address(&self, flow: &Flow) -> io::Result<SocketAddr> {
        let listener = usize::try_from(flow.listener.0).ok().and_then(|at| self.shared.listeners.get(at));
        let same = |(protocol, local): &&(Protocol, SocketAddr)| {
            *protocol == flow.protocol && local.is_ipv4() == flow.remote.is_ipv4()
        };
        let connected = self.shared.table.local(flow);
        let listener = listener.or_else(|| self.shared.listeners.iter().find(same)).map(|(_, local)| local);
        let known = match listener {
            Some(listener) if !listener.ip().is_unspecified() => Some(*listener),
            Some(listener) => {
                connected.map(|local| SocketAddr::new(local.ip(), listener.port())).or(Some(*listener))
            }
            None => connected,
        };
        match known.map(canonical) {
            Some(known) if !known.ip().is_unspecified() => Ok(known),
            known => {
                let port = known.map_or(flow.protocol.default_port(), |known| known.port());
                Ok(SocketAddr::new(local_address_towards(flow.remote.ip())?, port))
            }
        }
    }

    /// Totals since the start.
    pub fn counters(&self) -> TcpCounters {
        self.shared.table.counters()
    }
}

impl Shared {
    fn connection(&self, flow: Flow, local: Option<SocketAddr>) -> Option<Connection> {
        let (seat, unsent) = self.table.seat(flow, local)?;
        Some(Connection {
            seat,
            unsent,
            arrivals: self.arrivals.clone(),
            tls: self.tls.clone(),
            server: self.servers.name(flow.listener),
            origins: Arc::clone(&self.origins),
            stop: self.stop.clone(),
        })
    }
}

/// Accepts connections until the transport is dropped. When the system fails because all descriptors are in
/// use, the pauses between attempts grow: immediate retries would only use CPU time.
async fn accept(listener: Arc<TcpListener>, (id, protocol): (ListenerId, Protocol), shared: Arc<Shared>) {
    let mut stop = shared.stop.clone();
    let mut pause: Option<Duration> = None;
    loop {
        let next = async {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            listener.accept().await
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((stream, remote)) => {
                pause = None;
                take(stream, Flow { listener: id, remote: canonical(remote), protocol }, &shared);
            }
            Err(error) if is_of_one_peer(&error) => {}
            Err(_) => {
                shared.table.accept_errors.fetch_add(1, Ordering::Relaxed);
                pause = Some(pause.map_or(PAUSE_MIN, |pause| (pause * 2).min(PAUSE_MAX)));
            }
        }
    }
}

fn take(stream: TcpStream, flow: Flow, shared: &Shared) {
    let local = stream.local_addr().ok();
    match shared.connection(flow, local) {
        Some(connection) => {
            shared.table.accepted.fetch_add(1, Ordering::Relaxed);
            task::connection(connection.obituary(), connection.serve(stream));
        }
        // Closed without a response, because there is no request yet.
        None => drop(shared.table.refused.fetch_add(1, Ordering::Relaxed)),
    }
}

fn is_of_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn open(address: SocketAddr, v6_only: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(SocketProtocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(v6_only)?;
    }
    // Unlike with UDP, this does not let two listeners share the port; it lets a new engine start while
    // connections of the previous one are still closing.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1_024;
