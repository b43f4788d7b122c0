//! The fast path of the timing gives the same result as the general one.

use proptest::prelude::*;

use super::*;
use crate::time::ClockRate;
use crate::verdict::Thresholds;

/// One arrival, relative to the one before it.
#[derive(Clone, Debug)]
struct Next {
    gap_us: i64,
    packets: u16,
    ticks: u32,
    payload_len: u32,
    kind: PayloadKind,
    place: Place,
}

/// Mostly regular audio as a phone sends it, with all other cases in between.
fn next() -> impl Strategy<Value = Next> {
    let gap_us = prop_oneof![
        20 => 15_000..25_000_i64,
        3 => 0..200_000_i64,
        2 => 999_000..1_001_000_i64,
        2 => prop::sample::select(vec![0, 1, 19_999, 20_000, 1_000_000, 1_000_001, -1, -20_000, 5_000_000]),
        1 => any::<i32>().prop_map(i64::from),
        1 => -(1_i64 << 45)..1_i64 << 45,
    ];
    let packets = prop_oneof![30 => Just(1_u16), 1 => 0..4_u16, 1 => any::<u16>()];
    let ticks = prop_oneof![40 => Just(160_u32), 1 => Just(240_u32), 1 => 0..40_000_u32, 1 => any::<u32>()];
    let payload_len = prop_oneof![40 => Just(160_u32), 1 => 1..400_u32];
    let kind = prop_oneof![
        60 => Just(PayloadKind::Audio),
        1 => Just(PayloadKind::ComfortNoise),
        1 => Just(PayloadKind::Event),
    ];
    let place = prop_oneof![90 => Just(Place::Ahead), 9 => Just(Place::Behind), 1 => Just(Place::First)];
    (gap_us, packets, ticks, payload_len, kind, place).prop_map(
        |(gap_us, packets, ticks, payload_len, kind, place)| Next {
            gap_us,
            packets,
            ticks,
            payload_len,
            kind,
            place,
        },
    )
}

proptest! {
    #[test]
    fn both_ways_come_to_the_same(
        arrivals in prop::collection::vec(next(), 1..300),
        hz in prop::sample::select(vec![8_000_u32, 44_100, 48_000, 1_000]),
    ) {
        let clock = ClockRate::new(hz).unwrap();
        let config = StreamConfig::new(clock, 20, &Thresholds::default());
        let new = || (Timing::new(&config), Rows::new(64));
        let ((mut short, mut short_rows), (mut long, mut long_rows)) = (new(), new());
        let mut now = Micros(1 << 50);
        let mut packet = Packet::default();
        let mut fresh = true;
        for arrival in arrivals {
            now = now + arrival.gap_us;
            packet.sequence = packet.sequence.wrapping_add(arrival.packets);
            packet.timestamp = packet.timestamp.wrapping_add(arrival.ticks);
            packet.payload_len = arrival.payload_len;
            for (timing, rows) in [(&mut short, &mut short_rows), (&mut long, &mut long_rows)] {
                if rows.is_over(now) {
                    let turn = timing.turn(packet.sequence);
                    rows.turn(now, &turn);
                }
            }
            let place = if std::mem::take(&mut fresh) { Place::First } else { arrival.place };
            short.arrive(now, &packet, arrival.kind, place, &mut short_rows);
            long.arrive_any(now, &packet, arrival.kind, place, &mut long_rows);
        }
        prop_assert_eq!(format!("{short:?} {short_rows:?}"), format!("{long:?} {long_rows:?}"));
    }
}

#[test]
fn a_phones_packets_take_the_short_way() {
    let config = StreamConfig::new(ClockRate::HZ_8000, 20, &Thresholds::default());
    let (mut timing, mut rows) = (Timing::new(&config), Rows::new(64));
    let mut packet = Packet { payload_len: 160, ..Packet::default() };
    let mut short = 0;
    for number in 0..100 {
        let now = Micros(i64::from(number) * 20_000);
        packet.sequence = number;
        packet.timestamp = u32::from(number) * 160;
        if number > 0 && timing.arrive_in_step(now, &packet, &mut rows) {
            short += 1;
        } else {
            let place = if number == 0 { Place::First } else { Place::Ahead };
            timing.arrive_any(now, &packet, PayloadKind::Audio, place, &mut rows);
        }
    }
    assert!(short >= 97, "{short} of 100");
}
