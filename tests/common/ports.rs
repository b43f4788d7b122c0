#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
//! Free ports on the loopback, for programs that must be told theirs.

use std::hash::{BuildHasher, RandomState};
use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was given out: the programs bind their ports one by one as calls come, and sipp most of them never.
static GIVEN: Mutex<Vec<Range<u16>>> = Mutex::new(Vec::new());

/// The first of `count` ports in a row, an even one, that nobody has for UDP or TCP; never given out again.
pub fn free(count: u16) -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for attempt in 0..ATTEMPTS_MAX {
        let any = RandomState::new().hash_one(attempt) % u64::from(PORTS.end - PORTS.start - count);
        let first = (PORTS.start + u16::try_from(any).unwrap()) & !1;
        let end = first + count;
        if given.iter().any(|range| first < range.end && range.start < end) {
            continue;
        }
        // All are held at once, then let go together.
        let both = |port| {
            let address = ("127.0.0.1", port);
            Some((UdpSocket::bind(address).ok()?, TcpListener::bind(address).ok()?))
        };
        if (first..end).map(both).collect::<Option<Vec<_>>>().is_some() {
            given.push(first..end);
            return first;
        }
    }
    panic!("no {count} free ports in a row");
}

/// Waits until some program receives on `port`.
pub fn wait_until_bound(port: u16) {
    let deadline = Instant::now() + BOUND_MAX;
    while !is_bound(port) {
        assert!(Instant::now() < deadline, "nobody listens on port {port}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Whether some program receives datagrams on `port`.
pub fn is_bound(port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    let mut locals = table.lines().filter_map(|line| line.split_whitespace().nth(1));
    locals.any(|local| local.ends_with(&suffix))
}

/// Waits until connections to the port are accepted; a connection made for that would be one of the program's.
pub fn wait_until_accepting(port: u16) {
    let deadline = Instant::now() + BOUND_MAX;
    let listens = format!(":{port:04X} 00000000:0000 0A");
    while !std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&listens) {
        assert!(Instant::now() < deadline, "there is no listener on port {port}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

const ATTEMPTS_MAX: u32 = 100;
/// Below those that Linux gives to whoever binds port 0: none of the many sockets of an engine and its clients takes one
/// between the look and the start of the program.
const PORTS: Range<u16> = 12_000..32_000;
const BOUND_MAX: Duration = Duration::from_secs(60);
