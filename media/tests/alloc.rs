//! No packet allocates once a leg is in mid-call.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod support;

use std::alloc::System;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{Disposition, Input, Session, SessionConfig};
use sidetone_media::time::Micros;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// Only one test here, because the counter counts all threads of this binary.
#[test]
fn packets_cost_no_allocation() {
    // Audio evidence does not allocate either.
    let mut session = Session::new(SessionConfig { audio_evidence: true, ..SessionConfig::default() });
    session.describe(Micros(0), support::pcmu());
    session.answer(Micros(0));
    let datagrams = datagrams();
    // Warm-up: the source is latched, and every kind of packet has arrived once.
    play(&mut session, &datagrams, 0);
    let region = Region::new(ALLOCATOR);
    let relayed = play(&mut session, &datagrams, 1);
    let change = region.change();
    assert!(relayed > 30_000, "the packets were accepted: {relayed}");
    let audio = session.report(Micros(2_000_000_000)).audio.unwrap();
    assert!(audio.looked_at_packets > 10_000, "{audio:?}");
    assert_eq!((change.allocations, change.deallocations), (0, 0));
    // The capacity of the timeline's rows doubles at 64, 128, 256, … seconds, and at an hour at the latest.
    assert!(change.reallocations <= 1, "{} times in the thirteen minutes", change.reallocations);
}

/// A stream with everything that costs work: loss, reordering, duplicates, jumps of number and timestamp,
/// other SSRCs, comfort noise, digits, payload changes, refused packets.
fn datagrams() -> Vec<Vec<u8>> {
    (0..40_000_u32).map(datagram).collect()
}

fn datagram(n: u32) -> Vec<u8> {
    let mut packet = Packet {
        ssrc: 0x1111 + n / 15_000,
        timestamp: n.wrapping_mul(160),
        payload_len: 160,
        sequence: low_half(n),
        payload_type: if n % 4_000 < 2_000 { 0 } else { 8 },
        marker: false,
    };
    match n % 1_000 {
        100..=104 => packet.sequence = packet.sequence.wrapping_add(300),
        200 => packet.sequence = packet.sequence.wrapping_sub(1),
        201 => packet.sequence = packet.sequence.wrapping_sub(2),
        300..=310 => packet.payload_type = 13,
        400..=420 => packet.payload_type = 101,
        500 => packet.timestamp = packet.timestamp.wrapping_add(1 << 20),
        600 => packet.payload_type = 77,
        700 => packet.ssrc = 7,
        800..=801 => packet.sequence = packet.sequence.wrapping_add(20_000),
        _ => {}
    }
    let mut buffer = Vec::new();
    support::write_rtp(&packet, &mut buffer);
    match n % 1_000 {
        900 => buffer.truncate(11),
        901 => buffer.truncate(12),
        902 => buffer.splice(..2, [0, 1]).for_each(drop),
        _ => {}
    }
    buffer
}

fn low_half(n: u32) -> u16 {
    let [_, _, high, low] = n.to_be_bytes();
    u16::from_be_bytes([high, low])
}

fn play(session: &mut Session, datagrams: &[Vec<u8>], part: i64) -> usize {
    let start = Micros(part * 1_000_000_000);
    let mut relayed = 0;
    for (n, datagram) in (0_i64..).zip(datagrams) {
        let now = start + n * 20_000;
        let source = support::addr_v4(if n % 97 == 0 { 66 } else { 1 });
        let disposition = session.receive(now, source, datagram);
        relayed += usize::from(disposition == Disposition::Relay);
        session.handle_input(now, Input::Sent { packets: 1, to: source });
        while session.poll_output().is_some() {}
        session.destination();
    }
    relayed
}
