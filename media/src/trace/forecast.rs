//! Predicts the next record, assuming that nothing changes. Writer and reader make the same prediction, so
//! only differences need bytes.

use std::net::SocketAddr;

use super::bytes::{Cursor, put_address, put_signed, put_varint};
use crate::rtp::Packet;
use crate::time::Micros;

/// State of the prediction after the last records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forecast {
    /// The time of the last record of any kind.
    last: Micros,
    rtp: Pace,
    sent: Pace,
    packet: Packet,
    /// Timestamp increment per packet.
    step: u32,
    source: Option<SocketAddr>,
    to: Option<SocketAddr>,
}

/// The arrival of the last packet, and the gap before it.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    at: Micros,
    gap_us: i64,
}

impl Pace {
    #[inline]
    fn surprise(&mut self, at: Micros) -> i64 {
        let gap_us = at.0.wrapping_sub(self.at.0);
        let surprise = gap_us.wrapping_sub(self.gap_us);
        *self = Pace { at, gap_us };
        surprise
    }

    fn next(&mut self, surprise: i64) -> Micros {
        let gap_us = self.gap_us.wrapping_add(surprise);
        let at = Micros(self.at.0.wrapping_add(gap_us));
        *self = Pace { at, gap_us };
        at
    }
}

impl Forecast {
    /// Appends a received packet.
    #[inline]
    pub(super) fn put_rtp(&mut self, out: &mut Vec<u8>, at: Micros, source: SocketAddr, packet: &Packet) {
        let expected = self.expected(packet.sequence);
        let mut tag = RTP;
        let tag_place = out.len();
        out.push(0);
        put_signed(out, self.rtp.surprise(at));
        if packet.sequence != expected.sequence {
            tag |= SEQUENCE;
            out.extend_from_slice(&packet.sequence.to_be_bytes());
        }
        if packet.timestamp != expected.timestamp {
            tag |= TIMESTAMP;
            out.extend_from_slice(&packet.timestamp.to_be_bytes());
        }
        if packet.ssrc != expected.ssrc {
            tag |= SSRC;
            out.extend_from_slice(&packet.ssrc.to_be_bytes());
        }
        if packet.marker || packet.payload_type != expected.payload_type {
            tag |= PAYLOAD_TYPE;
            out.push(u8::from(packet.marker) << 7 | packet.payload_type & 0x7f);
        }
        if packet.payload_len != expected.payload_len {
            tag |= LENGTH;
            put_varint(out, packet.payload_len.into());
        }
        if self.source != Some(source) {
            tag |= SOURCE;
            put_address(out, source);
        }
        if let Some(place) = out.get_mut(tag_place) {
            *place = tag;
        }
        self.note(at, source, packet);
    }

    /// Reads the packet whose record begins with `tag`.
    pub(super) fn rtp(&mut self, tag: u8, cursor: &mut Cursor<'_>) -> Option<(Micros, SocketAddr, Packet)> {
        let at = self.rtp.next(cursor.signed()?);
        let mut sequence = self.packet.sequence.wrapping_add(1);
        if tag & SEQUENCE != 0 {
            sequence = u16::from_be_bytes(cursor.array()?);
        }
        let mut packet = self.expected(sequence);
        packet.sequence = sequence;
        if tag & TIMESTAMP != 0 {
            packet.timestamp = u32::from_be_bytes(cursor.array()?);
        }
        if tag & SSRC != 0 {
            packet.ssrc = u32::from_be_bytes(cursor.array()?);
        }
        if tag & PAYLOAD_TYPE != 0 {
            let octet = cursor.byte()?;
            packet.marker = octet & 0x80 != 0;
            packet.payload_type = octet & 0x7f;
        }
        if tag & LENGTH != 0 {
            packet.payload_len = cursor.small()?;
        }
        let source = if tag & SOURCE != 0 { cursor.address()? } else { self.source? };
        self.note(at, source, &packet);
        Some((at, source, packet))
    }

    /// Appends a record of sent packets.
    #[inline]
    pub(super) fn put_sent(
        &mut self,
        out: &mut Vec<u8>,
        tags: (u8, u8),
        at: Micros,
        packets: u32,
        to: SocketAddr,
    ) {
        let (one, many) = tags;
        let plain = packets == 1 && self.to == Some(to);
        out.push(if plain { one } else { many });
        put_signed(out, self.sent.surprise(at));
        if !plain {
            put_varint(out, packets.into());
            put_address(out, to);
        }
        self.to = Some(to);
        self.last = at;
    }

    /// Reads a record of sent packets; `plain` means one packet to the last destination.
    pub(super) fn sent(&mut self, plain: bool, cursor: &mut Cursor<'_>) -> Option<(Micros, u32, SocketAddr)> {
        let at = self.sent.next(cursor.signed()?);
        let (packets, to) = if plain { (1, self.to?) } else { (cursor.small()?, cursor.address()?) };
        self.to = Some(to);
        self.last = at;
        Some((at, packets, to))
    }

    /// Appends the time of another record.
    pub(super) fn put_time(&mut self, out: &mut Vec<u8>, at: Micros) {
        put_signed(out, at.0.wrapping_sub(self.last.0));
        self.last = at;
    }

    /// Reads the time of another record.
    pub(super) fn time(&mut self, cursor: &mut Cursor<'_>) -> Option<Micros> {
        self.last = Micros(self.last.0.wrapping_add(cursor.signed()?));
        Some(self.last)
    }

    /// The packet with this number, if the stream continues unchanged.
    #[inline]
    fn expected(&self, sequence: u16) -> Packet {
        let ahead = sequence.wrapping_sub(self.packet.sequence).cast_signed();
        let ahead = i32::from(ahead).cast_unsigned();
        Packet {
            sequence: self.packet.sequence.wrapping_add(1),
            timestamp: self.packet.timestamp.wrapping_add(self.step.wrapping_mul(ahead)),
            marker: false,
            ..self.packet
        }
    }

    #[inline]
    fn note(&mut self, at: Micros, source: SocketAddr, packet: &Packet) {
        if packet.sequence == self.packet.sequence.wrapping_add(1) {
            self.step = packet.timestamp.wrapping_sub(self.packet.timestamp);
        }
        self.packet = *packet;
        self.source = Some(source);
        self.last = at;
    }
}

/// The top bit of a record's first byte means an RTP packet; the other bits mark differences from the
/// prediction.
pub(super) const RTP: u8 = 0x80;
/// Never set in a record: a packet's record with this bit is damaged.
pub(super) const RTP_UNUSED: u8 = 0x40;
const SEQUENCE: u8 = 0x01;
const TIMESTAMP: u8 = 0x02;
const SSRC: u8 = 0x04;
const PAYLOAD_TYPE: u8 = 0x08;
const LENGTH: u8 = 0x10;
const SOURCE: u8 = 0x20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_costs_three_bytes_a_packet() {
        let (mut forecast, mut out) = (Forecast::default(), Vec::new());
        let source = ([192, 0, 2, 1], 4000).into();
        let mut sizes = Vec::new();
        for n in 0..100_u16 {
            let packet = Packet {
                ssrc: 7,
                timestamp: 160 * u32::from(n) + 99,
                payload_len: 160,
                sequence: n.wrapping_add(65_500),
                ..Packet::default()
            };
            let jitter_us = i64::from(n % 7) * 300;
            let before = out.len();
            if n % 10 != 5 {
                forecast.put_rtp(&mut out, Micros(i64::from(n) * 20_000 + jitter_us), source, &packet);
                sizes.push(out.len() - before);
            }
        }
        assert!(sizes[2..].iter().all(|size| *size <= 6), "{sizes:?}");
        assert!(sizes[2..].iter().sum::<usize>() <= 87 * 4, "{sizes:?}");
    }
}
