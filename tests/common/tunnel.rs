//! Carries the SIP of a phone without TLS or WebSocket over a connection with it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sidetone_sip::message::{Message, StreamEvent, StreamParser};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// A connection to a switch, and local addresses whose messages it carries. One client at a time.
pub struct Tunnel {
    /// For a phone on TCP.
    pub tcp: SocketAddr,
    /// For a client in datagrams.
    pub udp: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

enum Far {
    Tls(Box<TlsStream<TcpStream>>, StreamParser),
    Ws(Box<WebSocketStream<TcpStream>>),
    Wss(Box<WebSocketStream<TlsStream<TcpStream>>>),
}

impl Tunnel {
    /// Over TLS to the server of that name.
    pub async fn tls(to: SocketAddr, client: ClientConfig, name: &str) -> Tunnel {
        let stream = secured(to, client, name).await.unwrap();
        Tunnel::open(Far::Tls(Box::new(stream), StreamParser::new()), "TLS").await
    }

    /// Over a WebSocket.
    pub async fn ws(to: SocketAddr) -> Tunnel {
        let stream = TcpStream::connect(to).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(request("ws", to), stream).await.unwrap();
        Tunnel::open(Far::Ws(Box::new(socket)), "WS").await
    }

    /// Over a WebSocket over TLS.
    pub async fn wss(to: SocketAddr, client: ClientConfig, name: &str) -> Tunnel {
        let stream = secured(to, client, name).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(request("wss", to), stream).await.unwrap();
        Tunnel::open(Far::Wss(Box::new(socket)), "WSS").await
    }

    /// Every message of the switch, as it sent it.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// The value of a header in the first message of the switch that begins with `begins`.
    pub fn header(&self, begins: &str, name: &str) -> String {
        let seen = self.seen();
        let message = seen.iter().find(|message| message.starts_with(begins)).expect(begins);
        let line = message.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("{name} in {message}")).to_owned()
    }

    async fn open(far: Far, transport: &'static str) -> Tunnel {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (tcp, udp) = (listener.local_addr().unwrap(), socket.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (told, heard) = (mpsc::channel(64), mpsc::channel(64));
        tokio::spawn(carry(far, told.1, heard.0, transport, Arc::clone(&seen)));
        tokio::spawn(serve(listener, socket, told.0, heard.1));
        Tunnel { tcp, udp, seen }
    }
}

/// A TLS connection, or why there is none.
pub async fn secured(
    to: SocketAddr,
    client: ClientConfig,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(to).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let handshake = TlsConnector::from(Arc::new(client)).connect(name, stream);
    tokio::time::timeout(HANDSHAKE_MAX, handshake).await.expect("a handshake in time")
}

fn request(scheme: &str, to: SocketAddr) -> impl IntoClientRequest + Unpin {
    let mut request = format!("{scheme}://{to}/").into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", "sip".parse().unwrap());
    request
}

/// Forwards messages in both directions, with the transport's name in Via and a Contact as browsers send it.
async fn carry(
    mut far: Far,
    mut told: mpsc::Receiver<String>,
    heard: mpsc::Sender<String>,
    transport: &str,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let mut near = "UDP";
    loop {
        tokio::select! {
            message = told.recv() => {
                let Some(message) = message else { return };
                if message.contains("SIP/2.0/TCP") {
                    near = "TCP";
                }
                let message = message.replace(&format!("SIP/2.0/{near}"), &format!("SIP/2.0/{transport}"));
                if far.send(with_hidden_contact(&message, transport)).await.is_none() {
                    return;
                }
            }
            message = far.next() => {
                let Some(message) = message else { return };
                seen.lock().unwrap().push(message.clone());
                let message = message.replace(&format!("SIP/2.0/{transport} "), &format!("SIP/2.0/{near} "));
                if heard.send(message).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// A browser has no address: its Contact is a name of the domain `invalid`, which does not resolve (RFC 7118 §5).
fn with_hidden_contact(message: &str, transport: &str) -> String {
    let hide = |line: &str| match line.strip_prefix("Contact: <sip:") {
        Some(contact) if transport.starts_with("WS") => {
            let user = contact.split_once('@').map_or("", |(user, _)| user);
            let rest = contact.split_once('>').map_or("", |(_, rest)| rest);
            format!("Contact: <sip:{user}@df7jal23ls0d.invalid;transport=ws>{rest}")
        }
        _ => line.to_owned(),
    };
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    let head: Vec<String> = head.split("\r\n").map(hide).collect();
    format!("{}\r\n\r\n{body}", head.join("\r\n"))
}

impl Far {
    async fn send(&mut self, message: String) -> Option<()> {
        match self {
            Far::Tls(stream, _) => {
                stream.write_all(message.as_bytes()).await.ok()?;
                stream.flush().await.ok()
            }
            Far::Ws(socket) => socket.send(Frame::text(message)).await.ok(),
            Far::Wss(socket) => socket.send(Frame::text(message)).await.ok(),
        }
    }

    async fn next(&mut self) -> Option<String> {
        loop {
            let frame = match self {
                Far::Tls(stream, parser) => return next(stream, parser).await,
                Far::Ws(socket) => socket.next().await?.ok()?,
                Far::Wss(socket) => socket.next().await?.ok()?,
            };
            match frame {
                Frame::Text(text) => return Some(text.to_string()),
                Frame::Close(_) => return None,
                _ => {}
            }
        }
    }
}

/// The next message of a stream.
async fn next(stream: &mut (impl AsyncRead + Unpin), parser: &mut StreamParser) -> Option<String> {
    let mut chunk = [0; 4_096];
    loop {
        while let Some(event) = parser.poll() {
            if let StreamEvent::Message(message) = event {
                return Some(text_of(message));
            }
        }
        match stream.read(&mut chunk).await {
            Ok(length @ 1..) => parser.push(&chunk[..length]),
            Ok(0) | Err(_) => return None,
        }
    }
}

fn text_of(message: Message) -> String {
    let bytes: Bytes = match message {
        Message::Request(request) => request.to_bytes(),
        Message::Response(response) => response.to_bytes(),
    };
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Reads the messages of the client from either socket.
async fn serve(
    listener: TcpListener,
    socket: UdpSocket,
    told: mpsc::Sender<String>,
    mut heard: mpsc::Receiver<String>,
) {
    let mut buffer = vec![0; 65_535];
    tokio::select! {
        accepted = listener.accept() => {
            let (mut reader, mut writer) = accepted.unwrap().0.into_split();
            let writing = async {
                while let Some(message) = heard.recv().await {
                    if writer.write_all(message.as_bytes()).await.is_err() {
                        return;
                    }
                }
            };
            let reading = async {
                let mut parser = StreamParser::new();
                while let Some(message) = next(&mut reader, &mut parser).await {
                    if told.send(message).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = writing => {}
                () = reading => {}
            }
        }
        received = socket.recv_from(&mut buffer) => {
            let (mut length, mut client) = received.unwrap();
            loop {
                let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
                if told.send(message).await.is_err() {
                    return;
                }
                loop {
                    tokio::select! {
                        received = socket.recv_from(&mut buffer) => {
                            (length, client) = received.unwrap();
                            break;
                        }
                        message = heard.recv() => {
                            let Some(message) = message else { return };
                            socket.send_to(message.as_bytes(), client).await.unwrap();
                        }
                    }
                }
            }
        }
    }
}

const HANDSHAKE_MAX: Duration = Duration::from_secs(60);
