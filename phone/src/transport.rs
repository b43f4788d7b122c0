//! The transport of a phone's SIP: a datagram socket, or one connection to the switch (RFC 3261 §18).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::message::{Message, StreamEvent, StreamParser};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::Instant;

/// The transport of a phone's SIP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// One connection, opened by the phone.
    Tcp,
    /// Datagrams.
    #[default]
    Udp,
}

/// A socket or connection to the switch.
pub(super) struct Connection {
    switch: SocketAddr,
    local: SocketAddr,
    kind: Kind,
}

enum Kind {
    /// `stream` is `None` after the switch has closed it, until the next send.
    Tcp {
        stream: Option<TcpStream>,
        parser: StreamParser,
        buffer: Vec<u8>,
        ping_at: Instant,
    },
    Udp {
        socket: UdpSocket,
        buffer: Vec<u8>,
    },
}

/// Input from the switch.
pub(super) enum Arrived {
    /// The connection is closed.
    Closed,
    /// A complete message, or one datagram.
    Message { from: SocketAddr, bytes: Bytes },
}

impl Connection {
    pub(super) async fn open(carrier: Carrier, switch: SocketAddr) -> io::Result<Connection> {
        let (local, kind) = match carrier {
            Carrier::Udp => {
                let socket = UdpSocket::bind(SocketAddr::new(towards(switch).await?, 0)).await?;
                (socket.local_addr()?, Kind::Udp { socket, buffer: vec![0; DATAGRAM_BYTES_MAX] })
            }
            Carrier::Tcp => {
                let stream = connect(switch).await?;
                let local = stream.local_addr()?;
                let parser = StreamParser::new();
                let ping_at = Instant::now() + PING_EVERY;
                (local, Kind::Tcp { stream: Some(stream), parser, buffer: vec![0; CHUNK_BYTES], ping_at })
            }
        };
        Ok(Connection { switch, local, kind })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The flow to the switch, for the user agent.
    pub(super) fn flow(&self) -> Flow {
        self.flow_of(self.switch)
    }

    pub(super) fn flow_of(&self, remote: SocketAddr) -> Flow {
        let protocol = if self.is_tcp() { Protocol::Tcp } else { Protocol::Udp };
        Flow { listener: ListenerId(0), remote, protocol }
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.kind, Kind::Tcp { .. })
    }

    /// Returns the next input. It is cancel-safe.
    pub(super) async fn receive(&mut self) -> Arrived {
        loop {
            match &mut self.kind {
                Kind::Udp { socket, buffer } => {
                    // An error here is an ICMP message about a sent datagram; the socket remains usable.
                    let Ok((length, from)) = socket.recv_from(buffer).await else { continue };
                    let bytes = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
                    return Arrived::Message { from, bytes };
                }
                Kind::Tcp { stream, parser, buffer, ping_at } => {
                    if let Some(bytes) = next_message(parser) {
                        return Arrived::Message { from: self.switch, bytes };
                    }
                    let Some(open) = stream else { return std::future::pending().await };
                    let read = tokio::select! {
                        read = open.read(buffer) => read,
                        // The switch closes idle connections (RFC 5626 §3.5.1). If the system does not accept the
                        // ping now, there are unsent bytes, which keep the connection open as well.
                        () = tokio::time::sleep_until(*ping_at) => {
                            *ping_at = Instant::now() + PING_EVERY;
                            let _ = open.try_write(b"\r\n\r\n");
                            continue;
                        }
                    };
                    match read {
                        Ok(length @ 1..) => parser.push(buffer.get(..length).unwrap_or_default()),
                        Ok(0) | Err(_) => {
                            (*stream, *parser) = (None, StreamParser::new());
                            return Arrived::Closed;
                        }
                    }
                }
            }
        }
    }

    /// Sends to the destination that the user agent specifies; a connection sends everything to its peer.
    pub(super) async fn send(&mut self, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        match &mut self.kind {
            Kind::Udp { socket, .. } => socket.send_to(bytes, to).await.map(drop),
            Kind::Tcp { stream, .. } => {
                let open = match stream {
                    Some(open) => open,
                    None => {
                        let open = stream.insert(connect(self.switch).await?);
                        self.local = open.local_addr()?;
                        open
                    }
                };
                let sent = tokio::time::timeout(SEND_MAX, open.write_all(bytes)).await;
                let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                if sent.is_err() {
                    *stream = None;
                }
                sent
            }
        }
    }
}

/// Returns the next message of the stream; messages that the guard refuses are skipped.
fn next_message(parser: &mut StreamParser) -> Option<Bytes> {
    while let Some(event) = parser.poll() {
        match event {
            StreamEvent::Message(Message::Request(request)) => return Some(request.to_bytes()),
            StreamEvent::Message(Message::Response(response)) => return Some(response.to_bytes()),
            StreamEvent::Ping | StreamEvent::Rejected { .. } => {}
        }
    }
    None
}

async fn connect(switch: SocketAddr) -> io::Result<TcpStream> {
    let stream = tokio::time::timeout(SEND_MAX, TcpStream::connect(switch)).await;
    let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The local address of packets to `switch`, which the Contact has to contain.
async fn towards(switch: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if switch.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a datagram socket sends nothing; the system only looks up the route.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(switch).await?;
    Ok(socket.local_addr()?.ip())
}

/// The largest SIP datagram that a phone accepts.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Bytes that one read of a connection takes.
const CHUNK_BYTES: usize = 16_384;
/// How often a connection is kept alive.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Longest time for connecting, or for sending one message on a connection.
const SEND_MAX: Duration = Duration::from_secs(5);
