//! Which packets are accepted, and where packets are sent.

use std::net::{IpAddr, UdpSocket};

use sidetone_media::net::Notice;
use sidetone_media::session::{Description, Reason, StrictSource};

use super::{
    Phone, V4, V6, call, close, describe, description, notice, receive, receiver_report, snapshot, socket,
    start,
};

#[test]
fn a_party_behind_nat_is_answered_where_its_packets_come_from() {
    let relay = start();
    let (mut caller, mut callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 4, &caller, &callee);
    // The caller's SDP names `rtp`, but its packets have another source.
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
        describe(&relay, one, Description { strict_source: Some(StrictSource::Any), ..description(&caller) });
        snapshot(&relay, one.id);
        if let Some(ip) = address {
            caller.rtp = socket(ip);
        }
        let packets: Vec<Vec<u8>> = (0..8).map(|_| caller.send(one.rtp)).collect();
        for packet in &packets[first_heard..] {
            assert_eq!(&callee.receive().0, packet, "{name}");
        }
        // Including the packets after which the source was accepted.
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
    // One attacker at the party's own address and one elsewhere.
    let mut attackers = [Phone::new(0x1234), Phone::on(IpAddr::from([127, 0, 0, 2]), 0x1234)];
    let mut sprayed = 0;
    for round in 0..50 {
        for attacker in &mut attackers {
            // The SSRC and numbers of the caller, then random ones.
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
    // RTCP has its own socket, which may be read later than the RTP after it.
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
    let unresolved =
        Description { remote: None, unresolved: true, remote_rtcp: None, ..description(&callee) };
    describe(&relay, other, unresolved);
    snapshot(&relay, other.id);
    caller.send(one.rtp);
    while snapshot(&relay, one.id).figures.received <= sent {}
    assert_eq!(relay.counters().relayed, 0, "a host name");
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
