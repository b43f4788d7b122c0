//! Laws that hold for every stream, for any packets.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::support;
use crate::support::random::{Arrived, Random, stream};
use proptest::prelude::*;
use sidetone_media::rtp::{Packet, PayloadKind};
use sidetone_media::session::{Figures, Hundredths, Second, Session, SessionConfig, Timeline};
use sidetone_media::stats::{Stream, StreamConfig};
use sidetone_media::time::{ClockRate, Micros};

fn fold(arrivals: &[Arrived]) -> Figures {
    fold_both(arrivals).0
}

fn fold_both(arrivals: &[Arrived]) -> (Figures, Timeline) {
    let config = StreamConfig::new(ClockRate::HZ_8000, 20, &Default::default());
    let mut stream = Stream::new(&config);
    for arrived in arrivals {
        stream.push(arrived.at, &arrived.packet, arrived.kind);
    }
    stream.report(0, None)
}

/// A stream of one SSRC without jumps of the sequence number, with `lost` packets per mille lost.
fn plain(seed: u64, packets: u16, lost: u64) -> Vec<Arrived> {
    let mut random = Random(seed);
    let first = random.bits() as u16;
    let arrived = |n: u16| Arrived {
        at: Micros(i64::from(n) * 20_000),
        kind: PayloadKind::Audio,
        packet: Packet {
            sequence: first.wrapping_add(n),
            timestamp: u32::from(n) * 160,
            payload_len: 160,
            ..Packet::default()
        },
    };
    (0..packets).filter(|n| *n == 0 || !random.chance(lost)).map(arrived).collect()
}

/// The score of every quality that occurred.
static SCORES: Mutex<BTreeMap<i64, i64>> = Mutex::new(BTreeMap::new());

fn check_figures(figures: &Figures) -> Result<(), TestCaseError> {
    prop_assert_eq!(figures.lost + figures.local_drop + figures.received, figures.expected);
    prop_assert_eq!(figures.audio + figures.comfort_noise + figures.events, figures.received);
    let judged = [figures.loss_pct, figures.quality_pct, figures.mos];
    prop_assert!(judged.iter().all(|figure| figure.is_some() == figures.enough));
    prop_assert_eq!(figures.jitter_ms.is_some(), figures.sums.jitter_count >= 20);
    prop_assert_eq!(figures.mean_interval_ms.is_some(), figures.sums.gap_count >= 20);
    let within = |figure: Option<Hundredths>, least, most| {
        figure.is_none_or(|figure| (least..=most).contains(&figure.0))
    };
    prop_assert!(within(figures.loss_pct, 0, 10_000) && within(figures.quality_pct, 0, 10_000));
    prop_assert!(within(figures.mos, 100, 450) && within(figures.mos_e_model, 100, 450));
    prop_assert!(within(figures.burst_share, 0, 10_000) && within(figures.pace_ratio, 0, i64::MAX));
    prop_assert_eq!(
        figures.lateness_counts.packets(),
        figures.lateness.iter().map(|n| u64::from(*n)).sum::<u64>()
    );
    if let Some(bursts) = figures.bursts {
        let densities = [bursts.burst_loss_pct, bursts.gap_loss_pct];
        prop_assert!(densities.into_iter().all(|density| within(density, 0, 10_000)));
    }
    if let Some(worst) = figures.worst_10s {
        prop_assert!(within(Some(worst.loss_pct), 0, 10_000) && within(Some(worst.quality_pct), 0, 10_000));
    }
    if let Some(late) = figures.lateness_percentiles {
        prop_assert!(late.p50_ms <= late.p95_ms && late.p95_ms <= late.p99_ms && late.p99_ms <= late.max_ms);
    }
    Ok(())
}

/// The sums of the rows equal the figures.
fn check_timeline(figures: &Figures, timeline: &Timeline) -> Result<(), TestCaseError> {
    let sum =
        |of: fn(&Second) -> u16| timeline.seconds.iter().map(|second| u64::from(of(second))).sum::<u64>();
    prop_assert_eq!(sum(|second| second.received), figures.received);
    prop_assert_eq!(sum(|second| second.lost), figures.lost + figures.local_drop);
    prop_assert_eq!(sum(|second| second.duplicates), figures.duplicates);
    prop_assert_eq!(sum(|second| second.late), figures.sums.late_count);
    prop_assert_eq!(timeline.begins, figures.first);
    prop_assert!(timeline.seconds.len() <= Timeline::ROWS_MAX);
    let most = |of: fn(&Second) -> u32| timeline.seconds.iter().map(of).max().unwrap_or(0);
    let jitter_us = figures.sums.jitter_peak_us - i64::from(most(Second::jitter_max_us));
    prop_assert!((0..i64::from(Second::RESOLUTION_US)).contains(&jitter_us), "{jitter_us} µs");
    Ok(())
}

proptest! {
    #[test]
    fn sums_add_up(seed: u64, packets in 0_u32..1500) {
        let (figures, timeline) = fold_both(&stream(seed, packets));
        check_figures(&figures)?;
        check_timeline(&figures, &timeline)?;
    }

    #[test]
    fn arbitrary_packets_break_nothing(
        packets in prop::collection::vec(
            (any::<i64>(), any::<u16>(), any::<u32>(), 0_u32..3, any::<u8>(), any::<bool>(), 0_u32..2000),
            0..300,
        ),
        local_drop in 0_u32..100,
    ) {
        let mut session = Session::new(SessionConfig::default());
        session.describe(Micros(0), support::pcmu());
        let mut datagram = Vec::new();
        for (n, (at, sequence, timestamp, ssrc, payload_type, marker, payload_len)) in packets.into_iter().enumerate() {
            let payload_type = [0, 8, 13, 101, payload_type & 0x7f][usize::from(payload_type % 5)];
            let packet = Packet { ssrc, timestamp, payload_len, sequence, payload_type, marker };
            support::write_rtp(&packet, &mut datagram);
            session.receive(Micros(at), support::party(), &datagram);
            // A report costs as much as a thousand packets.
            if n % 64 == 0 {
                check_figures(&session.report(Micros(at)).figures)?;
            }
        }
        session.local_drop(local_drop);
        check_figures(&session.close(Micros(0)).figures)?;
    }

    #[test]
    fn arbitrary_bytes_break_nothing(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..50)) {
        let mut session = Session::new(SessionConfig::default());
        session.describe(Micros(0), support::pcmu());
        session.answer(Micros(0));
        for (n, datagram) in datagrams.iter().enumerate() {
            let now = Micros(n as i64 * 20_000);
            session.receive(now, support::party(), datagram);
            session.receive_rtcp(now, support::party(), datagram);
        }
        check_figures(&session.close(Micros(60_000_000)).figures)?;
    }

    #[test]
    fn order_is_no_loss(seed: u64, packets in 50_u16..800, lost in 0_u64..200) {
        let arrivals = plain(seed, packets, lost);
        let mut random = Random(seed ^ 1);
        // Lost packets have positions too, so a packet may arrive up to 100 numbers late (RFC 3550 §A.1).
        let place = |arrived: &Arrived| u64::from(arrived.packet.sequence.wrapping_sub(arrivals[0].packet.sequence));
        let mut shuffled: Vec<(u64, Arrived)> = arrivals
            .iter()
            .map(|arrived| (place(arrived), *arrived))
            .map(|(n, arrived)| (if n == 0 { 0 } else { n + random.below(102) }, arrived))
            .collect();
        shuffled.sort_by_key(|(place, _)| *place);
        let shuffled: Vec<Arrived> = shuffled
            .iter()
            .zip(&arrivals)
            .map(|((_, arrived), slot)| Arrived { at: slot.at, ..*arrived })
            .collect();
        let (one, other) = (fold(&arrivals), fold(&shuffled));
        prop_assert_eq!(one.loss_pct, other.loss_pct);
        prop_assert_eq!((one.lost, one.expected, one.loss_runs), (other.lost, other.expected, other.loss_runs));
    }

    #[test]
    fn duplicates_are_nothing_else(seed: u64, packets in 50_u16..500, lost in 0_u64..100, doubled in 0_u64..1000) {
        let arrivals = plain(seed, packets, lost);
        let mut random = Random(seed ^ 2);
        let mut copies = 0;
        let mut with_copies = Vec::new();
        for (n, arrived) in arrivals.iter().enumerate() {
            with_copies.push(*arrived);
            while random.chance(doubled / 2) {
                let earlier = arrivals[n - random.below(40) as usize % (n + 1)];
                with_copies.push(Arrived { at: arrived.at + 100, ..earlier });
                copies += 1;
            }
        }
        let expected = Figures { duplicates: copies, ..fold(&arrivals) };
        prop_assert_eq!(fold(&with_copies), expected);
    }

    #[test]
    fn origins_do_not_matter(seed: u64, packets in 0_u32..800, sequence: u16, timestamp: u32, us in -(1_i64 << 50)..1 << 50) {
        let arrivals = stream(seed, packets);
        let shifted: Vec<Arrived> = arrivals
            .iter()
            .map(|arrived| Arrived {
                at: arrived.at + us,
                packet: Packet {
                    sequence: arrived.packet.sequence.wrapping_add(sequence),
                    timestamp: arrived.packet.timestamp.wrapping_add(timestamp),
                    ..arrived.packet
                },
                ..*arrived
            })
            .collect();
        let (mut expected, mut timeline) = fold_both(&arrivals);
        expected.first = expected.first.map(|at| at + us);
        expected.last = expected.last.map(|at| at + us);
        timeline.begins = timeline.begins.map(|at| at + us);
        prop_assert_eq!(fold_both(&shifted), (expected, timeline));
    }

    #[test]
    fn the_score_follows_quality_alone(one: u64, other: u64) {
        let (one, other) = (fold(&stream(one, 300)), fold(&stream(other, 300)));
        // Over all streams so far, because two random streams rarely have the same quality.
        let mut scores = SCORES.lock().unwrap();
        for figures in [&one, &other] {
            if let (Some(quality), Some(mos)) = (figures.quality_pct, figures.mos) {
                prop_assert_eq!(*scores.entry(quality.0).or_insert(mos.0), mos.0);
            }
        }
        if one.quality_pct < other.quality_pct && one.quality_pct > Some(Hundredths(2_000)) {
            prop_assert!(one.mos <= other.mos);
        }
    }
}
