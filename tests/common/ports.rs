//! Free ports on the loopback, for programs that need a fixed port.

use std::hash::{BuildHasher, RandomState};
use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The ports that were given out: programs bind them only as calls arrive, and sipp never binds most of them.
static GIVEN: Mutex<Vec<Range<u16>>> = Mutex::new(Vec::new());

/// The first of `count` consecutive ports, an even one, that no process uses for UDP or TCP; never given out again.
pub fn free(count: u16) -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    // Consecutive from a random port on: hundreds of ports at random positions would leave no long row.
    let from = given.last().map_or_else(any_port, |last| last.end);
    // All are held at the same time, then released together.
    let mut held = Vec::new();
    let is_free = |port| {
        let address = ("127.0.0.1", port);
        let sockets = UdpSocket::bind(address).and_then(|udp| Ok((udp, TcpListener::bind(address)?)));
        match sockets {
            Ok(sockets) => held.push(sockets),
            Err(_) => held.clear(),
        }
        !held.is_empty()
    };
    let first = first_fit(from, count, &given, is_free)
        .unwrap_or_else(|| panic!("no {count} free ports in a row; given out: {given:?}"));
    given.push(first..first + count);
    first
}

fn any_port() -> u16 {
    let any = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
    PORTS.start + u16::try_from(any).unwrap()
}

/// The first of `count` consecutive free ports within [`PORTS`]. The search begins at `from` and continues from the
/// start of the range, so every position is tried.
fn first_fit(
    from: u16,
    count: u16,
    given: &[Range<u16>],
    mut is_free: impl FnMut(u16) -> bool,
) -> Option<u16> {
    let mut within = |mut first: u16, last: u16| {
        loop {
            first = first.next_multiple_of(2);
            let end = first.checked_add(count).filter(|end| first < last && *end <= PORTS.end)?;
            let taken = given
                .iter()
                .filter(|range| range.start < end && first < range.end)
                .map(|range| range.end)
                .max();
            match taken.or_else(|| (first..end).find(|port| !is_free(*port)).map(|busy| busy + 1)) {
                Some(next) => first = next,
                None => return Some(first),
            }
        }
    };
    within(from, PORTS.end).or_else(|| within(PORTS.start, from))
}

/// Waits until some program receives on `port`.
pub fn wait_until_bound(port: u16) {
    let deadline = Instant::now() + BOUND_MAX;
    while !is_bound(port) {
        assert!(Instant::now() < deadline, "no program listens on port {port}");
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

/// Waits until the port accepts connections. It makes no test connection, which the program would count as one of its
/// own.
pub fn wait_until_accepting(port: u16) {
    let deadline = Instant::now() + BOUND_MAX;
    let listens = format!(":{port:04X} 00000000:0000 0A");
    while !std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&listens) {
        assert!(Instant::now() < deadline, "there is no listener on port {port}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Below the range that Linux uses for port 0: no socket of an engine or its clients takes one between the check and
/// the start of the program.
const PORTS: Range<u16> = 12_000..32_000;
const BOUND_MAX: Duration = Duration::from_secs(60);

#[test]
fn the_one_place_that_is_left_is_found_from_anywhere() {
    // Two holes are left: one of 400 ports and one of 397.
    let given = [PORTS.start..20_000, 20_400..25_000, 25_397..PORTS.end];
    for from in (PORTS.start..PORTS.end).step_by(97) {
        assert_eq!(first_fit(from, 400, &given, |_| true), Some(20_000), "from {from}");
        assert_eq!(first_fit(from, 402, &given, |_| true), None, "from {from}");
        assert_eq!(first_fit(from, 398, &given, |port| port != 20_001), Some(20_002), "from {from}");
    }
}
