//! Whose audio a leg takes and who gets ours, with an attacker on the leg's port: simulated time, one packet each 20 ms.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod support;

use std::net::SocketAddr;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Disposition, Report, Session, SessionConfig};
use sidetone_media::time::Micros;
use support::{addr, ip};

/// When a sender sends: from one tick of 20 ms up to another.
type Spell = std::ops::Range<i64>;

/// A sender on the leg's port.
struct Sender {
    source: SocketAddr,
    spells: Vec<Spell>,
    packet: Packet,
    relayed: u32,
    /// Our packets that went to it.
    sent_to: u32,
    /// The first tick at which its packet was relayed, and at which ours went to it.
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

/// Plays `ticks` of an answered call; the senders send in their order, then we send one packet.
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

/// SDP of a phone whose signalling comes from another address than it advertises, or from the same.
fn sdp(advertised: &str, signalling: &str) -> Description {
    Description { remote: Some(addr(advertised)), signalling: Some(ip(signalling)), ..support::pcmu() }
}

const PUBLIC: (&str, &str) = ("203.0.113.7:4000", "203.0.113.7");
const NAT: (&str, &str) = ("10.1.1.9:4000", "203.0.113.7");
const BEHIND_NAT: &str = "203.0.113.7:31000";
const STRANGER: &str = "198.51.100.66:4000";
/// A minute.
const CALL: i64 = 3_000;

/// Reported: a muted phone with a correct SDP address lost the other party's audio to a stranger.
#[test]
fn a_stranger_gets_nothing_of_a_muted_phone() {
    let mut senders = [Sender::new(PUBLIC.0, 1, &[0..500]), Sender::new(STRANGER, 666, &[0..CALL])];
    play(&sdp(PUBLIC.0, PUBLIC.1), &mut senders, CALL);
    let [phone, stranger] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    assert_eq!((phone.relayed, i64::from(phone.sent_to)), (500, CALL));
}

/// Reported: the same of a phone that never sent anything.
#[test]
fn a_stranger_gets_nothing_of_a_phone_that_was_never_heard() {
    let mut senders = [Sender::new(PUBLIC.0, 1, &[]), Sender::new(STRANGER, 666, &[0..CALL])];
    play(&sdp(PUBLIC.0, PUBLIC.1), &mut senders, CALL);
    let [phone, stranger] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    assert_eq!(i64::from(phone.sent_to), CALL);
}

/// Reported: a phone behind NAT lost its call for as long as a stranger sent.
#[test]
fn a_stranger_gets_nothing_of_a_phone_behind_nat_that_pauses() {
    let mut senders =
        [Sender::new(BEHIND_NAT, 1, &[0..500, 900..CALL]), Sender::new(STRANGER, 666, &[100..CALL])];
    play(&sdp(NAT.0, NAT.1), &mut senders, CALL);
    let [phone, stranger] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    // Three packets of the phone are held back until it is believed.
    assert_eq!((i64::from(phone.relayed), i64::from(phone.sent_to)), (CALL - 400 - 3, CALL - 3));
}

/// Reported: whoever sprayed before the first packets of a phone behind NAT won.
#[test]
fn a_stranger_who_sprays_before_a_phone_behind_nat_gets_nothing() {
    let mut senders = [Sender::new(STRANGER, 666, &[0..CALL]), Sender::new(BEHIND_NAT, 1, &[10..CALL])];
    play(&sdp(NAT.0, NAT.1), &mut senders, CALL);
    let [stranger, phone] = senders;
    assert_eq!((stranger.relayed, stranger.sent_to), (0, 0));
    assert_eq!((phone.first_relayed, phone.first_sent_to), (Some(13), Some(13)));
}
