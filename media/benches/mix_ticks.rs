//! Measures how late the ticks of conferences are on real sockets.
//!
//! Every member is a socket that sends 50 packets per second; three members of a room talk. The phones run in
//! this process, so their work is on the same cores. Lines with busy loops run without and with real-time priority of
//! the relay, one after the other. `SIDETONE_BENCH_SECONDS` sets the duration of each line, 10 by default.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench"
)]

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sidetone_media::codec::Codec;
use sidetone_media::mix::{Formats, Hears, MixId, Seat};
use sidetone_media::net::{Command, Port, Relay, RelayConfig, RelayIo, TickCounts};
use sidetone_media::session::{Description, Payload, PayloadKind, SessionConfig};
use sidetone_media::time::ClockRate;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn main() {
    // Cargo also runs benches as tests; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let seconds =
        std::env::var("SIDETONE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    println!(
        "members rooms busy_loops real_time | ticks skipped | p50 p99 p99.9 at most (ms) | worst (ms) | packets \
         that waited 5 ms (‰) | cpu of the worker (%)"
    );
    for (members, rooms, busy_loops) in [
        (30, 1, 0),
        (30, 10, 0),
        (30, 10, 2),
        (30, 10, 4),
        (300, 1, 0),
        (300, 30, 0),
        (300, 30, 2),
        (800, 1, 0),
        (800, 80, 0),
    ] {
        line(members, rooms, busy_loops, false, seconds);
        if busy_loops > 0 {
            line(members, rooms, busy_loops, true, seconds);
        }
    }
}

/// Runs one setting and prints its result.
fn line(members: u64, rooms: u64, busy_loops: usize, real_time: bool, seconds: u64) {
    let config = RelayConfig {
        bind: LOCALHOST,
        ports: 12_000..=31_999,
        workers: 1,
        io: RelayIo::Auto,
        session: SessionConfig::default(),
        seed: u64::from(std::process::id()),
    };
    let relay = Relay::start(config, Arc::new(|| {})).unwrap();
    if real_time && let Err(error) = relay.run_in_real_time() {
        println!("no real-time priority: {error}");
        return;
    }
    let phones: Vec<(UdpSocket, Port)> =
        (0..members).map(|number| member(&relay, number, number % rooms)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let loops: Vec<_> = (0..busy_loops)
        .map(|_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        })
        .collect();
    talk(&phones, rooms, 0, 1);
    let (before, cpu_before) = (relay.counters(), worker_cpu_us());
    talk(&phones, rooms, 50, seconds);
    let (after, cpu_after) = (relay.counters(), worker_cpu_us());
    stop.store(true, Ordering::Relaxed);
    loops.into_iter().for_each(|busy| busy.join().unwrap());
    let late = |share: f64| at_most(&before.ticks, &after.ticks, share);
    println!(
        "{members:7} {rooms:5} {busy_loops:10} {real_time:9} | {:5} {:7} | {:>3} {:>3} {:>5} | {:>5} | {:.1} | {:.1}",
        after.ticks.total() - before.ticks.total(),
        after.mixing.skipped_ticks - before.mixing.skipped_ticks,
        late(0.5),
        late(0.99),
        late(0.999),
        late(1.0),
        (after.waited - before.waited) as f64 * 1_000.0 / (after.received - before.received).max(1) as f64,
        (cpu_after - cpu_before) as f64 / seconds as f64 / 10_000.0,
    );
    relay.shutdown();
}

/// The lateness bound in milliseconds that this share of the ticks met.
fn at_most(before: &TickCounts, after: &TickCounts, share: f64) -> String {
    let total = after.total() - before.total();
    let mut within = 0;
    for ((bound_us, ticks), (_, earlier)) in after.late.iter().zip(before.late) {
        within += ticks - earlier;
        if within as f64 >= total as f64 * share {
            return (bound_us / 1_000).to_string();
        }
    }
    "more".to_owned()
}

/// Sends the packets of every member for `seconds`; the first three members of each room send a tone.
fn talk(phones: &[(UdpSocket, Port)], rooms: u64, first: u64, seconds: u64) {
    let begun = Instant::now();
    let mut buffer = [0; 256];
    for turn in 0..seconds * 50 {
        for (number, (phone, port)) in phones.iter().enumerate() {
            let speaks = (number as u64) / rooms < 3;
            let packet = packet(first + turn, number as u32 + 1, speaks);
            let _ = phone.send_to(&packet, port.rtp);
            while phone.recv(&mut buffer).is_ok() {}
        }
        let next = begun + Duration::from_millis(20 * (turn + 1));
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn packet(turn: u64, ssrc: u32, speaks: bool) -> [u8; 172] {
    let mut packet = [0xff; 172];
    packet[..2].copy_from_slice(&[0x80, 0]);
    packet[2..4].copy_from_slice(&(turn as u16).to_be_bytes());
    packet[4..8].copy_from_slice(&(turn as u32 * 160).to_be_bytes());
    packet[8..12].copy_from_slice(&ssrc.to_be_bytes());
    if speaks {
        for (place, byte) in packet.iter_mut().enumerate().skip(12) {
            *byte = if place % 16 < 8 { 0x92 } else { 0x12 };
        }
    }
    packet
}

fn member(relay: &Relay, number: u64, mix: u64) -> (UdpSocket, Port) {
    let phone = loop {
        let phone = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        if phone.local_addr().unwrap().port() > 31_999 {
            break phone;
        }
    };
    phone.set_nonblocking(true).unwrap();
    let port = relay.open(number, LOCALHOST).unwrap();
    let audio = Payload {
        number: 0,
        kind: PayloadKind::Audio,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: Some(8),
        default_ptime_ms: None,
        name: "PCMU".to_owned(),
    };
    let description = Description {
        remote: Some(phone.local_addr().unwrap()),
        receive: true,
        send: true,
        payloads: vec![audio],
        signalling: Some(LOCALHOST),
        ..Description::default()
    };
    let formats = Formats {
        receive: vec![(0, Codec::Pcmu)],
        send: (0, Codec::Pcmu),
        event_receive: None,
        event_send: None,
        noise_receive: Vec::new(),
        ptime_ms: 20,
        hears: true,
        speaks: true,
    };
    let seat = Box::new(Seat { formats, muted: false, hears: Hears::Mix, seed: number });
    for command in
        [Command::Describe(Box::new(description)), Command::Answered, Command::Join { mix: MixId(mix), seat }]
    {
        // Retries: the queue is longer than the commands of one member, so the worker must empty it first.
        while relay.command(port.id, command.clone()).is_err() {
            thread::yield_now();
        }
    }
    (phone, port)
}

/// CPU time of the worker's thread, in microseconds; 0 when the system does not report it.
fn worker_cpu_us() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_worker = tasks.filter(|task| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "rtp-0")
    });
    of_worker
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|stat| stat.split(' ').next()?.parse::<u64>().ok())
        .sum::<u64>()
        / 1_000
}
