//! A fast path for the most frequent frame of media traffic, with one bounds check: Ethernet, IPv4 without
//! options, UDP, complete, and version 2 of RTP.

use super::bytes::array;
use super::link_type::LinkType;

/// A complete UDP datagram in IPv4 that begins like RTP or RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainDatagram<'a> {
    /// The source address in the upper half, the destination address in the lower half.
    pub addresses: u64,
    /// The source port in the upper half, the destination port in the lower half.
    pub ports: u32,
    /// The complete payload; not empty.
    pub payload: &'a [u8],
}

/// Finds the datagram in a frame of the most frequent form. For other frames it returns `None`, and the
/// caller uses [`super::dissect`], which gives the same result for every frame that is accepted here.
#[inline]
pub fn dissect_plain(link: LinkType, frame: &[u8]) -> Option<PlainDatagram<'_>> {
    let headers = frame.first_chunk::<HEADERS_LEN>()?;
    // EtherType, version and header length; offset, more-fragments flag and protocol.
    let kind = u32::from_be_bytes(array(headers, 12)?) & 0xffff_ff00;
    let content = u32::from_be_bytes(array(headers, 20)?) & 0x3fff_00ff;
    if link != LinkType::ETHERNET || kind != IPV4_WITHOUT_OPTIONS || content != WHOLE_UDP {
        return None;
    }
    let total_len = usize::from(u16::from_be_bytes([headers[16], headers[17]]));
    let udp_len = usize::from(u16::from_be_bytes([headers[38], headers[39]]));
    // A datagram whose length does not match its packet is left to the general path.
    if udp_len < 8 || total_len < 20 + udp_len {
        return None;
    }
    let payload = frame.get(HEADERS_LEN..14 + 20 + udp_len)?;
    // No tunnel in UDP begins with such a byte.
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
/// EtherType 0x0800, version 4, five words of header.
const IPV4_WITHOUT_OPTIONS: u32 = 0x0800_4500;
/// No fragment, protocol 17.
const WHOLE_UDP: u32 = 17;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pcap::{Content, dissect};

    /// A frame with an RTP packet, with some bytes changed, cut to a length.
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
