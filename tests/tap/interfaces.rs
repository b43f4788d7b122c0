//! Interfaces that go down, come up, are removed and added again, and several at the same time.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sidetone::supervise::Supervisor;
use sidetone::tap::counters::TapCounters;
use sidetone::tap::ring::{self, Ring, RingError, RingOptions};
use sidetone::tap::session::TapSession;
use sidetone::tap::thread::{TapOptions, TapThread, TapThreadError};
use sidetone_media::pcap::{Content, dissect};
use sidetone_media::time::Micros;
use tokio::sync::mpsc;

use crate::tap::apart::{apart, ip};

pub fn now() -> Micros {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Micros(i64::try_from(since_epoch.as_micros()).unwrap())
}

pub fn options(interfaces: &[&str]) -> TapOptions {
    TapOptions {
        interfaces: interfaces.iter().map(|name| (*name).to_owned()).collect(),
        ring: RingOptions { ring_mib: 4, ..RingOptions::default() },
        now,
    }
}

/// Polls until the condition is true, for as long as a slow machine may need.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}: not in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interface_that_comes_back_is_read_again() {
    apart(|| {
        assert!(ip("link add ear0 type veth peer name ear1"));
        assert!(ip("addr add 192.0.2.1/24 dev ear0") && ip("link set ear0 up") && ip("link set ear1 up"));
        let counters = Arc::new(TapCounters::default());
        let (calls, _ended) = mpsc::channel(1);
        let thread = TapThread::start(
            options(&["ear0"]),
            TapSession::new(),
            Arc::clone(&counters),
            calls,
            &Supervisor::default(),
        )
        .unwrap();
        // No host is there: the sent frames are ARP requests.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let read = |counters: &TapCounters| TapCounters::read(&counters.packets);
        let is_heard = || {
            let before = read(&counters);
            until("frames are read", || {
                let _ = socket.send_to(b"anybody?", "192.0.2.2:9");
                read(&counters) > before
            });
        };
        let faults = || counters.faults.lock().clone();
        is_heard();
        assert_eq!(faults(), [""; 0]);

        assert!(ip("link set ear0 down"));
        until("it is told", || faults() == ["interface ear0 is down"]);
        assert!(ip("link set ear0 up"));
        until("it is well", || faults().is_empty());
        is_heard();

        assert!(ip("link del ear0"));
        until("it is told", || faults() == ["interface ear0 is away"]);
        assert!(ip("link add ear0 type veth peer name ear1"));
        assert!(ip("addr add 192.0.2.1/24 dev ear0") && ip("link set ear0 up") && ip("link set ear1 up"));
        until("it is well", || faults().is_empty());
        is_heard();
        thread.stop();
    });
}

/// A frame sent at one end of a veth pair arrives at the other: read at both, in the order of time.
#[test]
fn several_interfaces_are_read_in_the_order_of_time() {
    apart(|| {
        assert!(ip("link add ear0 type veth peer name ear1"));
        assert!(ip("addr add 192.0.2.1/24 dev ear0") && ip("link set ear0 up") && ip("link set ear1 up"));
        // No ARP is needed for the address of the other end.
        assert!(ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev ear0"));
        let open =
            |name| Ring::open(name, RingOptions { ring_mib: 1, ..RingOptions::default() }, now).unwrap();
        let mut rings = [open("ear0"), open("ear1")];
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        for number in 0..100_u8 {
            socket.send_to(&[number; 20], "192.0.2.2:9").unwrap();
        }
        let mut seen = Vec::new();
        until("all of them twice", || {
            ring::wait(&rings, Duration::from_millis(50));
            ring::read(&mut rings, |record| {
                if let Content::Udp(datagram) = dissect(record.link, record.frame)
                    && datagram.destination.port() == 9
                {
                    seen.push((record.at, datagram.payload[0]));
                }
            });
            seen.len() >= 200
        });
        assert_eq!(seen.len(), 200);
        // The kernel may close the block of one ring later than the other, which shifts frames by at most the block's
        // age.
        let limit_us = 2 * i64::from(ring::BLOCK_TIMEOUT_MS) * 1_000;
        assert!(seen.windows(2).all(|two| two[1].0.since(two[0].0) > -limit_us));
        for number in 0..100_u8 {
            assert_eq!(seen.iter().filter(|(_, seen)| *seen == number).count(), 2, "{number}");
        }
    });
}

/// The error names the interface and the existing ones, before anything else is checked.
#[test]
fn an_unknown_interface_is_refused() {
    let (calls, _ended) = mpsc::channel(1);
    let refused = TapThread::start(
        options(&["nosuch0"]),
        TapSession::new(),
        Arc::default(),
        calls,
        &Supervisor::default(),
    );
    let Err(error @ TapThreadError::Ring(RingError::Interface(_))) = refused else { panic!("not refused") };
    assert!(error.to_string().starts_with("there is no interface \"nosuch0\"; there are: lo"), "{error}");
}
