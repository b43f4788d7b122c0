//! A capture under construction: datagrams of two hosts, sorted by time when it is written.

use std::io;
use std::net::SocketAddr;

use sidetone_media::pcap::{LinkType, Writer};
use sidetone_media::time::Micros;

/// The datagrams of one call.
#[derive(Debug)]
pub(super) struct CaptureBuilder {
    frames: Vec<Frame>,
    /// The addresses of the caller and the switch; documentation addresses (RFC 5737).
    pub(super) caller: Host,
    pub(super) switch: Host,
}

#[derive(Debug)]
struct Frame {
    at_us: i64,
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

/// One side's addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) sip: SocketAddr,
    pub(super) rtp: SocketAddr,
    pub(super) rtcp: SocketAddr,
}

/// The kind of a datagram, which decides its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plane {
    Rtcp,
    Rtp,
    Sip,
}

impl CaptureBuilder {
    pub(super) fn new() -> CaptureBuilder {
        CaptureBuilder {
            frames: Vec::new(),
            caller: Host::at([192, 0, 2, 10], 4_000),
            switch: Host::at([192, 0, 2, 20], 20_000),
        }
    }

    /// Adds a datagram that passes at `at_us`, counted from the answer.
    pub(super) fn push(&mut self, at_us: i64, plane: Plane, from_caller: bool, payload: Vec<u8>) {
        let of = |host: &Host| match plane {
            Plane::Rtcp => host.rtcp,
            Plane::Rtp => host.rtp,
            Plane::Sip => host.sip,
        };
        let (caller, switch) = (of(&self.caller), of(&self.switch));
        let (from, to) = if from_caller { (caller, switch) } else { (switch, caller) };
        self.frames.push(Frame { at_us, from, to, payload });
    }

    /// Whether anything but SIP was added.
    pub(super) fn has_media(&self) -> bool {
        self.frames.iter().any(|frame| frame.from.port() != SIP_PORT)
    }

    /// Writes what was added as a capture.
    ///
    /// *Errors*: write errors of `out`.
    pub(super) fn write<W: io::Write>(mut self, out: W) -> io::Result<u64> {
        // A stable sort: of equal times what was added first comes first.
        self.frames.sort_by_key(|frame| frame.at_us);
        let mut writer = Writer::new(out, LinkType::ETHERNET)?;
        for frame in &self.frames {
            writer.write_udp(wall(frame.at_us), frame.from, frame.to, &frame.payload)?;
        }
        writer.finish()?;
        Ok(self.frames.len() as u64)
    }
}

impl Host {
    pub(super) fn at(ip: [u8; 4], port: u16) -> Host {
        Host { sip: (ip, SIP_PORT).into(), rtp: (ip, port).into(), rtcp: (ip, port + 1).into() }
    }
}

/// The capture timestamp for a time counted from the answer.
pub(super) fn wall(at_us: i64) -> Micros {
    Micros(EPOCH_US + at_us)
}

const SIP_PORT: u16 = 5_060;
/// The answer of every call: 2026-01-01, noon. A fixed time gives the same bytes every time.
const EPOCH_US: i64 = 1_767_268_800_000_000;
