//! Shared by the media tests: leg descriptions, datagrams, and the location of the shared folder.
#![allow(dead_code, reason = "every test binary uses a part of it")]

pub(crate) mod leg;
pub(crate) mod random;
pub(crate) mod speech;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Payload, PayloadKind};
use sidetone_media::time::ClockRate;

/// The party's media address in most tests.
pub(crate) fn party() -> SocketAddr {
    addr("10.0.0.1:4000")
}

/// A socket address from its text.
pub(crate) fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Port 4000 of a host in 10.0.0.0/24; the party's is number 1.
pub(crate) fn addr_v4(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 4000).into()
}

/// An address from its text.
pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// One negotiated payload type.
pub(crate) fn payload(number: u8, name: &str, kind: PayloadKind, clock_hz: u32) -> Payload {
    let bytes_per_ms = matches!(name, "PCMU" | "PCMA" | "G722").then_some(8);
    let clock = ClockRate::new(clock_hz).unwrap();
    Payload { number, kind, clock, bytes_per_ms, default_ptime_ms: None, name: name.into() }
}

/// A phone on a LAN that sends and receives PCMU.
pub(crate) fn pcmu() -> Description {
    Description {
        remote: Some(party()),
        receive: true,
        send: true,
        payloads: vec![
            payload(0, "PCMU", PayloadKind::Audio, 8_000),
            payload(8, "PCMA", PayloadKind::Audio, 8_000),
            payload(13, "CN", PayloadKind::ComfortNoise, 8_000),
            payload(101, "telephone-event", PayloadKind::Event, 8_000),
        ],
        signalling: Some(ip("10.0.0.1")),
        own_advertised: Some(ip("10.0.0.5")),
        ..Description::default()
    }
}

/// Writes `packet` as RTP with a payload of zeros into `buffer`.
pub(crate) fn write_rtp(packet: &Packet, buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend([0x80, u8::from(packet.marker) << 7 | packet.payload_type]);
    buffer.extend(packet.sequence.to_be_bytes());
    buffer.extend(packet.timestamp.to_be_bytes());
    buffer.extend(packet.ssrc.to_be_bytes());
    buffer.resize(12 + packet.payload_len as usize, 0);
}

/// The shared folder, or `None` with a notice on stderr.
pub(crate) fn shared(what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SIDETONE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join(what);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not there; set SIDETONE_SHARED to the shared folder", path.display());
    None
}
