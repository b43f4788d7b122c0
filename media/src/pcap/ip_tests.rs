//! Frames of every link layer and tunnel, and frames without a datagram.

use super::super::Dissector;
use super::*;
use crate::time::Micros;

/// Converts hex with spaces to bytes.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter(u8::is_ascii_hexdigit).map(|c| (c as char).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const MACS: &str = "020000000001 020000000002";
/// 192.0.2.1:4000 to 192.0.2.2:5000, "hey".
const V4: &str = "4500001f 00000000 40110000 c0000201 c0000202 0fa01388 000b0000 686579";
/// An IPv4 header up to its protocol, without a length, as segmentation offload leaves it; and its addresses.
const OUTER: &str = "45000000 00000000 40";
const OUTER_ADDRESSES: &str = "c6336401 c6336402";
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
        ("three tags", 1, format!("{MACS} 88a8 0064 9100 0065 8100 0066 0800 {V4}")),
        ("LLC and SNAP", 1, format!("{MACS} 0027 aaaa03 000000 0800 {V4}")),
        ("MPLS", 1, format!("{MACS} 8847 00064040 00065140 {V4}")),
        ("a pseudowire", 1, format!("{MACS} 8847 00065140 00000000 {MACS} 0800 {V4}")),
        ("cooked 2 with VLAN", 276, format!("8100 0000 00000001 0001 00 06 0200000000010000 0064 0800 {V4}")),
        ("PPP", 9, format!("ff03 0021 {V4}")),
        ("PPP, compressed", 9, format!("21 {V4}")),
        ("PPP in HDLC", 50, format!("ff03 0021 {V4}")),
        ("PPPoE alone", 51, format!("11000001 0021 0021 {V4}")),
        ("Cisco HDLC", 104, format!("0f00 0800 {V4}")),
        ("raw", 101, V4.to_owned()),
        ("raw, BSD", 12, V4.to_owned()),
        ("raw IPv4", 228, V4.to_owned()),
        ("null, little", 0, format!("02000000 {V4}")),
        ("null, big", 0, format!("00000002 {V4}")),
        ("loop", 108, format!("00000002 {V4}")),
        ("IP in IP", 101, format!("45000033 00000000 40040000 c6336401 c6336402 {V4}")),
        ("IPv4 in IPv6", 101, format!("60000000 001f 04 40 {V6_ADDRESSES} {V4}")),
        (
            "authentication",
            101,
            format!("4500003f 00000000 40330000 c6336401 c6336402 04010000 00000001 00000001 {V4}"),
        ),
        ("GRE", 101, format!("{OUTER}2f0000 {OUTER_ADDRESSES} 00000800 {V4}")),
        (
            "GRE with all fields",
            101,
            format!("{OUTER}2f0000 {OUTER_ADDRESSES} b0000800 00000000 00000001 00000002 {V4}"),
        ),
        (
            "GRE of PPTP",
            101,
            format!("{OUTER}2f0000 {OUTER_ADDRESSES} 3081880b 00210001 00000002 00000001 ff030021 {V4}"),
        ),
        ("GRE with Ethernet", 101, format!("{OUTER}2f0000 {OUTER_ADDRESSES} 00006558 {MACS} 0800 {V4}")),
        ("ERSPAN I", 101, format!("{OUTER}2f0000 {OUTER_ADDRESSES} 000088be {MACS} 0800 {V4}")),
        (
            "ERSPAN II",
            101,
            format!("{OUTER}2f0000 {OUTER_ADDRESSES} 100088be 00000001 1001000000000000 {MACS} 0800 {V4}"),
        ),
        (
            "ERSPAN III",
            101,
            format!(
                "{OUTER}2f0000 {OUTER_ADDRESSES} 100022eb 00000001 200100000000000000000000 {MACS} 0800 {V4}"
            ),
        ),
        ("Ethernet in IP", 101, format!("{OUTER}610000 {OUTER_ADDRESSES} 3000 {MACS} 0800 {V4}")),
        ("MPLS in IP", 101, format!("{OUTER}890000 {OUTER_ADDRESSES} 00065140 {V4}")),
        ("GTP-U", 101, format!("{OUTER}110000 {OUTER_ADDRESSES} 08680868 00000000 30ff001f 00000001 {V4}")),
        (
            "GTP-U with a number",
            101,
            format!("{OUTER}110000 {OUTER_ADDRESSES} 08680868 00000000 32ff0023 00000001 00010000 {V4}"),
        ),
        (
            "GTP-U with extensions",
            101,
            format!(
                "{OUTER}110000 {OUTER_ADDRESSES} 08680868 00000000 34ff002b 00000001 00000085 01000020 01000000 {V4}"
            ),
        ),
        (
            "VXLAN",
            101,
            format!("{OUTER}110000 {OUTER_ADDRESSES} c00012b5 00000000 08000000 00006400 {MACS} 0800 {V4}"),
        ),
        (
            "Geneve",
            101,
            format!(
                "{OUTER}110000 {OUTER_ADDRESSES} c00017c1 00000000 01006558 00006400 00000000 {MACS} 0800 {V4}"
            ),
        ),
        (
            "TZSP",
            101,
            format!(
                "{OUTER}110000 {OUTER_ADDRESSES} c0009090 00000000 01000001 000a01ff 01 {MACS} 0800 {V4}"
            ),
        ),
        (
            "GRE in GRE in VLAN",
            1,
            format!(
                "{MACS} 8100 0064 0800 {OUTER}2f0000 {OUTER_ADDRESSES} 00000800 {OUTER}2f0000 {OUTER_ADDRESSES} 00000800 {V4}"
            ),
        ),
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
        ("ICMP", 101, V4.replacen("4011", "4001", 1), Content::Other),
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

/// A chain of layers that is deeper than in any network is not followed to its end.
#[test]
fn tunnels_in_tunnels_end() {
    let frame = hex(&format!("{}{V4}", format!("{OUTER}040000 {OUTER_ADDRESSES}").repeat(40)));
    assert_eq!(dissect(LinkType::RAW, &frame), Content::Other);
}

#[test]
fn what_only_looks_like_a_tunnel_stays_a_datagram() {
    let cases = [
        ("GTP control", "08680868 0010 0000 3010001f 00000000"),
        ("GTP longer than its datagram", "08680868 0010 0000 30ff00ff 00000000"),
        ("GTP with something else", "08680868 0012 0000 30ff0002 00000000 1111"),
        ("VXLAN without its flag", "c00012b5 0010 0000 00000000 00000000"),
        ("TZSP without an end", "c0009090 0010 0000 01000001 0aff0000"),
        ("SIP on a tunnel's port", "08680868 0010 0000 494e5649 54452073"),
        ("RTP on a tunnel's port", "08680868 0010 0000 80000001 00000000"),
    ];
    for (name, segment) in cases {
        let frame = hex(&format!("{OUTER}110000 {OUTER_ADDRESSES} {segment}"));
        let Content::Udp(datagram) = dissect(LinkType::RAW, &frame) else { panic!("{name}") };
        assert_eq!(datagram.payload, &frame[28..], "{name}");
    }
}

#[test]
fn tcp_segments() {
    let tcp = "0fa013c4 00000064 000000c8 5018ffff 00000000 686579";
    let expected = Segment {
        source: "192.0.2.1:4000".parse().unwrap(),
        destination: "192.0.2.2:5060".parse().unwrap(),
        sequence: 100,
        acknowledges: Some(200),
        syn: false,
        fin: false,
        rst: false,
        payload: b"hey",
        payload_len: 3,
    };
    let ip = "4500002b 00000000 40060000 c0000201 c0000202";
    let cases = [
        ("plain", format!("{ip} {tcp}"), expected),
        ("padded", format!("{ip} {tcp} 000000"), expected),
        ("segmentation offload", format!("{ip} {tcp}").replace("4500002b", "45000000"), expected),
        (
            "cut",
            format!("{ip} {tcp}").replace("4500002b", "45000040"),
            Segment { payload_len: 24, ..expected },
        ),
        (
            "options and flags",
            format!("{ip} {tcp}")
                .replace("4500002b", "4500002f")
                .replace("5018ffff 00000000", "6007ffff 00000000 01010101"),
            Segment { acknowledges: None, syn: true, fin: true, rst: true, ..expected },
        ),
    ];
    for (name, frame, expected) in cases {
        assert_eq!(dissect(LinkType::RAW, &hex(&frame)), Content::Tcp(expected), "{name}");
    }
}

#[test]
fn a_dissector_puts_fragments_together_wherever_they_are() {
    // The inner packet in two fragments, the second one's tunnel packet in two fragments again.
    let first = hex("45000024 00072000 40110000 c0000201 c0000202 0fa01388 00180000 6162636465666768");
    let second = hex("4500001c 00070002 40110000 c0000201 c0000202 696a6b6c6d6e6f70");
    let outer = |offset: u16, more: bool, payload: &[u8]| {
        let mut packet = hex("45000000 00090000 40040000 c6336401 c6336402");
        packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&((offset / 8) | (u16::from(more) << 13)).to_be_bytes());
        packet.extend(payload);
        packet
    };
    let mut dissector = Dissector::new();
    let mut take = |frame: &[u8]| match dissector.dissect(Micros(0), LinkType::RAW, frame) {
        Content::Udp(datagram) => Ok(datagram.payload.to_vec()),
        Content::Head(datagram) => Err(datagram.payload.to_vec()),
        Content::Fragment => Err(Vec::new()),
        other => panic!("{other:?}"),
    };
    assert_eq!(take(&outer(16, false, &second[16..])), Err(Vec::new()));
    assert_eq!(take(&first), Err(b"abcdefgh".to_vec()));
    assert_eq!(take(&outer(0, true, &second[..16])), Ok(b"abcdefghijklmnop".to_vec()));
    assert_eq!(dissector.fragments_left(), 0);
}
