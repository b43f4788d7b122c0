//! Tests of connections: splitting into messages, refusals, and closed connections.

use std::cell::OnceCell;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use super::*;
use crate::admission::Rate;
use crate::flow::{Flow, ListenerId, Protocol};
use crate::message::{Message, Rejection};
use crate::transport::arrival::Arrival;
use crate::transport::error::SendError;

const OPTIONS: &str = "OPTIONS sip:a@h SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
                       From: <sip:a@h>;tag=1\r\nTo: <sip:a@h>\r\nCall-ID: c\r\nCSeq: 1 OPTIONS\r\n";
/// Far more than any of these tests needs.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(body: &str) -> String {
    format!("{OPTIONS}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Limits that no test reaches.
fn patient() -> TcpLimits {
    TcpLimits { message_max: PATIENCE, idle_max: PATIENCE, stranger_max: PATIENCE, ..TcpLimits::default() }
}

/// Connections without TLS.
fn plain(limits: TcpLimits) -> TcpConfig {
    TcpConfig { limits, ..TcpConfig::default() }
}

fn listen(limits: TcpLimits) -> (TcpTransport, SocketAddr) {
    let transport =
        TcpTransport::bind(&[(Protocol::Tcp, (Ipv4Addr::LOCALHOST, 0).into())], plain(limits)).unwrap();
    let local = transport.sender().listeners().next().unwrap().1;
    (transport, local)
}

fn dial(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
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

/// Everything received until the peer closes.
async fn rest(mut stream: TcpStream) -> String {
    let read = move || {
        let mut text = Vec::new();
        // A reset is an end too.
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    tokio::task::spawn_blocking(read).await.unwrap()
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
async fn a_message_is_answered_by_its_connection() {
    let (mut transport, local) = listen(patient());
    let mut peer = dial(local);
    peer.write_all(options("").as_bytes()).unwrap();
    let (flow, _) = message(&mut transport).await;
    let remote = peer.local_addr().unwrap();
    assert_eq!(flow, Flow { listener: ListenerId(0), remote, protocol: Protocol::Tcp });
    let sender = transport.sender();
    assert_eq!(sender.local_address(&flow).unwrap(), local);
    sender.try_send(&flow, Bytes::from_static(b"pong")).unwrap();
    let mut answer = [0; 4];
    peer.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"pong");
    let elsewhere = Flow { remote: "127.0.0.1:9".parse().unwrap(), ..flow };
    assert!(matches!(sender.try_send(&elsewhere, Bytes::new()), Err(SendError::Closed)));
}

/// P6 on a real socket: byte by byte, two in one segment, and keep-alives between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_cut_whatever_the_segments() {
    let (mut transport, local) = listen(patient());
    let mut peer = dial(local);
    peer.set_nodelay(true).unwrap();
    for byte in options("one").as_bytes() {
        peer.write_all(&[*byte]).unwrap();
    }
    peer.write_all(format!("\r\n\r\n{}{}", options("two"), options("three")).as_bytes()).unwrap();
    for expected in ["one", "two", "three"] {
        assert_eq!(message(&mut transport).await.1.body(), expected);
    }
    let mut pong = [0; 2];
    peer.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"\r\n");
}

/// T5: the peer gets a refusal and loses its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_a_length_that_cannot_be_is_refused_and_the_connection_closed() {
    let (mut transport, local) = listen(patient());
    for (length, status, reason) in [
        ("4294967296", 413, Rejection::TooLarge),
        ("18446744073709551616", 400, Rejection::ContentLength),
        ("-1", 400, Rejection::ContentLength),
        ("+5", 400, Rejection::ContentLength),
        ("61440", 413, Rejection::TooLarge),
    ] {
        let mut peer = dial(local);
        peer.write_all(format!("{OPTIONS}Content-Length: {length}\r\n\r\nhello").as_bytes()).unwrap();
        assert!(
            matches!(next(&mut transport).await, Arrival::Rejected { reason: r, .. } if r == reason),
            "{length}"
        );
        let answer = rest(peer).await;
        assert!(answer.starts_with(&format!("SIP/2.0 {status} ")), "{length}: {answer}");
    }
    let mut peer = dial(local);
    peer.write_all(format!("{OPTIONS}\r\n").as_bytes()).unwrap();
    assert!(rest(peer).await.starts_with("SIP/2.0 400 "), "no length at all");
    let sender = transport.sender();
    until("every connection ends", || sender.counters().open == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_a_head_without_an_end_is_refused() {
    let (_transport, local) = listen(patient());
    let mut peer = dial(local);
    let line = format!("X-Long: {}\r\n", "x".repeat(1_000));
    let mut sent = peer.write_all(OPTIONS.as_bytes());
    for _ in 0..1_000 {
        // The connection may be closed before everything is written.
        sent = sent.and_then(|()| peer.write_all(line.as_bytes()));
    }
    let answer = rest(peer).await;
    // The refusal is lost when our end closes while data is still in transit.
    assert!(answer.is_empty() || answer.starts_with("SIP/2.0 413 "), "{answer}");

    let mut junk = dial(local);
    junk.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(!rest(junk).await.starts_with("SIP/2.0 2"));
}

/// T4: each time limit, with the others far away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_whoever_takes_too_long_is_closed() {
    let brief = Duration::from_millis(200);
    let half = &options("hello")[..OPTIONS.len() + 20];
    for (name, limits, said) in [
        ("silence", TcpLimits { idle_max: brief, ..patient() }, ""),
        ("half a message", TcpLimits { message_max: brief, ..patient() }, half),
        ("half a line", TcpLimits { message_max: brief, ..patient() }, "OPT"),
        ("a stranger", TcpLimits { stranger_max: brief, ..patient() }, &options("")),
        ("keep-alives of a stranger", TcpLimits { idle_max: brief, ..patient() }, "\r\n\r\n"),
    ] {
        let (transport, local) = listen(limits);
        let mut peer = dial(local);
        peer.write_all(said.as_bytes()).unwrap();
        rest(peer).await;
        let sender = transport.sender();
        until(name, || sender.counters().open == 0).await;
        assert_eq!(sender.counters().timeouts, 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_a_message_byte_by_byte_has_one_clock() {
    let (transport, local) = listen(TcpLimits { message_max: Duration::from_millis(300), ..patient() });
    let mut peer = dial(local);
    let sender = transport.sender();
    let begun = Instant::now();
    let dripping = tokio::task::spawn_blocking(move || {
        for byte in options("hello").repeat(100).bytes().filter(|byte| *byte != b'\r') {
            if peer.write_all(&[byte]).is_err() || begun.elapsed() > PATIENCE {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    until("the connection ends", || sender.counters().timeouts == 1).await;
    dripping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_proved_itself_stays_and_its_end_is_told() {
    let stranger_max = Duration::from_secs(2);
    let (mut transport, local) = listen(TcpLimits { stranger_max, ..patient() });
    let (mut known, mut stranger) = (dial(local), dial(local));
    known.write_all(options("").as_bytes()).unwrap();
    let (flow, _) = message(&mut transport).await;
    transport.sender().trust(&flow);
    stranger.write_all(b"\r\n").unwrap();
    rest(stranger).await;
    // The unauthenticated one connected later, and its time is over.
    known.write_all(options("").as_bytes()).unwrap();
    assert_eq!(message(&mut transport).await.0, flow);
    drop(known);
    assert!(matches!(next(&mut transport).await, Arrival::Closed(closed) if closed == flow));
    assert!(matches!(transport.sender().try_send(&flow, Bytes::new()), Err(SendError::Closed)));
}

/// A connection of a call may be silent as long as the call lasts. After the call it ends like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_connection_outlasts_silence_and_an_idle_one_does_not() {
    let (mut transport, local) = listen(TcpLimits { idle_max: Duration::from_secs(3), ..patient() });
    let mut held = dial(local);
    held.write_all(options("").as_bytes()).unwrap();
    let (flow, _) = message(&mut transport).await;
    transport.sender().trust(&flow);
    transport.sender().hold(&flow, true);
    for _ in 0..2 {
        // The limit of an idle connection.
        let mut idle = dial(local);
        idle.write_all(options("").as_bytes()).unwrap();
        transport.sender().trust(&message(&mut transport).await.0);
        rest(idle).await;
        assert!(matches!(next(&mut transport).await, Arrival::Closed(closed) if closed != flow));
    }
    assert_eq!(transport.sender().counters().timeouts, 2);
    transport.sender().try_send(&flow, Bytes::from_static(b"bye!")).unwrap();
    let mut bye = [0; 4];
    held.read_exact(&mut bye).unwrap();
    assert_eq!(&bye, b"bye!");
    transport.sender().hold(&flow, false);
    assert_eq!(rest(held).await, "");
    until("the end of the held connection is counted", || transport.sender().counters().timeouts == 3).await;
}

/// T2 over TCP: messages of an unauthenticated peer are read at its rate, and none is lost; the limit does not apply to
/// an authenticated peer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t2_a_stranger_that_hurries_waits_in_its_own_socket() {
    let stranger_rate = Rate { per_second: 10, burst: 3 };
    let (mut transport, local) = listen(TcpLimits { stranger_rate, ..patient() });
    let mut peer = dial(local);
    let begun = Instant::now();
    peer.write_all(options("").repeat(20).as_bytes()).unwrap();
    let (flow, _) = message(&mut transport).await;
    for _ in 1..8 {
        message(&mut transport).await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    transport.sender().trust(&flow);
    for _ in 8..20 {
        message(&mut transport).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_so_many_places_for_one_address() {
    let (mut transport, local) = listen(TcpLimits { per_source_max: 3, ..patient() });
    let sender = transport.sender();
    let held: Vec<TcpStream> = (0..3).map(|_| dial(local)).collect();
    until("three are in", || sender.counters().accepted == 3).await;
    assert_eq!(rest(dial(local)).await, "", "closed without a word");
    assert_eq!((sender.counters().open, sender.counters().refused), (3, 1));
    drop(held);
    until("the places are free", || sender.counters().open == 0).await;
    dial(local).write_all(options("").as_bytes()).unwrap();
    message(&mut transport).await;
}

/// T4: idle unauthenticated connections are closed for a new one; those of authenticated peers are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_strangers_give_way_when_every_place_is_taken() {
    let (mut transport, local) = listen(TcpLimits { connections_max: 3, ..patient() });
    let sender = transport.sender();
    let mut known = dial(local);
    known.write_all(options("").as_bytes()).unwrap();
    let (flow, _) = message(&mut transport).await;
    sender.trust(&flow);
    let idle: Vec<TcpStream> = (0..20).map(|_| dial(local)).collect();
    until("twenty more came", || sender.counters().accepted == 21).await;
    let mut phone = dial(local);
    phone.write_all(options("phone").as_bytes()).unwrap();
    assert_eq!(message(&mut transport).await.1.body(), "phone");
    known.write_all(options("known").as_bytes()).unwrap();
    assert_eq!(message(&mut transport).await.1.body(), "known");
    let counters = sender.counters();
    assert_eq!((counters.open, counters.displaced, counters.refused), (3, 19, 0));
    drop(idle);
    // When all of them are authenticated, none is closed.
    let (transport, local) = listen(TcpLimits { connections_max: 0, ..patient() });
    assert_eq!(rest(dial(local)).await, "", "closed without a word");
    assert_eq!(transport.sender().counters().refused, 1);
}

/// A peer that does not read: the sender gets an error immediately, others are served, and the connection ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read_blocks_nobody() {
    let (mut transport, local) = listen(patient());
    let sender = transport.sender();
    let (mut deaf, mut other) = (dial(local), dial(local));
    deaf.write_all(options("").as_bytes()).unwrap();
    let (flow, _) = message(&mut transport).await;
    sender.trust(&flow);
    let big = Bytes::from(vec![b'x'; 60_000]);
    // The system's buffers take a few megabytes at most.
    let refused = (0..2_000).find_map(|_| sender.try_send(&flow, big.clone()).err());
    assert!(matches!(refused, Some(SendError::Full | SendError::Closed)), "{refused:?}");
    other.write_all(options("").as_bytes()).unwrap();
    loop {
        match next(&mut transport).await {
            Arrival::Message { .. } => break,
            Arrival::Closed(closed) => assert_eq!(closed, flow),
            other => panic!("{other:?}"),
        }
    }
    until("its connection ends", || sender.counters().open == 1).await;
    assert!(sender.counters().dropped >= 1);
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_opened_used_again_and_opened_anew() {
    let (mut far, at) = listen(patient());
    let mut near = TcpTransport::bind(&[], plain(patient())).unwrap();
    let (sender, flow) = (near.sender(), Flow::tcp_to(at));
    for _ in 0..3 {
        sender.try_send(&flow, options("").into()).unwrap();
    }
    let (back, _) = message(&mut far).await;
    assert_eq!((message(&mut far).await.0, message(&mut far).await.0), (back, back));
    far.sender().try_send(&back, options("answer").into()).unwrap();
    assert_eq!(message(&mut near).await.0, flow);
    drop(far);
    assert!(matches!(next(&mut near).await, Arrival::Closed(closed) if closed == flow));
    // Bound without a listener: a connection is refused, and no other process gets the port meanwhile.
    let held = OnceCell::new();
    let bind = || {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(at).is_ok_and(|()| held.set(socket).is_ok())
    };
    until("the release of the port", bind).await;
    // The port is closed now: that is reported too.
    sender.try_send(&flow, options("").into()).unwrap();
    assert!(matches!(next(&mut near).await, Arrival::Unopened(unopened) if unopened == flow));
    assert!(near.sender().connect(at).await.is_err());
}
