//! What one received packet costs: reading the header, finding the source, folding the statistics.
//!
//! Legs take turns packet by packet, the worst order for a cache; the clean streams are what most calls are,
//! the lossy ones lose and reorder one packet in a hundred.

#![allow(clippy::indexing_slicing, missing_docs, reason = "fixed arrays; criterion's macros")]

use std::hint::black_box;
use std::net::SocketAddr;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidetone_media::session::{Description, Payload, PayloadKind, Session, SessionConfig};
use sidetone_media::time::{ClockRate, Micros};

fn rtp_receive(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rtp_receive");
    for legs in [1, 1_000, 50_000] {
        let rounds = (PACKETS_MIN / legs).max(10);
        group.throughput(Throughput::Elements((legs * rounds) as u64));
        for (name, impaired) in [("clean", false), ("lossy", true)] {
            group.bench_function(BenchmarkId::new(name, legs), |bencher| {
                let mut bank = Bank::new(legs, impaired);
                bencher.iter_batched(|| (), |()| bank.play(rounds), BatchSize::PerIteration);
            });
        }
    }
    group.finish();
}

/// Legs in mid-call, and the datagram that the network delivers to each of them next.
struct Bank {
    sessions: Vec<Session>,
    datagram: [u8; 172],
    round: u32,
    impaired: bool,
}

impl Bank {
    fn new(legs: usize, impaired: bool) -> Self {
        let mut session = Session::new(SessionConfig::default());
        session.describe(Micros(0), description());
        session.answer(Micros(0));
        let mut datagram = [0xff; 172];
        datagram[..12].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x11]);
        Bank { sessions: vec![session; legs], datagram, round: 0, impaired }
    }

    fn play(&mut self, rounds: usize) {
        let source = source();
        for _ in 0..rounds {
            self.round = self.round.wrapping_add(1);
            let mut number = self.round;
            if self.impaired {
                match number % 100 {
                    // One packet in a hundred is lost, and one overtakes its neighbour.
                    40 => continue,
                    70 => number += 1,
                    71 => number -= 1,
                    _ => {}
                }
            }
            let [_, _, high, low] = number.to_be_bytes();
            self.datagram[2..4].copy_from_slice(&[high, low]);
            self.datagram[4..8].copy_from_slice(&number.wrapping_mul(160).to_be_bytes());
            let now = Micros(i64::from(self.round) * 20_000 + i64::from(self.round % 7) * 300);
            for session in &mut self.sessions {
                black_box(session.receive(now, source, black_box(&self.datagram)));
            }
        }
    }
}

fn description() -> Description {
    let payload = |number, kind, name: &str| Payload {
        number,
        kind,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: Some(8),
        name: name.into(),
    };
    Description {
        remote: Some(source()),
        receive: true,
        send: true,
        payloads: vec![
            payload(0, PayloadKind::Audio, "PCMU"),
            payload(101, PayloadKind::Event, "telephone-event"),
        ],
        ..Description::default()
    }
}

fn source() -> SocketAddr {
    ([192, 0, 2, 1], 4000).into()
}

const PACKETS_MIN: usize = 100_000;

criterion_group!(benches, rtp_receive);
criterion_main!(benches);
