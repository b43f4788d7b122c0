//! Structurally broken requests against the live engine, over UDP and TCP, beside good calls (catalogue P4).

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::mutations::{Case, METHODS, cases};
use crate::common::records::TempDir;
use crate::long::check::{Checks, note, percentile_ms, setting, spread_ms};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::office::{Office, address};

#[test]
#[ignore = "long: three minutes"]
fn long_p4_broken_requests() {
    let rate: u32 = setting("SIDETONE_P4_PER_SECOND", 500);
    let every: usize = setting("SIDETONE_P4_EVERY", 1);
    let mut checks = Checks::default();
    let dir = TempDir::new();
    apply(dir.path(), &organisation(1, DOMAIN, 1_000, PHONES));
    let mut engine = Engine::start(dir.path(), &Start::default());
    let office = Office::open(&engine, 50, DOMAIN, 1_000, PHONES);
    office.register();
    office.connect(0..CALLS);
    let window = office.window();

    let stop = AtomicBool::new(false);
    let (pings, good, answers) = (Mutex::default(), Mutex::default(), Mutex::default());
    let mut seen = HashSet::new();
    let hasher = RandomState::new();
    let mut sent = [0_usize; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| ping(&office, &stop, &pings));
        scope.spawn(|| call(&office, &stop, &good));
        for (at, transport) in ["UDP", "TCP"].into_iter().enumerate() {
            for (serial, method) in METHODS.into_iter().enumerate() {
                let cases: Vec<Case> = cases(method, transport, serial as u64 * 2 + at as u64)
                    .into_iter()
                    .step_by(every)
                    .collect();
                seen.extend(cases.iter().map(|case| hasher.hash_one((&case.element, &case.bytes))));
                sent[at] += cases.len();
                match transport {
                    "UDP" => over_udp(engine.sip, &cases, rate, &answers),
                    _ => over_tcp(engine.tcp, &cases, rate, &answers),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let loss = office.loss(&window, 0..CALLS);

    let figure = format!("{} distinct, {} over UDP, {} over TCP", seen.len(), sent[0], sent[1]);
    checks.check("P4 cases", seen.len() >= 4_527, figure, "≥ 4,527");
    let panics = engine.metrics().of("sidetone_panics_total", "").unwrap_or(0.0);
    let log = engine.log();
    let unharmed = engine.is_alive() && panics == 0.0 && !log.contains("panicked");
    checks.check("P4 panics", unharmed, format!("alive {}, {panics} panics", engine.is_alive()), "0");
    let (up, ended): (usize, u32) =
        (office.up(0..CALLS), office.phones.iter().map(|phone| phone.ended()).sum());
    let good = good.into_inner().unwrap();
    let figure =
        format!("{up} live ({ended} ended, {:.3} % lost), {} new, {} failed", loss.percent(), good.0, good.1);
    checks.check("P4 good calls", up == CALLS && good.0 > 0 && good.1 == 0, figure, "100 %");
    let answers: BTreeMap<String, u64> = answers.into_inner().unwrap();
    let wrong: Vec<&String> = answers.keys().filter(|answer| !is_right(answer)).collect();
    note(format!("answers: {answers:?}"));
    checks.check("P4 answers", wrong.is_empty(), format!("{wrong:?}"), "4xx, 501, 503, 505, 513 or silence");
    let (took, lost): (Vec<Duration>, u32) = pings.into_inner().unwrap();
    let fast = lost == 0 && percentile_ms(&took, 0.99) < 50.0;
    checks.check("P4 OPTIONS ping", fast, format!("{}, {lost} lost", spread_ms(&took)), "p99 < 50 ms");
    checks.end();
}

/// An OPTIONS of a registered phone ten times a second, on the phones without a call.
fn ping(office: &Office, stop: &AtomicBool, pings: &Mutex<(Vec<Duration>, u32)>) {
    let spare = &office.phones[2 * (CALLS + 2)..];
    for phone in spare.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let answer = phone.ping(Duration::from_secs(4));
        let mut pings = pings.lock().unwrap();
        match answer {
            Some(answer) => pings.0.push(answer.took),
            None => pings.1 += 1,
        }
        drop(pings);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Calls of two seconds, one after the other.
fn call(office: &Office, stop: &AtomicBool, good: &Mutex<(u32, u32)>) {
    let [caller, callee] = [0, 1].map(|side| &office.phones[2 * CALLS + side]);
    while !stop.load(Ordering::Relaxed) {
        let answered = caller.call(&callee.number).is_some_and(|answer| answer.status == 200);
        std::thread::sleep(Duration::from_secs(2));
        let ended = caller.bye().is_some_and(|answer| answer.status == 200);
        let mut good = good.lock().unwrap();
        if answered && ended { good.0 += 1 } else { good.1 += 1 }
    }
}

/// Waits until request number `at` of a rate is due.
fn pace(began: Instant, at: usize, rate: u32) {
    let due = began + Duration::from_secs_f64(at as f64 / f64::from(rate));
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}

fn over_udp(engine: SocketAddr, cases: &[Case], rate: u32, answers: &Mutex<BTreeMap<String, u64>>) {
    let sockets: Vec<UdpSocket> = sources()
        .map(|source| {
            let socket = UdpSocket::bind((source, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        })
        .collect();
    let began = Instant::now();
    for (at, case) in cases.iter().enumerate() {
        pace(began, at, rate);
        let socket = &sockets[at % sockets.len()];
        // A case too large for a datagram is not sent.
        let _ = socket.send_to(&case.bytes, engine);
        hear_udp(socket, answers);
    }
    std::thread::sleep(Duration::from_secs(1));
    sockets.iter().for_each(|socket| hear_udp(socket, answers));
}

fn hear_udp(socket: &UdpSocket, answers: &Mutex<BTreeMap<String, u64>>) {
    let mut buffer = [0; 4_096];
    while let Ok(length) = socket.recv(&mut buffer) {
        count(&buffer[..length], answers);
    }
}

/// A connection for each case; sixteen are open at a time, so that the engine can respond.
fn over_tcp(engine: SocketAddr, cases: &[Case], rate: u32, answers: &Mutex<BTreeMap<String, u64>>) {
    let sources: Vec<Ipv4Addr> = sources().collect();
    let mut open = std::collections::VecDeque::new();
    let (began, mut refused) = (Instant::now(), 0);
    for (at, case) in cases.iter().enumerate() {
        pace(began, at, rate);
        match connect(engine, sources[at % sources.len()]) {
            Ok(mut stream) => {
                // The engine may close it before it has read everything.
                let _ = stream.write_all(&case.bytes);
                open.push_back(stream);
            }
            Err(_) => refused += 1,
        }
        if open.len() > 128 {
            open.pop_front().into_iter().for_each(|stream| hear_tcp(stream, answers));
        }
    }
    std::thread::sleep(Duration::from_secs(1));
    open.into_iter().for_each(|stream| hear_tcp(stream, answers));
    if refused > 0 {
        note(format!("{refused} connections of {} were refused", cases.len()));
    }
}

fn connect(engine: SocketAddr, source: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    // No TIME_WAIT: thousands of these would use up the ports of an address.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.connect_timeout(&engine.into(), Duration::from_secs(2))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn hear_tcp(mut stream: TcpStream, answers: &Mutex<BTreeMap<String, u64>>) {
    let (mut buffer, mut heard) = ([0; 4_096], Vec::new());
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        heard.extend_from_slice(&buffer[..length]);
    }
    let text = String::from_utf8_lossy(&heard).into_owned();
    for answer in text.split("SIP/2.0 ").skip(1) {
        count(format!("SIP/2.0 {answer}").as_bytes(), answers);
    }
}

/// Counts a response by the method of its CSeq and its status.
fn count(bytes: &[u8], answers: &Mutex<BTreeMap<String, u64>>) {
    let text = String::from_utf8_lossy(bytes);
    let Some(status) = text.strip_prefix("SIP/2.0 ").and_then(|rest| rest.get(..3)) else { return };
    let method = text
        .lines()
        .find_map(|line| line.strip_prefix("CSeq: "))
        .and_then(|cseq| cseq.split_whitespace().nth(1));
    let method = method.filter(|method| METHODS.contains(&method.trim())).unwrap_or("other").trim();
    *answers.lock().unwrap().entry(format!("{status} {method}")).or_default() += 1;
}

/// Without authentication only OPTIONS succeeds, and no broken request causes an error of the engine.
fn is_right(answer: &str) -> bool {
    let (status, method) = answer.split_once(' ').unwrap_or(("", ""));
    match status.parse() {
        Ok(400..=499 | 501 | 503 | 505 | 513) => true,
        Ok(200) => method == "OPTIONS",
        Ok(100) => method == "INVITE",
        _ => false,
    }
}

fn sources() -> impl Iterator<Item = Ipv4Addr> {
    (0..SOURCES).map(|index| address(67, index))
}

const DOMAIN: &str = "load.test";
const CALLS: usize = 20;
const PHONES: u32 = 60;
const SOURCES: u32 = 200;
