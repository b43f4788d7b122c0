//! Free UDP ports on the loopback, for programs that must be told theirs.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// The first of `count` free ports in a row, an even one.
pub fn free(count: u16) -> u16 {
    for _ in 0..ATTEMPTS_MAX {
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let first = probe & !1;
        let Some(end) = first.checked_add(count) else { continue };
        // All are held at once, then let go together.
        if (first..end).map(|port| UdpSocket::bind(("127.0.0.1", port))).all(|socket| socket.is_ok()) {
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
