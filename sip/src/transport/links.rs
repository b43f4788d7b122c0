//! Datagrams between the nodes of a cluster over TLS instead of UDP. Each node opens a connection to every node that it
//! sends to, and both peers present a certificate.
//!
//! A frame is the length of a datagram in two bytes (network order), followed by the datagram. The first frame of a
//! connection contains the listener address of the node that opened it. Nothing is sent in the other direction.
//!
//! As over UDP, a datagram is delivered or lost: transactions retransmit it (RFC 3261 §17). Each node has its own
//! queue, so a node that is down or does not read delays no other node and no call.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, CommonState, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::flow::{Flow, ListenerId};
use crate::transport::error::SendError;

/// The information about the other nodes.
pub trait NodePeers: Send + Sync {
    /// Whether a node has this address.
    fn has(&self, address: IpAddr) -> bool;

    /// Whether a certificate, whose authority was already checked, belongs to the node with this listener.
    fn is_of(&self, certificate: &CertificateDer<'_>, listener: SocketAddr) -> bool;

    /// Records that a connection to or from this address was refused or lost.
    fn failed(&self, address: SocketAddr, error: &io::Error);
}

/// The security of connections between nodes: both peers present certificates. The settings check their authority, and
/// [`NodePeers::is_of`] their names.
#[derive(Clone)]
pub struct NodeTls {
    /// Settings of connections that other nodes open.
    pub server: Arc<ServerConfig>,
    /// Settings of connections that this node opens.
    pub client: Arc<ClientConfig>,
    /// The other nodes.
    pub peers: Arc<dyn NodePeers>,
}

/// The sending side; clones share it.
#[derive(Clone)]
pub struct NodeLinkSender(Arc<Shared>);

/// The task of the connections, before it runs.
pub struct NodeLinkTask {
    shared: Arc<Shared>,
    socket: TcpListener,
    /// The queues of nodes to which this node has not sent before.
    new: mpsc::Receiver<(SocketAddr, mpsc::Receiver<Bytes>)>,
}

/// Received datagrams, each with the flow on which to answer its sender.
pub(super) type Received = mpsc::Receiver<(Flow, Bytes)>;

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLinkCounters {
    /// Connections that were opened to other nodes, and by them.
    pub opened: u64,
    /// Connections that could not be opened, or were refused.
    pub refused: u64,
    /// Datagrams that were not sent, or not accepted.
    pub dropped: u64,
}

struct Shared {
    listener: ListenerId,
    /// Our listener's address, which names this node to others.
    address: SocketAddr,
    tls: NodeTls,
    received: mpsc::Sender<(Flow, Bytes)>,
    new: mpsc::Sender<(SocketAddr, mpsc::Receiver<Bytes>)>,
    /// *Bounds*: [`NODES_MAX`].
    queues: Mutex<HashMap<SocketAddr, mpsc::Sender<Bytes>>>,
    opened: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

impl NodeLinkTask {
    /// The connections of a node that listens at `socket`; its datagrams have flows of `listener`.
    pub(super) fn new(
        socket: TcpListener,
        (listener, address): (ListenerId, SocketAddr),
        tls: NodeTls,
    ) -> (Self, NodeLinkSender, Received) {
        let (received, arriving) = mpsc::channel(ARRIVALS_MAX);
        let (new, news) = mpsc::channel(NODES_MAX);
        let shared = Arc::new(Shared {
            listener,
            address,
            tls,
            received,
            new,
            queues: Mutex::default(),
            opened: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let sender = NodeLinkSender(Arc::clone(&shared));
        (NodeLinkTask { shared, socket, new: news }, sender, arriving)
    }

    /// Runs forever. After a panic it can be run again, and connections are reopened.
    pub async fn run(&mut self) {
        let mut outgoing: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut incoming: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some((remote, queue)) = self.new.recv() => {
                    let shared = Arc::clone(&self.shared);
                    outgoing.push(async move { shared.send_all(remote, queue).await }.boxed());
                }
                accepted = self.socket.accept(), if incoming.len() < INCOMING_MAX => match accepted {
                    // Only members may connect.
                    Ok((stream, from)) if self.shared.tls.peers.has(from.ip()) => {
                        let shared = Arc::clone(&self.shared);
                        incoming.push(async move { shared.receive_all(stream, from).await }.boxed());
                    }
                    Ok(_) => drop(self.shared.refused.fetch_add(1, Ordering::Relaxed)),
                    // For example, no file descriptor is free.
                    Err(_) => sleep(PAUSE).await,
                },
                Some(()) = outgoing.next() => {}
                Some(()) = incoming.next() => {}
            }
        }
    }
}

impl NodeLinkSender {
    /// Our listener.
    pub(super) fn listener(&self) -> ListenerId {
        self.0.listener
    }

    /// Queues a datagram for the node that listens at an address.
    ///
    /// # Errors
    /// When it was not queued: too many wait, because the node does not read or cannot be reached.
    pub(super) fn try_send(&self, remote: SocketAddr, bytes: &Bytes) -> Result<(), SendError> {
        let sent = self.queue(remote, bytes);
        if sent.is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    fn queue(&self, remote: SocketAddr, bytes: &Bytes) -> Result<(), SendError> {
        // Code under the lock does not panic; if it did, the queues would still be consistent.
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&remote) {
            match queue.try_send(bytes.clone()) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => return Err(SendError::Full),
                // The task was restarted.
                Err(mpsc::error::TrySendError::Closed(_)) => drop(queues.remove(&remote)),
            }
        }
        if queues.len() >= NODES_MAX {
            return Err(SendError::Closed);
        }
        let (queue, unsent) = mpsc::channel(UNSENT_MAX);
        queue.try_send(bytes.clone()).map_err(|_| SendError::Full)?;
        self.0.new.try_send((remote, unsent)).map_err(|_| SendError::Full)?;
        queues.insert(remote, queue);
        Ok(())
    }

    /// The totals.
    pub fn counters(&self) -> NodeLinkCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NodeLinkCounters {
            opened: read(&self.0.opened),
            refused: read(&self.0.refused),
            dropped: read(&self.0.dropped),
        }
    }
}

impl Shared {
    /// Sends the queued datagrams of a node; opens a connection when there is something to send.
    async fn send_all(&self, remote: SocketAddr, mut queue: mpsc::Receiver<Bytes>) {
        while let Some(first) = queue.recv().await {
            let result = match timeout(OPENS_WITHIN, self.open(remote)).await {
                Ok(Ok(stream)) => self.pump(stream, first, &mut queue).await,
                Ok(Err(error)) => Err(error),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            let Err(error) = result else { continue };
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.tls.peers.failed(remote, &error);
            // The waiting datagrams are too old: their transactions have retransmitted them, or given up.
            sleep(RETRY_AFTER).await;
            while queue.try_recv().is_ok() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Opens a connection to a node, whose certificate must be that node's.
    async fn open(&self, remote: SocketAddr) -> io::Result<client::TlsStream<TcpStream>> {
        let socket = if remote.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Other nodes identify this node by the address of its listener.
        socket.bind(SocketAddr::new(self.address.ip(), 0))?;
        let stream = socket.connect(remote).await?;
        prepare(&stream);
        let connector = TlsConnector::from(Arc::clone(&self.tls.client));
        let stream = connector.connect(ServerName::from(remote.ip()), stream).await?;
        self.check(CommonState::peer_certificates(stream.get_ref().1), remote)?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    /// Checks that the peer presented the certificate of this node.
    fn check(&self, shown: Option<&[CertificateDer<'_>]>, listener: SocketAddr) -> io::Result<()> {
        let own = shown.and_then(<[_]>::first);
        match own.is_some_and(|own| self.tls.peers.is_of(own, listener)) {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("the certificate is not one of the node that listens at {listener}"),
            )),
        }
    }

    /// Sends queued datagrams until the connection ends; an error gives the reason of its loss.
    async fn pump(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        first: Bytes,
        queue: &mut mpsc::Receiver<Bytes>,
    ) -> io::Result<()> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        write_frame(&mut writer, self.address.to_string().as_bytes()).await?;
        write_frame(&mut writer, &first).await?;
        let mut nothing = [0; 1];
        loop {
            tokio::select! {
                next = queue.recv() => match next {
                    Some(bytes) => write_frame(&mut writer, &bytes).await?,
                    None => return Ok(()),
                },
                // The peer never sends, so it has closed. The next queued datagram opens another connection.
                read = reader.read(&mut nothing) => return read.map(drop),
            }
        }
    }

    /// Receives the datagrams of a node until it closes the connection.
    async fn receive_all(&self, stream: TcpStream, from: SocketAddr) {
        prepare(&stream);
        let accepted = timeout(OPENS_WITHIN, self.accept(stream)).await;
        let (mut reader, node) = match accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return self.tls.peers.failed(from, &error);
            }
        };
        self.opened.fetch_add(1, Ordering::Relaxed);
        // The end of a connection is not a failure: the node opens another one when it has something to send.
        while let Ok(datagram) = read_frame(&mut reader).await {
            if self.received.try_send((Flow::udp(self.listener, node), datagram)).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Accepts a connection, and returns it with the listener of the node that opened it.
    async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(BufReader<server::TlsStream<TcpStream>>, SocketAddr)> {
        let stream = TlsAcceptor::from(Arc::clone(&self.tls.server)).accept(stream).await?;
        let certificate = CommonState::peer_certificates(stream.get_ref().1).and_then(<[_]>::first).cloned();
        let mut reader = BufReader::new(stream);
        let name = read_frame(&mut reader).await?;
        let node = std::str::from_utf8(&name).ok().and_then(|name| name.parse().ok());
        let node: SocketAddr = node.ok_or(io::ErrorKind::InvalidData)?;
        self.check(certificate.as_ref().map(std::slice::from_ref), node)?;
        Ok((reader, node))
    }
}

/// Makes small messages leave immediately, and detects a dead peer while nothing is sent.
fn prepare(stream: &TcpStream) {
    // Without these options the socket still works.
    let _ = stream.set_nodelay(true);
    let keep_alive =
        TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keep_alive);
}

async fn write_frame(writer: &mut (impl AsyncWrite + Unpin), datagram: &[u8]) -> io::Result<()> {
    let len = u16::try_from(datagram.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut frame = Vec::with_capacity(datagram.len() + 2);
    frame.extend_from_slice(&len.to_be_bytes());
    frame.extend_from_slice(datagram);
    let written = async {
        writer.write_all(&frame).await?;
        writer.flush().await
    };
    timeout(WRITES_WITHIN, written).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    let mut len = [0; 2];
    reader.read_exact(&mut len).await?;
    let mut datagram = vec![0; usize::from(u16::from_be_bytes(len))];
    reader.read_exact(&mut datagram).await?;
    Ok(Bytes::from(datagram))
}

/// The maximum number of nodes with a queue.
const NODES_MAX: usize = 256;
/// The maximum number of connections from other nodes.
const INCOMING_MAX: usize = 512;
/// The maximum number of datagrams queued for one node: as many as a busy node sends in a second.
const UNSENT_MAX: usize = 1_024;
/// The maximum number of datagrams of all nodes queued for the driver.
const ARRIVALS_MAX: usize = 4_096;
/// The timeout for opening a connection, including its handshake.
const OPENS_WITHIN: Duration = Duration::from_secs(3);
/// The timeout for a node to read a datagram.
const WRITES_WITHIN: Duration = Duration::from_secs(3);
/// The pause after a connection could not be opened, or was lost.
const RETRY_AFTER: Duration = Duration::from_millis(300);
/// The pause after the system failed to accept a connection.
const PAUSE: Duration = Duration::from_millis(50);
const PROBE_AFTER: Duration = Duration::from_secs(5);
const PROBE_EVERY: Duration = Duration::from_secs(2);
const PROBES: u32 = 3;
