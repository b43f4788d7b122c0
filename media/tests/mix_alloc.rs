//! No packet and no tick of a mix allocates once its members have joined: from socket to socket.

#![cfg(feature = "net")]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::alloc::System;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use sidetone_media::codec::Codec;
use sidetone_media::mix::{Formats, Gain, Hears, MixId, Seat, SeatCommand};
use sidetone_media::net::{Command, Port, Relay, RelayConfig, RelayIo};
use sidetone_media::session::{Description, Payload, PayloadKind, SessionConfig};
use sidetone_media::time::ClockRate;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A member of mix 1, which lives in worker 1; its home is either worker.
fn member(relay: &Relay, group: u64, codec: (u8, Codec)) -> (UdpSocket, Port) {
    let phone = loop {
        let phone = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        if phone.local_addr().unwrap().port() > 31_999 {
            break phone;
        }
    };
    phone.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let port = relay.open(group, LOCALHOST).unwrap();
    let audio = Payload {
        number: codec.0,
        kind: PayloadKind::Audio,
        clock: ClockRate::HZ_8000,
        bytes_per_ms: Some(8),
        default_ptime_ms: None,
        name: codec.1.name().to_owned(),
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
        receive: vec![codec],
        send: codec,
        event_receive: None,
        event_send: None,
        noise_receive: Vec::new(),
        ptime_ms: 20,
        hears: true,
        speaks: true,
    };
    let seat = Box::new(Seat { formats, muted: false, hears: Hears::Mix, seed: group });
    relay.command(port.id, Command::Describe(Box::new(description))).unwrap();
    relay.command(port.id, Command::Answered).unwrap();
    relay.command(port.id, Command::Join { mix: MixId(1), seat }).unwrap();
    let gain = Gain { decibels: 3, automatic: true };
    relay.command(port.id, Command::Seat(SeatCommand::Gain(gain))).unwrap();
    (phone, port)
}

#[test]
fn a_tick_and_its_packets_allocate_nothing() {
    let config = RelayConfig {
        bind: LOCALHOST,
        ports: 16_000..=31_999,
        workers: 2,
        io: RelayIo::Auto,
        session: SessionConfig::default(),
        seed: u64::from(std::process::id()),
    };
    let relay = Relay::start(config, Arc::new(|| {})).unwrap();
    let members = [
        member(&relay, 0, (0, Codec::Pcmu)),
        member(&relay, 1, (0, Codec::Pcmu)),
        member(&relay, 2, (8, Codec::Pcma)),
        member(&relay, 3, (9, Codec::G722)),
    ];
    let mut packet = [0; 172];
    let mut buffer = [0; 400];
    // A phone sends its next packet after each one it receives; two of them talk, two are silent.
    let mut turn = |seq: u16| {
        for (place, (phone, port)) in members.iter().enumerate() {
            packet[..2].copy_from_slice(&[0x80, [0, 0, 8, 9][place]]);
            packet[2..4].copy_from_slice(&seq.to_be_bytes());
            packet[4..8].copy_from_slice(&(u32::from(seq) * 160).to_be_bytes());
            packet[8..12].copy_from_slice(&(place as u32 + 1).to_be_bytes());
            let silence = [0xff, 0xff, 0xd5, 0x55][place];
            for (at, byte) in packet[12..].iter_mut().enumerate() {
                *byte = if place % 2 == 0 && at % 16 < 8 { 0x92 } else { silence };
            }
            phone.send_to(&packet, port.rtp).unwrap();
        }
        for (phone, _) in &members {
            receive(phone, &mut buffer);
        }
    };
    for seq in 0..150 {
        turn(seq);
    }
    let region = Region::new(ALLOCATOR);
    for seq in 150..300 {
        turn(seq);
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "{change:?}");
    assert!(relay.counters().ticks.total() >= 250);
}

/// Receives a packet. A signal to its thread, perhaps by the end of an io_uring, interrupts it.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> usize {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.unwrap().0,
        }
    }
}
