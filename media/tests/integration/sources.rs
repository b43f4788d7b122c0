//! Which sources a leg accepts and where our packets go, with an attacker on the leg's port: simulated time,
//! one packet per 20 ms.

#![allow(clippy::single_range_in_vec_init, reason = "a sender has any number of spells")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::net::SocketAddr;

use crate::support;
use crate::support::{addr, ip};
use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Disposition, Report, Session, SessionConfig, StrictSource};
use sidetone_media::time::Micros;

/// When a sender sends: a range of ticks of 20 ms.
type Spell = std::ops::Range<i64>;

/// A sender on the leg's port.
struct Sender {
    source: SocketAddr,
    spells: Vec<Spell>,
    packet: Packet,
    relayed: u32,
    /// Our packets that were sent to it.
    sent_to: u32,
    /// The first tick at which its packet was relayed, and at which our packets were sent to it.
    first_relayed: Option<i64>,
    first_sent_to: Option<i64>,
}

impl Sender {
    fn new(source: &str, ssrc: u32, spells: &[Spell]) -> Sender {
        Sender {
            source: addr(source),
            spells: spells.to_vec(),
            packet: Packet { ssrc, payload_len: 160, ..Packet::default() },
            relayed: 0,
            sent_to: 0,
            first_relayed: None,
            first_sent_to: None,
        }
    }

    fn send(&mut self, tick: i64, session: &mut Session) {
        if self.spells.iter().any(|spell| spell.contains(&tick)) {
            let mut datagram = Vec::new();
            support::write_rtp(&self.packet, &mut datagram);
            if session.receive(at(tick), self.source, &datagram) == Disposition::Relay {
                self.relayed += 1;
                self.first_relayed.get_or_insert(tick);
            }
        }
        self.packet.sequence = self.packet.sequence.wrapping_add(1);
        self.packet.timestamp = self.packet.timestamp.wrapping_add(160);
    }
}

fn at(tick: i64) -> Micros {
    Micros(tick * 20_000)
}

/// Plays `ticks` of an answered call; the senders send in order, then we send one packet.
fn play(description: &Description, senders: &mut [Sender], ticks: i64) -> (Session, Report) {
    let mut session = Session::new(SessionConfig::default());
    session.describe(at(0), description.clone());
    session.answer(at(0));
    go_on(&mut session, senders, 0..ticks);
    let report = session.report(at(ticks));
    (session, report)
}

fn go_on(session: &mut Session, senders: &mut [Sender], ticks: Spell) {
    for tick in ticks {
        for sender in senders.iter_mut() {
            sender.send(tick, session);
        }
        while session.poll_output().is_some() {}
        let Some(to) = session.destination() else { continue };
        session.sent(at(tick), 1, to);
        for sender in senders.iter_mut().filter(|sender| sender.source == to) {
            sender.sent_to += 1;
            sender.first_sent_to.get_or_insert(tick);
        }
    }
}

/// SDP of a phone whose signalling address differs from the one it advertises, or is the same.
fn sdp(advertised: &str, signalling: &str) -> Description {
    Description { remote: Some(addr(advertised)), signalling: Some(ip(signalling)), ..support::pcmu() }
}

const PUBLIC: (&str, &str) = ("203.0.113.7:4000", "203.0.113.7");
const NAT: (&str, &str) = ("10.1.1.9:4000", "203.0.113.7");
const BEHIND_NAT: &str = "203.0.113.7:31000";
const STRANGER: &str = "198.51.100.66:4000";
/// A minute.
const CALL: i64 = 3_000;

/// Reported: a muted phone with a correct SDP address lost the other party's audio to a foreign source.
#[test]
fn a_stranger_gets_nothing_of_a_muted_phone() {
    let mut senders = [Sender::new(PUBLIC.0, 1, &[0..500]), Sender::new(STRANGER, 666, &[0..CALL])];
    play(&sdp(PUBLIC.0, PUBLIC.1), &mut senders, CALL);
    let [phone, stranger] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    assert_eq!((phone.relayed, i64::from(phone.sent_to)), (500, CALL));
}

/// Reported: the same for a phone that never sent anything.
#[test]
fn a_stranger_gets_nothing_of_a_phone_that_was_never_heard() {
    let mut senders = [Sender::new(PUBLIC.0, 1, &[]), Sender::new(STRANGER, 666, &[0..CALL])];
    play(&sdp(PUBLIC.0, PUBLIC.1), &mut senders, CALL);
    let [phone, stranger] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    assert_eq!(i64::from(phone.sent_to), CALL);
}

/// Reported: a phone behind NAT lost its call while a foreign source sent.
#[test]
fn a_stranger_gets_nothing_of_a_phone_behind_nat_that_pauses() {
    let mut senders =
        [Sender::new(BEHIND_NAT, 1, &[0..500, 900..CALL]), Sender::new(STRANGER, 666, &[100..CALL])];
    play(&sdp(NAT.0, NAT.1), &mut senders, CALL);
    let [phone, stranger] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    // Three packets of the phone are held back until it is accepted.
    assert_eq!((i64::from(phone.relayed), i64::from(phone.sent_to)), (CALL - 400 - 3, CALL - 3));
}

/// Reported: a source that sent before the first packets of a phone behind NAT took the leg.
#[test]
fn a_stranger_who_sprays_before_a_phone_behind_nat_gets_nothing() {
    let mut senders = [Sender::new(STRANGER, 666, &[0..CALL]), Sender::new(BEHIND_NAT, 1, &[10..CALL])];
    play(&sdp(NAT.0, NAT.1), &mut senders, CALL);
    let [stranger, phone] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    assert_eq!((phone.first_relayed, phone.first_sent_to), (Some(13), Some(13)));
}

/// A phone's source, besides its SDP.
const PLACES: [(&str, &str, &str); 4] = [
    // The phone's source, its SDP, and whether SDP names the source.
    ("SDP matches", "203.0.113.7:4000", "203.0.113.7:4000"),
    ("another port", "203.0.113.7:31000", "203.0.113.7:4000"),
    ("another address", "203.0.113.7:4000", "10.1.1.9:4000"),
    ("another address and port", "203.0.113.7:31000", "10.1.1.9:4000"),
];

/// When the attacker sends: from before the phone's first packet on, in the middle, after its last one, or
/// all the time, in the same ticks from the first.
const ATTACKS: [(&str, Spell); 4] =
    [("before", 0..CALL), ("during", 600..CALL), ("after", 1_500..CALL), ("both spray", 100..CALL)];

/// When the phone sends: from tick 100 on, for a limited time, or never.
const TALKS: [(&str, Spell); 3] = [("talks", 100..CALL), ("falls silent", 100..1_000), ("muted", 0..0)];

/// The matrix of addresses (catalogue M3), with an attacker in every row: at a foreign address the attacker
/// gets nothing and is not accepted, whatever the phone's source is and whenever the attacker sends.
#[test]
fn a_strangers_packets_go_nowhere_in_the_whole_matrix() {
    let mut rows = 0;
    for (place, source, advertised) in PLACES {
        for (attack, spell) in ATTACKS {
            for (talk, talking) in TALKS {
                for attacker in [STRANGER, "198.51.100.66:31000"] {
                    let name = format!("{place}, {talk}, attacker {attack} from {attacker}");
                    let mut senders = [
                        Sender::new(attacker, 666, std::slice::from_ref(&spell)),
                        Sender::new(source, 1, std::slice::from_ref(&talking)),
                    ];
                    let (_, report) = play(&sdp(advertised, PUBLIC.1), &mut senders, CALL);
                    let [stranger, phone] = senders;
                    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0), "{name}");
                    let sent = talking.end - talking.start;
                    let held_back = if source == advertised { 0 } else { 3.min(sent) };
                    assert_eq!(i64::from(phone.relayed), sent - held_back, "{name}");
                    let foreign = report.foreign.unwrap();
                    assert_eq!(foreign.rejected_packets as i64, spell.end - spell.start, "{name}");
                    assert_eq!((foreign.accepted_packets, foreign.sent_packets), (0, 0), "{name}");
                    assert_eq!(foreign.source, Some(addr(attacker)), "{name}");
                    rows += 1;
                }
            }
        }
    }
    assert_eq!(rows, 96);
}

/// The same with an attacker behind the phone's own NAT, whose address has the same rank as the phone's. It
/// gets nothing while the phone sends, and loses what it took from a silent phone with the phone's first
/// packet.
#[test]
fn an_attacker_at_the_phones_own_address_is_bounded() {
    const NEIGHBOUR: &str = "203.0.113.7:5555";
    for (place, source, advertised) in PLACES {
        let described = source == advertised;
        for (name, talk, spell, expected) in [
            ("while it talks", vec![0..CALL], 10..CALL, (0, 0)),
            // Five seconds after tick 499 it is accepted; the phone's first packet at 1,000 ends that.
            ("after its silence", vec![0..500, 1_000..CALL], 500..CALL, (1_000 - 749, 1_000 - 749)),
        ] {
            let mut senders =
                [Sender::new(source, 1, &talk), Sender::new(NEIGHBOUR, 666, std::slice::from_ref(&spell))];
            let (_, report) = play(&sdp(advertised, PUBLIC.1), &mut senders, CALL);
            let [phone, neighbour] = senders;
            let expected = if described { (0, 0) } else { expected };
            assert_eq!((neighbour.relayed, neighbour.sent_to), expected, "{place}, {name}");
            assert_eq!(
                phone.relayed,
                if described { phone.relayed } else { phone.relayed.max(1) },
                "{place}"
            );
            let foreign = report.foreign.unwrap();
            let taken = u64::from(expected.0);
            assert_eq!(foreign.taken_back, u32::from(taken > 0), "{place}, {name}");
            assert_eq!(foreign.sent_packets, u64::from(expected.1), "{place}, {name}");
        }
    }
}

/// With `any` a foreign source may be the party, for example a carrier's other server: it has the leg until
/// the phone sends.
#[test]
fn with_any_the_phone_takes_its_leg_from_a_stranger_with_its_first_packet() {
    let description = Description { strict_source: Some(StrictSource::Any), ..sdp(NAT.0, NAT.1) };
    let mut senders =
        [Sender::new(STRANGER, 666, &[0..CALL]), Sender::new(BEHIND_NAT, 1, &[100..200, 900..CALL])];
    let (_, report) = play(&description, &mut senders, CALL);
    let [stranger, phone] = senders;
    // From tick 3 on it is accepted; in tick 100 its packet arrives before the phone's.
    assert_eq!((stranger.relayed, stranger.sent_to), (98, 97));
    assert_eq!((phone.first_relayed, phone.first_sent_to), (Some(100), Some(100)));
    assert_eq!(i64::from(phone.relayed), CALL - 800);
    let foreign = report.foreign.unwrap();
    assert_eq!((foreign.taken_back, foreign.sent_packets), (1, 97));
    assert_eq!(report.source, Some(addr(BEHIND_NAT)));
}

/// A NAT that gives the phone a new port: accepted again five seconds after the last packet from the old
/// port.
#[test]
fn a_phone_with_a_new_port_is_heard_again_after_five_seconds() {
    let rebound = "203.0.113.7:31002";
    for (name, from, heard) in [("at once", 500, 749), ("after a pause of ten seconds", 1_000, 1_003)] {
        let mut senders = [Sender::new(BEHIND_NAT, 1, &[0..500]), Sender::new(rebound, 1, &[from..CALL])];
        play(&sdp(NAT.0, NAT.1), &mut senders, CALL);
        let [_, phone] = senders;
        assert_eq!((phone.first_relayed, phone.first_sent_to), (Some(heard), Some(heard)), "{name}");
    }
}

/// A phone that changes its network announces it with a re-INVITE, and is accepted immediately.
#[test]
fn a_phone_that_changes_its_network_is_heard_at_once() {
    let (elsewhere, signalling) = ("192.0.2.200:40000", "192.0.2.200");
    for (name, advertised, heard, sent_to) in [
        // The private address may be the same in both networks; signalling shows the change.
        ("the same SDP from another address", NAT.0, 500, 500),
        ("another SDP", "10.2.2.2:4000", 500, 500),
        ("its public address in SDP", elsewhere, 500, 500),
    ] {
        let mut senders = [Sender::new(BEHIND_NAT, 1, &[0..500]), Sender::new(elsewhere, 1, &[500..CALL])];
        let (mut session, _) = play(&sdp(NAT.0, NAT.1), &mut senders, 500);
        session.describe(at(500), sdp(advertised, signalling));
        go_on(&mut session, &mut senders, 500..CALL);
        let [_, phone] = senders;
        assert_eq!((phone.first_relayed, phone.first_sent_to), (Some(heard), Some(sent_to)), "{name}");
        assert_eq!(session.report(at(CALL)).foreign, None, "{name}");
    }
}

/// RTCP of catalogue M4: four octets, a BYE for our source, reports with extreme values, an extended report
/// full of blocks, and wrong lengths.
fn hostile_rtcp(ours: u32, theirs: u32) -> Vec<Vec<u8>> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let mut bomb = words(&[0x80cf_0000 | 299, theirs]);
    bomb.extend(words(&[0x0400_0002, 0xffff_ffff, 0xffff_ffff]).repeat(99));
    bomb.extend(words(&[0]));
    vec![
        words(&[0x80c9_0000]),
        words(&[0x81cb_0001, ours]),
        words(&[0x81cb_0001, theirs]),
        words(&[0x81c8_000c, theirs, !0, !0, !0, !0, !0, ours, !0, !0, !0, !0, !0]),
        words(&[0x81c9_0007, theirs, ours, !0, !0, !0, !0, !0]),
        bomb,
        words(&[0x80c9_ffff, theirs]),
        words(&[0x9fc9_0001, theirs]),
        words(&[0x81ca_0001, theirs]),
    ]
}

#[test]
fn foreign_rtcp_changes_nothing() {
    const OURS: u32 = 99;
    let attackers = [STRANGER, "198.51.100.66:4001", "203.0.113.7:5555"];
    for (name, advertised, source) in [("public", PUBLIC.0, PUBLIC.0), ("behind NAT", NAT.0, BEHIND_NAT)] {
        for mux in [false, true] {
            let description = Description { rtcp_mux: mux, ..sdp(advertised, PUBLIC.1) };
            let own_port = if mux { addr(source).port() } else { addr(source).port() + 1 };
            let own_rtcp = SocketAddr::new(addr(source).ip(), own_port);
            let report = |attacked: bool| {
                let mut session = Session::new(SessionConfig::default());
                session.describe(at(0), description.clone());
                session.answer(at(0));
                let mut phone = Sender::new(source, 1, &[0..CALL]);
                let mut refused = 0;
                for tick in 0..CALL {
                    phone.send(tick, &mut session);
                    session.sends(OURS);
                    session.sent(at(tick), 1, addr(source));
                    // A report every five seconds.
                    if tick % 250 == 10 {
                        let own = [0x80, 201, 0, 1, 0, 0, 0, 1];
                        assert_eq!(session.receive_rtcp(at(tick), own_rtcp, &own), Disposition::Relay);
                    }
                    if !attacked || tick % 100 != 50 {
                        continue;
                    }
                    for (attacker, datagram) in attackers
                        .iter()
                        .flat_map(|from| hostile_rtcp(OURS, 1).into_iter().map(move |d| (from, d)))
                    {
                        let disposition = session.receive_rtcp(at(tick), addr(attacker), &datagram);
                        assert!(matches!(disposition, Disposition::Discard(_)), "{name}: {datagram:?}");
                        refused += 1;
                    }
                    assert_ne!(session.rtcp_destination().map(|to| to.ip()), Some(ip("198.51.100.66")));
                    assert_ne!(session.rtcp_destination(), Some(addr("203.0.113.7:5555")));
                }
                (session.report(at(CALL)), refused)
            };
            let (quiet, (attacked, refused)) = (report(false).0, report(true));
            let counted = attacked.counters.rtcp_rejected + attacked.counters.malformed;
            assert_eq!(counted, refused, "{name}");
            assert_eq!(attacked.rtcp, quiet.rtcp, "{name}, mux {mux}");
            assert_eq!((attacked.figures, attacked.verdict), (quiet.figures, quiet.verdict), "{name}");
        }
    }
}

/// The same datagrams from the party itself: they are counted, but do not affect what was measured here.
#[test]
fn hostile_rtcp_of_the_party_changes_no_figure_of_its_packets() {
    let report = |attacked: bool| {
        let mut session = Session::new(SessionConfig::default());
        session.describe(at(0), sdp(PUBLIC.0, PUBLIC.1));
        session.answer(at(0));
        let mut phone = Sender::new(PUBLIC.0, 1, &[0..CALL]);
        for tick in 0..CALL {
            phone.send(tick, &mut session);
            for datagram in hostile_rtcp(99, 1).iter().filter(|_| attacked && tick % 100 == 50) {
                session.receive_rtcp(at(tick), addr("203.0.113.7:4001"), datagram);
            }
        }
        session.report(at(CALL))
    };
    let (attacked, quiet) = (report(true), report(false));
    assert_eq!(attacked.figures.loss_pct, quiet.figures.loss_pct);
    assert_eq!((attacked.figures.lost, attacked.figures.received), (0, CALL as u64));
    assert_eq!(attacked.verdict, quiet.verdict);
}
