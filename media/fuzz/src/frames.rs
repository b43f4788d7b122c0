//! Writes segments as a capture file: raw IP of both versions, some fragmented, some truncated.

use sidetone_media::pcap::Segment;
use sidetone_media::time::Micros;

use super::tcp::{TRUTH, ends};

/// One segment of the original data.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub at: Micros,
    /// Index of its direction, one of four.
    pub direction: usize,
    /// The sequence number of the direction's first byte.
    pub first: u32,
    /// The offset of its bytes in the direction, and their number.
    pub place: usize,
    pub len: usize,
    /// The number of bytes that the capture truncated.
    pub cut: usize,
    pub acknowledges: Option<u32>,
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    /// Whether it is sent in two IP fragments, if it is long enough and not truncated.
    pub fragments: bool,
}

impl Given {
    pub fn segment(&self) -> Segment<'static> {
        let (source, destination) = ends(self.direction);
        let place = self.first.wrapping_add(self.place as u32);
        Segment {
            source,
            destination,
            sequence: if self.syn { place.wrapping_sub(1) } else { place },
            acknowledges: self.acknowledges,
            syn: self.syn,
            fin: self.fin,
            rst: self.rst,
            payload: &TRUTH[self.place..self.place + self.len - self.cut],
            payload_len: self.len,
        }
    }
}

/// A capture file of the segments.
pub fn file(segments: &[Given]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(number.to_le_bytes());
    }
    for (id, given) in (0_u32..).zip(segments) {
        let tcp = tcp(given);
        // The first fragment holds a multiple of 8 bytes.
        let split = tcp.len() / 16 * 8;
        if given.fragments && given.cut == 0 && split > 0 {
            let pieces = [(0, true, &tcp[..split]), (split, false, &tcp[split..])];
            // Every second packet has its last fragment first.
            let order = if id & 1 == 0 { [0, 1] } else { [1, 0] };
            for piece in order {
                let (offset, more, bytes) = pieces[piece];
                record(&mut file, given.at, &ip(given, id, bytes, Some((offset, more))), 0);
            }
        } else {
            record(&mut file, given.at, &ip(given, id, &tcp, None), given.cut);
        }
    }
    file
}

fn record(file: &mut Vec<u8>, at: Micros, packet: &[u8], cut: usize) {
    let kept = packet.len() - cut;
    let (seconds, micros) = (at.0 / 1_000_000, at.0 % 1_000_000);
    for number in [seconds as u32, micros as u32, kept as u32, packet.len() as u32] {
        file.extend(number.to_le_bytes());
    }
    file.extend(&packet[..kept]);
}

fn tcp(given: &Given) -> Vec<u8> {
    let segment = given.segment();
    let mut bytes = Vec::with_capacity(20 + given.len);
    bytes.extend(segment.source.port().to_be_bytes());
    bytes.extend(segment.destination.port().to_be_bytes());
    bytes.extend(segment.sequence.to_be_bytes());
    bytes.extend(given.acknowledges.unwrap_or(0).to_be_bytes());
    let flags = u8::from(given.fin)
        | u8::from(given.syn) << 1
        | u8::from(given.rst) << 2
        | u8::from(given.acknowledges.is_some()) << 4;
    bytes.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend(&TRUTH[given.place..given.place + given.len]);
    bytes
}

/// The packet around `payload`; `fragment` is its offset, and whether more fragments follow.
fn ip(given: &Given, id: u32, payload: &[u8], fragment: Option<(usize, bool)>) -> Vec<u8> {
    use std::net::IpAddr::{V4, V6};
    let (source, destination) = ends(given.direction);
    let mut packet = Vec::with_capacity(48 + payload.len());
    let (offset, more) = fragment.unwrap_or((0, false));
    match (source.ip(), destination.ip()) {
        (V4(from), V4(to)) => {
            packet.extend([0x45, 0]);
            packet.extend((20 + payload.len() as u16).to_be_bytes());
            packet.extend((id as u16).to_be_bytes());
            packet.extend(((offset as u16 / 8) | (u16::from(more) << 13)).to_be_bytes());
            packet.extend([64, 6, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        (V6(from), V6(to)) => {
            let extension = if fragment.is_some() { 8 } else { 0 };
            packet.extend([0x60, 0, 0, 0]);
            packet.extend((extension + payload.len() as u16).to_be_bytes());
            packet.extend([if fragment.is_some() { 44 } else { 6 }, 64]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            if fragment.is_some() {
                packet.extend([6, 0]);
                packet.extend((offset as u16 | u16::from(more)).to_be_bytes());
                packet.extend(id.to_be_bytes());
            }
        }
        _ => unreachable!("both ends are of one family"),
    }
    packet.extend(payload);
    packet
}
