//! Frames per second through the ring and the engine, and the processor time that a paced load takes.
//!
//! A sender on loopback plays the streams of many G.711 calls; both run on this machine, so the sender's own work is
//! part of what is shared. Dropped packets are shown: a rate with drops is not sustainable.
//! Needs CAP_NET_RAW.
#![allow(missing_docs, reason = "a bench has no readers of its documentation")]
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints, and has nothing to measure without its input"
)]
#![allow(clippy::disallowed_methods, reason = "a bench reads clocks")]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use sidetone::tap::ring::{self, Ring, RingOptions};
use sidetone::tap::session::TapSession;
use sidetone_media::time::Micros;

fn main() {
    // `cargo test --benches` only checks that the bench starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    println!("{:>12} {:>12} {:>12} {:>10} {:>8}", "asked pps", "sent pps", "read pps", "dropped", "CPU");
    for rate in [10_000, 50_000, 100_000, 200_000, u64::MAX] {
        measure(rate);
    }
}

/// Sends at a rate for some seconds and reads the packets.
fn measure(rate: u64) {
    let options = RingOptions::default();
    let mut rings = [Ring::open("lo", options, now).expect("packets may be read on lo (CAP_NET_RAW)")];
    let mut session = TapSession::new();
    let (done, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let sender = {
        let (done, sent) = (Arc::clone(&done), Arc::clone(&sent));
        thread::spawn(move || {
            send(rate, &sent);
            done.store(true, Ordering::Release);
        })
    };
    let (begin, cpu) = (Instant::now(), cpu_us());
    let (mut frames, mut dropped, mut idle) = (0_u64, 0, 0);
    // Also reads what the sender left in the ring.
    while idle < 5 {
        ring::wait(&rings, Duration::from_millis(100));
        let read = ring::read(&mut rings, |record| {
            // Other traffic of this machine is not measured.
            frames += u64::from(record.wire_len == WIRE_LEN);
            session.record(record);
        });
        while session.poll(now()).is_some() {}
        idle = if done.load(Ordering::Acquire) && read == 0 { idle + 1 } else { 0 };
    }
    let (cpu_us, elapsed) = (cpu_us() - cpu, begin.elapsed() - Duration::from_millis(500));
    dropped += rings[0].counts().dropped;
    let _ = sender.join();
    let per_second = |count: u64| (count as f64 / elapsed.as_secs_f64()).round();
    let sent = sent.load(Ordering::Relaxed);
    let share = cpu_us as f64 / 10_000.0 / elapsed.as_secs_f64();
    let asked = if rate == u64::MAX { "flood".to_owned() } else { rate.to_string() };
    println!("{asked:>12} {:>12} {:>12} {dropped:>10} {share:>7.1}%", per_second(sent), per_second(frames));
}

/// Streams of packets as G.711 calls have them, one packet of each in turn.
fn send(rate: u64, sent: &AtomicU64) {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let streams = 64;
    let sockets: Vec<UdpSocket> = (0..streams)
        .map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
            socket.connect(sink.local_addr().expect("an address")).expect("a route");
            socket
        })
        .collect();
    let begin = Instant::now();
    let mut packet = [0x55_u8; 172];
    packet[0] = 0x80;
    packet[1] = 0;
    let mut count = 0_u64;
    while begin.elapsed() < TIME {
        let due =
            if rate == u64::MAX { count + 64 } else { begin.elapsed().as_micros() as u64 * rate / 1_000_000 };
        while count < due {
            let stream = (count % streams) as usize;
            let number = count / streams;
            packet[2..4].copy_from_slice(&(number as u16).to_be_bytes());
            packet[4..8].copy_from_slice(&(number as u32 * 160).to_be_bytes());
            packet[8..12].copy_from_slice(&(stream as u32 + 1).to_be_bytes());
            // No socket receives them; it does not matter when a queue of the system is full.
            let _ = sockets.get(stream).map(|socket| socket.send(&packet));
            count += 1;
        }
        if rate != u64::MAX {
            thread::sleep(Duration::from_micros(500));
        }
    }
    sent.store(count, Ordering::Relaxed);
}

/// Processor time of this thread.
fn cpu_us() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the system tells");
    usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
}

fn now() -> Micros {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    Micros(since_epoch.as_micros() as i64)
}

const TIME: Duration = Duration::from_secs(4);
/// Ethernet, IPv4, UDP, RTP and 20 ms of G.711.
const WIRE_LEN: u32 = 14 + 20 + 8 + 172;
