//! A session folds many expected packets together; the result equals folding them one by one.
//!
//! Each case is fed to two sessions. One of them returns a report block after every input, which folds the waiting
//! packets, so that it folds packet by packet.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::net::SocketAddr;

use crate::support;
use crate::support::random::{Arrived, Random, stream};
use proptest::prelude::*;
use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Session, SessionConfig};
use sidetone_media::time::Micros;

/// A session that defers folding, and one that never does.
struct Both {
    waits: Session,
    folds: Session,
    description: Description,
    /// The phone's address, which changes.
    source: SocketAddr,
}

impl Both {
    fn new(config: &SessionConfig, source: SocketAddr) -> Both {
        let session = Session::new(config.clone());
        let description = Description { remote: Some(source), ..support::pcmu() };
        Both { waits: session.clone(), folds: session, description, source }
    }

    fn tell<T>(&mut self, now: Micros, input: impl Fn(&mut Session) -> T) {
        input(&mut self.waits);
        input(&mut self.folds);
        self.folds.report_block(now);
    }

    fn describe(&mut self, now: Micros) {
        let description = self.description.clone();
        self.tell(now, |session| session.describe(now, description.clone()));
    }

    fn receive(&mut self, now: Micros, packet: &Packet) {
        let mut datagram = Vec::new();
        support::write_rtp(packet, &mut datagram);
        let source = self.source;
        self.tell(now, |session| session.receive(now, source, &datagram));
    }

    /// Compares the reports at `now`, while packets wait in one session.
    fn check(&self, now: Micros) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.waits.report(now), self.folds.report(now));
        prop_assert_eq!(self.waits.destination(), self.folds.destination());
        prop_assert_eq!(self.waits.rtcp_destination(), self.folds.rtcp_destination());
        Ok(())
    }

    /// Other events on a leg.
    fn disturb(&mut self, random: &mut Random, now: Micros) {
        match random.below(9) {
            0 => self.describe(now),
            1 => {
                self.description.send = !self.description.send;
                self.describe(now);
            }
            2 => {
                self.description.payloads.swap(0, 1);
                self.describe(now);
            }
            3 => self.tell(now, |session| session.answer(now)),
            4 => self.source.set_port(4_000 + random.below(3) as u16),
            5 => {
                let to = self.source;
                self.tell(now, |session| session.sent(now, 3, to));
            }
            6 => self.tell(now, |session| session.local_drop(2)),
            7 => {
                // A sender report of an unknown source, and a datagram that is not RTP.
                let source = self.source;
                let report = [&[0x80, 200, 0, 6, 0, 0, 0x10, 0][..], &[0; 20]].concat();
                self.tell(now, |session| session.receive_rtcp(now, source, &report));
                self.tell(now, |session| session.receive(now, source, &[0; 12]));
                self.tell(now, |session| session.receive(now, source, &[]));
            }
            _ => {
                let remote = self.source;
                self.description.remote = Some(remote);
                self.describe(now);
            }
        }
    }
}

fn config(audio_evidence: bool) -> SessionConfig {
    SessionConfig { audio_evidence, ..SessionConfig::default() }
}

/// Talk as usual: steady, with few disturbances.
fn steady(seed: u64, packets: u16) -> Vec<Arrived> {
    let mut random = Random(seed);
    let first = random.bits() as u32;
    let (mut number, mut sent_us) = (0_u32, 0);
    let mut arrive = || {
        number += 1 + u32::from(random.chance(4));
        sent_us = i64::from(number) * 20_000 + if random.chance(3) { 50_000 } else { 0 };
        let packet = Packet {
            ssrc: 0x1000,
            timestamp: first.wrapping_add(number * 160),
            payload_len: 160,
            sequence: first.wrapping_add(number) as u16,
            payload_type: 0,
            marker: random.chance(2),
        };
        let at = Micros(sent_us + random.below(2_000) as i64);
        Arrived { at, kind: sidetone_media::rtp::PayloadKind::Audio, packet }
    };
    (0..packets).map(|_| arrive()).collect()
}

fn check(arrivals: &[Arrived], seed: u64, disturbed: u64, source: SocketAddr) -> Result<(), TestCaseError> {
    let mut random = Random(seed ^ 3);
    let mut both = Both::new(&config(random.chance(300)), source);
    let begin = arrivals.first().map_or(Micros(0), |first| first.at);
    both.describe(begin);
    if random.chance(700) {
        both.tell(begin, |session| session.answer(begin));
    }
    for arrived in arrivals {
        if random.chance(disturbed) {
            both.disturb(&mut random, arrived.at);
        }
        both.receive(arrived.at, &arrived.packet);
        if random.chance(5) {
            both.check(arrived.at)?;
        }
    }
    let end = arrivals.last().map_or(begin, |last| last.at) + 1_000_000;
    both.check(end)?;
    prop_assert_eq!(both.waits.close(end), both.folds.close(end));
    // A leg that has ended expects no packet.
    if let Some(last) = arrivals.last() {
        let packet = Packet {
            sequence: last.packet.sequence.wrapping_add(1),
            timestamp: last.packet.timestamp.wrapping_add(160),
            ..last.packet
        };
        both.receive(last.at + 20_000, &packet);
    }
    both.check(end)
}

proptest! {
    #[test]
    fn rough_streams(seed: u64, packets in 0_u32..600, disturbed in 0_u64..30) {
        check(&stream(seed, packets), seed, disturbed, support::party())?;
    }

    #[test]
    fn steady_streams(seed: u64, packets in 0_u16..1_500, disturbed in 0_u64..10) {
        check(&steady(seed, packets), seed, disturbed, support::party())?;
    }

    #[test]
    fn streams_over_ipv6(seed: u64, packets in 0_u16..400, disturbed in 0_u64..20) {
        check(&steady(seed, packets), seed, disturbed, support::addr("[2001:db8::1]:4000"))?;
    }

    /// A session that processes the runs of another gives the result of receiving every packet itself.
    #[test]
    fn runs_of_another_session(seed: u64, packets in 0_u16..1_500, disturbed in 0_u64..10) {
        let mut random = Random(seed ^ 5);
        let source = support::party();
        let both = Both::new(&config(false), source);
        let Both { waits: mut first, folds: mut told, description, .. } = both;
        let mut heard = told.clone();
        for session in [&mut first, &mut told, &mut heard] {
            session.describe(Micros(0), description.clone());
            session.answer(Micros(0));
        }
        for Arrived { at, packet, .. } in steady(seed, packets) {
            if random.chance(disturbed) {
                first.go_on_with(source, &mut told);
                told.describe(at, description.clone());
                heard.describe(at, description.clone());
            }
            if first.take_next(at, packet.header(), packet.payload_len as usize) {
                if first.is_full() {
                    first.go_on_with(source, &mut told);
                }
            } else {
                first.go_on_with(source, &mut told);
                first.receive_packet(at, source, &packet);
                told.receive_packet(at, source, &packet);
            }
            heard.receive_packet(at, source, &packet);
        }
        first.go_on_with(source, &mut told);
        prop_assert_eq!(told.close(Micros(1 << 40)), heard.close(Micros(1 << 40)));
    }

    /// A parsed header gives the same result as its datagram.
    #[test]
    fn headers_and_datagrams(seed: u64, packets in 0_u32..600) {
        let (mut read, mut whole) = (Session::new(config(false)), Session::new(config(false)));
        for session in [&mut read, &mut whole] {
            session.describe(Micros(0), support::pcmu());
            session.answer(Micros(0));
        }
        let mut datagram = Vec::new();
        for arrived in stream(seed, packets).iter().chain(&steady(seed, packets as u16)) {
            support::write_rtp(&arrived.packet, &mut datagram);
            let by_header = read.receive_packet(arrived.at, support::party(), &arrived.packet);
            prop_assert_eq!(by_header, whole.receive(arrived.at, support::party(), &datagram));
        }
        prop_assert_eq!(read.close(Micros(1 << 40)), whole.close(Micros(1 << 40)));
    }
}
