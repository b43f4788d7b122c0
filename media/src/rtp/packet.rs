//! One RTP packet's header (RFC 3550 §5.1), and which protocol a datagram on an RTP port belongs to.
//!
//! The crate rtp-rs checks the header. The plain header, which almost every packet has, is parsed here:
//! rtp-rs checks the bounds of each field again, which is a fifth of a packet's cost. A test compares both.

use rtp_rs::{RtpReader, RtpReaderError};

/// The fields of one RTP packet that the statistics use; the payload itself stays in its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Synchronisation source.
    pub ssrc: u32,
    /// Media time of the first sample, in units of the clock rate.
    pub timestamp: u32,
    /// Payload without CSRCs, header extension and padding, in bytes.
    pub payload_len: u32,
    /// Sequence number.
    pub sequence: u16,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Marker bit: in audio, the first packet after silence (RFC 3551 §4.1).
    pub marker: bool,
}

impl Packet {
    /// Reads the header of `datagram` (RFC 3550 §5.1).
    ///
    /// # Errors
    /// When the version is not 2, or when CSRCs, extension or padding reach beyond the datagram.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<Packet, PacketError> {
        match Packet::parse_plain(datagram) {
            Some(packet) => Ok(packet),
            None => Packet::parse_any(datagram),
        }
    }

    /// Parses a datagram that is RTP in its most frequent form; `None` for other forms of RTP and for
    /// everything else.
    #[inline]
    pub(crate) fn parse_frequent(datagram: &[u8]) -> Option<Packet> {
        // The second byte of RTCP (RFC 5761 §4) would be the marker with types 64 to 95.
        Packet::parse_plain(datagram)
            .filter(|packet| !(packet.marker && (64..=95).contains(&packet.payload_type)))
    }

    /// The payload within `datagram`, from which the header was read; a capture may have cut it off.
    pub fn payload_in<'a>(&self, datagram: &'a [u8], datagram_len: usize) -> &'a [u8] {
        let is_whole = datagram.len() == datagram_len;
        let is_padded = is_whole && datagram.first().is_some_and(|first| first & PADDED != 0);
        let padding = if is_padded { datagram.last().copied().map_or(0, usize::from) } else { 0 };
        let end = datagram_len.saturating_sub(padding);
        let begin = end.saturating_sub(self.payload_len as usize);
        datagram.get(begin..end.min(datagram.len())).unwrap_or_default()
    }

    /// Parses a header without CSRCs, extension and padding; `None` for any other header.
    #[inline]
    fn parse_plain(datagram: &[u8]) -> Option<Packet> {
        let (header, payload) = datagram.split_first_chunk::<12>()?;
        let [PLAIN, second, s0, s1, t0, t1, t2, t3, r0, r1, r2, r3] = *header else { return None };
        Some(Packet {
            ssrc: u32::from_be_bytes([r0, r1, r2, r3]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            payload_len: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            sequence: u16::from_be_bytes([s0, s1]),
            payload_type: second & 0x7f,
            marker: second & 0x80 != 0,
        })
    }

    #[cold]
    fn parse_any(datagram: &[u8]) -> Result<Packet, PacketError> {
        let reader = RtpReader::new(datagram)?;
        Ok(Packet {
            ssrc: reader.ssrc(),
            timestamp: reader.timestamp(),
            payload_len: u32::try_from(reader.payload().len()).unwrap_or(u32::MAX),
            sequence: reader.sequence_number().into(),
            payload_type: reader.payload_type(),
            marker: reader.mark(),
        })
    }
}

/// Why a datagram is not an RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The padding length is zero or larger than the bytes after the header.
    #[error("read RTP: impossible padding length")]
    Padding,
    /// The datagram ends inside the header, the CSRC list or the extension.
    #[error("read RTP: the datagram ends inside the header")]
    Truncated,
    /// The version field is not 2.
    #[error("read RTP: the version is not 2")]
    Version,
}

impl From<RtpReaderError> for PacketError {
    fn from(error: RtpReaderError) -> Self {
        match error {
            RtpReaderError::BufferTooShort(_) | RtpReaderError::HeadersTruncated { .. } => {
                PacketError::Truncated
            }
            RtpReaderError::PaddingLengthInvalid(_) => PacketError::Padding,
            RtpReaderError::UnsupportedVersion(_) => PacketError::Version,
        }
    }
}

/// The content of a payload type's packets, according to SDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// Speech or music: the only kind whose timing is measured.
    #[default]
    Audio,
    /// Comfort noise (RFC 3389).
    ComfortNoise,
    /// Telephone events (RFC 4733).
    Event,
    /// Anything else; counted by sequence number, not measured.
    Other,
}

/// The protocols that share an RTP port, distinguished by the first two bytes (RFC 7983 §7, RFC 5761 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// RTCP: version 2 and a packet type of 192 to 223.
    Rtcp,
    /// RTP, still to be checked by [`Packet::parse`].
    Rtp,
    /// STUN, DTLS, ZRTP or TURN: a first byte outside 128 to 191, or an empty datagram.
    Foreign,
}

impl Datagram {
    /// The protocol of `datagram`, which arrived on an RTP port.
    ///
    /// A first byte from 64 to 127 or above 191 is left to [`Packet::parse`], whose version check rejects it.
    #[inline]
    pub fn classify(datagram: &[u8]) -> Datagram {
        match *datagram {
            [] | [0..=63, ..] => Datagram::Foreign,
            [128..=191, 192..=223, ..] => Datagram::Rtcp,
            _ => Datagram::Rtp,
        }
    }
}

/// The first byte of a header with version 2 and no other bits.
const PLAIN: u8 = 0x80;
/// The bit of the first byte that announces padding.
const PADDED: u8 = 0x20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_plain_header_reads_as_rtp_rs_reads_it(
            first in prop_oneof![Just(0x80_u8), any::<u8>()],
            rest in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let datagram = [vec![first], rest].concat();
            let plain = Packet::parse_plain(&datagram);
            let any = Packet::parse_any(&datagram);
            prop_assert_eq!(plain.is_some(), first == 0x80 && datagram.len() >= 12);
            if let Some(plain) = plain {
                prop_assert_eq!(Ok(plain), any);
            }
            prop_assert_eq!(Packet::parse(&datagram), any);
        }
    }

    #[test]
    fn headers_are_read() {
        let mut datagram = vec![0x80, 0x80, 0x12, 0x34, 0, 0, 0, 160, 0, 0, 0x11, 0x11];
        datagram.extend([0xff; 160]);
        let packet = Packet::parse(&datagram).unwrap();
        let expected = Packet {
            ssrc: 0x1111,
            timestamp: 160,
            payload_len: 160,
            sequence: 0x1234,
            payload_type: 0,
            marker: true,
        };
        assert_eq!(packet, expected);
    }

    #[test]
    fn lengths_are_checked() {
        let header = |first: u8| vec![first, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        let with = |first: u8, tail: &[u8]| [header(first), tail.to_vec()].concat();
        let cases: &[(&str, Vec<u8>, Result<u32, PacketError>)] = &[
            ("empty", vec![], Err(PacketError::Truncated)),
            ("eleven bytes", header(0x80)[..11].to_vec(), Err(PacketError::Truncated)),
            ("no payload", header(0x80), Ok(0)),
            ("version 1", with(0x40, &[1]), Err(PacketError::Version)),
            ("version 3", with(0xc0, &[1]), Err(PacketError::Version)),
            ("two CSRCs, one there", with(0x82, &[0; 4]), Err(PacketError::Truncated)),
            ("two CSRCs and a byte", with(0x82, &[0; 9]), Ok(1)),
            ("extension beyond the end", with(0x90, &[0, 0, 0xff, 0xff, 1]), Err(PacketError::Truncated)),
            ("extension of one word", with(0x90, &[0, 0, 0, 1, 1, 2, 3, 4, 5]), Ok(1)),
            ("padding of zero", with(0xa0, &[1, 0]), Err(PacketError::Padding)),
            ("padding too long", with(0xa0, &[1, 3]), Err(PacketError::Padding)),
            ("padding only", with(0xa0, &[0, 2]), Ok(0)),
            ("padding of one", with(0xa0, &[9, 1]), Ok(1)),
            ("padding flag, nothing there", header(0xa0), Err(PacketError::Truncated)),
        ];
        for (name, datagram, expected) in cases {
            assert_eq!(Packet::parse(datagram).map(|packet| packet.payload_len), *expected, "{name}");
        }
    }

    #[test]
    fn protocols_are_told_apart() {
        let cases: &[(&str, &[u8], Datagram)] = &[
            ("nothing", &[], Datagram::Foreign),
            ("STUN", &[0, 1], Datagram::Foreign),
            ("DTLS", &[22, 254], Datagram::Foreign),
            ("RTP PCMU", &[0x80, 0], Datagram::Rtp),
            ("RTP marker and PT 101", &[0x80, 0xe5], Datagram::Rtp),
            ("RTCP SR", &[0x80, 200], Datagram::Rtcp),
            ("RTCP of the lowest type", &[0x81, 192], Datagram::Rtcp),
            ("RTCP of the highest type", &[0x81, 223], Datagram::Rtcp),
            ("marker and PT 63", &[0x80, 191], Datagram::Rtp),
        ];
        for (name, datagram, expected) in cases {
            assert_eq!(Datagram::classify(datagram), *expected, "{name}");
        }
    }
}
