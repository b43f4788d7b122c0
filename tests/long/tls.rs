//! ClientHellos of foreign clients, and handshakes that must fail, beside calls over TLS (catalogue S12).

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use socket2::{Domain, Socket, Type};

use crate::common::receiver::Authority;
use crate::common::records::TempDir;
use crate::common::tunnel::Tunnel;
use crate::long::check::{Checks, note, seconds, setting, spread_ms};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::office::{Office, address};
use crate::long::usage::cpu;

/// Two calls over TLS are up, and a third phone registers again every half a second. Meanwhile foreign clients open
/// connections, send a ClientHello, and either close immediately or wait for the response without answering it.
#[test]
#[ignore = "long: a minute"]
fn long_s12_client_hellos() {
    let (lasts, rate) = (seconds("SIDETONE_S12_SECONDS", 60), setting("SIDETONE_S12_PER_SECOND", 500));
    let mut checks = Checks::default();
    let dir = TempDir::new();
    let authority = Authority::new();
    let (certificate, key) = authority.issue(dir.path(), "site", &[NAME], false);
    apply(dir.path(), &organisation(1, DOMAIN, 1_000, PHONES));
    let mut engine = Engine::start(
        dir.path(),
        &Start {
            listen: vec!["tls://127.0.0.1:0"],
            more: format!("[[tls.certificates]]\ncertificate = {certificate:?}\nkey = {key:?}\n"),
            ..Start::default()
        },
    );
    let at = engine.tls.expect("a TLS listener");
    let client = trusting(&authority);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tunnels: Vec<Tunnel> =
        (0..PHONES).map(|_| runtime.block_on(Tunnel::tls(at, client.clone(), NAME))).collect();
    let ways: Vec<SocketAddr> = tunnels.iter().map(|tunnel| tunnel.udp).collect();
    let office = Office::through(&ways, 50, DOMAIN, 1_000);
    office.register();
    office.connect(0..PAIRS);
    handshakes_that_fail(at, &mut checks);

    let window = office.window();
    let (before, began) = (cpu(engine.pid()).unwrap(), Instant::now());
    let over = AtomicBool::new(false);
    let (mut registered, mut failed) = (Vec::new(), 0);
    let opened = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(at, &hello(&client), rate, &over));
        while began.elapsed() < lasts {
            match office.phones[2 * PAIRS].register() {
                Some(answer) if answer.status == 200 => registered.push(answer.took),
                _ => failed += 1,
            }
            std::thread::sleep(EVERY);
        }
        over.store(true, Ordering::Relaxed);
        flood.join().unwrap()
    });
    let cores = (cpu(engine.pid()).unwrap() - before).as_secs_f64() / began.elapsed().as_secs_f64();
    let figure = format!("{cores:.2} of a core at {opened} ClientHellos in {} s", lasts.as_secs());
    checks.check("S12 CPU", cores < 1.0 && opened > 0, figure, "< 1 core");
    let loss = office.loss(&window, 0..PAIRS);
    let up = office.up(0..PAIRS);
    let figure = format!("{up} of {PAIRS} up, {} of {} packets lost", loss.lost, loss.sent);
    checks.check("S12 live calls", up == PAIRS && loss.percent() <= 0.1, figure, "all up, ≤ 0.1 % lost");
    let figure = format!("{}, {failed} failed", spread_ms(&registered));
    checks.check("S12 phone", failed == 0 && !registered.is_empty(), figure, "always registers");
    let ended = (0..PAIRS).filter(|pair| office.phones[2 * pair].bye().is_some_and(|bye| bye.status == 200));
    checks.check("S12 BYE", ended.count() == PAIRS, PAIRS, "200 to each");
    checks.check("S12 alive", engine.is_alive(), engine.is_alive(), "true");
    checks.end();
}

/// TLS 1.1 is refused with an alert, and a requested renegotiation is refused.
fn handshakes_that_fail(at: SocketAddr, checks: &mut Checks) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(&OLD_HELLO).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // RFC 8446 §6: record type 21, and in it level 2 (fatal): 70 is protocol_version, 40 handshake_failure.
    let refused =
        answer.first() == Some(&21) && matches!(answer.get(5..), Some([2, 70 | 40])) && answer.len() == 7;
    checks.check("S12 TLS 1.1", refused, format!("{answer:?}"), "a fatal alert and the end");

    let client = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-connect", &at.to_string(), "-servername", NAME])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut client) = client else { return note("openssl is not here: no renegotiation is asked for") };
    // In `openssl s_client`, a line of `R` requests a renegotiation.
    client.stdin.as_mut().unwrap().write_all(b"R\n").unwrap();
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // By an alert, or by the end of the connection.
    let refused = said.contains("RENEGOTIATING")
        && (said.contains("no renegotiation") || said.contains("unexpected eof"));
    let last =
        said.lines().rfind(|line| line.contains("renegotiation") || line.contains("rror")).unwrap_or("");
    checks.check("S12 renegotiation", refused, last, "refused");
}

/// Opens `rate` connections a second from a hundred addresses; returns how many.
fn flood(at: SocketAddr, hello: &[u8], rate: u32, over: &AtomicBool) -> u32 {
    let began = Instant::now();
    let mut open = VecDeque::new();
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * f64::from(rate)) as u32;
        while count < due {
            if let Some(stream) = connect(address(66, count % 100), at, hello) {
                // Every second connection is closed without reading the response.
                if count % 2 == 0 {
                    open.push_back((Instant::now(), stream));
                }
            }
            count += 1;
        }
        while open.front().is_some_and(|(since, _)| since.elapsed() > WAITS) {
            open.pop_front();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    count
}

fn connect(from: Ipv4Addr, at: SocketAddr, hello: &[u8]) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.bind(&SocketAddr::from((from, 0)).into()).ok()?;
    socket.connect_timeout(&at.into(), Duration::from_secs(1)).ok()?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(hello).ok()?;
    Some(stream)
}

fn trusting(authority: &Authority) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The first flight of a client.
fn hello(client: &ClientConfig) -> Vec<u8> {
    let name = ServerName::try_from(NAME).unwrap();
    let mut connection = ClientConnection::new(Arc::new(client.clone()), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

const DOMAIN: &str = "load1.test";
const NAME: &str = "sip.load1.test";
const PAIRS: usize = 2;
/// Those in calls, and one that registers.
const PHONES: u32 = 5;
const EVERY: Duration = Duration::from_millis(500);
/// Longer than a handshake may take.
const WAITS: Duration = Duration::from_secs(7);

/// A ClientHello of TLS 1.1 (RFC 4346 §7.4.1.2) with one cipher suite (TLS_RSA_WITH_AES_128_CBC_SHA) and no extension.
const OLD_HELLO: [u8; 50] = {
    let mut hello = [0; 50];
    let head = [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 2];
    let mut place = 0;
    while place < head.len() {
        hello[place] = head[place];
        place += 1;
    }
    // 32 bytes of random, an empty session id, one cipher suite, one compression method: none.
    let tail = [0, 0, 2, 0, 0x2f, 1, 0];
    let mut place = 0;
    while place < tail.len() {
        hello[43 + place] = tail[place];
        place += 1;
    }
    hello
};
