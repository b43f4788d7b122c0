//! No relayed packet allocates once a call is up, also with a trace, with SRTP and for video: the complete path, from
//! socket to socket.

#![cfg(feature = "net")]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::alloc::System;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sidetone_media::net::{Command, Notice, Port, Relay, RelayConfig, RelayIo};
use sidetone_media::session::{Description, Payload, PayloadKind, SessionConfig};
use sidetone_media::srtp::{Inbound, MasterKey, Outbound, SrtpKeys, Suite};
use sidetone_media::time::ClockRate;
use sidetone_media::trace::{TraceHead, TraceSink};
use sidetone_media::webrtc::Protection;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns each buffer, like a sink that has written it.
#[derive(Debug, Default)]
struct Recycling(Mutex<usize>);

impl TraceSink for Recycling {
    fn append(&self, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        *self.0.lock().unwrap() += bytes.len();
        bytes.clear();
        Some(bytes)
    }

    fn name(&self) -> &str {
        "recycling"
    }
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A phone, and its SRTP.
struct Party {
    socket: UdpSocket,
    srtp: Option<(Outbound, Inbound)>,
}

/// A described and answered port and its phone, whose port is outside the relay's range.
fn party(relay: &Relay, sink: &Arc<Recycling>, suite: Option<Suite>, video: bool) -> (Party, Port) {
    let phone = loop {
        let phone = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        if phone.local_addr().unwrap().port() > 31_999 {
            break phone;
        }
    };
    phone.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let port = relay.open(0, LOCALHOST).unwrap();
    let head = Box::new(TraceHead::default());
    relay.command(port.id, Command::Trace { head, sink: sink.clone() }).unwrap();
    let audio = Payload {
        number: 0,
        kind: PayloadKind::Audio,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: Some(8),
        default_ptime_ms: None,
        name: "PCMU".to_owned(),
    };
    let description = Description {
        remote: Some(phone.local_addr().unwrap()),
        receive: true,
        send: true,
        payloads: vec![audio],
        signalling: Some(LOCALHOST),
        video,
        ..Description::default()
    };
    let srtp = suite.map(|suite| {
        let key = MasterKey::new(suite, &vec![7; suite.key_bytes() + suite.salt_bytes()]).unwrap();
        let keys = SrtpKeys { receive: key.clone(), send: key.clone() };
        relay.command(port.id, Command::Secure(Some(Box::new(Protection::Sdes(keys))))).unwrap();
        (Outbound::new(&key), Inbound::new(&key))
    });
    relay.command(port.id, Command::Describe(Box::new(description))).unwrap();
    relay.command(port.id, Command::Answered).unwrap();
    (Party { socket: phone, srtp }, port)
}

/// Sends the next packet and receives it at the other end.
fn pass(packet: &mut [u8; 172], seq: u16, from: &mut Party, port: Port, to: &mut Party) {
    packet[2..4].copy_from_slice(&seq.to_be_bytes());
    packet[4..8].copy_from_slice(&(u32::from(seq) * 160).to_be_bytes());
    let mut sent = [0; 200];
    sent[..packet.len()].copy_from_slice(packet);
    let len = match &mut from.srtp {
        Some((sender, _)) => sender.protect(&mut sent, packet.len()).unwrap(),
        None => packet.len(),
    };
    from.socket.send_to(&sent[..len], port.rtp).unwrap();
    let mut received = [0; 200];
    let mut len = receive(&to.socket, &mut received);
    if let Some((_, receiver)) = &mut to.srtp {
        len = receiver.unprotect(&mut received[..len]).unwrap();
    }
    assert_eq!(received.get(..len), Some(&packet[..]));
}

/// Number of seconds of the leg's timeline that have begun.
#[expect(clippy::panic, reason = "a test fails by it")]
fn rows(relay: &Relay, port: Port) -> usize {
    relay.command(port.id, Command::Snapshot).unwrap();
    loop {
        match relay.notices().recv_timeout(Duration::from_secs(30)) {
            Ok(Notice::Snapshot { report, .. }) => return report.timeline.seconds.len(),
            // This thread was paused for a second.
            Ok(Notice::Silent { .. }) => {}
            other => panic!("no snapshot, but {other:?}"),
        }
    }
}

// Only one test here, because the counter counts all threads of this binary.
#[test]
fn a_relayed_packet_allocates_nothing() {
    for suites in [
        [None, None],
        [Some(Suite::AesCm128HmacSha1Tag80), None],
        [Some(Suite::AesCm128HmacSha1Tag32), Some(Suite::AeadAes256Gcm)],
    ] {
        for io in [RelayIo::Epoll, RelayIo::IoUring] {
            relay_without_allocating(suites, io, false);
        }
    }
    relay_without_allocating([None, Some(Suite::AesCm128HmacSha1Tag80)], RelayIo::Epoll, true);
}

fn relay_without_allocating(suites: [Option<Suite>; 2], io: RelayIo, video: bool) {
    let config = RelayConfig {
        bind: LOCALHOST,
        ports: 16_000..=31_999,
        workers: 1,
        io,
        session: SessionConfig::default(),
        seed: u64::from(std::process::id()),
    };
    let relay = Relay::start(config, Arc::new(|| {})).unwrap();
    let sink = Arc::new(Recycling::default());
    let (mut caller, one) = party(&relay, &sink, suites[0], video);
    let (mut callee, other) = party(&relay, &sink, suites[1], video);
    let payload_map = Some(Box::new(std::array::from_fn(|number| number as u8)));
    relay.command(one.id, Command::Bridge { peer: other.id, payload_map }).unwrap();
    relay.command(other.id, Command::Bridge { peer: one.id, payload_map: None }).unwrap();
    assert_eq!(rows(&relay, other), 0);

    let mut packet = [0xd5; 172];
    packet[..2].copy_from_slice(&[0x80, 0]);
    let mut seq = 0;
    let mut both_ways = |packets: u16| {
        for _ in 0..packets {
            pass(&mut packet, seq, &mut caller, one, &mut callee);
            pass(&mut packet, seq, &mut callee, other, &mut caller);
            seq = seq.wrapping_add(1);
        }
        u64::from(packets) * 2
    };
    // When the first second is over, space for a minute of rows is allocated: a leg's first packets do not
    // count here.
    #[expect(clippy::disallowed_methods, reason = "a test measures")]
    let begun = Instant::now();
    let mut relayed = both_ways(100);
    // Video has no rows.
    while !video && (rows(&relay, one) < 2 || rows(&relay, other) < 2) {
        relayed += both_ways(100);
    }
    // A snapshot folds a copy of the waiting packets; these packets fold the waiting ones.
    relayed += both_ways(200);
    let written = *sink.0.lock().unwrap();
    let region = Region::new(ALLOCATOR);
    relayed += both_ways(5_000);
    let change = region.change();
    // Rows for another minute, when the machine takes that long.
    let minutes = 2 * (begun.elapsed().as_secs() / 60);
    assert!((change.allocations + change.reallocations) as u64 <= minutes, "{change:?}");
    assert!(*sink.0.lock().unwrap() > written + 4 * 2_048, "the traces went on");
    // The counters are published after the packet is sent; a snapshot comes after them.
    rows(&relay, one);
    assert_eq!(relay.counters().relayed, relayed);
}

/// Receives a packet. A signal to its thread, perhaps by the end of an io_uring, interrupts it.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> usize {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.unwrap().0,
        }
    }
}
