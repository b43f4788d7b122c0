//! Fragments in any order, duplicated, overlapping, cut, too many and too late.

use std::net::IpAddr;

use super::super::content::{Content, Ends, Found};
use super::super::ip::follow;
use super::*;

fn ends() -> Ends {
    Ends { source: IpAddr::from([192, 0, 2, 1]), destination: IpAddr::from([192, 0, 2, 2]) }
}

/// A UDP datagram of 64 bytes.
fn datagram() -> Vec<u8> {
    let mut bytes = vec![0x0f, 0xa0, 0x13, 0x88, 0, 64, 0, 0];
    bytes.extend(8..64);
    bytes
}

fn piece(id: u32, bytes: &[u8], begin: usize, end: usize) -> Piece<'_> {
    Piece {
        ends: ends(),
        protocol: 17,
        id,
        offset: begin,
        more: end < bytes.len(),
        payload: &bytes[begin..end],
        len: end - begin,
    }
}

fn payload(added: Added) -> Option<Vec<u8>> {
    let Added::Whole(whole) = added else { return None };
    match follow(whole.layer()) {
        Found::Content(Content::Udp(datagram)) => Some(datagram.payload.to_vec()),
        _ => panic!("no datagram"),
    }
}

#[test]
fn fragments_come_in_any_order_and_overlap() {
    let whole = datagram();
    let cases: [(&str, &[(usize, usize)]); 6] = [
        ("in order", &[(0, 24), (24, 48), (48, 64)]),
        ("backwards", &[(48, 64), (24, 48), (0, 24)]),
        ("the middle last", &[(0, 24), (48, 64), (24, 48)]),
        ("with a copy", &[(0, 24), (0, 24), (48, 64), (48, 64), (24, 48)]),
        ("overlapping", &[(0, 32), (24, 56), (16, 64)]),
        ("one within another", &[(0, 56), (8, 16), (56, 64)]),
    ];
    for (name, spans) in cases {
        let mut fragments = Fragments::default();
        let mut added = spans
            .iter()
            .map(|(begin, end)| payload(fragments.add(Micros(0), &piece(1, &whole, *begin, *end))));
        let last = added.by_ref().last().unwrap();
        assert_eq!(last.as_deref(), Some(&whole[8..]), "{name}");
        assert_eq!((fragments.left(), fragments.bytes, fragments.waiting.len()), (0, 0, 0), "{name}");
    }
}

#[test]
fn what_cannot_be_put_together_is_counted() {
    let whole = datagram();
    let other: Vec<u8> = whole.iter().map(|byte| byte ^ 1).collect();
    let mut longer = whole.clone();
    longer.extend([0; 8]);
    let cases: [(&str, Vec<Piece<'_>>, u64); 7] = [
        ("the last one is missing", vec![piece(1, &whole, 0, 24), piece(1, &whole, 24, 48)], 2),
        ("the first one is missing", vec![piece(1, &whole, 24, 48), piece(1, &whole, 48, 64)], 2),
        ("different bytes", vec![piece(1, &whole, 0, 24), piece(1, &other, 16, 64)], 2),
        ("two ends", vec![piece(1, &whole, 48, 64), piece(1, &longer, 48, 72)], 2),
        ("an end before what came", vec![piece(1, &longer, 48, 64), piece(1, &whole[..56], 48, 56)], 2),
        ("an odd length", vec![Piece { len: 7, ..piece(1, &whole, 0, 24) }], 1),
        ("beyond any packet", vec![Piece { offset: 65_528, ..piece(1, &whole, 0, 24) }], 1),
    ];
    for (name, pieces, left) in cases {
        let mut fragments = Fragments::default();
        for piece in &pieces {
            assert!(matches!(fragments.add(Micros(0), piece), Added::Waits), "{name}");
        }
        assert_eq!(fragments.left(), left, "{name}");
    }
}

#[test]
fn packets_are_told_apart() {
    let whole = datagram();
    let mut fragments = Fragments::default();
    fragments.add(Micros(0), &piece(1, &whole, 0, 24));
    assert!(matches!(fragments.add(Micros(0), &piece(2, &whole, 24, 64)), Added::Waits), "another packet");
    let other = Piece { protocol: 6, ..piece(1, &whole, 24, 64) };
    assert!(matches!(fragments.add(Micros(0), &other), Added::Waits), "another protocol");
    assert!(payload(fragments.add(Micros(0), &piece(1, &whole, 24, 64))).is_some());
}

#[test]
fn what_the_snap_length_cut_off_stays_unknown() {
    let whole = datagram();
    let mut fragments = Fragments::default();
    let cut = Piece { payload: &whole[..20], ..piece(1, &whole, 0, 24) };
    fragments.add(Micros(0), &cut);
    let Added::Whole(put) = fragments.add(Micros(0), &piece(1, &whole, 24, 64)) else { panic!() };
    let Found::Content(Content::Udp(datagram)) = follow(put.layer()) else { panic!() };
    assert_eq!((datagram.payload, datagram.payload_len), (&whole[8..20], 56));
}

#[test]
fn waiting_is_bounded_in_time_number_and_bytes() {
    let whole = datagram();
    let mut fragments = Fragments::default();
    fragments.add(Micros(0), &piece(1, &whole, 0, 24));
    fragments.add(Micros(0), &piece(2, &whole, 24, 64));
    assert!(matches!(fragments.add(Micros(30_000_001), &piece(1, &whole, 24, 64)), Added::Waits));
    assert_eq!((fragments.left(), fragments.waiting.len()), (3, 1), "too late");

    let mut fragments = Fragments::default();
    let large = vec![7; 60_008];
    for id in 0..6_000 {
        fragments.add(Micros(0), &piece(id, &large, 60_000, 60_008));
        assert!(fragments.bytes <= BYTES_MAX + PACKET_LEN_MAX && fragments.waiting.len() <= WAITING_MAX + 1);
    }
    assert_eq!(fragments.left(), 6_000);
    assert!(fragments.order.len() <= ORDER_MAX);

    let mut fragments = Fragments::default();
    for place in (0..60_000).step_by(16) {
        fragments.add(Micros(0), &piece(1, &large, place, place + 8));
        assert!(fragments.waiting.values().all(|waiting| waiting.spans.len() <= SPANS_MAX));
    }
}

#[test]
fn first_fragments_stand_for_their_packets_where_the_others_never_come() {
    let whole = datagram();
    let mut fragments = Fragments::default();
    assert!(matches!(fragments.add(Micros(0), &piece(1, &whole, 0, 24)), Added::Waits));
    assert!(matches!(fragments.add(Micros(1_500_000), &piece(2, &whole, 0, 24)), Added::Alone));
    assert!(
        matches!(fragments.add(Micros(1_500_001), &piece(2, &whole, 24, 64)), Added::Waits),
        "they do come"
    );
    assert!(matches!(fragments.add(Micros(1_500_002), &piece(3, &whole, 0, 24)), Added::Waits));
}
