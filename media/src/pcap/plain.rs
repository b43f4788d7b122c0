//! The frame that almost all media traffic consists of, read with one look at its bounds: Ethernet, IPv4 without
//! options, UDP, whole, and version 2 of RTP.

use super::bytes::array;
use super::link_type::LinkType;

/// A UDP datagram in IPv4 that is there as a whole and begins as RTP and RTCP do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainDatagram<'a> {
    /// The source address in the upper, the destination address in the lower half.
    pub addresses: u64,
    /// The source port in the upper, the destination port in the lower half.
    pub ports: u32,
    /// The whole payload; not empty.
    pub payload: &'a [u8],
}

/// Finds the datagram in a frame of the most frequent form; `None` leaves the frame to [`super::dissect`], which
/// says the same of every frame that is taken here.
#[inline]
pub fn dissect_plain(link: LinkType, frame: &[u8]) -> Option<PlainDatagram<'_>> {
    let headers = frame.first_chunk::<HEADERS_LEN>()?;
    // EtherType, version and header length; offset and more-fragments flag; protocol.
    let fragment = u16::from_be_bytes([headers[20], headers[21]]) & 0x3fff;
    let is_plain = link == LinkType::ETHERNET
        && headers[12] == 0x08
        && headers[13] == 0
        && headers[14] == 0x45
        && headers[23] == PROTOCOL_UDP
        && fragment == 0;
    if !is_plain {
        return None;
    }
    let total_len = usize::from(u16::from_be_bytes([headers[16], headers[17]]));
    let udp_len = usize::from(u16::from_be_bytes([headers[38], headers[39]]));
    // A datagram that ends before its packet does, or beyond it, is looked at more closely.
    if udp_len < 8 || total_len < 20 + udp_len {
        return None;
    }
    let payload = frame.get(HEADERS_LEN..14 + 20 + udp_len)?;
    // No tunnel in UDP has such a first byte.
    if payload.first()? & 0xc0 != 0x80 {
        return None;
    }
    Some(PlainDatagram {
        addresses: u64::from_be_bytes(array(headers, 26)?),
        ports: u32::from_be_bytes(array(headers, 34)?),
        payload,
    })
}

/// Ethernet, IPv4 without options, UDP.
const HEADERS_LEN: usize = 14 + 20 + 8;
const PROTOCOL_UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pcap::{Content, dissect};

    /// A frame of an RTP packet with some of its bytes changed, cut to some length.
    fn frame(changes: &[(usize, u8)], len: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 200, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([0x0f, 0xa0, 0x4e, 0x20, 0, 180, 0, 0]);
        frame.extend([0x80; 172]);
        for (place, byte) in changes {
            if let Some(slot) = frame.get_mut(*place) {
                *slot = *byte;
            }
        }
        frame.truncate(len);
        frame
    }

    #[test]
    fn an_rtp_packet_is_plain() {
        let frame = frame(&[], 300);
        let plain = dissect_plain(LinkType::ETHERNET, &frame).unwrap();
        assert_eq!((plain.addresses, plain.ports), (0xc000_0201_c000_0202, 4_000 << 16 | 20_000));
        assert_eq!(plain.payload.len(), 172);
        assert_eq!(dissect_plain(LinkType::RAW, &frame), None);
    }

    proptest! {
        #[test]
        fn what_is_plain_reads_as_the_general_way_reads_it(
            changes in prop::collection::vec((12_usize..44, any::<u8>()), 0..4),
            len in prop_oneof![Just(300_usize), 0_usize..230],
        ) {
            let frame = frame(&changes, len);
            if let Some(plain) = dissect_plain(LinkType::ETHERNET, &frame) {
                let Content::Udp(datagram) = dissect(LinkType::ETHERNET, &frame) else {
                    return Err(TestCaseError::fail("no datagram"));
                };
                prop_assert_eq!(datagram.payload, plain.payload);
                prop_assert_eq!(datagram.payload_len, plain.payload.len());
                let address = |half: u64, port: u32| {
                    std::net::SocketAddr::from(((half as u32).to_be_bytes(), port as u16))
                };
                prop_assert_eq!(datagram.source, address(plain.addresses >> 32, plain.ports >> 16));
                prop_assert_eq!(datagram.destination, address(plain.addresses, plain.ports));
            }
        }
    }
}
