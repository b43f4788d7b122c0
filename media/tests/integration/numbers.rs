//! Which sequence numbers are lost packets: neither those of refused packets, nor those that the sender
//! skipped.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::support;
use crate::support::leg::{Leg, default_leg};
use proptest::prelude::*;
use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Figures, PayloadKind, Report, Session, SessionConfig, Verdict};
use sidetone_media::time::Micros;

/// An answered leg whose party may send only PCMU and telephone events.
fn leg() -> Leg {
    let mut leg = default_leg();
    leg.describe(|description| description.payloads.retain(|payload| matches!(payload.number, 0 | 101)));
    leg.answer();
    leg
}

/// The phone sends `packets` of another payload type instead of audio.
fn send_other(leg: &mut Leg, payload_type: u8, packets: u32) {
    let audio = leg.packet;
    leg.packet = Packet { payload_type, payload_len: 20, ..audio };
    leg.talk(packets);
    leg.packet = Packet { sequence: leg.packet.sequence, timestamp: leg.packet.timestamp, ..audio };
}

/// The phone's packets last `ms` from now on.
fn set_packet_ms(leg: &mut Leg, ms: u32) {
    leg.step = ms * 8;
    leg.packet.payload_len = ms * 8;
    leg.interval_ms = ms.into();
}

/// The phone sends `packets` without payload, all at the same time.
fn probe(leg: &mut Leg, packets: u32) {
    let audio = leg.packet;
    leg.packet.payload_len = 0;
    leg.step = 0;
    for _ in 0..packets {
        leg.send_one();
    }
    leg.step = 160;
    leg.packet = Packet { sequence: leg.packet.sequence, ..audio };
}

fn closed(mut leg: Leg) -> Report {
    leg.reply(100);
    leg.close()
}

#[test]
fn packets_that_are_refused_are_not_lost() {
    // (name, actions of the phone, received, expected, comfort noise, verdict)
    type Case = (&'static str, fn(&mut Leg), [u64; 3], Verdict);
    let cases: [Case; 7] = [
        (
            "comfort noise that no SDP announced",
            |leg| {
                for _ in 0..30 {
                    leg.talk(19);
                    send_other(leg, 13, 1);
                }
            },
            [600, 600, 30],
            Verdict::Ok,
        ),
        (
            "a fax in another type",
            |leg| {
                leg.talk(500);
                send_other(leg, 98, 166);
                leg.talk(505);
            },
            [1_171, 1_171, 0],
            Verdict::Ok,
        ),
        (
            "probes without payload",
            |leg| {
                for _ in 0..50 {
                    leg.talk(10);
                    probe(leg, 3);
                }
            },
            [500, 500, 0],
            Verdict::Ok,
        ),
        (
            "a keepalive with a number of its own",
            |leg| {
                leg.talk(200);
                let packet = leg.packet;
                leg.packet =
                    Packet { sequence: packet.sequence.wrapping_add(1_000), payload_len: 0, ..packet };
                leg.send_one();
                leg.packet = Packet { payload_type: 98, payload_len: 20, ..leg.packet };
                leg.send_one();
                leg.packet = packet;
                leg.talk(200);
            },
            [400, 400, 0],
            Verdict::Ok,
        ),
        (
            "what is lost beside them is lost",
            |leg| {
                leg.talk(100);
                send_other(leg, 98, 10);
                leg.lose(20);
                send_other(leg, 98, 10);
                leg.talk(100);
            },
            [220, 240, 0],
            Verdict::LossyInbound,
        ),
        (
            "nothing but a type that was not agreed on is not heard",
            |leg| {
                send_other(leg, 98, 500);
            },
            [0, 0, 0],
            Verdict::NoInboundMedia,
        ),
        (
            "audio goes on in a type that was not agreed on",
            |leg| {
                leg.talk(100);
                send_other(leg, 98, 400);
            },
            [500, 500, 0],
            Verdict::DegradedAudio,
        ),
    ];
    for (name, play, [received, expected, noise], verdict) in cases {
        let mut leg = leg();
        play(&mut leg);
        let report = closed(leg);
        let figures = &report.figures;
        assert_eq!((figures.received, figures.expected), (received, expected), "{name}");
        assert_eq!(figures.lost, expected - received, "{name}");
        assert_eq!((figures.comfort_noise, report.verdict), (noise, Some(verdict)), "{name}");
        let rows: u64 = report.timeline.seconds.iter().map(|second| u64::from(second.received)).sum();
        assert_eq!(rows, received, "{name}: the rows add up");
    }
}

#[test]
fn refused_packets_change_no_timing() {
    let plain = {
        let mut leg = leg();
        leg.talk(500);
        closed(leg).figures
    };
    let mut leg = leg();
    for _ in 0..50 {
        leg.talk(10);
        probe(&mut leg, 2);
    }
    let figures = closed(leg).figures;
    assert_eq!(
        Figures { segments: plain.segments, ..figures.clone() }.sums.jitter_sum_us,
        plain.sums.jitter_sum_us
    );
    let timed = |figures: &Figures| {
        (figures.sums.jitter_count, figures.jitter_ms, figures.late_80, figures.mos, figures.mean_interval_ms)
    };
    assert_eq!(timed(&figures), timed(&plain));
}

#[test]
fn loss_needs_time_to_pass() {
    // (name, skipped numbers, time and timestamps that pass meanwhile, lost, jumps)
    let cases: [(&str, u16, u32, u64, u64); 8] = [
        ("a jump by 700 between two packets", 700, 0, 0, 1),
        ("the largest that is no jump by its number", 2_998, 0, 0, 1),
        ("a small one", 10, 0, 0, 1),
        ("two numbers", 2, 0, 2, 0),
        ("700 packets were lost", 700, 700, 700, 0),
        ("700, with packets of half the duration", 700, 350, 700, 0),
        ("ten packets were lost", 10, 10, 10, 0),
        ("one packet was lost", 1, 1, 1, 0),
    ];
    for (name, left_out, packets, lost, jumps) in cases {
        let mut leg = leg();
        leg.talk(250);
        let sequence = leg.packet.sequence.wrapping_add(left_out);
        leg.lose(packets);
        leg.packet.sequence = sequence;
        leg.talk(250);
        let figures = closed(leg).figures;
        assert_eq!((figures.lost, figures.sequence_jumps), (lost, jumps), "{name}");
        assert_eq!(figures.received, 500 - jumps, "{name}: one confirms a jump");
    }
}

/// The packets after a change of duration are the ones that need time, not those before it.
#[test]
fn loss_after_a_shorter_duration_is_no_jump() {
    // (name, milliseconds before the change, milliseconds after it, lost numbers in a row, packets between them)
    let cases = [
        ("60 to 20, one hole of 40", 60, 20, 40, 500),
        ("60 to 20, bursts of three", 60, 20, 3, 47),
        ("60 to 10, single packets", 60, 10, 1, 19),
        ("30 to 10, bursts of three", 30, 10, 3, 47),
        ("20 to 60, bursts of three", 20, 60, 3, 47),
    ];
    for (name, before_ms, after_ms, burst, packets) in cases {
        let mut leg = leg();
        set_packet_ms(&mut leg, before_ms);
        leg.talk(300);
        set_packet_ms(&mut leg, after_ms);
        for _ in 0..10 {
            leg.talk(packets);
            leg.lose(burst);
        }
        leg.talk(100);
        let figures = closed(leg).figures;
        let sent = u64::from(300 + 10 * packets + 100);
        assert_eq!((figures.lost, figures.sequence_jumps), (u64::from(10 * burst), 0), "{name}");
        assert_eq!(figures.received, sent, "{name}");
    }
}

/// Before two neighbours have arrived, the packet duration is only announced.
#[test]
fn reordered_packets_at_the_start_are_no_jump() {
    let mut leg = default_leg();
    leg.describe(|description| description.ptime_ms = Some(40));
    leg.answer();
    let first = leg.packet;
    for group in 0..16_u16 {
        for place in [0, 4, 3, 1, 2] {
            let number = group * 5 + place;
            leg.packet.sequence = first.sequence.wrapping_add(number);
            leg.packet.timestamp = first.timestamp.wrapping_add(u32::from(number) * 80);
            leg.send_one();
            leg.wait(10);
        }
    }
    let figures = closed(leg).figures;
    assert_eq!((figures.lost, figures.sequence_jumps, figures.received), (0, 0, 80));
}

#[test]
fn a_stray_number_begins_no_segment() {
    let mut leg = leg();
    leg.talk(250);
    let packet = leg.packet;
    leg.packet.sequence = packet.sequence.wrapping_add(500);
    leg.send_one();
    leg.packet = packet;
    leg.talk(250);
    let figures = closed(leg).figures;
    assert_eq!((figures.lost, figures.sequence_jumps, figures.segments), (0, 0, 1));
    assert_eq!(figures.received, 500);
}

#[test]
fn one_codecs_model_is_not_anothers() {
    // (packets of G.722, of PCMU, of PCMA, whether there is a score)
    for (wide, mu, a, is_scored) in
        [(495, 5, 0, false), (0, 500, 0, true), (0, 250, 250, true), (40, 460, 0, true)]
    {
        let mut leg = default_leg();
        leg.describe(|description| {
            description.payloads.push(support::payload(9, "G722", PayloadKind::Audio, 8_000));
        });
        leg.answer();
        for (payload_type, packets) in [(9, wide), (0, mu), (8, a)] {
            leg.packet.payload_type = payload_type;
            leg.talk(packets);
        }
        let figures = closed(leg).figures;
        assert!(figures.mos.is_some());
        assert_eq!(figures.mos_e_model.is_some(), is_scored, "{wide} {mu} {a}");
    }
}

/// The figures of a leg for `packets`; those with `None` are refused because of their type, or because they
/// are empty.
fn played(packets: &[(bool, Option<bool>)], refuses: bool) -> Figures {
    let mut session = Session::new(SessionConfig::default());
    let mut description: Description = support::pcmu();
    if !refuses {
        description.payloads.push(support::payload(98, "unknown", PayloadKind::Other, 8_000));
    }
    session.describe(Micros(0), description);
    let mut datagram = Vec::new();
    for (n, (arrives, refused)) in (0_u16..).zip(packets) {
        let payload_type = if *refused == Some(true) { 98 } else { 0 };
        let packet = Packet {
            sequence: n,
            timestamp: u32::from(n) * 160,
            payload_len: 160,
            payload_type,
            ssrc: 7,
            ..Packet::default()
        };
        support::write_rtp(&packet, &mut datagram);
        if *arrives {
            session.receive(Micros(i64::from(n) * 20_000), support::party(), &datagram);
        }
    }
    session.close(Micros(0)).figures
}

proptest! {
    /// A packet of a refused type counts for loss like an accepted one that is not audio.
    #[test]
    fn loss_is_the_same_whether_a_type_was_agreed_on(
        packets in prop::collection::vec(
            (prop::bool::weighted(0.9), prop::option::weighted(0.3, any::<bool>())), 0..600),
    ) {
        // The first and the last packet are audio: a refused one opens no segment.
        let packets: Vec<_> =
            [(true, None)].into_iter().chain(packets).chain([(true, None)]).collect();
        let (refused, accepted) = (played(&packets, true), played(&packets, false));
        let counted = |figures: &Figures| {
            (figures.received, figures.expected, figures.lost, figures.duplicates, figures.loss_runs, figures.others)
        };
        prop_assert_eq!(counted(&refused), counted(&accepted));
        prop_assert_eq!(refused.expected, refused.received + refused.lost);
    }
}
