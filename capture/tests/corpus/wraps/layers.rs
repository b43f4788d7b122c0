//! IP, its fragments, tunnels and link layers.

use std::net::{IpAddr, SocketAddr};

use sidetone_media::time::Micros;

/// An IP packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) at: Micros,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn udp(at: Micros, (source, destination): (SocketAddr, SocketAddr), payload: &[u8]) -> Packet {
    let head = [source.port(), destination.port(), payload.len() as u16 + 8, 0];
    let segment: Vec<u8> =
        head.into_iter().flat_map(u16::to_be_bytes).chain(payload.iter().copied()).collect();
    between(at, source.ip(), destination.ip(), 17, &segment)
}

pub(crate) fn tcp(
    at: Micros,
    (source, destination): (SocketAddr, SocketAddr),
    sequence: u32,
    syn: bool,
    payload: &[u8],
) -> Packet {
    let mut segment = Vec::new();
    segment.extend(source.port().to_be_bytes());
    segment.extend(destination.port().to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend([0; 4]);
    // With options; the header length is eight words.
    segment.extend([0x80, if syn { 0x02 } else { 0x18 }, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend([1; 12]);
    segment.extend(payload);
    between(at, source.ip(), destination.ip(), 6, &segment)
}

fn between(at: Micros, source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Packet {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, destination) else { panic!("not IPv4") };
    Packet { at, bytes: ipv4(source.octets(), destination.octets(), protocol, payload) }
}

fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16 + 20).to_be_bytes();
    let head = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &source, &destination, payload].concat()
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let head = [0x60, 0, 0, 0, len[0], len[1], protocol, 64];
    [&head[..], &[0x20; 16], &[0x21; 16], payload].concat()
}

/// The order in which fragments arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    Backwards,
    InOrder,
    /// The last one first, and the others twice.
    LastFirstTwice,
    /// Each one overlaps the previous one.
    Overlapping,
}

impl Mix {
    pub(crate) const ALL: [Mix; 4] = [Mix::InOrder, Mix::Backwards, Mix::LastFirstTwice, Mix::Overlapping];
}

/// Cuts packets with more than `size` bytes of payload.
pub(crate) fn fragments(packets: Vec<Packet>, size: usize, mix: Mix) -> Vec<Packet> {
    let mut out = Vec::new();
    for (id, packet) in packets.into_iter().enumerate() {
        let is_v4 = packet.bytes[0] >> 4 == 4;
        let (head, payload) = packet.bytes.split_at(if is_v4 { 20 } else { 40 });
        if payload.len() <= size {
            out.push(packet);
            continue;
        }
        let mut pieces: Vec<(usize, usize)> = (0..payload.len())
            .step_by(size)
            .map(|begin| (begin, (begin + size).min(payload.len())))
            .collect();
        match mix {
            Mix::Backwards => pieces.reverse(),
            Mix::InOrder => {}
            Mix::LastFirstTwice => {
                let last = pieces.pop().unwrap();
                let rest: Vec<_> = pieces.iter().flat_map(|piece| [*piece, *piece]).collect();
                // The last one is not repeated: it would begin another packet.
                pieces = [&[last][..], &rest[..rest.len() - 1]].concat();
            }
            Mix::Overlapping => {
                for piece in &mut pieces {
                    piece.0 -= piece.0.min(8);
                }
            }
        }
        for (begin, end) in pieces {
            let (more, part) = (end < payload.len(), &payload[begin..end]);
            let bytes = if is_v4 {
                piece_v4(head, id, begin, more, part)
            } else {
                piece_v6(head, id, begin, more, part)
            };
            out.push(Packet { at: packet.at, bytes });
        }
    }
    out
}

fn piece_v4(head: &[u8], id: usize, begin: usize, more: bool, part: &[u8]) -> Vec<u8> {
    let mut head = head.to_vec();
    head[2..4].copy_from_slice(&(part.len() as u16 + 20).to_be_bytes());
    head[4..6].copy_from_slice(&(id as u16).to_be_bytes());
    head[6..8].copy_from_slice(&((begin as u16 / 8) | (u16::from(more) << 13)).to_be_bytes());
    [&head[..], part].concat()
}

fn piece_v6(head: &[u8], id: usize, begin: usize, more: bool, part: &[u8]) -> Vec<u8> {
    let mut head = head.to_vec();
    head[4..6].copy_from_slice(&(part.len() as u16 + 8).to_be_bytes());
    let next = std::mem::replace(&mut head[6], 44);
    let place = (begin as u16 | u16::from(more)).to_be_bytes();
    [&head[..], &[next, 0, place[0], place[1]], &(id as u32).to_be_bytes(), part].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tunnel {
    Ah,
    Erspan,
    EtherIp,
    Geneve,
    Gre,
    GreBridge,
    GreKeyed,
    Gtp,
    GtpExtended,
    Ipip,
    Mpls,
    Options,
    Tzsp,
    V4InV6,
    Vxlan,
}

pub(crate) const TUNNELS: [Tunnel; 15] = [
    Tunnel::Ipip,
    Tunnel::V4InV6,
    Tunnel::Options,
    Tunnel::Ah,
    Tunnel::Gre,
    Tunnel::GreKeyed,
    Tunnel::GreBridge,
    Tunnel::Erspan,
    Tunnel::EtherIp,
    Tunnel::Mpls,
    Tunnel::Gtp,
    Tunnel::GtpExtended,
    Tunnel::Vxlan,
    Tunnel::Geneve,
    Tunnel::Tzsp,
];

/// Puts each packet into a tunnel.
pub(crate) fn tunnel(packets: Vec<Packet>, tunnel: Tunnel) -> Vec<Packet> {
    packets.into_iter().map(|Packet { at, bytes }| Packet { at, bytes: enclose(&bytes, tunnel) }).collect()
}

fn enclose(packet: &[u8], tunnel: Tunnel) -> Vec<u8> {
    let is_v4 = packet[0] >> 4 == 4;
    let kind: [u8; 2] = if is_v4 { [0x08, 0] } else { [0x86, 0xdd] };
    let protocol = if is_v4 { 4 } else { 41 };
    let ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind, packet].concat();
    let outer =
        |protocol: u8, parts: &[&[u8]]| ipv4([198, 51, 100, 1], [198, 51, 100, 2], protocol, &parts.concat());
    let in_udp = |port: u16, parts: &[&[u8]]| {
        let payload = parts.concat();
        let len = (payload.len() as u16 + 8).to_be_bytes();
        let port = port.to_be_bytes();
        outer(17, &[&[0xc0, 0, port[0], port[1], len[0], len[1], 0, 0], &payload])
    };
    let len = |extra: usize| ((packet.len() + extra) as u16).to_be_bytes();
    match tunnel {
        Tunnel::Ah => outer(51, &[&[protocol, 4], &[0; 2], &[7; 20], packet]),
        Tunnel::Erspan => {
            outer(47, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[0x10, 1, 0, 0, 0, 0, 0, 0], &ethernet])
        }
        Tunnel::EtherIp => outer(97, &[&[0x30, 0], &ethernet]),
        Tunnel::Geneve => in_udp(6_081, &[&[0x02, 0, 0x65, 0x58, 0, 0, 1, 0], &[0; 8], &ethernet]),
        Tunnel::Gre => outer(47, &[&[0, 0], &kind, packet]),
        Tunnel::GreBridge => outer(47, &[&[0, 0, 0x65, 0x58], &ethernet]),
        Tunnel::GreKeyed => outer(47, &[&[0xb0, 0], &kind, &[0; 12], packet]),
        Tunnel::Gtp => in_udp(2_152, &[&[0x30, 255], &len(0), &[0, 0, 0, 9], packet]),
        Tunnel::GtpExtended => {
            let fields = [0, 1, 0, 0x85, 1, 0, 9, 0xc0, 1, 0, 0, 0];
            in_udp(2_152, &[&[0x36, 255], &len(fields.len()), &[0, 0, 0, 9], &fields, packet])
        }
        Tunnel::Ipip => outer(protocol, &[packet]),
        Tunnel::Mpls => outer(137, &[&[0, 1, 0x40, 64, 0, 1, 0x51, 64], packet]),
        // With hop-by-hop and destination options.
        Tunnel::Options => {
            ipv6(0, &[&[60, 0, 1, 4, 0, 0, 0, 0], &[protocol, 1][..], &[0; 14], packet].concat())
        }
        Tunnel::Tzsp => in_udp(37_008, &[&[1, 0, 0, 1, 10, 1, 0xff, 0, 1], &ethernet]),
        Tunnel::V4InV6 => ipv6(protocol, packet),
        Tunnel::Vxlan => in_udp(4_789, &[&[8, 0, 0, 0, 0, 0, 100, 0], &ethernet]),
    }
}

/// A link layer: its name, its number, and its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    CHdlc,
    Ethernet,
    Loop,
    Mpls,
    NullBig,
    NullLittle,
    Ppp,
    PppCompressed,
    PppEther,
    PppHdlc,
    Pppoe,
    QinQ,
    Raw,
    RawBsd,
    RawVersion,
    Sll,
    Sll2,
    Sll2Vlan,
    SllVlan,
    Snap,
    Vlan,
}

pub(crate) const LINKS: [Link; 21] = [
    Link::Ethernet,
    Link::Vlan,
    Link::QinQ,
    Link::Snap,
    Link::Pppoe,
    Link::Mpls,
    Link::Ppp,
    Link::PppCompressed,
    Link::PppHdlc,
    Link::PppEther,
    Link::CHdlc,
    Link::Sll,
    Link::SllVlan,
    Link::Sll2,
    Link::Sll2Vlan,
    Link::Raw,
    Link::RawBsd,
    Link::RawVersion,
    Link::NullLittle,
    Link::NullBig,
    Link::Loop,
];

impl Link {
    /// The number of the link type; for [`Link::RawVersion`] that of IPv4.
    pub(crate) fn number(self) -> u16 {
        match self {
            Link::Ethernet | Link::Mpls | Link::Pppoe | Link::QinQ | Link::Snap | Link::Vlan => 1,
            Link::NullBig | Link::NullLittle => 0,
            Link::Ppp | Link::PppCompressed => 9,
            Link::RawBsd => 12,
            Link::PppHdlc => 50,
            Link::PppEther => 51,
            Link::Raw => 101,
            Link::CHdlc => 104,
            Link::Loop => 108,
            Link::Sll | Link::SllVlan => 113,
            Link::RawVersion => 228,
            Link::Sll2 | Link::Sll2Vlan => 276,
        }
    }
}

/// The frame of a packet.
pub(crate) fn link(link: Link, packet: &[u8]) -> Vec<u8> {
    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let is_v4 = packet[0] >> 4 == 4;
    let kind: [u8; 2] = if is_v4 { [0x08, 0] } else { [0x86, 0xdd] };
    let ppp = [0, if is_v4 { 0x21 } else { 0x57 }];
    let family = if is_v4 { 2 } else { 30 };
    let padding = vec![0; 46_usize.saturating_sub(packet.len())];
    let cooked = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    let cooked_2 = [0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    let len = |extra: usize| ((packet.len() + extra) as u16).to_be_bytes();
    let parts: Vec<&[u8]> = match link {
        Link::CHdlc => vec![&[0x0f, 0], &kind],
        Link::Ethernet => vec![&MACS, &kind],
        Link::Loop | Link::NullBig => return [&[0, 0, 0, family], packet].concat(),
        Link::Mpls => vec![&MACS, &[0x88, 0x47, 0, 1, 0x40, 64, 0, 1, 0x51, 64]],
        Link::NullLittle => return [&[family, 0, 0, 0], packet].concat(),
        Link::Ppp | Link::PppHdlc => vec![&[0xff, 0x03], &ppp],
        Link::PppCompressed => vec![&ppp[1..]],
        Link::PppEther => return [&[0x11, 0, 0, 1], &len(2)[..], &ppp, packet].concat(),
        Link::Pppoe => {
            return [&MACS, &[0x88, 0x64, 0x11, 0, 0, 1][..], &len(2), &ppp, packet, &padding].concat();
        }
        Link::QinQ => vec![&MACS, &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 7], &kind],
        Link::Raw | Link::RawBsd | Link::RawVersion => vec![],
        Link::Sll => vec![&cooked, &kind],
        Link::Sll2 => vec![&kind, &cooked_2],
        Link::Sll2Vlan => vec![&[0x81, 0], &cooked_2, &[0, 100], &kind],
        Link::SllVlan => vec![&cooked, &[0x81, 0, 0, 100], &kind],
        Link::Snap => {
            return [&MACS, &len(8)[..], &[0xaa, 0xaa, 3, 0, 0, 0], &kind, packet, &padding].concat();
        }
        Link::Vlan => vec![&MACS, &[0x81, 0, 0, 100], &kind],
    };
    // Short frames of Ethernet are padded.
    let padding = if link.number() == 1 { &padding[..] } else { &[] };
    [&parts.concat(), packet, padding].concat()
}
