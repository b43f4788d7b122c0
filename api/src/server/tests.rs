//! Malicious clients on real sockets, and their effect on other clients.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::server::accept::{Served, serve_router};
use crate::server::counters::ServerCounters;
use crate::settings::{HttpSettings, SharedSettings};

/// A server with test routes.
struct Server {
    address: SocketAddr,
    counters: Arc<ServerCounters>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(settings: HttpSettings) -> Server {
        let endless = || async {
            let piece = Bytes::from(vec![b'x'; 64 * 1024]);
            Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone())))
        };
        let router = Router::new()
            .route("/", get(|| async { "hello" }))
            .route("/endless", get(endless))
            .route("/never", get(std::future::pending::<()>))
            .route("/echo", post(|body: String| async { body }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = SharedSettings::default();
        shared.replace(settings);
        let counters = Arc::new(ServerCounters::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let refusals = Arc::new(|status: StatusCode, _| {
            let status = status.as_u16();
            format!("HTTP/1.1 {status} Refused\r\nconnection: close\r\n\r\nnode_busy").into_bytes()
        });
        let (mut listener, counted) = (Some(listener), Arc::clone(&counters));
        let task = tokio::spawn(async move {
            let served = Served { router, settings: shared, counters: counted, refusals, tls: None };
            serve_router(&mut listener, served, stopped).await;
        });
        Server { address, counters, stop: Some(stop), task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Opens a connection and sends `text`.
    async fn say(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Checks that a correct client is served.
    async fn is_well(&self) {
        let mut stream = self.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let answer = to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hello"), "{answer}");
    }

    async fn open(&self, count: u64) {
        until(&format!("{count} open connections"), || self.counters.open() == count).await;
    }

    fn closed(&self, why: &str) -> u64 {
        self.counters.closed_total().find(|(name, _)| *name == why).unwrap().1
    }

    fn refused(&self, why: &str) -> u64 {
        self.counters.refused_total().find(|(name, _)| *name == why).unwrap().1
    }
}

/// Short timeouts where a test waits for them; the others are long enough for a slow machine.
fn hasty() -> HttpSettings {
    let patient = Duration::from_secs(600);
    HttpSettings {
        header_time: patient,
        body_time: patient,
        idle_time: patient,
        stall_time: patient,
        ..HttpSettings::default()
    }
}

const SOON: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(5);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    within(what, async {
        while !holds() {
            tokio::time::sleep(POLL_EVERY).await;
        }
    })
    .await;
}

/// What the server sends until it closes or resets the connection.
async fn to_end(stream: &mut TcpStream) -> String {
    within("the end of the connection", async {
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while let Ok(len @ 1..) = stream.read(&mut bytes).await {
            text.push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
        text
    })
    .await
}

/// Reads one answer with the body `hello` from a connection that stays open.
async fn hello(stream: &mut TcpStream) {
    within("an answer", async {
        let mut text = Vec::new();
        while !text.ends_with(b"hello") {
            text.push(stream.read_u8().await.unwrap());
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let server = Server::start(HttpSettings { header_time: SOON, ..hasty() }).await;
    for beginning in ["", "G", "GET / HTTP/1.1\r\nHost: a\r\n", "PRI * HTTP/2.0\r\n"] {
        let mut stream = server.say(beginning).await;
        let answer = to_end(&mut stream).await;
        // A client that has sent nothing expects no answer.
        let expected = if beginning.is_empty() { "" } else { "HTTP/1.1 408 Refused" };
        assert_eq!(answer.lines().next().unwrap_or_default(), expected, "{beginning}");
    }
    // Sending a byte now and then does not help.
    let mut stream = server.say("GET / HTTP/1.1\r\nX: ").await;
    within("the end of a dripping head", async {
        let mut byte = [0; 1];
        while stream.write_all(b"x").await.is_ok() {
            if let Ok(read) = tokio::time::timeout(POLL_EVERY, stream.read(&mut byte)).await {
                // The beginning of the 408, unless the connection is reset.
                assert!(matches!(read, Ok(1) | Err(_)), "{read:?}");
                break;
            }
        }
    })
    .await;
    assert_eq!(server.closed("header"), 5);
    server.is_well().await;
}

#[tokio::test]
async fn a_connection_may_pause_between_requests_for_longer_than_a_head_may_take() {
    let server = Server::start(HttpSettings { header_time: SOON, idle_time: SOON * 20, ..hasty() }).await;
    let mut stream = server.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    hello(&mut stream).await;
    // Waits for twice the timeout of a head; the condition is the clock itself.
    let pause = tokio::time::Instant::now() + SOON * 2;
    tokio::time::sleep_until(pause).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    hello(&mut stream).await;
    assert_eq!(to_end(&mut stream).await, "");
    assert_eq!((server.closed("header"), server.closed("idle")), (0, 1));
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off() {
    let server = Server::start(HttpSettings { stall_time: SOON, ..hasty() }).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    until("a stalled connection is closed", || server.closed("stall") == 1).await;
    server.open(0).await;
    server.is_well().await;
}

#[tokio::test]
async fn an_answer_that_we_take_long_for_is_nobodys_fault() {
    let times = HttpSettings { header_time: SOON, idle_time: SOON, stall_time: SOON, ..hasty() };
    let server = Server::start(times).await;
    let mut stream = server.say("GET /never HTTP/1.1\r\nHost: a\r\n\r\n").await;
    server.open(1).await;
    let read = tokio::time::timeout(SOON * 4, stream.read_u8()).await;
    assert!(read.is_err(), "{read:?}");
    assert_eq!(server.counters.open(), 1);
}

#[tokio::test]
async fn an_address_has_its_share_of_the_connections() {
    let server = Server::start(HttpSettings { connections_per_address_max: 3, ..hasty() }).await;
    let held = [server.connect().await, server.connect().await, server.connect().await];
    server.open(3).await;
    let mut refused = server.connect().await;
    let answer = to_end(&mut refused).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("node_busy"), "{answer}");
    assert_eq!(server.refused("address"), 1);
    drop(held);
    server.open(0).await;
    server.is_well().await;
}

#[tokio::test]
async fn there_are_so_many_connections_and_no_more() {
    let loopback = vec!["127.0.0.0/8".parse().unwrap()];
    let settings = HttpSettings {
        connections_max: 100,
        connections_per_address_max: 3,
        trusted_proxies: loopback,
        ..hasty()
    };
    let server = Server::start(settings).await;
    let mut held = Vec::new();
    for _ in 0..99 {
        held.push(server.say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").await);
    }
    server.open(99).await;
    server.is_well().await;
    server.open(99).await;
    held.push(server.connect().await);
    server.open(100).await;
    let answer = to_end(&mut server.connect().await).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!((server.refused("total"), server.counters.accepted_total()), (1, 101));
}

#[tokio::test]
async fn a_hundred_thousand_headers_are_refused() {
    let server = Server::start(hasty()).await;
    let mut stream = server.say("GET / HTTP/1.1\r\n").await;
    let lines = "a: b\r\n".repeat(1000);
    for _ in 0..100 {
        if stream.write_all(lines.as_bytes()).await.is_err() {
            break;
        }
    }
    let answer = to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 431 Refused\r\n"), "{answer}");
    server.is_well().await;
}

#[tokio::test]
async fn what_is_no_request_is_answered_by_us_behind_every_answer_of_a_route() {
    let server = Server::start(hasty()).await;
    let lines = "a: b\r\n".repeat(101);
    let long = "x".repeat(66_000);
    let cases = [
        ("no request line", "HELLO\r\n\r\n".to_owned(), &[400][..]),
        ("no version", "GET /\r\n\r\n".to_owned(), &[400][..]),
        ("a NUL", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), &[400][..]),
        ("a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n".to_owned(), &[400][..]),
        (
            "two lengths",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
            &[400][..],
        ),
        ("no HTTP/2", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_owned(), &[400][..]),
        ("101 lines", format!("GET / HTTP/1.1\r\n{lines}\r\n"), &[431]),
        // Either the long URL or the long head is found first.
        ("66 kB of an address", format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), &[414, 431]),
        ("200 kB of a header", format!("GET / HTTP/1.1\r\na: {long}{long}{long}\r\n\r\n"), &[431]),
    ];
    for (name, head, statuses) in cases {
        let answer = to_end(&mut server.say(&head).await).await;
        let refused = |text: &str| {
            statuses.iter().any(|status| text.starts_with(&format!("HTTP/1.1 {status} Refused\r\n")))
        };
        assert!(refused(&answer), "{name}: {answer}");
        assert!(answer.ends_with("\r\n\r\nnode_busy"), "{name}: {answer}");
        if name != "no HTTP/2" {
            let before = "GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
            let answer = to_end(&mut server.say(&format!("{before}{head}")).await).await;
            let (first, last) = answer.split_once("hello").unwrap();
            assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {answer}");
            assert!(last.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {answer}");
            let (_, refusal) = last.split_once("\r\n\r\n").unwrap();
            assert!(refused(refusal), "{name}: {answer}");
        }
    }
    server.is_well().await;
}

#[tokio::test]
async fn the_end_waits_for_the_request_in_hand_and_for_nobody_else() {
    let mut server = Server::start(hasty()).await;
    let mut busy = server.say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel").await;
    let mut idle = server.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    hello(&mut idle).await;
    server.open(2).await;
    drop(server.stop.take());
    assert_eq!(to_end(&mut idle).await, "");
    busy.write_all(b"lo").await.unwrap();
    let answer = to_end(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hello"), "{answer}");
    within("the end of the server", server.task).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

// --- HTTP/2, RFC 9113, written by hand, because a client library would not send invalid frames.

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET http://a/` of the static table of RFC 7541.
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 1, b'a'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The frames that the server sends until it closes, by type and first payload byte.
async fn frames_to_end(stream: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    within("the end of an HTTP/2 connection", async {
        let mut frames = Vec::new();
        let mut head = [0; 9];
        while stream.read_exact(&mut head).await.is_ok() {
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(len).unwrap()];
            if stream.read_exact(&mut payload).await.is_err() {
                break;
            }
            frames.push((head[3], payload));
        }
        frames
    })
    .await
}

async fn http2(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    stream
}

#[tokio::test]
async fn a_request_by_http2_is_answered_and_its_pause_ends_with_goaway() {
    let server = Server::start(HttpSettings { idle_time: SOON, ..hasty() }).await;
    let mut stream = http2(&server).await;
    stream.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, 1, GET)).await.unwrap();
    let frames = frames_to_end(&mut stream).await;
    // 0x88 is `:status 200` of the static table.
    assert!(frames.iter().any(|(kind, payload)| *kind == HEADERS && payload[0] == 0x88), "{frames:?}");
    assert!(frames.iter().any(|(kind, payload)| *kind == 0 && payload == b"hello"), "{frames:?}");
    assert!(frames.iter().any(|(kind, _)| *kind == GOAWAY), "{frames:?}");
    assert_eq!(server.closed("idle"), 1);
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_at_once_end_the_connection() {
    let server = Server::start(hasty()).await;
    let mut stream = http2(&server).await;
    let mut burst = Vec::new();
    for number in 0..1000 {
        let id = number * 2 + 1;
        burst.extend(frame(HEADERS, END_STREAM | END_HEADERS, id, GET));
        burst.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
    }
    // The server may close before everything is written.
    let _ = stream.write_all(&burst).await;
    let frames = frames_to_end(&mut stream).await;
    assert!(frames.is_empty() || frames.iter().any(|(kind, _)| *kind == GOAWAY), "{frames:?}");
    server.open(0).await;
    server.is_well().await;
}

#[tokio::test]
async fn a_head_of_endless_continuations_ends_the_connection() {
    let server = Server::start(hasty()).await;
    let mut stream = http2(&server).await;
    stream.write_all(&frame(HEADERS, END_STREAM, 1, GET)).await.unwrap();
    // Literal fields without indexing, RFC 7541 §6.2.2: a name, a value, repeated.
    let fields: Vec<u8> = [0, 1, b'a', 1, b'b'].into_iter().cycle().take(15_000).collect();
    let mut sent = 0;
    while sent < 64 * 1024 * 1024 && stream.write_all(&frame(CONTINUATION, 0, 1, &fields)).await.is_ok() {
        sent += fields.len();
    }
    assert!(sent < 32 * 1024 * 1024, "{sent} bytes of one head were taken");
    server.open(0).await;
    server.is_well().await;
}

#[tokio::test]
async fn a_hundred_thousand_headers_by_http2_are_refused() {
    let server = Server::start(HttpSettings { idle_time: SOON, ..hasty() }).await;
    let mut stream = http2(&server).await;
    stream.write_all(&frame(HEADERS, END_STREAM, 1, GET)).await.unwrap();
    let fields: Vec<u8> = [0, 1, b'a', 1, b'b'].into_iter().cycle().take(5 * 3000).collect();
    for left in (0..33).rev() {
        let flags = if left == 0 { END_HEADERS } else { 0 };
        if stream.write_all(&frame(CONTINUATION, flags, 1, &fields)).await.is_err() {
            break;
        }
    }
    let frames = frames_to_end(&mut stream).await;
    assert!(!frames.iter().any(|(kind, payload)| *kind == HEADERS && payload[0] == 0x88), "{frames:?}");
    server.is_well().await;
}
