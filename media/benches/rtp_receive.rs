//! Measures the cost of a received packet: parsing the header, finding the source, updating the statistics.
//!
//! Legs take turns packet by packet, the worst order for a cache. The clean streams are like most calls; the
//! lossy ones lose and reorder one packet in a hundred; for the audio ones the payload is decoded too.
//! `SIDETONE_BENCH_PCAP=FILE` adds the RTP of a capture.

#![allow(clippy::indexing_slicing, clippy::panic, missing_docs, reason = "fixed arrays; criterion's macros")]

use std::collections::HashMap;
use std::hint::black_box;
use std::net::SocketAddr;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidetone_media::pcap::{Content, Records, dissect};
use sidetone_media::rtp::{Datagram, Packet};
use sidetone_media::session::{Description, Payload, PayloadKind, Session, SessionConfig};
use sidetone_media::time::{ClockRate, Micros};

fn rtp_receive(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rtp_receive");
    for legs in [1, 1_000, 50_000] {
        let rounds = (PACKETS_MIN / legs).max(10);
        group.throughput(Throughput::Elements((legs * rounds) as u64));
        for (name, impaired) in [("clean", false), ("lossy", true), ("audio", false)] {
            group.bench_function(BenchmarkId::new(name, legs), |bencher| {
                let mut bank = Bank::new(legs, impaired, name == "audio");
                bencher.iter_batched(|| (), |()| bank.play(rounds), BatchSize::PerIteration);
            });
        }
    }
    if let Some(path) = std::env::var_os("SIDETONE_BENCH_PCAP") {
        let recording = Recording::read(&path);
        let name = BenchmarkId::new("recorded", path.to_string_lossy());
        group.throughput(Throughput::Elements(recording.packets.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(|| recording.legs(), |legs| recording.play(legs), BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// The RTP of a capture, one leg for every source, destination and SSRC.
struct Recording {
    packets: Vec<(Micros, SocketAddr, usize, Vec<u8>)>,
    sources: Vec<SocketAddr>,
}

impl Recording {
    fn read(path: &std::ffi::OsStr) -> Self {
        let file = std::fs::read(path)
            .unwrap_or_else(|error| panic!("SIDETONE_BENCH_PCAP={}: {error}", path.display()));
        let (mut packets, mut sources, mut legs) = (Vec::new(), Vec::new(), HashMap::new());
        for record in Records::new(&file).map_while(Result::ok) {
            let Content::Udp(datagram) = dissect(record.link, record.frame) else { continue };
            if Datagram::classify(datagram.payload) != Datagram::Rtp {
                continue;
            }
            let Ok(packet) = Packet::parse(datagram.payload) else { continue };
            let leg =
                *legs.entry((datagram.source, datagram.destination, packet.ssrc)).or_insert_with(|| {
                    sources.push(datagram.source);
                    sources.len() - 1
                });
            packets.push((record.at, datagram.source, leg, datagram.payload.to_vec()));
        }
        eprintln!("{}: {} RTP packets of {} streams", path.display(), packets.len(), sources.len());
        Recording { packets, sources }
    }

    fn legs(&self) -> Vec<Session> {
        let begin = self.packets.first().map_or(Micros(0), |packet| packet.0);
        let leg = |source: &SocketAddr| {
            let mut session = Session::new(SessionConfig::default());
            let payloads = (0..128).map(|number| payload(number, PayloadKind::Audio, "any")).collect();
            session.describe(begin, Description { remote: Some(*source), payloads, ..description() });
            session.answer(begin);
            session
        };
        self.sources.iter().map(leg).collect()
    }

    fn play(&self, legs: &mut [Session]) {
        for (at, source, leg, datagram) in &self.packets {
            black_box(legs[*leg].receive(*at, *source, datagram));
        }
    }
}

/// Legs in mid-call, and the next datagram for each of them.
struct Bank {
    sessions: Vec<Session>,
    datagram: [u8; 172],
    round: u32,
    impaired: bool,
}

impl Bank {
    fn new(legs: usize, impaired: bool, audio_evidence: bool) -> Self {
        let mut session = Session::new(SessionConfig { audio_evidence, ..SessionConfig::default() });
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
                    // One packet in a hundred is lost, and one overtakes the next.
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

fn payload(number: u8, kind: PayloadKind, name: &str) -> Payload {
    Payload {
        number,
        kind,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: Some(8),
        default_ptime_ms: None,
        name: name.into(),
    }
}

fn source() -> SocketAddr {
    ([192, 0, 2, 1], 4000).into()
}

const PACKETS_MIN: usize = 100_000;

criterion_group!(benches, rtp_receive);
criterion_main!(benches);
