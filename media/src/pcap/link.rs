//! Link layers and tunnels: finds the IP packet in a frame.
//!
//! Each function removes one layer and returns what follows it; [`super::ip::follow`] continues from there.

use super::bytes::{array, be16};
use super::content::{Content, Found, Layer};
use super::link_type::LinkType;

/// Removes the link layer of `frame`.
#[inline]
pub(super) fn strip(link: LinkType, frame: &[u8]) -> Layer<'_> {
    match link {
        LinkType::ETHERNET => ethernet(frame, 12),
        LinkType::LINUX_SLL => ethernet(frame, 14),
        LinkType::LINUX_SLL2 => match (be16(frame, 0), frame.get(20..)) {
            // The protocol comes first, and the payload follows the 20-byte header.
            (Some(kind), Some(payload)) => ether_type(kind, payload),
            _ => Layer::truncated(),
        },
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => Layer::Packet(frame),
        LinkType::NULL | LinkType::LOOP => match array::<4>(frame, 0) {
            // AF_INET is 2 everywhere; AF_INET6 is 10, 24, 28 or 30. The zeros show the byte order.
            Some([0, 0, 0, 2 | 10 | 24 | 28 | 30] | [2 | 10 | 24 | 28 | 30, 0, 0, 0]) => {
                frame.get(4..).map_or(Layer::truncated(), Layer::Packet)
            }
            Some(_) => Layer::not_ip(),
            None => Layer::truncated(),
        },
        LinkType::PPP | LinkType::PPP_HDLC => ppp(frame),
        LinkType::PPP_ETHER => frame.get(6..).map_or(Layer::truncated(), ppp),
        // Address, control and an EtherType.
        LinkType::C_HDLC => ethernet(frame, 2),
        LinkType(_) => Layer::not_ip(),
    }
}

/// Follows the EtherType at `offset`; it is a length when an 802.2 header follows.
#[inline]
fn ethernet(frame: &[u8], offset: usize) -> Layer<'_> {
    let (Some(kind), Some(payload)) = (be16(frame, offset), frame.get(offset + 2..)) else {
        return Layer::truncated();
    };
    if kind >= ETHER_TYPE_MIN {
        return ether_type(kind, payload);
    }
    match array::<8>(payload, 0) {
        // LLC with SNAP and the EtherTypes of RFC 1042.
        Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) => {
            ether_type(u16::from_be_bytes([high, low]), payload.get(8..).unwrap_or_default())
        }
        _ => Layer::not_ip(),
    }
}

/// Follows the bytes after an EtherType; GRE and Geneve use EtherTypes too.
#[inline]
pub(super) fn ether_type(mut kind: u16, mut payload: &[u8]) -> Layer<'_> {
    for _ in 0..=VLAN_TAGS_MAX {
        match kind {
            ETHER_IPV4 | ETHER_IPV6 => return Layer::Packet(payload),
            // 802.1Q, 802.1ad and their predecessors' numbers.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
                let (Some(inner), Some(rest)) = (be16(payload, 2), payload.get(4..)) else {
                    return Layer::truncated();
                };
                (kind, payload) = (inner, rest);
            }
            // Transparent Ethernet bridging.
            0x6558 => return Layer::Frame(LinkType::ETHERNET, payload),
            0x880b => return ppp(payload),
            // PPPoE: version, code, session and length, then PPP (RFC 2516).
            0x8864 => return payload.get(6..).map_or(Layer::truncated(), ppp),
            0x8847 | 0x8848 => return mpls(payload),
            // ERSPAN types II and III; the last bit of the latter's header announces the sub-header.
            0x88be => return payload.get(8..).map_or(Layer::truncated(), ethernet_frame),
            0x22eb => {
                let Some(flags) = payload.get(11) else { return Layer::truncated() };
                let len = if flags & 1 == 0 { 12 } else { 20 };
                return payload.get(len..).map_or(Layer::truncated(), ethernet_frame);
            }
            _ => return Layer::not_ip(),
        }
    }
    Layer::not_ip()
}

fn ethernet_frame(frame: &[u8]) -> Layer<'_> {
    Layer::Frame(LinkType::ETHERNET, frame)
}

/// PPP: address and control may be omitted, and the protocol may have one byte (RFC 1661 §6.5, §6.6).
fn ppp(frame: &[u8]) -> Layer<'_> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match frame {
        [0x00, 0x21 | 0x57, packet @ ..] | [0x21 | 0x57, packet @ ..] => Layer::Packet(packet),
        // MPLS (RFC 3032 §4.3).
        [0x02, 0x81 | 0x83, labels @ ..] => mpls(labels),
        [] | [_] => Layer::truncated(),
        _ => Layer::not_ip(),
    }
}

/// Removes the label stack (RFC 3032 §2.1). The content type is not stated: IP is recognised by its version,
/// and a pseudowire with a control word by a leading zero (RFC 4385 §3).
pub(super) fn mpls(mut payload: &[u8]) -> Layer<'_> {
    for _ in 0..MPLS_LABELS_MAX {
        let Some([_, _, flags, _]) = array::<4>(payload, 0) else { return Layer::truncated() };
        payload = payload.get(4..).unwrap_or_default();
        if flags & 1 == 0 {
            continue;
        }
        return match payload.first().map(|first| first >> 4) {
            Some(4 | 6) => Layer::Packet(payload),
            Some(0) => payload.get(4..).map_or(Layer::truncated(), ethernet_frame),
            Some(_) => Layer::not_ip(),
            None => Layer::truncated(),
        };
    }
    Layer::not_ip()
}

/// GRE (RFC 2784, RFC 2890), its ERSPAN forms and its enhanced form of PPTP (RFC 2637).
pub(super) fn gre(payload: &[u8]) -> Layer<'_> {
    let (Some(flags), Some(kind)) = (be16(payload, 0), be16(payload, 2)) else { return Layer::truncated() };
    // Source routes are obsolete, and version 1 is PPTP's.
    if flags & GRE_ROUTING != 0 || flags & 7 > 1 {
        return Layer::Found(Found::Content(Content::Other));
    }
    let field = |bit: u16| if flags & bit == 0 { 0 } else { 4 };
    let acknowledged = if flags & 7 == 1 { field(0x0080) } else { 0 };
    let len = 4 + field(0x8000) + field(0x2000) + field(0x1000) + acknowledged;
    let Some(payload) = payload.get(len..) else { return Layer::truncated() };
    // ERSPAN type I has neither a sequence number nor its own header.
    if kind == 0x88be && flags & 0x1000 == 0 {
        return ethernet_frame(payload);
    }
    ether_type(kind, payload)
}

/// Tunnels in UDP: GTP-U, VXLAN, Geneve and TZSP, recognised by the port and a consistent header.
#[cold]
pub(super) fn udp_tunnel(port: u16, payload: &[u8], payload_len: usize) -> Option<Layer<'_>> {
    match port {
        2152 => gtp(payload, payload_len),
        // In VXLAN one flag announces the network identifier and the other bits are zero (RFC 7348 §5).
        4789 | 8472 => match array::<8>(payload, 0)? {
            [0x08, 0, 0, 0, _, _, _, 0] => Some(ethernet_frame(payload.get(8..)?)),
            _ => None,
        },
        // Version 0, and the length of the options in words (RFC 8926 §3.4).
        6081 => {
            let [first, _, high, low] = array::<4>(payload, 0)?;
            let options = usize::from(first & 0x3f) * 4;
            (first >> 6 == 0)
                .then(|| payload.get(8 + options..))?
                .map(|inner| ether_type(u16::from_be_bytes([high, low]), inner))
        }
        37_008 => tzsp(payload),
        _ => None,
    }
}

/// Whether a UDP port belongs to a supported tunnel.
#[inline]
pub(super) const fn is_tunnel_port(port: u16) -> bool {
    matches!(port, 2_152 | 4_789 | 6_081 | 8_472 | 37_008)
}

/// GTP-U version 1 (3GPP TS 29.281 §5): a T-PDU after optional fields and extension headers.
fn gtp(payload: &[u8], payload_len: usize) -> Option<Layer<'_>> {
    let [flags, kind, high, low] = array::<4>(payload, 0)?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    if flags >> 4 != 3 || kind != 255 || len + 8 > payload_len {
        return None;
    }
    let mut inner = payload.get(8..)?;
    if flags & 7 != 0 {
        let mut next = *inner.get(3)?;
        inner = inner.get(4..)?;
        // Each extension header states its length in words, and the type of the next one in its last byte.
        for _ in 0..GTP_EXTENSIONS_MAX {
            if flags & 4 == 0 || next == 0 {
                break;
            }
            let len = usize::from(*inner.first()?) * 4;
            next = *inner.get(len.checked_sub(1)?)?;
            inner = inner.get(len..)?;
        }
    }
    matches!(inner.first()? >> 4, 4 | 6).then_some(Layer::Packet(inner))
}

/// TaZmen Sniffer Protocol, with which wireless controllers and routers mirror traffic.
fn tzsp(payload: &[u8]) -> Option<Layer<'_>> {
    let [1, 0, 0, 1] = array::<4>(payload, 0)? else { return None };
    let mut rest = payload.get(4..)?;
    // Each iteration consumes at least one byte.
    loop {
        match rest {
            [0, tail @ ..] => rest = tail,
            [1, frame @ ..] => return Some(ethernet_frame(frame)),
            [_, len, tail @ ..] => rest = tail.get(usize::from(*len)..)?,
            _ => return None,
        }
    }
}

const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
/// Smaller numbers are lengths (IEEE 802.3 §3.2.6).
const ETHER_TYPE_MIN: u16 = 0x0600;
const GRE_ROUTING: u16 = 0x4000;

/// Provider bridges stack two tags; more than four are treated as damage.
const VLAN_TAGS_MAX: usize = 4;
/// Labels of one packet.
const MPLS_LABELS_MAX: usize = 8;
/// Extension headers of one GTP-U packet.
const GTP_EXTENSIONS_MAX: usize = 8;
