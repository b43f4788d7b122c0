//! Free UDP ports on the loopback, for programs that must be told theirs.

use std::net::UdpSocket;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was given out: the programs bind their ports one by one as calls come, and sipp most of them never.
static GIVEN: Mutex<Vec<Range<u16>>> = Mutex::new(Vec::new());

/// The first of `count` free ports in a row, an even one; never given out again.
pub fn free(count: u16) -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..ATTEMPTS_MAX {
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let first = probe & !1;
        let Some(end) = first.checked_add(count) else { continue };
        if given.iter().any(|range| first < range.end && range.start < end) {
            continue;
        }
        // All are held at once, then let go together.
        if (first..end).map(|port| UdpSocket::bind(("127.0.0.1", port))).all(|socket| socket.is_ok()) {
            given.push(first..end);
            return first;
        }
    }
    panic!("no {count} free ports in a row");
}

/// Waits until some program receives on `port`.
pub fn wait_until_bound(port: u16) {
    let deadline = Instant::now() + BOUND_MAX;
    let suffix = format!(":{port:04X}");
    loop {
        let table = std::fs::read_to_string("/proc/net/udp").unwrap();
        let mut locals = table.lines().filter_map(|line| line.split_whitespace().nth(1));
        if locals.any(|local| local.ends_with(&suffix)) {
            return;
        }
        assert!(Instant::now() < deadline, "nobody listens on port {port}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

const ATTEMPTS_MAX: usize = 100;
const BOUND_MAX: Duration = Duration::from_secs(60);
