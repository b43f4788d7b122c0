//! The plain header as it is in a datagram, for comparison as a whole (RFC 3550 §5.1).

use crate::rtp::Packet;

/// The twelve bytes of a header without CSRCs, extension and padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub(crate) ssrc: u32,
    pub(crate) timestamp: u32,
    pub(crate) sequence: u16,
    /// Version, marker and payload type.
    types: u16,
}

impl Header {
    /// The first twelve bytes of `datagram`, unchecked, and the number of bytes after them; `None` for fewer.
    #[inline(always)]
    pub fn split(datagram: &[u8]) -> Option<(Header, usize)> {
        let (header, rest) = datagram.split_first_chunk::<12>()?;
        let [version, kind, s0, s1, t0, t1, t2, t3, r0, r1, r2, r3] = *header;
        let header = Header {
            ssrc: u32::from_be_bytes([r0, r1, r2, r3]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            sequence: u16::from_be_bytes([s0, s1]),
            types: u16::from_be_bytes([version, kind]),
        };
        Some((header, rest.len()))
    }

    /// Synchronisation source.
    #[inline(always)]
    pub const fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Whether the datagram has no CSRCs, extension and padding.
    #[inline(always)]
    pub const fn is_plain(&self) -> bool {
        self.types & 0xff00 == VERSION_2
    }

    /// The header of the next packet, whose timestamp is `step` higher.
    #[inline(always)]
    pub(crate) fn after(self, step: u16) -> Header {
        let sequence = self.sequence.wrapping_add(1);
        Header { sequence, timestamp: self.timestamp.wrapping_add(step.into()), ..self }
    }

    /// The header of the packet `count` packets before this one.
    #[inline]
    pub(crate) fn before(self, count: u8, step: u16) -> Header {
        let back = u32::from(count) * u32::from(step);
        let sequence = self.sequence.wrapping_sub(count.into());
        Header { sequence, timestamp: self.timestamp.wrapping_sub(back), ..self }
    }

    /// The packet with this header, which is a plain one, and a payload of this length.
    pub fn packet(self, payload_len: u16) -> Packet {
        let Header { ssrc, timestamp, sequence, types } = self;
        let (payload_type, marker) = ((types & 0x7f) as u8, types & 0x80 != 0);
        Packet { ssrc, timestamp, payload_len: payload_len.into(), sequence, payload_type, marker }
    }
}

impl Packet {
    /// The plain header with the same fields.
    #[inline(always)]
    pub fn header(&self) -> Header {
        let kind = u16::from(self.marker) << 7 | u16::from(self.payload_type & 0x7f);
        Header {
            ssrc: self.ssrc,
            timestamp: self.timestamp,
            sequence: self.sequence,
            types: VERSION_2 | kind,
        }
    }
}

/// The first byte of a plain header, in the upper half.
const VERSION_2: u16 = 0x80 << 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_header_is_that_of_the_next_packet() {
        let packet = Packet {
            ssrc: 0x1111,
            timestamp: u32::MAX - 100,
            payload_len: 160,
            sequence: u16::MAX,
            payload_type: 101,
            marker: true,
        };
        let next = Packet { sequence: 0, timestamp: 59, ..packet };
        assert_eq!(packet.header().after(160), next.header());
        assert_eq!(next.header().before(1, 160), packet.header());
        assert_eq!(next.header().before(0, 160), next.header());
        assert_eq!(packet.header().packet(160), packet);
        assert_eq!(Packet { marker: false, ..next }.header().packet(160), Packet { marker: false, ..next });
    }

    #[test]
    fn a_header_is_what_the_datagram_says() {
        let mut datagram = vec![0x80, 0x80, 0x12, 0x34, 0, 0, 0, 160, 0, 0, 0x11, 0x11];
        assert_eq!(Header::split(&datagram[..11]), None);
        datagram.extend([0xff; 160]);
        let packet = Packet::parse(&datagram).unwrap();
        assert_eq!(Header::split(&datagram), Some((packet.header(), 160)));
        assert!(packet.header().is_plain());
        for first in [0x81, 0x90, 0xa0, 0x40] {
            datagram[0] = first;
            let (header, _) = Header::split(&datagram).unwrap();
            assert!(header != packet.header() && !header.is_plain(), "another form");
        }
    }
}
