//! The address of a party: advertised, found by latching, or unreachable; worked examples through a session.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::support;
use crate::support::leg::{Case, Leg, check, check_with, default_leg};
use crate::support::{addr, ip};
use sidetone_media::session::{Disposition, SessionConfig, StrictSource, Verdict};

/// A caller on the Internet who advertises a private address.
fn behind_nat(leg: &mut Leg) {
    leg.describe(|sdp| {
        sdp.remote = Some(addr("10.1.1.9:4000"));
        sdp.signalling = Some(ip("203.0.113.7"));
        sdp.own_advertised = Some(ip("198.51.100.1"));
    });
    leg.answer();
    leg.reply(500);
}

#[test]
fn wrong_advertised_address() {
    check(
        Some(Verdict::WrongAdvertisedAddress),
        &[
            ("T1: private SDP, global SIP, nothing accepted", |leg| {
                behind_nat(leg);
                leg.wait(10_000);
            }),
            ("T3: our own SDP names a private address", |leg| {
                leg.describe(|sdp| {
                    sdp.remote = Some(addr("203.0.113.7:4000"));
                    sdp.signalling = Some(ip("203.0.113.7"));
                    sdp.own_advertised = Some(ip("10.0.0.5"));
                });
                leg.answer();
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("T4: heard, but our packets go to a dead end", |leg| {
                behind_nat(leg);
                leg.source = addr("203.0.113.7:31000");
                leg.talk(4);
                leg.session.sent(leg.now(), 500, addr("192.168.1.20:4000"));
                leg.talk(500);
            }),
            ("T2: as the default has it, 400 packets from an address that nothing names", |leg| {
                leg.connect();
                leg.reply(500);
                leg.source = addr("10.0.0.2:4000");
                leg.talk(400);
            }),
            ("T5: ICMP says that nobody listens", |leg| {
                leg.connect();
                leg.reply(500);
                (0..3).for_each(|_| leg.session.unreachable());
                leg.wait(10_000);
            }),
        ],
    );
    let not_symmetric = SessionConfig { symmetric: false, ..SessionConfig::default() };
    check_with(
        not_symmetric,
        Some(Verdict::WrongAdvertisedAddress),
        &[("T2: latching off, 400 packets from elsewhere", |leg| {
            leg.connect();
            leg.reply(500);
            leg.source = addr("10.0.0.2:4000");
            leg.talk(400);
        })],
    );
}

#[test]
fn addresses_that_work_are_right() {
    let cases: &[Case] = &[
        ("N1: behind NAT, latched", |leg| {
            behind_nat(leg);
            leg.source = addr("203.0.113.7:31000");
            leg.talk(4);
            leg.reply(500);
            leg.talk(500);
        }),
        ("N2: a carrier that sends from another server", |leg| {
            leg.describe(|sdp| {
                sdp.remote = Some(addr("198.51.100.20:4000"));
                sdp.signalling = Some(ip("198.51.100.2"));
                sdp.own_advertised = Some(ip("203.0.113.1"));
                sdp.strict_source = Some(StrictSource::Any);
            });
            leg.answer();
            leg.source = addr("198.51.100.33:6000");
            leg.talk(10);
            leg.reply(500);
            leg.talk(500);
        }),
        ("N3: LAN, both private", |leg| {
            leg.describe(|sdp| sdp.signalling = Some(ip("192.168.7.7")));
            leg.answer();
            leg.reply(500);
            leg.talk(500);
        }),
        ("loopback, both", |leg| {
            leg.describe(|sdp| {
                sdp.remote = Some(addr("127.0.0.1:4000"));
                sdp.signalling = Some(ip("127.0.0.2"));
                sdp.own_advertised = Some(ip("127.0.0.1"));
            });
            leg.source = addr("127.0.0.1:4000");
            leg.answer();
            leg.reply(500);
            leg.talk(500);
        }),
        ("N5: one packet of a scanner", |leg| {
            leg.connect();
            leg.reply(500);
            leg.talk(100);
            leg.source = addr("192.0.2.66:5555");
            assert!(matches!(leg.send_one(), Disposition::Discard(_)));
            leg.source = support::party();
            leg.packet.sequence = leg.packet.sequence.wrapping_sub(1);
            leg.packet.timestamp -= 160;
            leg.talk(400);
        }),
    ];
    check(Some(Verdict::Ok), cases);
    let mut strict = SessionConfig::default();
    strict.thresholds.strict_address = true;
    check_with(strict, Some(Verdict::WrongAdvertisedAddress), &cases[..2]);
}

#[test]
fn latching_is_told() {
    let mut leg = default_leg();
    behind_nat(&mut leg);
    leg.source = addr("203.0.113.7:31000");
    leg.talk(100);
    let report = leg.close();
    assert!(report.latched);
    assert_eq!(report.figures.received, 100, "the packets before the latching count too");
    assert_eq!(report.counters.rejected_source, 0);
    assert_eq!(report.source, Some(addr("203.0.113.7:31000")));
    assert_eq!(report.advertised, Some(addr("10.1.1.9:4000")));
    assert_eq!(report.latch_delay_ms.unwrap().to_string(), "60.00");
    assert_eq!(report.figures.jitter_ms.unwrap().to_string(), "0.00");
}

/// A leg of a capture whose caller is behind NAT.
fn observed_behind_nat() -> Leg {
    let strict_source = StrictSource::Observed;
    let mut leg = Leg::with(SessionConfig { strict_source, observed: true, ..SessionConfig::default() });
    behind_nat(&mut leg);
    leg.source = addr("203.0.113.7:31000");
    leg
}

/// A party whose packets all arrive twice is accepted like any other; only the copies are counted besides.
#[test]
fn copies_do_not_prevent_latching() {
    for mut leg in [observed_behind_nat(), default_leg()] {
        if leg.source == support::party() {
            behind_nat(&mut leg);
            leg.source = addr("203.0.113.7:31000");
        }
        for n in 0..500 {
            if n == 4 {
                leg.reply(500);
            }
            let packet = leg.packet;
            leg.send_one();
            leg.packet = packet;
            leg.talk(1);
        }
        let report = leg.close();
        assert_eq!(report.verdict, Some(Verdict::Ok), "{:#?}", report.evidence);
        let figures = &report.figures;
        assert_eq!((figures.received, figures.lost, figures.duplicates), (500, 0, 500));
        assert_eq!(report.counters.rejected_source, 0);
    }
}

/// In a capture a NAT that gives the party a new port, or another address, costs no packet.
#[test]
fn a_new_source_of_a_captured_party_costs_nothing() {
    for (name, source, lost) in [
        ("another port", "203.0.113.7:31002", 0),
        ("another address", "198.51.100.9:1234", 0),
        ("after a second without packets", "203.0.113.7:31002", 50),
    ] {
        let mut leg = observed_behind_nat();
        leg.talk(4);
        leg.reply(500);
        leg.talk(996);
        leg.lose(lost);
        leg.source = addr(source);
        leg.talk(2_000);
        let report = leg.close();
        assert_eq!(report.verdict, Some(Verdict::Ok), "{name}: {:#?}", report.evidence);
        let figures = &report.figures;
        assert_eq!((figures.received, figures.lost), (3_000, lost.into()), "{name}");
        let counters = &report.counters;
        assert_eq!((counters.rejected_source, counters.source_changes), (0, 1), "{name}");
        assert_eq!(report.source, Some(addr(source)), "{name}");
    }
}

/// A capture in front of and behind a NAT holds each packet with two sources: those of one are counted.
#[test]
fn a_copy_of_the_stream_from_another_source_fills_no_gap() {
    let mut leg = observed_behind_nat();
    for n in 0..500 {
        let packet = leg.packet;
        if n % 100 != 50 {
            leg.send_one();
        }
        (leg.packet, leg.source) = (packet, addr("203.0.113.8:1234"));
        leg.send_one();
        leg.source = addr("203.0.113.7:31000");
        leg.wait(20);
    }
    let report = leg.close();
    assert_eq!((report.figures.received, report.figures.lost), (495, 5));
    assert_eq!((report.counters.rejected_source, report.counters.source_changes), (500, 0));
}

#[test]
fn destinations_are_guarded() {
    let cases = [
        ("a LAN party", "10.0.0.1:4000", "10.0.0.1", true),
        ("loopback for a party elsewhere", "127.0.0.1:4000", "10.0.0.1", false),
        ("loopback for a party on loopback", "127.0.0.1:4000", "127.0.0.1", true),
        ("a cloud's metadata service", "169.254.169.254:80", "10.0.0.1", false),
        ("multicast", "224.0.0.1:4000", "10.0.0.1", false),
        ("port 0", "10.0.0.1:0", "10.0.0.1", false),
    ];
    for (name, remote, signalling, allowed) in cases {
        let mut leg = default_leg();
        leg.describe(|sdp| (sdp.remote, sdp.signalling) = (Some(addr(remote)), Some(ip(signalling))));
        assert_eq!(leg.session.destination().is_some(), allowed, "{name}");
        let rtcp = leg.session.rtcp_destination();
        assert_eq!(rtcp.is_some(), allowed, "RTCP to {name}");
        leg.describe(|sdp| sdp.send = false);
        assert_eq!(leg.session.destination(), None, "{name}, on hold");
        leg.describe(|sdp| (sdp.send, sdp.remote) = (true, None));
        assert_eq!(leg.session.destination(), None, "{name}, held by 0.0.0.0");
        leg.describe(|sdp| sdp.unresolved = true);
        assert_eq!(leg.session.destination(), None, "{name}, then a host name");
        assert_eq!(leg.session.rtcp_destination(), None, "RTCP to {name}, then a host name");
    }
}
