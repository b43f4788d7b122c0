//! One RTP packet in its datagram: the header parsed, the payload in place.

use rtp_rs::RtpReader;

use crate::rtp::{Packet, PacketError};

/// A packet's header and payload, for decoders of audio and telephone events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'a> {
    /// The header's fields.
    pub header: Packet,
    /// The payload without CSRCs, header extension and padding.
    pub payload: &'a [u8],
}

impl<'a> RtpPacket<'a> {
    /// Reads `datagram` (RFC 3550 §5.1).
    ///
    /// # Errors
    /// When the version is not 2, or when CSRCs, extension or padding reach beyond the datagram.
    pub fn parse(datagram: &'a [u8]) -> Result<RtpPacket<'a>, PacketError> {
        let header = Packet::parse(datagram)?;
        let payload = RtpReader::new(datagram)?.payload();
        Ok(RtpPacket { header, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_what_the_header_counts() {
        let header = |first: u8| vec![first, 0x80, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        let with = |first: u8, tail: &[u8]| [header(first), tail.to_vec()].concat();
        type Case<'a> = (&'a str, Vec<u8>, Result<&'a [u8], PacketError>);
        let cases: &[Case<'_>] = &[
            ("plain", with(0x80, &[7, 8]), Ok(&[7, 8])),
            ("empty", with(0x80, &[]), Ok(&[])),
            ("one CSRC", with(0x81, &[0, 0, 0, 9, 7]), Ok(&[7])),
            ("an extension", with(0x90, &[0, 0, 0, 1, 1, 2, 3, 4, 7]), Ok(&[7])),
            ("padding", with(0xa0, &[7, 0, 2]), Ok(&[7])),
            ("short", vec![0x80; 3], Err(PacketError::Truncated)),
        ];
        for (name, datagram, payload) in cases {
            let read = RtpPacket::parse(datagram);
            assert_eq!(read.map(|packet| packet.payload), *payload, "{name}");
            if let Ok(packet) = read {
                assert_eq!(packet.header.payload_len as usize, packet.payload.len(), "{name}");
                assert_eq!(packet.header.payload_in(datagram, datagram.len()), packet.payload, "{name}");
            }
        }
    }
}
