//! Tests of WebSockets: the handshake, messages in frames, and connections that are closed.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message as Frame};

use super::*;
use crate::flow::{Flow, Protocol};
use crate::message::{Message, Rejection};
use crate::transport::arrival::Arrival;

const OPTIONS: &str = "OPTIONS sip:a@h SIP/2.0\r\nVia: SIP/2.0/WS df7jal23ls0d.invalid;branch=z9hG4bK1\r\n\
                       Max-Forwards: 70\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:a@h>\r\nCall-ID: c\r\n\
                       CSeq: 1 OPTIONS\r\n";
/// Far more than any of these tests needs.
const PATIENCE: Duration = Duration::from_secs(30);

type Client = WebSocketStream<TcpStream>;

fn options(body: &str) -> String {
    format!("{OPTIONS}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Limits that no test reaches.
fn patient() -> TcpLimits {
    TcpLimits { idle_max: PATIENCE, stranger_max: PATIENCE, ..TcpLimits::default() }
}

fn listen(limits: TcpLimits, origins: &[&str]) -> (TcpTransport, SocketAddr) {
    let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    let config = TcpConfig { limits, origins, tls: None };
    let transport = TcpTransport::bind(&[(Protocol::Ws, (Ipv4Addr::LOCALHOST, 0).into())], config).unwrap();
    let local = transport.sender().listeners().next().unwrap().1;
    (transport, local)
}

/// Opens a WebSocket; the protocol is that of the response, the error the refusal's status.
async fn open(
    to: SocketAddr,
    protocol: Option<&str>,
    origin: Option<&str>,
) -> Result<(Client, Option<String>), u16> {
    let request = tokio_tungstenite::tungstenite::http::Request::builder()
        .uri(format!("ws://{to}/sip"))
        .header("Host", to.to_string())
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let request = protocol.into_iter().fold(request, |r, name| r.header("Sec-WebSocket-Protocol", name));
    let request = origin.into_iter().fold(request, |r, name| r.header("Origin", name));
    let stream = TcpStream::connect(to).await.unwrap();
    match tokio_tungstenite::client_async(request.body(()).unwrap(), stream).await {
        Ok((client, response)) => {
            let chosen = response.headers().get("Sec-WebSocket-Protocol");
            Ok((client, chosen.map(|name| name.to_str().unwrap().to_owned())))
        }
        Err(Error::Http(refusal)) => Err(refusal.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

async fn phone(to: SocketAddr) -> Client {
    open(to, Some("sip"), None).await.unwrap().0
}

async fn next(transport: &mut TcpTransport) -> Arrival {
    tokio::time::timeout(PATIENCE, transport.recv()).await.expect("something comes")
}

async fn message(transport: &mut TcpTransport) -> (Flow, Message) {
    match next(transport).await {
        Arrival::Message { flow, message } => (flow, message),
        other => panic!("{other:?}"),
    }
}

async fn frame(client: &mut Client) -> Option<Frame> {
    let frame = tokio::time::timeout(PATIENCE, client.next()).await.expect("a frame or the end");
    frame.and_then(Result::ok)
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("{what} does not happen"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_frame_is_a_message() {
    let (mut transport, local) = listen(patient(), &[]);
    let mut client = phone(local).await;
    client.send(Frame::text(options("one"))).await.unwrap();
    client.send(Frame::Binary(options("two").into())).await.unwrap();
    // RFC 7118 §5.2: Content-Length may be omitted, because the frame ends the message.
    client.send(Frame::text(format!("{OPTIONS}\r\nthree"))).await.unwrap();
    let (flow, first) = message(&mut transport).await;
    assert_eq!((flow.protocol, first.body().as_ref()), (Protocol::Ws, &b"one"[..]));
    for body in ["two", "three"] {
        let (of, message) = message(&mut transport).await;
        assert_eq!((of, message.body().as_ref()), (flow, body.as_bytes()));
    }
    let sender = transport.sender();
    assert_eq!(sender.local_address(&flow).unwrap(), local);
    sender.try_send(&flow, Bytes::from_static(b"text \xc3\xa9")).unwrap();
    sender.try_send(&flow, Bytes::from_static(b"binary \xff")).unwrap();
    assert_eq!(frame(&mut client).await, Some(Frame::text("text é")));
    assert_eq!(frame(&mut client).await, Some(Frame::Binary(Bytes::from_static(b"binary \xff"))));
    // The keep-alive of JsSIP and SIP.js.
    client.send(Frame::text("\r\n\r\n")).await.unwrap();
    assert_eq!(frame(&mut client).await, Some(Frame::text("\r\n")));
    // Half a message is refused, and the next one is read.
    client.send(Frame::text(OPTIONS)).await.unwrap();
    assert!(matches!(next(&mut transport).await, Arrival::Rejected { reason: Rejection::NoHeadEnd, .. }));
    client.send(Frame::text(options("four"))).await.unwrap();
    assert_eq!(message(&mut transport).await.1.body().as_ref(), b"four");
    sender.trust(&flow);
    drop(client);
    assert!(matches!(next(&mut transport).await, Arrival::Closed(closed) if closed == flow));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_subprotocol_and_a_known_origin_are_required() {
    let (mut transport, local) = listen(patient(), &["https://phone.example"]);
    for (protocol, origin, expected) in [
        (Some("sip"), None, Ok(Some("sip".to_owned()))),
        (Some("chat, sip"), Some("https://Phone.example"), Ok(Some("sip".to_owned()))),
        (Some("sip"), Some("https://evil.example"), Err(403)),
        (Some("sip"), Some("null"), Err(403)),
        (Some("chat"), None, Err(400)),
        (None, None, Err(400)),
    ] {
        let opened = open(local, protocol, origin).await.map(|(_, chosen)| chosen);
        assert_eq!(opened, expected, "{protocol:?} {origin:?}");
    }
    let mut other = TcpStream::connect(local).await.unwrap();
    other.write_all(options("").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, other.read_to_end(&mut answer)).await.expect("it ends");
    assert!(!answer.starts_with(b"SIP/2.0"), "SIP without a WebSocket is not answered");
    let sender = transport.sender();
    until("every connection ends", || sender.counters().open == 0).await;
    assert_eq!(sender.counters().unsecured, 5);
    assert!(matches!(next(&mut transport).await, Arrival::Unsecured { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_longer_than_a_message_ends_the_connection() {
    let (mut transport, local) = listen(patient(), &[]);
    let mut client = phone(local).await;
    client.send(Frame::text(options(&"x".repeat(59_000)))).await.unwrap();
    message(&mut transport).await;
    let _ = client.send(Frame::text(options(&"x".repeat(62_000)))).await;
    while let Some(frame) = frame(&mut client).await {
        assert!(matches!(frame, Frame::Close(_)), "{frame:?}");
    }
    let sender = transport.sender();
    until("the connection ends", || sender.counters().open == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_answers_no_ping_is_closed() {
    let limits =
        TcpLimits { ping_every: Duration::from_millis(100), pong_max: Duration::from_secs(3), ..patient() };
    let (transport, local) = listen(limits, &[]);
    let (mut dead, mut live) = (phone(local).await, phone(local).await);
    let sender = transport.sender();
    // Reading answers pings; the other client reads nothing.
    let answering = tokio::spawn(async move {
        let mut pings = 0;
        while let Some(frame) = frame(&mut live).await {
            pings += usize::from(matches!(frame, Frame::Ping(_)));
        }
        pings
    });
    until("the silent one is closed", || sender.counters().open == 1).await;
    assert_eq!(sender.counters().timeouts, 1);
    while frame(&mut dead).await.is_some() {}
    drop(transport);
    assert!(answering.await.unwrap() >= 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_stalls_ends_at_its_deadline() {
    let handshake_max = Duration::from_millis(200);
    let (transport, local) = listen(TcpLimits { handshake_max, ..patient() }, &[]);
    let mut half = TcpStream::connect(local).await.unwrap();
    half.write_all(b"GET /sip HTTP/1.1\r\nHost: a\r\n").await.unwrap();
    let _ = tokio::time::timeout(PATIENCE, half.read_to_end(&mut Vec::new())).await.expect("it ends");
    let sender = transport.sender();
    until("its place is free", || sender.counters().open == 0).await;
    assert_eq!((sender.counters().timeouts, sender.counters().unsecured), (1, 1));
}
