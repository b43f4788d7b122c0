//! HEP version 3 packets, as a Homer server receives them (HEP3 specification, revision 37,
//! github.com/sipcapture/HEP).
//!
//! ```text
//! "HEP3" | length u16 | chunks: vendor u16 = 0 | type u16 | length u16, with these six bytes | value
//! ```

use std::net::{IpAddr, SocketAddr};

use sidetone_model::time::Timestamp;

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Figures of a leg as JSON at the end of its call: "MOS full report" (0x22).
    FullReport,
    /// Figures of a leg as JSON during its call: "MOS short report" (0x23).
    ShortReport,
    /// RTCP (RFC 3550 §6), not encrypted (0x05).
    Rtcp,
    /// A SIP message.
    Sip,
}

/// A packet to be sent to a Homer server.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'p> {
    /// The type of the payload.
    pub kind: Kind,
    /// When it was received, sent or measured.
    pub at: Timestamp,
    /// The sender of the message, or of the media.
    pub source: SocketAddr,
    /// Its receiver.
    pub destination: SocketAddr,
    /// Whether it was sent over UDP; otherwise over TCP, or a protocol over TCP.
    pub is_udp: bool,
    /// The Call-ID of the call; empty for none.
    pub correlation: &'p str,
    /// The message or the JSON; cut if it is longer than a datagram allows.
    pub payload: &'p [u8],
}

impl Packet<'_> {
    /// Returns the encoded packet, with the number of the capture agent and its password, if there is one.
    pub fn encode(&self, capture_id: u32, password: &str) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(FIXED_BYTES + self.payload.len().min(PAYLOAD_MAX) + self.correlation.len());
        out.extend_from_slice(b"HEP3\0\0");
        let source = canonical(self.source);
        let (source, destination) = aligned(source, canonical(self.destination));
        chunk(&mut out, IP_FAMILY, &[if source.is_ipv4() { AF_INET } else { AF_INET6 }]);
        chunk(&mut out, IP_PROTOCOL, &[if self.is_udp { UDP } else { TCP }]);
        for (address, v4, v6) in
            [(source, SOURCE_V4, SOURCE_V6), (destination, DESTINATION_V4, DESTINATION_V6)]
        {
            match address.ip() {
                IpAddr::V4(ip) => chunk(&mut out, v4, &ip.octets()),
                IpAddr::V6(ip) => chunk(&mut out, v6, &ip.octets()),
            }
        }
        chunk(&mut out, SOURCE_PORT, &source.port().to_be_bytes());
        chunk(&mut out, DESTINATION_PORT, &destination.port().to_be_bytes());
        let us = self.at.as_micros().max(0);
        let seconds = u32::try_from(us / 1_000_000).unwrap_or(u32::MAX);
        chunk(&mut out, SECONDS, &seconds.to_be_bytes());
        chunk(&mut out, MICROSECONDS, &u32::try_from(us % 1_000_000).unwrap_or_default().to_be_bytes());
        chunk(&mut out, PROTOCOL_TYPE, &[self.kind.number()]);
        chunk(&mut out, CAPTURE_ID, &capture_id.to_be_bytes());
        for (kind, text) in [(PASSWORD, password), (CORRELATION_ID, self.correlation)] {
            if !text.is_empty() {
                chunk(&mut out, kind, text.as_bytes().get(..TEXT_MAX).unwrap_or(text.as_bytes()));
            }
        }
        chunk(&mut out, PAYLOAD, self.payload.get(..PAYLOAD_MAX).unwrap_or(self.payload));
        let len = u16::try_from(out.len()).unwrap_or(u16::MAX).to_be_bytes();
        if let Some(place) = out.get_mut(4..6) {
            place.copy_from_slice(&len);
        }
        out
    }
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Kind::FullReport => 0x22,
            Kind::ShortReport => 0x23,
            Kind::Rtcp => 0x05,
            Kind::Sip => 0x01,
        }
    }
}

fn chunk(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(value.len() + CHUNK_HEAD).unwrap_or(u16::MAX);
    out.extend_from_slice(&0_u16.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(value);
}

/// An IPv4 address in its IPv4 form.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Both addresses as IPv6 unless both are IPv4: a packet has one address family.
fn aligned(source: SocketAddr, destination: SocketAddr) -> (SocketAddr, SocketAddr) {
    if source.is_ipv4() == destination.is_ipv4() {
        return (source, destination);
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    (mapped(source), mapped(destination))
}

const IP_FAMILY: u16 = 0x01;
const IP_PROTOCOL: u16 = 0x02;
const SOURCE_V4: u16 = 0x03;
const DESTINATION_V4: u16 = 0x04;
const SOURCE_V6: u16 = 0x05;
const DESTINATION_V6: u16 = 0x06;
const SOURCE_PORT: u16 = 0x07;
const DESTINATION_PORT: u16 = 0x08;
const SECONDS: u16 = 0x09;
const MICROSECONDS: u16 = 0x0a;
const PROTOCOL_TYPE: u16 = 0x0b;
const CAPTURE_ID: u16 = 0x0c;
const PASSWORD: u16 = 0x0e;
const PAYLOAD: u16 = 0x0f;
const CORRELATION_ID: u16 = 0x11;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// Bytes of a chunk before its value.
const CHUNK_HEAD: usize = 6;
/// More than all chunks except the payload and the correlation take.
const FIXED_BYTES: usize = 256;
/// The most bytes of a payload, so that a packet fits in a datagram.
const PAYLOAD_MAX: usize = 60_000;
/// The most bytes of a password or a correlation.
const TEXT_MAX: usize = 512;

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The chunks of a packet by their types; `None` for other bytes.
    pub(crate) fn decode(packet: &[u8]) -> Option<BTreeMap<u16, Vec<u8>>> {
        let rest = packet.strip_prefix(b"HEP3")?;
        let number =
            |at: usize, bytes: &[u8]| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        if usize::from(number(0, rest)?) != packet.len() {
            return None;
        }
        let (mut rest, mut chunks) = (rest.get(2..)?, BTreeMap::new());
        while !rest.is_empty() {
            let (vendor, kind, len) = (number(0, rest)?, number(2, rest)?, usize::from(number(4, rest)?));
            if vendor != 0 || chunks.insert(kind, rest.get(CHUNK_HEAD..len)?.to_vec()).is_some() {
                return None;
            }
            rest = rest.get(len..)?;
        }
        Some(chunks)
    }

    fn packet<'p>(source: &str, destination: &str, payload: &'p [u8]) -> Packet<'p> {
        Packet {
            kind: Kind::Sip,
            at: Timestamp::from_micros(1_790_000_000_123_456),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            is_udp: true,
            correlation: "abc@d",
            payload,
        }
    }

    #[test]
    fn a_packet_has_the_chunks_of_the_specification() {
        let encoded = packet("192.0.2.1:5060", "198.51.100.2:5080", b"BYE").encode(2_001, "secret");
        let chunks = decode(&encoded).unwrap();
        let expected: [(u16, &[u8]); 14] = [
            (1, &[2]),
            (2, &[17]),
            (3, &[192, 0, 2, 1]),
            (4, &[198, 51, 100, 2]),
            (7, &[0x13, 0xc4]),
            (8, &[0x13, 0xd8]),
            (9, &1_790_000_000_u32.to_be_bytes()),
            (10, &123_456_u32.to_be_bytes()),
            (11, &[1]),
            (12, &[0, 0, 7, 0xd1]),
            (14, b"secret"),
            (15, b"BYE"),
            (17, b"abc@d"),
            (18, b""),
        ];
        let expected: BTreeMap<u16, Vec<u8>> = expected
            .into_iter()
            .filter(|(kind, _)| *kind != 18)
            .map(|(kind, value)| (kind, value.to_vec()))
            .collect();
        assert_eq!(chunks, expected);
    }

    #[test]
    fn addresses_of_two_families_are_of_the_wider_one() {
        let chunks = decode(&packet("[::ffff:192.0.2.1]:1", "[2001:db8::1]:2", b"").encode(1, "")).unwrap();
        assert_eq!((chunks[&1][0], chunks[&5][10..].to_vec()), (10, vec![255, 255, 192, 0, 2, 1]));
        assert!(!chunks.contains_key(&14), "no password");
        let chunks = decode(&packet("[::ffff:192.0.2.1]:1", "192.0.2.2:2", b"").encode(1, "")).unwrap();
        assert_eq!((chunks[&1][0], chunks[&3].clone()), (2, vec![192, 0, 2, 1]));
        let large = vec![b'x'; 70_000];
        assert_eq!(
            decode(&packet("[::1]:1", "[::1]:2", &large).encode(1, "")).unwrap()[&15].len(),
            PAYLOAD_MAX
        );
    }

    proptest! {
        #[test]
        fn fuzz_what_is_encoded_is_decoded(payload in proptest::collection::vec(any::<u8>(), 0..2_000),
                                           password in "[ -~]{0,40}", capture_id in any::<u32>()) {
            let chunks = decode(&packet("192.0.2.1:1", "192.0.2.2:2", &payload).encode(capture_id, &password)).unwrap();
            prop_assert_eq!(&chunks[&15], &payload);
            prop_assert_eq!(chunks.get(&14).cloned().unwrap_or_default(), password.into_bytes());
        }
    }
}
