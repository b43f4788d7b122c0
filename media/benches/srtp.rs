//! Measures the cost of SRTP per packet: 20 ms of G.711, protected and unprotected, with each suite.
//!
//! The streams take turns packet by packet, so that keys and tables of many legs compete for the cache.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "fixed arrays; criterion's macros"
)]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidetone_media::srtp::{Inbound, MasterKey, Outbound, Suite};

fn srtp(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("srtp");
    for legs in [1, 1_000] {
        let rounds = (PACKETS_MIN / legs) as u16;
        group.throughput(Throughput::Elements(u64::from(rounds) * legs as u64));
        for suite in Suite::ALL {
            let key = MasterKey::new(suite, &vec![7; suite.key_bytes() + suite.salt_bytes()]).unwrap();
            let senders = || -> Vec<Outbound> { (0..legs).map(|_| Outbound::new(&key)).collect() };
            group.bench_function(BenchmarkId::new(format!("protect/{}", suite.as_str()), legs), |bencher| {
                bencher.iter_batched_ref(
                    senders,
                    |senders| {
                        for sequence in 0..rounds {
                            let mut buffer = packet(sequence);
                            for sender in &mut *senders {
                                // The content of the buffer does not matter; the header is complete.
                                black_box(sender.protect(&mut buffer, BYTES).unwrap());
                            }
                        }
                    },
                    BatchSize::LargeInput,
                );
            });
            let mut sender = Outbound::new(&key);
            let sealed: Vec<_> = (0..rounds)
                .map(|sequence| {
                    let mut buffer = packet(sequence);
                    let len = sender.protect(&mut buffer, BYTES).unwrap();
                    (buffer, len)
                })
                .collect();
            let receivers = || -> Vec<Inbound> { (0..legs).map(|_| Inbound::new(&key)).collect() };
            group.bench_function(
                BenchmarkId::new(format!("unprotect/{}", suite.as_str()), legs),
                |bencher| {
                    bencher.iter_batched_ref(
                        receivers,
                        |receivers| {
                            for (buffer, len) in &sealed {
                                for receiver in &mut *receivers {
                                    let mut buffer = *buffer;
                                    black_box(receiver.unprotect(&mut buffer[..*len]).unwrap());
                                }
                            }
                        },
                        BatchSize::LargeInput,
                    );
                },
            );
        }
    }
    group.finish();
}

fn packet(sequence: u16) -> [u8; BYTES + 16] {
    let mut packet = [0xd5; BYTES + 16];
    packet[..12].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x11]);
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet
}

/// 20 ms of G.711 with its header.
const BYTES: usize = 172;
const PACKETS_MIN: usize = 20_000;

criterion_group!(benches, srtp);
criterion_main!(benches);
