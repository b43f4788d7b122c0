//! The memory that a leg's media session holds: described and answered, after a minute of packets, and after ten
//! minutes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod support;

use std::alloc::System;
use std::sync::Arc;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{Session, SessionConfig};
use sidetone_media::time::Micros;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// Only one test here, because the counter counts all threads of this binary.
#[test]
fn a_leg_holds_a_few_kilobytes() {
    let config = Arc::new(SessionConfig::default());
    // Allocations of the first leg for the whole process are not counted.
    drop(leg(&config, 1));
    let mut datagram = Vec::with_capacity(256);
    // The harness's own thread allocates now and then: the least of three is the leg's.
    let mut least = |seconds| (0..3).map(|_| grown(&config, seconds, &mut datagram)).min().unwrap();
    let found: Vec<i64> = [0, 60, 600].map(&mut least).to_vec();
    println!("described {}, after a minute {}, after ten minutes {} bytes", found[0], found[1], found[2]);
    for (bytes, most) in found.iter().zip(BYTES_MAX) {
        assert!(*bytes <= most, "{found:?}");
    }
}

/// Bytes of one session at each of the three times, as docs/memory.md has them. The timeline has 24 bytes for each
/// second, and space for up to twice as many.
const BYTES_MAX: [i64; 3] = [3_200, 4_720, 27_760];
const LEGS: usize = 2;

/// The memory of a leg that received packets for these seconds.
fn grown(config: &Arc<SessionConfig>, seconds: u32, datagram: &mut Vec<u8>) -> i64 {
    let mut legs: Vec<Session> = Vec::with_capacity(LEGS);
    let before = live();
    for _ in 0..LEGS {
        legs.push(leg(config, 0));
        let session = legs.last_mut().unwrap();
        for n in 0..seconds * 50 {
            let [.., high, low] = n.to_be_bytes();
            let packet = Packet {
                ssrc: 7,
                timestamp: n * 160,
                payload_len: 160,
                sequence: u16::from_be_bytes([high, low]),
                ..Packet::default()
            };
            support::write_rtp(&packet, datagram);
            session.receive(Micros::from_millis(i64::from(n) * 20), support::party(), datagram);
        }
    }
    let bytes = (live() - before) / LEGS as i64 + size_of::<Session>() as i64;
    drop(legs);
    bytes
}

fn leg(config: &Arc<SessionConfig>, packets: u32) -> Session {
    let mut session = Session::with_shared(Arc::clone(config));
    session.describe(Micros(0), support::pcmu());
    session.answer(Micros(0));
    let mut datagram = Vec::new();
    for n in 0..packets {
        support::write_rtp(
            &Packet { payload_len: 160, timestamp: n * 160, ..Packet::default() },
            &mut datagram,
        );
        session.receive(Micros::from_millis(i64::from(n) * 20), support::party(), &datagram);
    }
    session
}

fn live() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}
