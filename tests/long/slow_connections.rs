//! TCP connections that never complete a message (catalogue T4).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Digest, Message, Response};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

use crate::common::records::TempDir;
use crate::long::check::{Checks, note, percentile_ms, seconds, setting, spread_ms};
use crate::long::engine::{Engine, PASSWORD, Start, apply, organisation};
use crate::long::office::{Office, address};
use crate::long::sip_text::{Ask, message};
use crate::long::usage::Sample;

/// Many connections, opened again whenever the engine closes them, first from one address and then
/// from a hundred; beside them live calls, and phones that register over TCP.
#[test]
#[ignore = "long: four minutes"]
fn long_t4_slow_connections() {
    let count: usize = setting("SIDETONE_T4_CONNECTIONS", 5_000);
    let lasts = seconds("SIDETONE_T4_SECONDS", 60);
    // As many descriptors as the system grants; the engine raises its own limit by itself.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let mut checks = Checks::default();
    let dir = TempDir::new();
    let visits = u32::try_from(lasts.as_millis() / EVERY.as_millis()).unwrap() + 1;
    apply(dir.path(), &organisation(1, DOMAIN, 1_000, 2 * PAIRS + 1 + 2 * visits));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, DOMAIN, 1_000, 2 * PAIRS);
    office.register();
    office.connect(0..PAIRS as usize);
    let before = Sample::of(engine.pid(), Duration::ZERO).unwrap();
    let window = office.window();

    // A phone that authenticates and sends nothing afterwards.
    let (_, mut idle) = Guest::new(&engine, 0).come().unwrap();
    let idle_since = Instant::now();
    let idle_for = std::thread::spawn(move || {
        idle.set_read_timeout(Some(2 * IDLE_MAX)).unwrap();
        // The engine sends no request over TCP that this phone would have to answer before its connection ends.
        while matches!(idle.read(&mut [0; 1_024]), Ok(1..)) {}
        idle_since.elapsed()
    });
    let mut guests = Vec::new();
    for (name, addresses, places) in [("one address", 1, PER_ADDRESS), ("100 addresses", 100, IN_ALL)] {
        let crowd = Crowd::gather(engine.tcp, addresses, count);
        let seen = attend(&engine, lasts, &mut guests);
        let lives = crowd.disperse();
        judge(&mut checks, name, places, &seen, &lives);
        let held = guests.iter_mut().map(is_open).filter(|open| *open).count();
        let figure = format!("{held} of {} phones over TCP keep their connection", guests.len());
        checks.check(&format!("T4 {name}, proven"), held == guests.len(), figure, "all");
    }
    let loss = office.loss(&window, 0..PAIRS as usize);
    let up = office.up(0..PAIRS as usize);
    let figure = format!("{up} of {PAIRS} up, {} of {} packets lost", loss.lost, loss.sent);
    checks.check(
        "T4 live calls",
        up == PAIRS as usize && loss.percent() <= 0.1,
        figure,
        "all up, ≤ 0.1 % lost",
    );
    let idle_s = idle_for.join().unwrap().as_secs_f64();
    let right = (idle_s - IDLE_MAX.as_secs_f64()).abs() < TOLERANCE.as_secs_f64();
    checks.check("T4 idle", right, format!("closed after {idle_s:.1} s"), "120 s behind its last message");
    let after = Sample::of(engine.pid(), Duration::ZERO).unwrap();
    note(format!("{:.1} MiB resident before, {:.1} MiB after", before.rss_mib(), after.rss_mib()));
    checks.check("T4 alive", engine.is_alive(), engine.is_alive(), "true");
    checks.end();
}

/// The results of the registering phones during the attack.
#[derive(Default)]
struct Seen {
    /// The time from connecting to the 401 of a REGISTER.
    answered: Vec<Duration>,
    /// Phones that could not register.
    failed: usize,
    /// The largest number of unauthenticated connections at one time.
    most: usize,
}

/// Registers a phone every half a second and reads the engine's own count of connections.
fn attend(engine: &Engine, lasts: Duration, guests: &mut Vec<TcpStream>) -> Seen {
    let mut seen = Seen::default();
    let began = Instant::now();
    while began.elapsed() < lasts {
        let round = Instant::now();
        // One more than the registered ones: the silent phone has a number too.
        let index = u32::try_from(guests.len() + seen.failed).unwrap() + 1;
        match Guest::new(engine, index).come() {
            Some((took, stream)) => {
                seen.answered.push(took);
                guests.push(stream);
            }
            None => seen.failed += 1,
        }
        let open = engine.metrics().of("sidetone_sip_tcp_connections", "").unwrap_or(0.0) as usize;
        seen.most = seen.most.max(open.saturating_sub(guests.len() + 1));
        std::thread::sleep(EVERY.saturating_sub(round.elapsed()));
    }
    seen
}

fn judge(checks: &mut Checks, name: &str, places: usize, seen: &Seen, lives: &[(Kind, Duration)]) {
    let figure = format!("{}, failed {}", spread_ms(&seen.answered), seen.failed);
    let right = seen.failed == 0 && percentile_ms(&seen.answered, 1.0) < 100.0;
    checks.check(&format!("T4 {name}, new phone"), right, figure, "all registered, 401 within 100 ms");
    let figure = format!("{} at most at once", seen.most);
    let right = (places * 9 / 10..=places).contains(&seen.most);
    checks.check(&format!("T4 {name}, places"), right, figure, &format!("{places}, and they are used"));
    for (kind, longest) in
        [(Kind::Byte, MESSAGE_MAX), (Kind::Head, MESSAGE_MAX), (Kind::Silent, STRANGER_MAX)]
    {
        let all: Vec<Duration> = lives.iter().filter(|(of, _)| *of == kind).map(|(_, life)| *life).collect();
        let most_s = percentile_ms(&all, 1.0) / 1e3;
        let figure = format!("{} ended, the longest after {most_s:.1} s", all.len());
        let right = !all.is_empty() && most_s < (longest + TOLERANCE).as_secs_f64();
        let limit = format!("{} s", longest.as_secs());
        checks.check(&format!("T4 {name}, {kind:?}"), right, figure, &limit);
    }
}

/// The behaviour of an attacking connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A byte of a request every ten seconds.
    Byte,
    /// A complete head, and nothing of the announced body.
    Head,
    /// Nothing.
    Silent,
}

/// Connections that never complete a message.
struct Crowd {
    runtime: Runtime,
    lives: Arc<Mutex<Vec<(Kind, Duration)>>>,
}

impl Crowd {
    fn gather(to: SocketAddr, addresses: u32, count: usize) -> Crowd {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let lives = Arc::new(Mutex::new(Vec::new()));
        for index in 0..count {
            let kind = [Kind::Byte, Kind::Head, Kind::Silent][index % 3];
            let from = address(80, u32::try_from(index).unwrap() % addresses);
            runtime.spawn(loiter(to, from, kind, Arc::clone(&lives)));
        }
        Crowd { runtime, lives }
    }

    /// The lifetime of each connection that the engine closed.
    fn disperse(self) -> Vec<(Kind, Duration)> {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        std::mem::take(&mut *self.lives.lock().unwrap())
    }
}

async fn loiter(to: SocketAddr, from: Ipv4Addr, kind: Kind, lives: Arc<Mutex<Vec<(Kind, Duration)>>>) {
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let began = Instant::now();
        if let Ok(mut stream) = socket.connect(to).await {
            let (mut reader, mut writer) = stream.split();
            let mut buffer = [0; 1_024];
            tokio::select! {
                () = say(&mut writer, kind) => {}
                () = async { while matches!(reader.read(&mut buffer).await, Ok(1..)) {} } => {}
            }
            lives.lock().unwrap().push((kind, began.elapsed()));
        }
        // A connection closed by its timeout is opened again immediately, one without a place later.
        let had_place = began.elapsed() > MESSAGE_MAX / 2;
        tokio::time::sleep(if had_place { AGAIN_AFTER } else { NO_PLACE_AFTER }).await;
    }
}

/// Ends when the connection accepts no more.
async fn say(writer: &mut tokio::net::tcp::WriteHalf<'_>, kind: Kind) {
    let head = format!(
        "REGISTER sip:{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/TCP 127.80.0.1:9;branch=z9hG4bKslow\r\nMax-Forwards: 70\r\n\
         From: <sip:1@{DOMAIN}>;tag=1\r\nTo: <sip:1@{DOMAIN}>\r\nCall-ID: slow\r\nCSeq: 1 REGISTER\r\n\
         Content-Type: text/plain\r\nContent-Length: 500\r\n\r\n"
    );
    match kind {
        Kind::Byte => {
            for byte in head.bytes() {
                if writer.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        }
        Kind::Head if writer.write_all(head.as_bytes()).await.is_err() => return,
        Kind::Head | Kind::Silent => {}
    }
    std::future::pending().await
}

/// A phone that registers over a new connection.
struct Guest {
    engine: SocketAddr,
    from: Ipv4Addr,
    number: String,
    client: Client,
}

impl Guest {
    fn new(engine: &Engine, index: u32) -> Guest {
        let number = (1_000 + 2 * PAIRS + index).to_string();
        let realm = Realm::Exactly(DOMAIN.to_owned());
        let client = Client::new(&number, PASSWORD, realm, StdRng::seed_from_u64(index.into()));
        Guest { engine: engine.tcp, from: address(81, index), number, client }
    }

    /// The time from connecting to the challenge, and the connection of the registered phone.
    fn come(mut self) -> Option<(Duration, TcpStream)> {
        let began = Instant::now();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((self.from, 0)).into()).unwrap();
        socket.connect_timeout(&self.engine.into(), PATIENCE).ok()?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut ask = self.ask(stream.local_addr().unwrap());
        let challenge = exchange(&mut stream, &ask)?;
        let took = began.elapsed();
        let challenges: Vec<Digest> = challenge.www_authenticate().filter_map(Result::ok).collect();
        let answer = self.client.answer(&challenges, false, ask.method, &ask.uri)?;
        ask.headers.push(format!("Authorization: {answer}"));
        ask.cseq += 1;
        ask.branch += "a";
        let response = exchange(&mut stream, &ask)?;
        (response.status().as_u16() == 200).then_some((took, stream))
    }

    fn ask(&self, local: SocketAddr) -> Ask {
        let own = format!("<sip:{}@{DOMAIN}>", self.number);
        Ask {
            method: "REGISTER",
            uri: format!("sip:{DOMAIN}"),
            via: format!("SIP/2.0/TCP {local}"),
            branch: format!("z9hG4bKt{}", self.number),
            from: format!("{own};tag=t{}", self.number),
            to: own,
            call_id: format!("t{}", self.number),
            cseq: 1,
            headers: vec![
                format!("Contact: <sip:{}@{local};transport=tcp>", self.number),
                "Expires: 3600".to_owned(),
            ],
            body: String::new(),
        }
    }
}

/// Sends a request and reads its one response; `None` when none arrives in time.
fn exchange(stream: &mut TcpStream, ask: &Ask) -> Option<Response> {
    stream.write_all(ask.text().as_bytes()).ok()?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(length @ 1..) => bytes.extend_from_slice(&chunk[..length]),
            _ => return None,
        }
    }
    match message(&bytes) {
        Some(Message::Response(response)) => Some(response),
        _ => None,
    }
}

/// Whether the engine answers a keep-alive (RFC 5626 §4.4.1). Anything it sent before is skipped.
fn is_open(stream: &mut TcpStream) -> bool {
    let mut chunk = [0; 4_096];
    stream.set_nonblocking(true).unwrap();
    let ended = loop {
        match stream.read(&mut chunk) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).unwrap();
    !ended && stream.write_all(b"\r\n\r\n").is_ok() && matches!(stream.read(&mut chunk), Ok(1..))
}

const DOMAIN: &str = "load.test";
const PAIRS: u32 = 10;
/// The interval at which a phone registers.
const EVERY: Duration = Duration::from_millis(500);
/// The engine's limits on connections over TCP (`docs/configuration.md`).
const PER_ADDRESS: usize = 64;
const IN_ALL: usize = 4_096;
const MESSAGE_MAX: Duration = Duration::from_secs(10);
const STRANGER_MAX: Duration = Duration::from_secs(30);
const IDLE_MAX: Duration = Duration::from_secs(120);
/// Tolerance for a busy machine.
const TOLERANCE: Duration = Duration::from_secs(2);
/// The wait before a closed connection is opened again, and before one that was refused or displaced.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const NO_PLACE_AFTER: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(10);
