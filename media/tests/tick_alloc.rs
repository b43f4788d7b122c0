//! No packet and no tick of a mix allocates while nothing changes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::alloc::System;

use sidetone_media::codec::{Codec, Encoder};
use sidetone_media::mix::{Formats, Hears, Mix, Seat, SeatKey};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// Only one test here, because the counter counts all threads of this binary.
#[test]
fn ticks_cost_no_allocation() {
    let codecs = [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::L16 { rate_hz: 16_000, channels: 1 }];
    let mut mix = Mix::new();
    let mut said = Vec::new();
    for (key, codec) in (0_u64..50).zip(codecs.into_iter().cycle()) {
        let formats = Formats {
            receive: vec![(96, codec)],
            send: (96, codec),
            event_receive: Some(101),
            event_send: Some(101),
            noise_receive: vec![13],
            ptime_ms: [10, 20, 30, 60][key as usize % 4],
            hears: true,
            speaks: true,
        };
        mix.seat(SeatKey(key), Seat { formats, muted: false, hears: Hears::Mix, seed: key }).unwrap();
        let amplitude = if key < 3 { 3_000.0 } else { 0.0 };
        said.push(payloads(codec, amplitude));
    }
    // Warm-up: each party has the encoding that it keeps.
    play(&mut mix, &said, 0..100);
    let region = Region::new(ALLOCATOR);
    let sent = play(&mut mix, &said, 100..600);
    let change = region.change();
    assert!(sent > 20_000, "{sent} packets");
    assert_eq!(mix.figures().speakers, 3);
    assert_eq!((change.allocations, change.reallocations, change.deallocations), (0, 0, 0));
}

/// A second of 500 Hz.
fn payloads(codec: Codec, amplitude: f64) -> Vec<Vec<u8>> {
    let (mut encoder, rate) = (Encoder::new(codec).unwrap(), codec.sample_rate_hz());
    let tone =
        |n: u32| (amplitude * (std::f64::consts::TAU * 500.0 * f64::from(n) / f64::from(rate)).sin()) as i16;
    let pcm: Vec<i16> = (0..rate).map(tone).collect();
    let encode = |frame: &[i16]| {
        let mut payload = vec![0; 2_000];
        let len = encoder.encode(frame, &mut payload).unwrap();
        payload.truncate(len);
        payload
    };
    pcm.chunks_exact(rate as usize / 50).map(encode).collect()
}

fn play(mix: &mut Mix, said: &[Vec<Vec<u8>>], ticks: std::ops::Range<u32>) -> usize {
    let mut sent = 0;
    for n in ticks {
        let now = Micros(i64::from(n) * 20_000);
        for (key, payloads) in (0_u64..).zip(said) {
            let payload = &payloads[n as usize % payloads.len()];
            let clock = if key % 4 == 3 { 320 } else { 160 };
            let header = Packet {
                ssrc: 1,
                timestamp: n * clock,
                payload_len: payload.len() as u32,
                sequence: n as u16,
                payload_type: 96,
                marker: n == 0,
            };
            mix.receive(now, SeatKey(key), &RtpPacket { header, payload });
        }
        mix.tick(now + 5_000);
        while mix.poll_packet().is_some() {
            sent += 1;
        }
        while mix.poll_event().is_some() {}
    }
    sent
}
