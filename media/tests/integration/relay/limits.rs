//! Floods, invalid packets, full ranges, errors of the caller and reports.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sidetone_media::net::{
    Command, CommandError, Notice, OpenError, Port, PortId, Relay, RelayConfig, RelayError,
};
use sidetone_media::session::{Reason, SessionConfig};

use super::{Phone, RANGE, V4, call, close, io, notice, rtp, snapshot, start, start_in};

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
    // The kernel reports its drops with a later packet.
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
    // Compares datagrams instead of figures: the first packet after a gap of thousands waits for the second.
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
    // Fewer only when another program on this machine uses one of the ports.
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
        // A command to a closed port has no effect.
        relay.command(port.id, Command::Answered).unwrap();
    }
}

#[test]
fn mistakes_of_the_caller_are_answered() {
    let config = |ports| RelayConfig {
        bind: V4,
        ports,
        workers: 1,
        io: io(),
        session: SessionConfig::default(),
        seed: 1,
    };
    assert!(matches!(Relay::start(config(20_001..=20_002), Arc::new(|| {})), Err(RelayError::NoPorts(_))));
    let relay = start();
    let one = relay.open(0, V4).unwrap();
    let stranger = relay.open(1, V4).unwrap();
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
    let config = RelayConfig {
        bind: V4,
        ports: RANGE,
        workers: 1,
        io: io(),
        session: SessionConfig::default(),
        seed: 99,
    };
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
    let mut snapshots = 0;
    while snapshots < 2 {
        match notice(&relay) {
            Notice::Snapshot { id, .. } => {
                assert_eq!(id, port.id);
                snapshots += 1;
            }
            // On a busy machine the second takes more than a second.
            Notice::Silent { .. } => {}
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
