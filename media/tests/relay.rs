//! The relay between real sockets on loopback: what goes in at one party comes out at the other, counted.
//!
//! Nothing here waits for a time: a test blocks on the packet or the notice that must come.

#![cfg(feature = "net")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sidetone_media::net::{
    Command, CommandError, Notice, OpenError, Port, PortId, Relay, RelayConfig, RelayError,
};
use sidetone_media::session::{Description, Payload, PayloadKind, Reason, Report, SessionConfig};
use sidetone_media::time::ClockRate;

/// Far longer than anything takes: a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Outside of what systems usually give to phones of this test.
const RANGE: RangeInclusive<u16> = 16_000..=31_999;
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn start() -> Relay {
    start_in(RANGE)
}

fn start_in(ports: RangeInclusive<u16>) -> Relay {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let seed = u64::from(std::process::id()) << 32 | STARTED.fetch_add(1, Ordering::Relaxed);
    let config = RelayConfig { bind: V4, ports, workers: 2, session: SessionConfig::default(), seed };
    Relay::start(config, Arc::new(|| {})).unwrap()
}

/// A party: two sockets and the headers of one stream.
struct Phone {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    ssrc: u32,
    seq: u16,
}

impl Phone {
    fn new(ssrc: u32) -> Phone {
        Phone::on(V4, ssrc)
    }

    fn on(ip: IpAddr, ssrc: u32) -> Phone {
        Phone { rtp: socket(ip), rtcp: socket(ip), ssrc, seq: 100 }
    }

    fn addr(&self) -> SocketAddr {
        self.rtp.local_addr().unwrap()
    }

    /// The next packet of the stream.
    fn packet(&mut self, marker: bool, payload_type: u8) -> Vec<u8> {
        let packet = rtp(marker, payload_type, self.seq, self.ssrc);
        self.seq = self.seq.wrapping_add(1);
        packet
    }

    fn send(&mut self, to: SocketAddr) -> Vec<u8> {
        let packet = self.packet(false, 0);
        self.rtp.send_to(&packet, to).unwrap();
        packet
    }

    fn receive(&self) -> (Vec<u8>, SocketAddr) {
        receive(&self.rtp)
    }
}

fn socket(ip: IpAddr) -> UdpSocket {
    loop {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        if !RANGE.contains(&socket.local_addr().unwrap().port()) {
            return socket;
        }
    }
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = vec![0; 4_000];
    let (len, source) = socket.recv_from(&mut buffer).expect("a packet that must come");
    buffer.truncate(len);
    (buffer, source)
}

fn rtp(marker: bool, payload_type: u8, seq: u16, ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, u8::from(marker) << 7 | payload_type];
    packet.extend(seq.to_be_bytes());
    packet.extend((u32::from(seq) * 160).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.extend([0xd5; 160]);
    packet
}

/// A receiver report without blocks (RFC 3550 §6.4.2).
fn receiver_report(ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 1];
    packet.extend(ssrc.to_be_bytes());
    packet
}

fn payload(number: u8, kind: PayloadKind, name: &str) -> Payload {
    Payload { number, kind, clock: ClockRate::HZ_8000, bytes_per_ms: None, name: name.to_owned() }
}

fn description(phone: &Phone) -> Description {
    Description {
        remote: Some(phone.addr()),
        remote_rtcp: Some(phone.rtcp.local_addr().unwrap()),
        receive: true,
        send: true,
        payloads: vec![
            payload(0, PayloadKind::Audio, "PCMU"),
            payload(96, PayloadKind::Event, "telephone-event"),
            payload(101, PayloadKind::Event, "telephone-event"),
        ],
        signalling: Some(phone.addr().ip()),
        ..Description::default()
    }
}

fn describe(relay: &Relay, port: Port, description: Description) {
    relay.command(port.id, Command::Describe(Box::new(description))).unwrap();
}

fn bridge(relay: &Relay, one: Port, other: Port) {
    relay.command(one.id, Command::Bridge { peer: other.id, payload_map: None }).unwrap();
    relay.command(other.id, Command::Bridge { peer: one.id, payload_map: None }).unwrap();
}

/// A call: two described, bridged and answered ports in one group.
fn call(relay: &Relay, group: u64, caller: &Phone, callee: &Phone) -> (Port, Port) {
    let ports = [caller, callee].map(|phone| {
        let port = relay.open(group, phone.addr().ip()).unwrap();
        describe(relay, port, description(phone));
        relay.command(port.id, Command::Answered).unwrap();
        port
    });
    bridge(relay, ports[0], ports[1]);
    snapshot(relay, ports[1].id);
    (ports[0], ports[1])
}

fn notice(relay: &Relay) -> Notice {
    relay.notices().recv_timeout(PATIENCE).expect("a notice that must come")
}

/// The report so far; when it is there, every command before it has been obeyed.
fn snapshot(relay: &Relay, wanted: PortId) -> Box<Report> {
    relay.command(wanted, Command::Snapshot).unwrap();
    loop {
        match notice(relay) {
            Notice::Snapshot { id, report } if id == wanted => return report,
            Notice::Closed { id, .. } => panic!("{id:?} was closed"),
            _ => {}
        }
    }
}

fn close(relay: &Relay, wanted: PortId) -> Box<Report> {
    relay.command(wanted, Command::Close).unwrap();
    loop {
        match notice(relay) {
            Notice::Closed { id, report } if id == wanted => return report,
            _ => {}
        }
    }
}

#[test]
fn both_directions_and_both_protocols_are_relayed_and_counted() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0xaaaa), Phone::new(0xbbbb));
    let (one, other) = call(&relay, 7, &caller, &callee);
    assert_eq!((one.rtp.port() % 2, one.rtcp.port()), (0, one.rtp.port() + 1));
    for _ in 0..200 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp));
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive(), (packet, one.rtp));
    }
    for _ in 0..3 {
        let report = receiver_report(0xaaaa);
        caller.rtcp.send_to(&report, one.rtcp).unwrap();
        assert_eq!(receive(&callee.rtcp), (report, other.rtcp));
        let report = receiver_report(0xbbbb);
        callee.rtcp.send_to(&report, other.rtcp).unwrap();
        assert_eq!(receive(&caller.rtcp), (report, one.rtcp));
    }
    for port in [one, other] {
        let report = close(&relay, port.id);
        assert_eq!(report.figures.received, 200);
        assert_eq!((report.figures.expected, report.figures.lost), (200, 0));
        assert_eq!((report.counters.sent, report.counters.rtcp), (200, 3));
    }
    let counters = relay.counters();
    assert_eq!((counters.received, counters.relayed), (406, 406));
    assert_eq!(counters.received_bytes, counters.relayed_bytes);
    assert!(counters.received_bytes > 400 * 12, "{}", counters.received_bytes);
    assert_eq!(
        (counters.unstamped, counters.send_errors, counters.local_drops, counters.panics),
        (0, 0, 0, 0)
    );
    assert_eq!(counters.discarded_total(), 0);
}

#[test]
fn without_a_bridge_packets_are_measured_and_stay_here() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let one = relay.open(1, V4).unwrap();
    let other = relay.open(1, V4).unwrap();
    describe(&relay, one, description(&caller));
    describe(&relay, other, description(&callee));
    for _ in 0..30 {
        caller.send(one.rtp);
    }
    while snapshot(&relay, one.id).figures.received < 30 {}
    bridge(&relay, one, other);
    snapshot(&relay, other.id);
    let packet = caller.send(one.rtp);
    assert_eq!(
        callee.receive().0,
        packet,
        "the first packet after the bridge is the first that came through"
    );
    relay.command(one.id, Command::Unbridge).unwrap();
    snapshot(&relay, one.id);
    caller.send(one.rtp);
    while snapshot(&relay, one.id).figures.received < 32 {}
    bridge(&relay, one, other);
    snapshot(&relay, other.id);
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    assert_eq!(close(&relay, one.id).figures.received, 33);
    assert_eq!(close(&relay, other.id).counters.sent, 2);
    assert_eq!(relay.counters().held, 31);
}

#[test]
fn packets_that_overtake_the_description_are_measured_with_it() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let one = relay.open(1, V4).unwrap();
    let other = relay.open(1, V4).unwrap();
    bridge(&relay, one, other);
    describe(&relay, other, description(&callee));
    let mut packets: Vec<Vec<u8>> = (0..10).map(|_| caller.send(one.rtp)).collect();
    assert_eq!(
        snapshot(&relay, one.id).counters.datagrams,
        0,
        "nothing is read before it is known what it is"
    );
    describe(&relay, one, description(&caller));
    packets.push(caller.send(one.rtp));
    for packet in packets {
        let (received, source) = callee.receive();
        assert_eq!(source, other.rtp);
        assert_eq!(received, packet);
    }
    let report = close(&relay, one.id);
    assert_eq!((report.figures.received, report.figures.lost), (11, 0));
}

#[test]
fn payload_types_are_rewritten_to_what_the_other_side_negotiated() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 3, &caller, &callee);
    let mut map = Box::new([0xff; 128]);
    map[0] = 0;
    map[101] = 96;
    relay.command(one.id, Command::Bridge { peer: other.id, payload_map: Some(map) }).unwrap();
    snapshot(&relay, one.id);
    for (payload_type, marker, expected) in
        [(0, true, 0x80), (101, false, 96), (101, true, 0x80 | 96), (0, false, 0)]
    {
        let mut packet = caller.packet(marker, payload_type);
        caller.rtp.send_to(&packet, one.rtp).unwrap();
        packet[1] = expected;
        assert_eq!(callee.receive().0, packet, "{payload_type}");
    }
    // The caller may send 96, but the callee has no number for it.
    let unknown = caller.packet(false, 96);
    caller.rtp.send_to(&unknown, one.rtp).unwrap();
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    assert_eq!(close(&relay, one.id).figures.received, 6);
    assert_eq!(relay.counters().unmapped, 1);
}

/// The caller hears a beep of 600 ms in the callee's packets, whose numbers and figures stay as they are.
#[test]
fn a_tone_is_heard_in_what_is_relayed_and_measured_by_nobody() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 3, &caller, &callee);
    relay.command(one.id, Command::Tone).unwrap();
    snapshot(&relay, one.id);
    let mut beeps = 0;
    for _ in 0..40 {
        let sent = callee.send(other.rtp);
        let heard = caller.receive().0;
        assert_eq!(heard[..12], sent[..12]);
        beeps += u32::from(heard != sent);
        // The other direction is nobody's warning.
        let sent = caller.send(one.rtp);
        assert_eq!(callee.receive().0, sent);
    }
    assert_eq!(beeps, 30);
    let (one, other) = (close(&relay, one.id), close(&relay, other.id));
    assert_eq!((one.figures.received, other.figures.received), (40, 40));
}

#[test]
fn a_party_behind_nat_is_answered_where_its_packets_come_from() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 4, &caller, &callee);
    // The caller's SDP names `rtp`, its packets come from elsewhere.
    let nat = socket(V4);
    let mut last = Vec::new();
    for _ in 0..4 {
        last = caller.packet(false, 0);
        nat.send_to(&last, one.rtp).unwrap();
    }
    match notice(&relay) {
        Notice::Latched { id, remote } => assert_eq!((id, remote), (one.id, nat.local_addr().unwrap())),
        other => panic!("{other:?}"),
    }
    assert_eq!(callee.receive().0, last, "the packet that convinced is heard");
    let packet = callee.send(other.rtp);
    assert_eq!(receive(&nat), (packet, one.rtp));
    let report = close(&relay, one.id);
    assert!(report.latched);
    assert_eq!(report.figures.received, 4);
}

#[test]
fn where_packets_come_from_decides_which_are_heard() {
    let relay = start();
    let elsewhere = IpAddr::from([127, 0, 0, 2]);
    for (group, (name, address, first_heard)) in
        [("as described", None, 0), ("another port", Some(V4), 3), ("another address", Some(elsewhere), 3)]
            .into_iter()
            .enumerate()
    {
        let (mut caller, callee) = (Phone::new(1), Phone::new(2));
        let (one, other) = call(&relay, group as u64, &caller, &callee);
        if let Some(ip) = address {
            caller.rtp = socket(ip);
        }
        let packets: Vec<Vec<u8>> = (0..8).map(|_| caller.send(one.rtp)).collect();
        for packet in &packets[first_heard..] {
            assert_eq!(&callee.receive().0, packet, "{name}");
        }
        // With those that made the source believable.
        let report = close(&relay, one.id);
        assert_eq!((report.figures.received, report.latched), (8, address.is_some()), "{name}");
        assert_eq!(close(&relay, other.id).counters.sent, 8 - first_heard as u64, "{name}");
    }
}

#[test]
fn who_speaks_from_the_described_address_wins_over_a_spray_from_the_first_packet_on() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 13, &caller, &callee);
    let mut attacker = Phone::new(3);
    for round in 0..40 {
        if round % 2 == 0 {
            attacker.send(one.rtp);
        }
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive().0, packet, "round {round}");
        attacker.send(one.rtp);
    }
    assert_eq!(close(&relay, other.id).counters.sent, 40);
    let report = close(&relay, one.id);
    assert_eq!((report.figures.received, report.counters.rejected_source, report.latched), (40, 60, false));
}

#[test]
fn a_third_party_is_never_heard() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(0x1234), Phone::new(2));
    let (one, other) = call(&relay, 5, &caller, &callee);
    for _ in 0..10 {
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive().0, packet);
    }
    // One neighbour on the party's own address and one elsewhere.
    let mut attackers = [Phone::new(0x1234), Phone::on(IpAddr::from([127, 0, 0, 2]), 0x1234)];
    let mut sprayed = 0;
    for round in 0..50 {
        for attacker in &mut attackers {
            // The same source and numbers as the caller's, then random ones.
            attacker.ssrc = if round % 2 == 0 { 0x1234 } else { round };
            attacker.seq = caller.seq;
            for _ in 0..5 {
                attacker.send(one.rtp);
                sprayed += 1;
            }
        }
        attackers[1].rtcp.send_to(&receiver_report(0x1234), one.rtcp).unwrap();
        let packet = caller.send(one.rtp);
        assert_eq!(callee.receive(), (packet, other.rtp), "round {round}: something else came through");
        let packet = callee.send(other.rtp);
        assert_eq!(caller.receive().0, packet);
    }
    // RTCP has its own socket and may be read later than the RTP after it.
    while snapshot(&relay, one.id).counters.rtcp_rejected < 50 {}
    let report = close(&relay, one.id);
    assert_eq!((report.figures.received, report.figures.duplicates), (60, 0));
    assert_eq!(report.counters.rejected_source, sprayed);
    assert_eq!(report.counters.rtcp_rejected, 50);
    assert_eq!(relay.counters().discarded_for(Reason::Source), sprayed + 50);
}

#[test]
fn a_party_on_hold_or_without_media_is_sent_nothing() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 6, &caller, &callee);
    describe(&relay, other, Description { remote: None, ..description(&callee) });
    snapshot(&relay, other.id);
    for _ in 0..20 {
        caller.send(one.rtp);
    }
    while snapshot(&relay, one.id).figures.received < 20 {}
    describe(&relay, other, description(&callee));
    snapshot(&relay, other.id);
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet, "the first packet is one sent after the hold");
    assert_eq!(close(&relay, other.id).counters.sent, 1);
    assert_eq!(relay.counters().held, 20);
}

#[test]
fn media_is_never_sent_to_a_forbidden_target() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 8, &caller, &callee);
    let targets = [
        ("a relay port: itself", other.rtp),
        ("a relay port: the other leg", one.rtp),
        ("multicast", "224.0.0.1:40000".parse().unwrap()),
        ("unspecified", "0.0.0.0:40000".parse().unwrap()),
        ("metadata service", "169.254.169.254:40000".parse().unwrap()),
        ("broadcast", "255.255.255.255:40000".parse().unwrap()),
    ];
    let mut sent = 0;
    for (name, target) in targets {
        describe(
            &relay,
            other,
            Description { remote: Some(target), remote_rtcp: None, ..description(&callee) },
        );
        snapshot(&relay, other.id);
        for _ in 0..10 {
            caller.send(one.rtp);
            sent += 1;
        }
        while snapshot(&relay, one.id).figures.received < sent {}
        let counters = relay.counters();
        assert_eq!((counters.relayed, counters.held, counters.received), (0, sent, sent), "{name}");
    }
    assert_eq!(close(&relay, other.id).counters.sent, 0);
}

#[test]
fn loopback_is_no_target_for_a_party_that_signals_from_elsewhere() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 8, &caller, &callee);
    let far: IpAddr = "203.0.113.9".parse().unwrap();
    describe(&relay, other, Description { signalling: Some(far), ..description(&callee) });
    snapshot(&relay, other.id);
    caller.send(one.rtp);
    while snapshot(&relay, one.id).figures.received < 1 {}
    assert_eq!(relay.counters().relayed, 0);
}

#[test]
fn one_side_may_share_its_port_between_rtp_and_rtcp() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 9, &caller, &callee);
    describe(&relay, one, Description { rtcp_mux: true, remote_rtcp: None, ..description(&caller) });
    snapshot(&relay, one.id);
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive().0, packet);
    let report = receiver_report(1);
    caller.rtp.send_to(&report, one.rtp).unwrap();
    assert_eq!(receive(&callee.rtcp), (report, other.rtcp));
    let report = receiver_report(2);
    callee.rtcp.send_to(&report, other.rtcp).unwrap();
    assert_eq!(caller.receive(), (report, one.rtp));
    let report = close(&relay, one.id);
    assert_eq!((report.figures.received, report.counters.rtcp), (1, 1));
}

#[test]
fn a_party_that_went_away_is_noticed() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 10, &caller, &callee);
    drop(callee);
    while snapshot(&relay, other.id).counters.unreachable < 3 {
        caller.send(one.rtp);
    }
    assert!(relay.counters().unreachable >= 3);
    assert!(snapshot(&relay, one.id).counters.unreachable == 0, "the caller is still there");
}

#[test]
fn addresses_of_both_families_can_be_bridged() {
    if UdpSocket::bind((V6, 0)).is_err() {
        eprintln!("SKIPPED: no IPv6 loopback here");
        return;
    }
    let relay = start();
    for (group, callee_ip) in [(1, V4), (2, V6)] {
        let (mut caller, mut callee) = (Phone::on(V6, 1), Phone::on(callee_ip, 2));
        let (one, other) = call(&relay, group, &caller, &callee);
        assert!(one.rtp.is_ipv6());
        for _ in 0..3 {
            let packet = caller.send(one.rtp);
            assert_eq!(callee.receive(), (packet, other.rtp));
            let packet = callee.send(other.rtp);
            assert_eq!(caller.receive(), (packet, one.rtp));
        }
    }
}

#[test]
fn every_packet_of_a_flood_is_accounted_for() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, _) = call(&relay, 11, &caller, &callee);
    let mut sent = 0;
    for _ in 0..5_000 {
        caller.send(one.rtp);
        sent += 1;
    }
    // What the kernel dropped is told with a later packet.
    loop {
        snapshot(&relay, one.id);
        let counters = relay.counters();
        assert!(counters.received + counters.local_drops <= sent);
        if counters.received + counters.local_drops == sent {
            break;
        }
        caller.send(one.rtp);
        sent += 1;
    }
    let report = close(&relay, one.id);
    let counters = relay.counters();
    // Datagrams and not figures: the first packet after a gap of thousands awaits the second.
    assert_eq!(report.counters.datagrams, counters.received);
    assert_eq!(report.counters.local_drop, counters.local_drops);
    assert_eq!(counters.unstamped, 0);
    assert_eq!(counters.relayed + counters.send_errors, counters.received);
}

#[test]
fn what_is_no_packet_is_counted_and_dropped() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 12, &caller, &callee);
    let mut long = caller.packet(false, 0);
    long.resize(2_049, 0);
    let stun: Vec<u8> = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
    let datagrams =
        [long, Vec::new(), vec![0x80], stun, vec![0x80; 11], vec![0xff; 200], caller.packet(false, 77)];
    let count = datagrams.len() as u64;
    for datagram in datagrams {
        caller.rtp.send_to(&datagram, one.rtp).unwrap();
    }
    for rtcp in [vec![], vec![0x80, 201, 0], vec![0x80, 200, 0xff, 0xff]] {
        caller.rtcp.send_to(&rtcp, one.rtcp).unwrap();
    }
    let packet = caller.send(one.rtp);
    assert_eq!(callee.receive(), (packet, other.rtp));
    while relay.counters().received < count + 4 {
        snapshot(&relay, one.id);
    }
    let counters = relay.counters();
    assert_eq!((counters.oversize, counters.relayed, counters.panics), (1, 1, 0));
    assert_eq!(counters.discarded_total(), count - 1 + 3, "{counters:?}");
    assert_eq!(counters.discarded_for(Reason::PayloadType), 1);
    assert_eq!(counters.discarded_for(Reason::Foreign), 2, "STUN, and the one without a byte");
}

#[test]
fn a_full_range_is_refused_and_a_closed_pair_rests() {
    let relay = start_in(15_000..=15_003);
    let mut open = Vec::new();
    let refusal = loop {
        match relay.open(0, V4) {
            Ok(port) => open.push(port),
            Err(error) => break error,
        }
    };
    // Fewer only when another program of this machine holds one of the ports.
    assert!(open.len() <= 2);
    assert!(matches!(refusal, OpenError::Exhausted { pairs: 2 }), "{refusal}");
    assert_eq!(open.iter().map(|port| port.rtp.port()).collect::<HashSet<_>>().len(), open.len());
    if let Some(port) = open.pop() {
        let before = relay.now();
        close(&relay, port.id);
        let again = relay.open(0, V4);
        if relay.now().since(before) < 5_000_000 {
            assert!(matches!(again, Err(OpenError::Exhausted { .. })), "{again:?}");
        }
        // What is said to a port that is gone is nothing.
        relay.command(port.id, Command::Answered).unwrap();
    }
}

#[test]
fn mistakes_of_the_caller_are_answered() {
    let config =
        |ports| RelayConfig { bind: V4, ports, workers: 1, session: SessionConfig::default(), seed: 1 };
    assert!(matches!(Relay::start(config(20_001..=20_002), Arc::new(|| {})), Err(RelayError::NoPorts(_))));
    let relay = start();
    let one = relay.open(0, V4).unwrap();
    let stranger = relay.open(1, V4).unwrap();
    let bridge = Command::Bridge { peer: stranger.id, payload_map: None };
    assert_eq!(relay.command(one.id, bridge), Err(CommandError::OtherGroup));
    let elsewhere: IpAddr = "192.0.2.77".parse().unwrap();
    assert!(matches!(relay.open(0, elsewhere), Err(OpenError::Bind { ip, .. }) if ip == elsewhere));
    relay.shutdown();
    assert!(matches!(relay.open(0, V4), Err(OpenError::Stopped)));
    assert_eq!(relay.command(one.id, Command::Snapshot), Err(CommandError::Stopped));
    let closed: HashSet<PortId> = relay
        .notices()
        .try_iter()
        .filter_map(|notice| if let Notice::Closed { id, .. } = notice { Some(id) } else { None })
        .collect();
    assert_eq!(closed, HashSet::from([one.id, stranger.id]), "open legs report when the relay stops");
}

#[test]
fn a_report_waits_for_its_reader_and_a_snapshot_does_not() {
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&woken);
    let wake = move || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let config =
        RelayConfig { bind: V4, ports: RANGE, workers: 1, session: SessionConfig::default(), seed: 99 };
    let relay = Relay::start(config, Arc::new(wake)).unwrap();
    let one = relay.open(0, V4).unwrap();
    let other = relay.open(0, V4).unwrap();
    let insist = |id, command: fn() -> Command| {
        while relay.command(id, command()) == Err(CommandError::Busy) {
            std::thread::yield_now();
        }
    };
    while relay.counters().notices_dropped == 0 {
        insist(other.id, || Command::Snapshot);
    }
    insist(one.id, || Command::Close);
    insist(other.id, || Command::Close);
    let mut closed = Vec::new();
    while closed.len() < 2 {
        if let Notice::Closed { id, .. } = notice(&relay) {
            closed.push(id);
        }
    }
    assert_eq!(closed, [one.id, other.id]);
    assert!(woken.load(Ordering::Relaxed) > 0);
}

#[test]
fn snapshots_come_by_themselves_while_they_are_wanted() {
    let relay = start();
    let port = relay.open(0, V4).unwrap();
    relay.snapshot_every(Some(Duration::from_millis(1)));
    for _ in 0..2 {
        match notice(&relay) {
            Notice::Snapshot { id, .. } => assert_eq!(id, port.id),
            other => panic!("{other:?}"),
        }
    }
    relay.snapshot_every(None);
    close(&relay, port.id);
    assert!(relay.notices().is_empty());
}

#[test]
fn many_calls_share_two_workers() {
    let relay = start();
    let (mut caller, callee) = (Phone::new(1), Phone::new(2));
    let calls: Vec<(Port, Port)> = (0..100).map(|group| call(&relay, group, &caller, &callee)).collect();
    let ports: HashSet<u16> =
        calls.iter().flat_map(|(one, other)| [one.rtp.port(), other.rtp.port()]).collect();
    assert_eq!(ports.len(), 200);
    for round in 0..20 {
        for (one, other) in &calls {
            let packet = rtp(false, 0, round, 1);
            caller.rtp.send_to(&packet, one.rtp).unwrap();
            assert_eq!(callee.receive(), (packet, other.rtp));
        }
    }
    caller.seq = 20;
    for (one, other) in calls {
        assert_eq!(close(&relay, one.id).figures.received, 20);
        assert_eq!(close(&relay, other.id).counters.sent, 20);
    }
}
