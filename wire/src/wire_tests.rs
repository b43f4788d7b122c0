use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use super::*;
use crate::limits::DATAGRAM_BYTES_MAX;

fn wire() -> Wire {
    Wire::open(&Waker::new().unwrap()).unwrap()
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
        other.recv_from(&mut [0; 4]).unwrap();
    }
}

#[test]
fn a_batch_has_bytes_sources_and_rising_kernel_times() {
    let (mut wire, endpoint, phone) = (wire(), endpoint(), phone());
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
    let (mut wire, endpoint, phone) = (wire(), endpoint(), phone());
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
    let (mut wire, mut endpoint, phone) = (wire(), endpoint(), phone());
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
    let (mut wire, endpoint, phone) = (wire(), endpoint(), phone());
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
    assert_eq!(counts(wire.send(&other, target.local_addr().unwrap(), &[0, 3, 4])), (3, 0));
    let mut buffer = [0; 64];
    for expected in [[0, 0, 0], [3, 0x7f, 3], [4, 4, 4]] {
        let (len, source) = target.recv_from(&mut buffer).unwrap();
        assert_eq!((len, source), (40, other.local()));
        assert_eq!(buffer[..3], expected);
    }
    // An address of the other family and an index beyond the batch are refused, not sent elsewhere.
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 9));
    assert_eq!(counts(wire.send(&other, v6, &[0, 1])), (0, 2));
    assert_eq!(wire.send(&other, target.local_addr().unwrap(), &[77]), Sent::default());
}

/// One wait for many sockets, and for each packet that waits alone one read and one send.
#[test]
fn packets_of_many_sockets_cost_two_calls_each_and_one_wait() {
    let (mut wire, phone, target) = (wire(), phone(), self::phone());
    let mut sockets: Vec<Endpoint> = (0..100).map(|_| endpoint()).collect();
    for (token, socket) in (0..).zip(&sockets) {
        wire.watch(socket, token).unwrap();
    }
    for socket in &sockets {
        phone.send_to(&[7; 172], socket.local()).unwrap();
    }
    settle();
    assert_eq!(wire.wait(Some(Duration::from_secs(20)), Duration::ZERO).unwrap(), 100);
    for place in 0..100 {
        let Some(Event::Ready { token, error: false }) = wire.event(place) else { panic!("no event") };
        let socket = &mut sockets[token as usize];
        assert_eq!(wire.receive(socket), 1);
        assert_eq!(counts(wire.send(socket, target.local_addr().unwrap(), &[0])), (1, 0));
    }
    assert_eq!(wire.take_calls(), Calls { wait: 1, receive: 100, send: 100 });
    assert_eq!(wire.take_calls(), Calls::default());
}

/// A burst in one socket costs ever fewer calls per packet.
#[test]
fn a_burst_in_one_socket_is_read_in_growing_batches() {
    let (mut wire, mut socket, phone, target) = (wire(), endpoint(), phone(), self::phone());
    wire.watch(&socket, 5).unwrap();
    for number in 0..117u8 {
        phone.send_to(&[number; 172], socket.local()).unwrap();
    }
    settle();
    let (mut batches, mut next) = (Vec::new(), 0);
    while wire.wait(Some(Duration::ZERO), Duration::ZERO).unwrap() > 0 {
        let count = wire.receive(&mut socket);
        for index in 0..count {
            assert_eq!(wire.datagram(index).unwrap().1[0], next, "in order");
            next += 1;
        }
        let indices: Vec<u8> = (0..count as u8).collect();
        assert_eq!(counts(wire.send(&socket, target.local_addr().unwrap(), &indices)), (count as u32, 0));
        batches.push(count);
    }
    assert_eq!(batches, [1, 4, 16, 32, 32, 32]);
    assert_eq!(wire.take_calls(), Calls { wait: 7, receive: 6, send: 6 });
}

#[test]
fn a_waker_ends_the_wait_until_it_is_reset() {
    let waker = Waker::new().unwrap();
    let mut wire = Wire::open(&waker).unwrap();
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
    let (mut wire, endpoint, phone) = (wire(), endpoint(), phone());
    let sender = self::endpoint();
    sender.hear_unreachable().unwrap();
    phone.send_to(&[7; 40], endpoint.local()).unwrap();
    settle();
    assert_eq!(wire.drain(&endpoint), 1);
    let gone = self::phone().local_addr().unwrap();
    assert_eq!(counts(wire.send(&sender, gone, &[0])), (1, 0));
    settle();
    assert_eq!(wire.unreachable(&sender), Some(IcmpError { to: Some(gone), unreachable: true }));
    assert_eq!(wire.unreachable(&sender), None);
    assert_eq!(counts(wire.send(&sender, gone, &[0])), (1, 0));
    settle();
    // The error pending from the line above must not swallow a packet to another address.
    assert_eq!(counts(wire.send(&sender, phone.local_addr().unwrap(), &[0])), (1, 0));
    let mut buffer = [0; 64];
    assert_eq!(phone.recv_from(&mut buffer).unwrap(), (40, sender.local()));
}

fn counts(outcome: Sent) -> (u32, u32) {
    (outcome.sent, outcome.failed)
}

#[expect(clippy::disallowed_methods, reason = "a test measures")]
fn wall_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_micros()).unwrap()
}
