use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::*;
use crate::limits::DATAGRAM_BYTES_MAX;

/// The kernel interface that this module tests; `epoll` where the system does not offer the other one.
fn io() -> Io {
    if !module_path!().contains("io_uring") {
        return Io::Epoll;
    }
    Wire::try_io_uring().map_or_else(
        |error| {
            eprintln!("SKIPPED: tests with io_uring run with epoll, this system does not offer it: {error}");
            Io::Epoll
        },
        |()| Io::IoUring,
    )
}

/// A wire and the waker that it needs.
fn open() -> (Waker, Wire) {
    let waker = Waker::new().unwrap();
    let wire = Wire::open(&waker, io()).unwrap();
    (waker, wire)
}

fn endpoint() -> Endpoint {
    Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
}

fn phone() -> UdpSocket {
    let phone = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    phone.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    phone
}

/// Returns when everything sent before the call is in its receiver's queue.
///
/// On loopback this usually holds when `send` returns, but a busy kernel may hand the work to its own thread;
/// its queue is first in, first out. Two rounds, because the answer to a datagram (ICMP) queues after it.
fn settle() {
    for _ in 0..2 {
        let (one, other) = (phone(), phone());
        one.send_to(&[0], other.local_addr().unwrap()).unwrap();
        receive_from(&other, &mut [0; 4]).unwrap();
    }
}

#[test]
fn a_batch_has_bytes_sources_and_rising_kernel_times() {
    let ((_waker, mut wire), endpoint, phone) = (open(), endpoint(), phone());
    wire.watch(&endpoint, 1).unwrap();
    let before = wall_us();
    for number in 0..20u8 {
        phone.send_to(&[number; 33], endpoint.local()).unwrap();
    }
    settle();
    assert_eq!(wire.drain(&endpoint), 20);
    // The kernel stamps on delivery, which may be after `send` has returned.
    let after = wall_us();
    let mut last = before;
    for number in 0..20u8 {
        let (arrival, datagram) = wire.datagram(usize::from(number)).unwrap();
        assert_eq!(datagram, [number; 33]);
        assert_eq!(arrival.source, phone.local_addr().unwrap());
        assert!(!arrival.truncated);
        let stamp_us = arrival.stamp_us.unwrap();
        assert!((last..=after).contains(&stamp_us), "{last} {stamp_us} {after}");
        last = stamp_us;
    }
    assert!(wire.datagram(20).is_none());
    assert_eq!(wire.drain(&endpoint), 0);
}

#[test]
fn a_long_datagram_is_marked_and_an_empty_one_is_seen() {
    let ((_waker, mut wire), endpoint, phone) = (open(), endpoint(), phone());
    wire.watch(&endpoint, 1).unwrap();
    phone.send_to(&[1; DATAGRAM_BYTES_MAX + 1], endpoint.local()).unwrap();
    phone.send_to(&[2; DATAGRAM_BYTES_MAX], endpoint.local()).unwrap();
    phone.send_to(&[], endpoint.local()).unwrap();
    settle();
    assert_eq!(wire.drain(&endpoint), 3);
    let seen: Vec<(usize, bool)> = (0..3)
        .map(|index| wire.datagram(index).unwrap().0)
        .map(|arrival| (arrival.len, arrival.truncated))
        .collect();
    assert_eq!(seen, [(DATAGRAM_BYTES_MAX, true), (DATAGRAM_BYTES_MAX, false), (0, false)]);
}

#[test]
fn overflow_is_counted_exactly_and_every_packet_keeps_its_time() {
    let ((_waker, mut wire), mut endpoint, phone) = (open(), endpoint(), phone());
    wire.watch(&endpoint, 1).unwrap();
    let total = 6_000;
    // Short batches first, so that the headers have shrunk to the size of a message without drops.
    for _ in 0..3 {
        phone.send_to(&[0; 172], endpoint.local()).unwrap();
        settle();
        assert_eq!(wire.drain(&endpoint), 1);
    }
    for _ in 0..total {
        phone.send_to(&[0; 172], endpoint.local()).unwrap();
    }
    settle();
    let (mut received, mut drops) = (0, 0);
    let mut drain = |wire: &mut Wire, endpoint: &mut Endpoint| {
        loop {
            let count = wire.drain(endpoint);
            if count == 0 {
                break;
            }
            received += count;
            for index in 0..count {
                let (arrival, _) = wire.datagram(index).unwrap();
                assert!(arrival.stamp_us.is_some(), "packet {received} has no time");
                drops = arrival.drops.unwrap_or(drops);
            }
        }
    };
    drain(&mut wire, &mut endpoint);
    // The counter arrives with the first packet that was queued after the drop.
    phone.send_to(&[0; 172], endpoint.local()).unwrap();
    settle();
    drain(&mut wire, &mut endpoint);
    assert!(drops > 0, "a default receive buffer held {total} packets");
    assert_eq!(received + drops as usize, total + 1);
}

#[test]
fn chosen_datagrams_are_sent_from_the_receive_buffers() {
    let ((_waker, mut wire), endpoint, phone) = (open(), endpoint(), phone());
    wire.watch(&endpoint, 1).unwrap();
    let other = self::endpoint();
    let target = self::phone();
    for number in 0..5u8 {
        phone.send_to(&[number; 40], endpoint.local()).unwrap();
    }
    settle();
    assert_eq!(wire.drain(&endpoint), 5);
    if let Some((_, datagram)) = wire.datagram(3) {
        datagram[1] = 0x7f;
    }
    assert_eq!(sent(&mut wire, &other, target.local_addr().unwrap(), &[0, 3, 4]), (3, 0));
    let mut buffer = [0; 64];
    for expected in [[0, 0, 0], [3, 0x7f, 3], [4, 4, 4]] {
        let (len, source) = receive_from(&target, &mut buffer).unwrap();
        assert_eq!((len, source), (40, other.local()));
        assert_eq!(buffer[..3], expected);
    }
    // An address of the other family and an index beyond the batch are refused, not sent elsewhere.
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 9));
    assert_eq!(sent(&mut wire, &other, v6, &[0, 1]), (0, 2));
    assert_eq!(sent(&mut wire, &other, target.local_addr().unwrap(), &[77]), (0, 0));
}

/// One wait for many sockets; for each packet that waits alone one read and one send, or one send for many.
#[test]
fn packets_of_many_sockets_cost_two_calls_each_or_few_together() {
    let ((_waker, mut wire), phone, target) = (open(), phone(), self::phone());
    let mut sockets: Vec<Endpoint> = (0..100).map(|_| endpoint()).collect();
    for (token, socket) in (0..).zip(&sockets) {
        wire.watch(socket, token).unwrap();
    }
    for socket in &sockets {
        phone.send_to(&[7; 172], socket.local()).unwrap();
    }
    settle();
    assert_eq!(wire.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap(), 100);
    let mut outcome = Sent::default();
    for place in 0..100 {
        let Some(Event::Ready { token, error: false }) = wire.event(place) else { panic!("no event") };
        let socket = &mut sockets[token as usize];
        assert_eq!(wire.receive(socket), 1);
        outcome += wire.send(socket, target.local_addr().unwrap(), &[0]);
    }
    outcome += wire.flush();
    assert_eq!((outcome.sent, outcome.sent_bytes, outcome.failed), (100, 17_200, 0));
    let expected = match io() {
        Io::Epoll => Calls { wait: 1, receive: 100, send: 100 },
        Io::IoUring => Calls { wait: 1, receive: 0, send: 2 },
    };
    assert_eq!(wire.take_calls(), expected);
    assert_eq!(wire.take_calls(), Calls::default());
}

/// A burst in one socket costs ever fewer calls per packet.
#[test]
fn a_burst_in_one_socket_is_read_in_large_batches() {
    let ((_waker, mut wire), mut socket, phone, target) = (open(), endpoint(), phone(), self::phone());
    wire.watch(&socket, 5).unwrap();
    for number in 0..117u8 {
        phone.send_to(&[number; 172], socket.local()).unwrap();
    }
    settle();
    let (mut batches, mut next) = (Vec::new(), 0);
    while next < 117 && wire.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap() > 0 {
        let count = wire.receive(&mut socket);
        for index in 0..count {
            assert_eq!(wire.datagram(index).unwrap().1[0], next, "in order");
            next += 1;
        }
        let indices: Vec<u8> = (0..count as u8).collect();
        assert_eq!(sent(&mut wire, &socket, target.local_addr().unwrap(), &indices), (count as u32, 0));
        batches.push(count);
    }
    assert_eq!(batches.iter().sum::<usize>(), 117);
    let calls = wire.take_calls();
    if io() == Io::Epoll {
        assert_eq!(batches, [1, 4, 16, 32, 32, 32]);
        assert_eq!(calls, Calls { wait: 6, receive: 6, send: 6 });
    } else {
        assert!(calls.total() <= 12 && calls.receive == 0, "{calls:?} for {batches:?}");
    }
}

/// Datagrams that arrived before a socket is no longer watched are drained from it, in order, together with later ones;
/// another wire then has the socket.
#[test]
fn a_socket_moves_to_another_wire_with_all_its_packets() {
    let ((_waker, mut first), (_other_waker, mut second)) = (open(), open());
    let (mut endpoint, phone) = (endpoint(), phone());
    for round in 0..3u8 {
        first.watch(&endpoint, 1).unwrap();
        assert!(first.watch(&endpoint, 1).is_err(), "it is watched already");
        phone.send_to(&[round, 1], endpoint.local()).unwrap();
        settle();
        assert_eq!(first.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap(), 1);
        first.unwatch(&endpoint).unwrap();
        assert!(first.unwatch(&endpoint).is_err(), "it is not watched any more");
        phone.send_to(&[round, 2], endpoint.local()).unwrap();
        settle();
        let mut came = Vec::new();
        while came.len() < 2 {
            let count = first.drain(&endpoint);
            assert!(count > 0, "{came:?}");
            came.extend((0..count).map(|index| first.datagram(index).unwrap().1[1]));
        }
        assert_eq!((came, first.drain(&endpoint)), (vec![1, 2], 0));
        second.watch(&endpoint, 2).unwrap();
        phone.send_to(&[round, 3], endpoint.local()).unwrap();
        settle();
        assert_eq!(first.wait(Some(Duration::ZERO), Duration::ZERO).unwrap(), 0);
        assert_eq!(second.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap(), 1);
        assert_eq!(second.receive(&mut endpoint), 1);
        second.unwatch(&endpoint).unwrap();
    }
}

/// A socket that was forgotten and closed frees its port immediately, and its descriptor may be that of another socket.
#[test]
fn a_forgotten_socket_frees_its_port() {
    let (_waker, mut wire) = open();
    let phone = phone();
    for _ in 0..20 {
        let (one, other) = (endpoint(), endpoint());
        wire.watch(&one, 1).unwrap();
        wire.watch(&other, 2).unwrap();
        phone.send_to(&[9; 20], one.local()).unwrap();
        settle();
        assert_eq!(wire.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap(), 1);
        let ports = [one.local(), other.local()];
        wire.forget([&one, &other]);
        drop((one, other));
        for port in ports {
            UdpSocket::bind(port).unwrap();
        }
        assert_eq!(wire.wait(Some(Duration::ZERO), Duration::ZERO).unwrap(), 0);
    }
}

/// More datagrams than there are buffers: the rest waits in the sockets and arrives afterwards.
#[test]
fn more_datagrams_than_buffers_are_all_received() {
    let ((_waker, mut wire), phone) = (open(), phone());
    let mut sockets: Vec<Endpoint> = (0..20).map(|_| endpoint()).collect();
    for (token, socket) in (0..).zip(&sockets) {
        wire.watch(socket, token).unwrap();
    }
    for _ in 0..100 {
        for socket in &sockets {
            phone.send_to(&[7; 20], socket.local()).unwrap();
        }
    }
    settle();
    let (mut received, mut turns) = (0, 0);
    while received < 2_000 {
        let events = wire.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap();
        assert!(events > 0 && turns < 1_000, "{received} received in {turns} turns");
        for place in 0..events {
            let Some(Event::Ready { token, .. }) = wire.event(place) else { panic!("no event") };
            received += wire.receive(&mut sockets[token as usize]);
        }
        turns += 1;
    }
    assert_eq!(received, 2_000);
}

/// While datagrams gather, enough of them end it; a few do not.
#[test]
fn gathering_ends_after_its_time() {
    let ((_waker, mut wire), mut endpoint, phone) = (open(), endpoint(), phone());
    wire.watch(&endpoint, 1).unwrap();
    phone.send_to(&[1; 20], endpoint.local()).unwrap();
    settle();
    let gather = Duration::from_millis(1);
    assert_eq!(wire.wait(Some(Duration::from_secs(20)), gather).unwrap(), 1);
    assert_eq!(wire.receive(&mut endpoint), 1);
    assert_eq!(wire.wait(Some(gather), gather).unwrap(), 0, "nothing came, and the time is over");
}

#[test]
fn a_waker_ends_the_wait_until_it_is_reset() {
    let (waker, mut wire) = open();
    assert_eq!(wire.wait(Some(Duration::ZERO), Duration::ZERO).unwrap(), 0);
    waker.wake();
    waker.wake();
    for _ in 0..2 {
        assert_eq!(wire.wait(None, Duration::ZERO).unwrap(), 1);
        assert_eq!(wire.event(0), Some(Event::Woken));
    }
    waker.reset();
    assert_eq!(wire.wait(Some(Duration::ZERO), Duration::ZERO).unwrap(), 0);
    assert_eq!(wire.event(0), None);
}

#[test]
fn a_closed_port_is_heard_and_does_not_cost_the_next_datagram() {
    let ((_waker, mut wire), endpoint, phone) = (open(), endpoint(), phone());
    let sender = self::endpoint();
    sender.hear_unreachable().unwrap();
    wire.watch(&endpoint, 1).unwrap();
    wire.watch(&sender, 2).unwrap();
    phone.send_to(&[7; 40], endpoint.local()).unwrap();
    settle();
    assert_eq!(wire.drain(&endpoint), 1);
    // Connected elsewhere, it keeps the port, and datagrams of others are answered with ICMP.
    let held = self::phone();
    held.connect("127.0.0.1:9").unwrap();
    let gone = held.local_addr().unwrap();
    assert_eq!(sent(&mut wire, &sender, gone, &[0]), (1, 0));
    settle();
    let events = wire.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap();
    let reported: Vec<Event> = (0..events).filter_map(|place| wire.event(place)).collect();
    assert_eq!(reported, [Event::Ready { token: 2, error: true }]);
    assert_eq!(wire.unreachable(&sender), Some(IcmpError { to: Some(gone), unreachable: true }));
    assert_eq!(wire.unreachable(&sender), None);
    phone.send_to(&[7; 40], endpoint.local()).unwrap();
    settle();
    assert_eq!(wire.drain(&endpoint), 1);
    assert_eq!(sent(&mut wire, &sender, gone, &[0]), (1, 0));
    settle();
    // The error pending from the line above must not swallow a packet to another address.
    assert_eq!(sent(&mut wire, &sender, phone.local_addr().unwrap(), &[0]), (1, 0));
    let mut buffer = [0; 64];
    assert_eq!(receive_from(&phone, &mut buffer).unwrap(), (40, sender.local()));
    // The socket is read as before.
    phone.send_to(&[8; 30], sender.local()).unwrap();
    settle();
    assert_eq!(wire.drain(&sender), 1);
}

/// Sends datagrams, flushes those that the wire queued, and returns the numbers of sent and of failed ones.
fn sent(wire: &mut Wire, endpoint: &Endpoint, to: SocketAddr, indices: &[u8]) -> (u32, u32) {
    let mut outcome = wire.send(endpoint, to, indices);
    outcome += wire.flush();
    (outcome.sent, outcome.failed)
}

#[expect(clippy::disallowed_methods, reason = "a test measures")]
fn wall_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_micros()).unwrap()
}
