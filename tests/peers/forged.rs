//! A flood of forged SRTP packets at the ports of a call: both phones hear each other, and the call has its record.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::ports;
use crate::peers::baresip::Setup;
use crate::peers::engine::{Engine, Start};
use crate::peers::peer::{self, Peer};
use crate::peers::programs::{assert_good, hear_each_other};
use crate::peers::tell;
use crate::peers::turn;

#[test]
fn ten_thousand_forged_packets_a_second_cost_no_call() {
    let Some(_turn) = turn() else { return };
    let start = Start { calls: 4, directory: peer::DIRECTORY, srtp: "required", ..Start::default() };
    let mut engine = Engine::run(&start);
    let phone = |number: &'static str| {
        let setup = Setup::new(number, peer::phone(number).0, "").over(&engine, "tls").srtp("srtp-mand");
        Peer::register_baresip(&engine, setup)
    };
    let (mut from, mut to) = (phone("1001"), phone("1002"));
    from.call("1002");
    to.answer();
    hear_each_other(&mut from, &mut to);
    let legs: Vec<u16> = engine.media_ports().step_by(2).filter(|port| ports::is_bound(*port)).collect();
    assert!(legs.len() >= 2, "the ports of two legs: {legs:?}");

    let over = AtomicBool::new(false);
    let (sent, lasted) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&legs, &over));
        // Each recording grows by a second of new audio before it is judged.
        for _ in 0..2 {
            hear_each_other(&mut from, &mut to);
        }
        over.store(true, Ordering::Relaxed);
        flood.join().unwrap()
    });
    from.hang_up();
    to.released();
    let record = engine.records(1).remove(0);
    assert_good(&record);
    let uuid = record["call_uuid"].as_str().unwrap();
    let quality = engine.get(&format!("/api/v1/cdrs/{uuid}/quality"));
    let failed: Vec<u64> =
        quality["legs"].as_array().unwrap().iter().map(|leg| count_of(leg, "srtp_failed")).collect();
    assert!(failed.len() == 2 && failed.iter().all(|count| *count > 1_000), "{failed:?}: {quality:#}");
    tell(&format!("forged SRTP: {sent} packets in {lasted:?}, not authenticated: {failed:?}"));
}

/// The number of that name anywhere in a leg's figures; 0 where there is none.
fn count_of(value: &Value, name: &str) -> u64 {
    match value {
        Value::Object(fields) => match fields.get(name).and_then(Value::as_u64) {
            Some(count) => count,
            None => fields.values().map(|field| count_of(field, name)).max().unwrap_or(0),
        },
        Value::Array(items) => items.iter().map(|item| count_of(item, name)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Sends forged packets to these ports in turn until it is stopped; returns how many, and the duration.
fn flood(legs: &[u16], over: &AtomicBool) -> (u32, Duration) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let began = Instant::now();
    let mut sent: u32 = 0;
    // A payload of 20 ms with a tag of 80 bits, all random.
    let mut packet = [0x5a_u8; 12 + 160 + 10];
    packet[..12].copy_from_slice(&[0x80, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x46, 0x0d, 0x01]);
    while !over.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * PER_SECOND) as u32;
        while sent < due {
            packet[2..4].copy_from_slice(&(sent as u16).to_be_bytes());
            packet[8..12].copy_from_slice(&(sent % 7).to_be_bytes());
            // A port that was closed refuses the packet, and the next send returns that error.
            let _ = socket.send_to(&packet, ("127.0.0.1", legs[sent as usize % legs.len()]));
            sent += 1;
        }
        std::thread::park_timeout(PAUSE);
    }
    (sent, began.elapsed())
}

const PER_SECOND: f64 = 10_000.0;
const PAUSE: Duration = Duration::from_millis(5);
