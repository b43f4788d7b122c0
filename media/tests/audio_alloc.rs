//! Decoding and transcoding a party's audio does not allocate once each of its formats has arrived, whatever
//! the network does.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop where it fails"
)]

use std::alloc::System;

use sidetone_media::codec::{Codec, Encoder};
use sidetone_media::playout::{Playout, PlayoutFormats, Pulled};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;
use sidetone_media::transcode::{TranscodePlan, Transcoder};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// Only one test here, because the counter counts all threads of this binary.
#[test]
fn playing_costs_no_allocation() {
    let formats = [(0, Codec::Pcmu), (8, Codec::Pcma), (9, Codec::G722), (96, Codec::Opus)];
    for rate_hz in [None, Some(16_000)] {
        let formats_of = PlayoutFormats { audio: formats.to_vec(), noise: vec![13], rate_hz };
        let mut playout = Playout::new(&formats_of, 3);
        let payloads: Vec<_> =
            formats.iter().map(|(number, codec)| (*number, *codec, payload(*codec))).collect();
        play(&mut playout, &payloads, 0);
        let region = Region::new(ALLOCATOR);
        let voiced = play(&mut playout, &payloads, 1);
        let change = region.change();
        assert!(voiced > 1_000, "{voiced} frames were voice");
        // For a lost full-band Opus packet, concealment in the crate allocates nine times and frees
        // everything again; nothing else allocates.
        assert!(change.allocations <= 9 * LOST_OPUS, "{rate_hz:?}: {change:?}");
        assert_eq!((change.deallocations, change.reallocations), (change.allocations, 0), "{rate_hz:?}");
    }
    let plan =
        |from, send| TranscodePlan { audio: vec![from], noise: vec![13], events: None, send, ptime_ms: 30 };
    let (pcmu, g722) = ((0, Codec::Pcmu), (9, Codec::G722));
    let mut transcoders = [(pcmu, g722), (g722, pcmu)]
        .map(|(from, to)| (from.0, Transcoder::new(plan(from, to), 7).unwrap(), payload(from.1)));
    for part in 0..4 {
        transcode(&mut transcoders, part);
    }
    let region = Region::new(ALLOCATOR);
    let sent = transcode(&mut transcoders, 4);
    let change = region.change();
    assert!(sent > 40, "{sent}");
    assert_eq!((change.allocations, change.reallocations, change.deallocations), (0, 0, 0), "transcoding");
}

/// Every tenth of 800.
const LOST_OPUS: usize = 80;

/// PCMU to G.722 and back: a second of each, with a loss and a pause.
fn transcode(transcoders: &mut [(u8, Transcoder, Vec<u8>)], part: i64) -> usize {
    let mut sent = 0;
    for (number, transcoder, payload) in transcoders {
        for n in part * 50..part * 50 + 50 {
            let now = Micros(n * 20_000);
            let header = Packet {
                ssrc: 5,
                sequence: n as u16,
                timestamp: n as u32 * 160,
                payload_type: *number,
                ..Packet::default()
            };
            if n % 50 != 20 && n % 50 < 40 {
                transcoder.receive(now, &RtpPacket { header, payload });
            }
            while transcoder.next_tick().is_some_and(|due| due <= now) {
                transcoder.tick(now);
            }
            while transcoder.poll_packet().is_some() {
                sent += 1;
            }
        }
    }
    sent
}

fn payload(codec: Codec) -> Vec<u8> {
    let samples = codec.sample_rate_hz() / 50;
    let pcm: Vec<i16> = (0..samples).map(|n| ((n % 100) as i16 - 50) * 200).collect();
    let mut payload = vec![0; 1_500];
    let mut encoder = Encoder::new(codec).unwrap();
    // Later packets reach their full length only with the encoder's history.
    let size = (0..5).map(|_| encoder.encode(&pcm, &mut payload).unwrap()).last().unwrap();
    payload.truncate(size);
    payload
}

/// 800 packets in each format: every tenth lost, some late, some duplicated, comfort noise, digits, skipped
/// frames.
fn play(playout: &mut Playout, payloads: &[(u8, Codec, Vec<u8>)], part: i64) -> usize {
    let mut frame = [0; 960];
    let mut voiced = 0;
    for (which, (number, codec, payload)) in payloads.iter().enumerate() {
        for n in 0..800_i64 {
            let at = (part * 4 + which as i64) * 800 + n;
            let mut now = Micros(at * 20_000);
            let mut header =
                Packet { ssrc: 5, sequence: at as u16, payload_type: *number, ..Packet::default() };
            header.timestamp = (at * i64::from(codec.rtp_clock().hz()) / 50) as u32;
            let mut payload = payload.as_slice();
            if n % 500 == 250 {
                (header.payload_type, payload) = (13, &[60]);
            }
            if n % 300 == 299 {
                now = now + 70_000;
            }
            for _ in 0..=i32::from(n % 50 == 7) {
                if n % 10 != 3 {
                    playout.push(now, &RtpPacket { header, payload });
                }
            }
            if n % 700 == 699 {
                playout.event();
            }
            if n % 100 > 90 {
                playout.skip(now + 5_000);
            } else {
                voiced += usize::from(playout.pull(now + 5_000, &mut frame) == Pulled::Voice);
            }
        }
    }
    voiced
}
