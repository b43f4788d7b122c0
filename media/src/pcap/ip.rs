//! Finds the UDP datagram or TCP segment in an IP packet: both versions of IP, extension headers, and
//! tunnels.
//!
//! Checksums are not verified: captures taken on the sending host hold frames before the network card has
//! filled them in. This module has no state: it only identifies fragments, and [`super::fragments`]
//! reassembles them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::bytes::{array, be16, be32};
use super::content::{Content, Datagram, Ends, Found, Layer, Piece, Segment};
use super::link;
use super::link_type::LinkType;

/// Finds the UDP datagram or TCP segment in `frame`. A [`super::Dissector`] also reassembles fragments, and
/// [`super::dissect_plain`] is faster when nearly every frame is plain.
#[inline]
pub fn dissect(link: LinkType, frame: &[u8]) -> Content<'_> {
    match follow(Layer::Frame(link, frame)) {
        Found::Content(content) => content,
        Found::Piece(piece) => piece.head().map_or(Content::Fragment, Content::Head),
    }
}

impl<'a> Piece<'a> {
    /// The datagram of which it is the first fragment.
    pub(super) fn head(&self) -> Option<Datagram<'a>> {
        if self.offset != 0 {
            return None;
        }
        match follow(transport(self.protocol, self.ends, self.payload, self.len)) {
            Found::Content(Content::Udp(datagram)) => Some(datagram),
            _ => None,
        }
    }
}

/// Removes layer after layer until it finds a datagram, a fragment or the end.
#[inline]
pub(super) fn follow(mut layer: Layer<'_>) -> Found<'_> {
    for _ in 0..LAYERS_MAX {
        layer = match layer {
            Layer::Frame(link, frame) => link::strip(link, frame),
            Layer::Packet(packet) => read_ip(packet),
            Layer::Found(found) => return found,
        };
    }
    Found::Content(Content::Other)
}

#[inline]
fn read_ip(packet: &[u8]) -> Layer<'_> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => read_ipv4(packet),
        Some(6) => read_ipv6(packet),
        Some(_) => Layer::not_ip(),
        None => Layer::truncated(),
    }
}

#[inline]
fn read_ipv4(packet: &[u8]) -> Layer<'_> {
    let Some(fixed) = packet.first_chunk::<20>() else { return Layer::truncated() };
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    if header_len < 20 {
        return Layer::not_ip();
    }
    // A sending host's segmentation offload leaves zero here; then only the frame gives the length. Otherwise
    // bytes after the packet are Ethernet padding.
    let wire_len = if total_len == 0 { packet.len() } else { total_len };
    let (Some(payload), Some(len)) =
        (packet.get(header_len..wire_len.min(packet.len())), wire_len.checked_sub(header_len))
    else {
        return Layer::truncated();
    };
    let ends = Ends {
        source: IpAddr::V4(Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15])),
        destination: IpAddr::V4(Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19])),
    };
    let (offset, more) = (usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 != 0);
    if offset != 0 || more {
        let id = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let piece = Piece { ends, protocol: fixed[9], id, offset, more, payload, len };
        return Layer::Found(Found::Piece(piece));
    }
    transport(fixed[9], ends, payload, len)
}

#[inline]
fn read_ipv6(packet: &[u8]) -> Layer<'_> {
    let Some(fixed) = packet.first_chunk::<40>() else { return Layer::truncated() };
    let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let wire_len = if payload_len == 0 { packet.len() - 40 } else { payload_len };
    let (Some(source), Some(destination)) = (array::<16>(fixed, 8), array::<16>(fixed, 24)) else {
        return Layer::truncated();
    };
    let ends = Ends {
        source: IpAddr::V6(Ipv6Addr::from(source)),
        destination: IpAddr::V6(Ipv6Addr::from(destination)),
    };
    let Some(payload) = packet.get(40..packet.len().min(40 + wire_len)) else { return Layer::truncated() };
    transport(fixed[6], ends, payload, wire_len)
}

/// The content of an IP packet after its extension headers. `payload` is the captured part of `len` bytes.
#[inline]
pub(super) fn transport<'a>(
    mut protocol: u8,
    ends: Ends,
    mut payload: &'a [u8],
    mut len: usize,
) -> Layer<'a> {
    for _ in 0..EXTENSION_HEADERS_MAX {
        let header_len = match protocol {
            PROTOCOL_UDP => return read_udp(ends, payload),
            6 => return Layer::Found(Found::Content(read_tcp(ends, payload, len))),
            // IP in IP (RFC 2003, RFC 4213, RFC 2473).
            4 | 41 => return Layer::Packet(payload),
            47 => return link::gre(payload),
            // Ethernet within IP: a version and a reserved byte (RFC 3378).
            97 => {
                return payload
                    .get(2..)
                    .map_or(Layer::truncated(), |frame| Layer::Frame(LinkType::ETHERNET, frame));
            }
            137 => return link::mpls(payload),
            // Hop-by-hop, routing, destination options and mobility count in units of 8 (RFC 8200 §4).
            0 | 43 | 60 | 135 => payload.get(1).map(|units| (usize::from(*units) + 1) * 8),
            // The authentication header counts in units of 4 (RFC 4302 §2.2).
            51 => payload.get(1).map(|units| (usize::from(*units) + 2) * 4),
            44 => match fragment_header(ends, payload, len) {
                Some(layer) => return layer,
                None => Some(8),
            },
            _ => return Layer::Found(Found::Content(Content::Other)),
        };
        let (Some(header_len), Some(next)) = (header_len, payload.first()) else { return Layer::truncated() };
        protocol = *next;
        let Some(rest) = payload.get(header_len..) else { return Layer::truncated() };
        payload = rest;
        len = len.saturating_sub(header_len);
    }
    Layer::Found(Found::Content(Content::Other))
}

/// The fragment after a fragment header (RFC 8200 §4.5); `None` when it is the complete packet (RFC 6946).
fn fragment_header(ends: Ends, payload: &[u8], len: usize) -> Option<Layer<'_>> {
    let (Some(place), Some(id), Some(protocol)) = (be16(payload, 2), be32(payload, 4), payload.first())
    else {
        return Some(Layer::truncated());
    };
    let (offset, more) = (usize::from(place & 0xfff8), place & 1 != 0);
    if offset == 0 && !more {
        return None;
    }
    let payload = payload.get(8..).unwrap_or_default();
    let piece = Piece { ends, protocol: *protocol, id, offset, more, payload, len: len.saturating_sub(8) };
    Some(Layer::Found(Found::Piece(piece)))
}

#[inline]
fn read_udp(ends: Ends, segment: &[u8]) -> Layer<'_> {
    let (Some(ports), Some(len)) = (be32(segment, 0), be16(segment, 4)) else { return Layer::truncated() };
    let Some(rest) = segment.get(8..) else { return Layer::truncated() };
    // A length of zero means the rest of the packet (RFC 2675 §4).
    let payload_len = match usize::from(len) {
        0 => rest.len(),
        1..8 => return Layer::truncated(),
        len => len - 8,
    };
    let payload = rest.get(..payload_len).unwrap_or(rest);
    let (from, to) = ((ports >> 16) as u16, (ports & 0xffff) as u16);
    if payload.first().is_some_and(|first| *first < TUNNEL_BYTE_LIMIT) {
        for port in [to, from] {
            if link::is_tunnel_port(port)
                && let Some(layer) = link::udp_tunnel(port, payload, payload_len)
            {
                return layer;
            }
        }
    }
    Layer::Found(Found::Content(Content::Udp(Datagram {
        source: SocketAddr::new(ends.source, from),
        destination: SocketAddr::new(ends.destination, to),
        payload,
        payload_len,
    })))
}

fn read_tcp(ends: Ends, segment: &[u8], len: usize) -> Content<'_> {
    let Some(fixed) = segment.first_chunk::<20>() else { return Content::Truncated };
    let header_len = usize::from(fixed[12] >> 4) * 4;
    if header_len < 20 {
        return Content::Other;
    }
    // The snap length may cut within the options; then the length is known and there are no bytes.
    let payload = segment.get(header_len..).unwrap_or_default();
    let number = |high: usize| be32(fixed, high).unwrap_or_default();
    let port = |high: usize| be16(fixed, high).unwrap_or_default();
    let flags = fixed[13];
    Content::Tcp(Segment {
        source: SocketAddr::new(ends.source, port(0)),
        destination: SocketAddr::new(ends.destination, port(2)),
        sequence: number(4),
        acknowledges: (flags & 0x10 != 0).then(|| number(8)),
        syn: flags & 0x02 != 0,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
        payload,
        payload_len: len.saturating_sub(header_len).max(payload.len()),
    })
}

const PROTOCOL_UDP: u8 = 17;

/// Tunnels in UDP begin with a smaller byte; RTP (0x80) and text begin with a larger one.
const TUNNEL_BYTE_LIMIT: u8 = 0x40;
/// Layers of one frame; more are a loop, or damage.
const LAYERS_MAX: usize = 12;
/// RFC 8200 allows each header once, destination options twice.
const EXTENSION_HEADERS_MAX: usize = 8;

#[cfg(test)]
#[path = "ip_tests.rs"]
mod tests;
