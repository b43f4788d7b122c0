//! From a frame to its UDP datagram: link layers, VLAN tags, IPv4, IPv6 and its extension headers.
//!
//! Checksums are not verified: captures taken on the sending host hold frames before the network card has
//! filled them in. Fragments are not reassembled; only the first one is read, as a cut-off datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::bytes::{array, be16, be32};

/// What the first byte of a frame is, as the registry of link types numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a protocol family in the byte order of the capturing host.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet II, with or without VLAN tags.
    pub const ETHERNET: LinkType = LinkType(1);
    /// Raw IP, as `LINKTYPE_RAW`.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: a protocol family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// One UDP datagram of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Where it was sent.
    pub destination: SocketAddr,
    /// The bytes of the payload that the capture kept.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in bytes; at least `payload.len()`.
    pub payload_len: usize,
}

/// What a frame holds, as far as this product is interested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A fragment other than the first; what it belongs to cannot be told without reassembly.
    Fragment,
    /// A frame that carries no IP packet, or a link layer that is not read here.
    NotIp,
    /// IP that carries something else than UDP.
    Other,
    /// Too short for the headers that it announces.
    Truncated,
    /// A UDP datagram.
    Udp(Datagram<'a>),
}

/// Finds the UDP datagram in `frame`.
#[inline]
pub fn dissect(link: LinkType, frame: &[u8]) -> Content<'_> {
    match strip_link(link, frame) {
        Ok(packet) => read_ip(packet),
        Err(content) => content,
    }
}

/// The IP packet in a frame.
#[inline]
fn strip_link(link: LinkType, frame: &[u8]) -> Result<&[u8], Content<'static>> {
    match link {
        LinkType::ETHERNET => strip_ether_type(frame, 12),
        LinkType::LINUX_SLL => strip_ether_type(frame, 14),
        LinkType::LINUX_SLL2 => match be16(frame, 0) {
            // The protocol stands first and the payload behind the 20-byte header.
            Some(ETHER_IPV4 | ETHER_IPV6) => frame.get(20..).ok_or(Content::Truncated),
            Some(kind) if is_vlan(kind) => strip_ether_type(frame, 22),
            Some(_) => Err(Content::NotIp),
            None => Err(Content::Truncated),
        },
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => Ok(frame),
        LinkType::NULL | LinkType::LOOP => match array::<4>(frame, 0) {
            // AF_INET is 2 everywhere; AF_INET6 is 10, 24, 28 or 30. One byte order has zeros in front.
            Some([0, 0, 0, 2 | 10 | 24 | 28 | 30] | [2 | 10 | 24 | 28 | 30, 0, 0, 0]) => {
                frame.get(4..).ok_or(Content::Truncated)
            }
            Some(_) => Err(Content::NotIp),
            None => Err(Content::Truncated),
        },
        LinkType(_) => Err(Content::NotIp),
    }
}

/// Follows an EtherType at `offset` through VLAN tags and PPPoE to the IP packet behind it.
#[inline]
fn strip_ether_type(frame: &[u8], mut offset: usize) -> Result<&[u8], Content<'static>> {
    for _ in 0..=VLAN_TAGS_MAX {
        match be16(frame, offset) {
            Some(ETHER_IPV4 | ETHER_IPV6) => return frame.get(offset + 2..).ok_or(Content::Truncated),
            Some(kind) if is_vlan(kind) => offset += 4,
            // Version, code, session and length, then the PPP protocol (RFC 2516).
            Some(ETHER_PPPOE) => {
                return match be16(frame, offset + 8) {
                    Some(0x0021 | 0x0057) => frame.get(offset + 10..).ok_or(Content::Truncated),
                    Some(_) => Err(Content::NotIp),
                    None => Err(Content::Truncated),
                };
            }
            Some(_) => return Err(Content::NotIp),
            None => return Err(Content::Truncated),
        }
    }
    Err(Content::NotIp)
}

const fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, 0x8100 | 0x88a8 | 0x9100)
}

/// Reads an IP packet, and the one inside it when it is an IP-in-IP tunnel.
#[inline]
fn read_ip(mut packet: &[u8]) -> Content<'_> {
    for _ in 0..=TUNNELS_MAX {
        let header = match packet.first().map(|first| first >> 4) {
            Some(4) => read_ipv4(packet),
            Some(6) => read_ipv6(packet),
            Some(_) => return Content::NotIp,
            None => return Content::Truncated,
        };
        match header {
            Ok(Header { protocol: PROTOCOL_UDP, source, destination, payload }) => {
                return read_udp(source, destination, payload);
            }
            Ok(Header { protocol: PROTOCOL_IPIP | PROTOCOL_IPV6, payload, .. }) => packet = payload,
            Ok(_) => return Content::Other,
            Err(content) => return content,
        }
    }
    Content::Other
}

/// What both versions of IP tell about their payload.
struct Header<'a> {
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    payload: &'a [u8],
}

#[inline]
fn read_ipv4(packet: &[u8]) -> Result<Header<'_>, Content<'static>> {
    let Some(fixed) = packet.first_chunk::<20>() else { return Err(Content::Truncated) };
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    if header_len < 20 {
        return Err(Content::NotIp);
    }
    if fragment & 0x1fff != 0 {
        return Err(Content::Fragment);
    }
    // Zero is what a sending host's segmentation offload leaves; then the frame is the only authority.
    // Else bytes behind the packet are Ethernet padding.
    let end = if total_len == 0 { packet.len() } else { total_len.min(packet.len()) };
    Ok(Header {
        protocol: fixed[9],
        source: IpAddr::V4(Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15])),
        destination: IpAddr::V4(Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19])),
        payload: packet.get(header_len..end).ok_or(Content::Truncated)?,
    })
}

#[inline]
fn read_ipv6(packet: &[u8]) -> Result<Header<'_>, Content<'static>> {
    let Some(fixed) = packet.first_chunk::<40>() else { return Err(Content::Truncated) };
    let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let end = if payload_len == 0 { packet.len() } else { packet.len().min(40 + payload_len) };
    let source = array::<16>(fixed, 8).ok_or(Content::Truncated)?;
    let destination = array::<16>(fixed, 24).ok_or(Content::Truncated)?;
    let mut protocol = fixed[6];
    let mut payload = packet.get(40..end).ok_or(Content::Truncated)?;
    for _ in 0..EXTENSION_HEADERS_MAX {
        let len = match protocol {
            // Hop-by-hop, routing, destination options and mobility count in units of 8 (RFC 8200 §4).
            0 | 43 | 60 | 135 => (usize::from(*payload.get(1).ok_or(Content::Truncated)?) + 1) * 8,
            // The authentication header counts in units of 4 (RFC 4302 §2.2).
            51 => (usize::from(*payload.get(1).ok_or(Content::Truncated)?) + 2) * 4,
            44 => {
                let offset = be16(payload, 2).ok_or(Content::Truncated)?;
                if offset & 0xfff8 != 0 {
                    return Err(Content::Fragment);
                }
                8
            }
            _ => break,
        };
        protocol = *payload.first().ok_or(Content::Truncated)?;
        payload = payload.get(len..).ok_or(Content::Truncated)?;
    }
    Ok(Header {
        protocol,
        source: IpAddr::V6(Ipv6Addr::from(source)),
        destination: IpAddr::V6(Ipv6Addr::from(destination)),
        payload,
    })
}

#[inline]
fn read_udp(source: IpAddr, destination: IpAddr, segment: &[u8]) -> Content<'_> {
    let (Some(ports), Some(len)) = (be32(segment, 0), be16(segment, 4)) else { return Content::Truncated };
    let Some(rest) = segment.get(8..) else { return Content::Truncated };
    // A length of zero stands for the rest of the packet (RFC 2675 §4).
    let payload_len = match usize::from(len) {
        0 => rest.len(),
        1..8 => return Content::Truncated,
        len => len - 8,
    };
    Content::Udp(Datagram {
        source: SocketAddr::new(source, (ports >> 16) as u16),
        destination: SocketAddr::new(destination, (ports & 0xffff) as u16),
        payload: rest.get(..payload_len).unwrap_or(rest),
        payload_len,
    })
}

const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
const ETHER_PPPOE: u16 = 0x8864;
const PROTOCOL_IPIP: u8 = 4;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_IPV6: u8 = 41;

/// Provider bridges stack two tags; more than four are damage.
const VLAN_TAGS_MAX: usize = 4;
/// Tunnels in tunnels beyond this depth are not followed.
const TUNNELS_MAX: usize = 2;
/// RFC 8200 allows each header once, destination options twice.
const EXTENSION_HEADERS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Hex with spaces to bytes.
    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text
            .bytes()
            .filter(u8::is_ascii_hexdigit)
            .map(|c| (c as char).to_digit(16).unwrap() as u8)
            .collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    const MACS: &str = "020000000001 020000000002";
    /// 192.0.2.1:4000 to 192.0.2.2:5000, "hey".
    const V4: &str = "4500001f 00000000 40110000 c0000201 c0000202 0fa01388 000b0000 686579";
    const V6_ADDRESSES: &str = "20010db8000000000000000000000001 20010db8000000000000000000000002";
    const UDP: &str = "0fa01388 000b0000 686579";

    #[test]
    fn link_layers_lead_to_the_datagram() {
        let cases = [
            ("ethernet", 1, format!("{MACS} 0800 {V4}")),
            ("ethernet with padding", 1, format!("{MACS} 0800 {V4} 000000000000")),
            ("802.1Q", 1, format!("{MACS} 8100 0064 0800 {V4}")),
            ("QinQ", 1, format!("{MACS} 88a8 0064 8100 0065 0800 {V4}")),
            ("PPPoE", 1, format!("{MACS} 8864 11000001 0021 0021 {V4}")),
            ("cooked", 113, format!("0000 0001 0006 0200000000010000 0800 {V4}")),
            ("cooked with VLAN", 113, format!("0000 0001 0006 0200000000010000 8100 0064 0800 {V4}")),
            ("cooked 2", 276, format!("0800 0000 00000001 0001 00 06 0200000000010000 {V4}")),
            ("raw", 101, V4.to_owned()),
            ("raw, BSD", 12, V4.to_owned()),
            ("raw IPv4", 228, V4.to_owned()),
            ("null, little", 0, format!("02000000 {V4}")),
            ("null, big", 0, format!("00000002 {V4}")),
            ("loop", 108, format!("00000002 {V4}")),
            ("IP in IP", 101, format!("45000033 00000000 40040000 c6336401 c6336402 {V4}")),
        ];
        for (name, link, frame) in cases {
            let frame = hex(&frame);
            let expected = Content::Udp(Datagram {
                source: "192.0.2.1:4000".parse().unwrap(),
                destination: "192.0.2.2:5000".parse().unwrap(),
                payload: b"hey",
                payload_len: 3,
            });
            assert_eq!(dissect(LinkType(link), &frame), expected, "{name}");
        }
    }

    #[test]
    fn ipv6_and_its_extension_headers() {
        let cases = [
            ("plain", format!("60000000 000b 11 40 {V6_ADDRESSES} {UDP}")),
            ("hop-by-hop", format!("60000000 0013 00 40 {V6_ADDRESSES} 1100000000000000 {UDP}")),
            ("atomic fragment", format!("60000000 0013 2c 40 {V6_ADDRESSES} 1100000000000001 {UDP}")),
            ("authentication", format!("60000000 0017 33 40 {V6_ADDRESSES} 110100000000000000000000 {UDP}")),
            ("no length", format!("60000000 0000 11 40 {V6_ADDRESSES} {UDP}")),
        ];
        for (name, frame) in cases {
            let frame = hex(&frame);
            let Content::Udp(datagram) = dissect(LinkType::IPV6, &frame) else { panic!("{name}") };
            assert_eq!(datagram.source, "[2001:db8::1]:4000".parse().unwrap(), "{name}");
            assert_eq!(datagram.payload, b"hey", "{name}");
        }
    }

    #[test]
    fn what_is_no_datagram() {
        let cases = [
            ("ARP", 1, format!("{MACS} 0806 0001"), Content::NotIp),
            ("unknown link", 147, V4.to_owned(), Content::NotIp),
            ("TCP", 101, V4.replacen("4011", "4006", 1), Content::Other),
            ("later fragment", 101, V4.replacen("00000000 4011", "00002001 4011", 1), Content::Fragment),
            (
                "later fragment of IPv6",
                229,
                format!("60000000 0013 2c 40 {V6_ADDRESSES} 1100000900000001 {UDP}"),
                Content::Fragment,
            ),
            ("cut in the IP header", 101, "45000020 0000".to_owned(), Content::Truncated),
            ("cut in the UDP header", 101, V4[..60].to_owned(), Content::Truncated),
            ("no frame", 1, String::new(), Content::Truncated),
            ("tags without end", 1, format!("{MACS} {}", "8100 0064 ".repeat(9)), Content::NotIp),
        ];
        for (name, link, frame, expected) in cases {
            assert_eq!(dissect(LinkType(link), &hex(&frame)), expected, "{name}");
        }
    }

    #[test]
    fn a_short_snap_length_keeps_the_length_on_the_wire() {
        let frame = hex(&V4.replacen("0000001f", "000000b4", 1).replacen("000b0000", "00ac0000", 1));
        let Content::Udp(datagram) = dissect(LinkType::RAW, &frame) else { panic!() };
        assert_eq!((datagram.payload, datagram.payload_len), (&b"hey"[..], 164));
    }
}
