//! Measures the cost of a conference tick: the packets of all members, the tick, and the packets to all
//! members.
//!
//! One iteration is 20 ms of all members, so members per core are members times 20 ms divided by the time of
//! an iteration. After criterion's groups the bench prints how late ticks are on a core with a load of 80 %.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use sidetone_media::codec::{Codec, Encoder};
use sidetone_media::mix::{Formats, Hears, Mix, Seat, SeatKey};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;

/// Number of rooms, members of each, and how many of them talk.
#[derive(Clone, Copy)]
struct Size {
    codec: Codec,
    rooms: usize,
    members: usize,
    speaking: usize,
}

fn mixer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mixer");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for size in sizes() {
        let Size { codec, rooms, members, speaking } = size;
        let who = if speaking == members { "all".into() } else { speaking.to_string() };
        let name = BenchmarkId::new(codec.name(), format!("{rooms}x{members}, {who} speaking"));
        group.throughput(Throughput::Elements((rooms * members) as u64));
        group.bench_function(name, |bencher| {
            let mut bank = Bank::new(size);
            (0..60).for_each(|_| bank.tick());
            bencher.iter(|| bank.tick());
        });
    }
    // 400 rooms without members, and 400 in which all members hear nothing.
    for members in [0, 3] {
        group.throughput(Throughput::Elements(400));
        group.bench_function(format!("400 idle rooms of {members}"), |bencher| {
            let mut bank = Bank::new(Size { codec: Codec::Pcmu, rooms: 400, members, speaking: 0 });
            for mix in &mut bank.mixes {
                for key in 0..members {
                    let nothing = sidetone_media::mix::SeatCommand::Hear(Hears::Nothing);
                    mix.command(SeatKey(key as u64), nothing).unwrap();
                }
            }
            bencher.iter(|| bank.ticks());
        });
    }
    group.finish();
}

fn sizes() -> Vec<Size> {
    let size = |codec, rooms, members, speaking| Size { codec, rooms, members, speaking };
    let mut sizes = Vec::new();
    for codec in [Codec::Pcmu, Codec::Opus] {
        for (rooms, members) in [(1, 1_000), (100, 10)] {
            sizes.extend([1, 3, members].map(|speaking| size(codec, rooms, members, speaking)));
        }
    }
    sizes.extend([100, 300, 3_000].map(|members| size(Codec::Pcmu, 1, members, 3)));
    sizes.push(size(Codec::G722, 1, 1_000, 3));
    sizes
}

/// How late ticks are at a load of 80 % of a core: each begins on the grid, or when the previous one is done.
fn lateness() {
    println!("\nmembers of a room, 3 speaking | a tick (ms), p50 p99 | late at its end (ms), p50 p99");
    for codec in [Codec::Pcmu, Codec::Opus] {
        let one = times(Size { codec, rooms: 1, members: 500, speaking: 3 }, 200);
        let members = (0.8 * 500.0 * 20_000.0 / at(&one, 50).max(1) as f64) as usize;
        let members = members.min(Mix::SEATS_MAX);
        let ticks = times(Size { codec, rooms: 1, members, speaking: 3 }, 500);
        let (mut free_at, mut late) = (0, Vec::new());
        for (n, tick) in ticks.iter().enumerate() {
            let due = n as u64 * 20_000;
            free_at = due.max(free_at) + tick;
            late.push(free_at - due);
        }
        let ms = |us: u64| us as f64 / 1_000.0;
        println!(
            "{:>5} {members:>6} | {:.2} {:.2} | {:.2} {:.2}",
            codec.name(),
            ms(at(&ticks, 50)),
            ms(at(&ticks, 99)),
            ms(at(&late, 50)),
            ms(at(&late, 99))
        );
    }
}

/// The duration of each of `ticks` ticks, in microseconds.
fn times(size: Size, ticks: usize) -> Vec<u64> {
    let mut bank = Bank::new(size);
    (0..60).for_each(|_| bank.tick());
    let time = |_| {
        let begin = Instant::now();
        bank.tick();
        begin.elapsed().as_micros() as u64
    };
    (0..ticks).map(time).collect()
}

fn at(times: &[u64], percent: usize) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() * percent / 100]
}

/// Rooms in the middle of a conversation, and the packets of their members.
struct Bank {
    mixes: Vec<Mix>,
    size: Size,
    voice: Vec<Vec<u8>>,
    noise: Vec<Vec<u8>>,
    round: u32,
}

impl Bank {
    fn new(size: Size) -> Self {
        let mixes = (0..size.rooms).map(|_| room(size)).collect();
        let (voice, noise) = (said(size.codec, 3_000.0), said(size.codec, 8.0));
        Bank { mixes, size, voice, noise, round: 0 }
    }

    /// 20 ms: a packet of every member arrives, the ticks run, and a packet for every member is taken.
    fn tick(&mut self) {
        self.round = self.round.wrapping_add(1);
        let now = Micros(i64::from(self.round) * 20_000);
        let round = self.round as usize;
        for mix in &mut self.mixes {
            for key in 0..self.size.members {
                let said = if key < self.size.speaking { &self.voice } else { &self.noise };
                let payload = &said[(round + key) % said.len()];
                let header = Packet {
                    ssrc: 1,
                    timestamp: self.round.wrapping_mul(self.size.codec.rtp_clock().hz() / 50),
                    payload_len: payload.len() as u32,
                    sequence: self.round as u16,
                    payload_type: 96,
                    marker: false,
                };
                mix.receive(now, SeatKey(key as u64), &RtpPacket { header, payload });
            }
        }
        self.ticks();
    }

    fn ticks(&mut self) {
        let now = Micros(i64::from(self.round) * 20_000 + 5_000);
        for mix in &mut self.mixes {
            while mix.next_tick().is_some_and(|next| next <= now) {
                mix.tick(now);
                while let Some(packet) = mix.poll_packet() {
                    black_box(packet);
                }
            }
            while let Some(event) = mix.poll_event() {
                black_box(event);
            }
        }
    }
}

fn room(size: Size) -> Mix {
    let mut mix = Mix::new();
    for key in 0..size.members as u64 {
        let formats = Formats {
            receive: vec![(96, size.codec)],
            send: (96, size.codec),
            event_receive: Some(101),
            event_send: Some(101),
            noise_receive: vec![13],
            ptime_ms: 20,
            hears: true,
            speaks: true,
        };
        mix.seat(SeatKey(key), Seat { formats, muted: false, hears: Hears::Mix, seed: key }).unwrap();
    }
    mix
}

/// One second of packets: harmonics and noise with this amplitude.
fn said(codec: Codec, amplitude: f64) -> Vec<Vec<u8>> {
    let (mut encoder, rate) = (Encoder::new(codec).unwrap(), codec.sample_rate_hz());
    let mut noise = 1_u32;
    let pcm: Vec<i16> = (0..rate)
        .map(|n| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = std::f64::consts::TAU * f64::from(n) / f64::from(rate);
            let harmonics: f64 = (1..12).map(|k| (at * 140.0 * f64::from(k)).sin() / f64::from(k)).sum();
            (amplitude * (harmonics + f64::from(noise >> 16) / 65_536.0 - 0.5)) as i16
        })
        .collect();
    let encode = |frame: &[i16]| {
        let mut payload = vec![0; 2_000];
        let len = encoder.encode(frame, &mut payload).unwrap();
        payload.truncate(len);
        payload
    };
    pcm.chunks_exact(rate as usize / 50).map(encode).collect()
}

criterion_group!(benches, mixer);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    // Cargo also runs benches as tests: once, without figures.
    if !std::env::args().any(|argument| argument == "--test") {
        lateness();
    }
}
