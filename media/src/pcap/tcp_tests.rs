//! Segments in any order, duplicated, overlapping, cut and missing.

use super::*;

/// Sequence number, bytes, length on the wire.
fn data(sequence: u32, payload: &[u8]) -> Segment<'_> {
    Segment {
        source: "192.0.2.1:4000".parse().unwrap(),
        destination: "192.0.2.2:5060".parse().unwrap(),
        sequence,
        acknowledges: None,
        syn: false,
        fin: false,
        rst: false,
        payload,
        payload_len: payload.len(),
    }
}

fn acknowledgement(number: u32) -> Segment<'static> {
    let Segment { source, destination, .. } = data(0, b"");
    Segment { source: destination, destination: source, acknowledges: Some(number), ..data(9, b"") }
}

/// The parts read: bytes as they are, `<` begin, `>` end, `[n]` lost.
fn read(segments: &[(i64, Segment<'_>)]) -> String {
    let mut connections = Connections::<String>::new();
    let mut told = String::new();
    let mut sink = |state: &mut String, stretch: Stretch<'_>| {
        let part = match stretch.part {
            Part::Begin => "<".to_owned(),
            Part::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Part::Lost(len) => format!("[{len}]"),
            Part::End => ">".to_owned(),
        };
        state.push_str(&part);
        told.push_str(&part);
        if state.contains("bored") { Interest::None } else { Interest::Some }
    };
    for (at_ms, segment) in segments {
        connections.segment(Micros(at_ms * 1_000), segment, &mut sink);
        let bytes: usize = connections.directions.values().map(Direction::waiting_bytes).sum();
        assert_eq!(connections.waiting_bytes, bytes);
        let waiting = connections.directions.values().filter(|one| !one.waiting.is_empty()).count();
        assert_eq!(connections.waiting_directions, waiting);
    }
    connections.finish(&mut sink);
    assert_eq!((connections.waiting_bytes, connections.waiting_directions), (0, 0));
    told
}

/// A name, the segments with their times, and the expected result.
type Case = (&'static str, Vec<(i64, Segment<'static>)>, &'static str);

#[test]
fn bytes_come_in_order() {
    let syn = |sequence| Segment { syn: true, ..data(sequence, b"") };
    let rst = Segment { rst: true, ..data(107, b"") };
    let cut = Segment { payload_len: 5, ..data(103, b"de") };
    let end = u32::MAX - 1;
    let cases: [Case; 24] = [
        ("in order", vec![(0, syn(99)), (1, data(100, b"abc")), (2, data(103, b"def"))], "<abcdef>"),
        ("without its beginning", vec![(1, data(100, b"abc")), (2, data(103, b"def"))], "<abcdef>"),
        ("backwards", vec![(0, syn(99)), (1, data(103, b"def")), (2, data(100, b"abc"))], "<abcdef>"),
        (
            "three mixed up",
            vec![(0, syn(99)), (1, data(106, b"g")), (1, data(103, b"def")), (2, data(100, b"abc"))],
            "<abcdefg>",
        ),
        ("again", vec![(0, data(100, b"abc")), (1, data(100, b"abc")), (2, data(103, b"def"))], "<abcdef>"),
        ("other words for the same place", vec![(0, data(100, b"abc")), (1, data(100, b"xyzd"))], "<abcd>"),
        (
            "again while it waits",
            vec![(0, syn(99)), (1, data(103, b"de")), (1, data(103, b"def")), (2, data(100, b"abc"))],
            "<abcdef>",
        ),
        ("keep-alive", vec![(0, data(100, b"abc")), (1, data(102, b"?")), (2, data(103, b"d"))], "<abcd>"),
        ("around the end", vec![(0, data(end, b"abc")), (1, data(1, b"de"))], "<abcde>"),
        (
            "around the end, backwards",
            vec![(0, syn(end - 1)), (1, data(1, b"de")), (2, data(end, b"abc"))],
            "<abcde>",
        ),
        (
            "with the SYN",
            vec![(0, Segment { syn: true, ..data(99, b"abc") }), (1, data(103, b"d"))],
            "<abcd>",
        ),
        ("the SYN again", vec![(0, syn(99)), (0, syn(99)), (1, data(100, b"abc"))], "<abc>"),
        (
            "the SYN again behind the bytes",
            vec![(0, syn(99)), (1, data(100, b"abc")), (1, syn(99)), (2, data(103, b"d"))],
            "<abcd>",
        ),
        (
            "the SYN behind the bytes",
            vec![(0, data(103, b"def")), (1, syn(99)), (1, data(106, b"g")), (2, data(103, b"def"))],
            "<defg>",
        ),
        (
            "cut, and whole while it waits",
            vec![(0, syn(99)), (1, cut), (1, data(103, b"defgh")), (2, data(100, b"abc"))],
            "<abcdefgh>",
        ),
        ("a gap to the end", vec![(0, data(100, b"abc")), (1, data(105, b"fg"))], "<abc[2]fg>"),
        (
            "a gap that is waited for",
            vec![(0, data(100, b"a")), (1, data(103, b"d")), (3_100, data(104, b"e"))],
            "<a[2]de>",
        ),
        (
            "a gap that the other side does not have",
            vec![
                (0, data(100, b"a")),
                (1, data(103, b"d")),
                (30, acknowledgement(104)),
                (31, data(104, b"e")),
            ],
            "<a[2]de>",
        ),
        (
            "a gap that is being filled",
            vec![
                (0, data(100, b"a")),
                (1, data(103, b"d")),
                (30, acknowledgement(101)),
                (31, data(101, b"bc")),
            ],
            "<abcd>",
        ),
        ("cut", vec![(0, data(100, b"abc")), (1, cut), (2, data(108, b"i"))], "<abcde[3]i>"),
        (
            "aborted",
            vec![(0, data(100, b"abc")), (1, data(105, b"f")), (2, rst), (3, data(106, b"g"))],
            "<abc[2]f><g>",
        ),
        (
            "the same ports again",
            vec![
                (0, data(100, b"abc")),
                (1, syn(5_000)),
                (2, data(5_001, b"x")),
                (3, data(0x9000_0000, b"y")),
            ],
            "<abc><x><y>",
        ),
        (
            "of no interest",
            vec![
                (0, data(100, b"bored")),
                (1, data(105, b"more")),
                (2, syn(0x9000_0007)),
                (3, data(0x9000_0008, b"x")),
            ],
            "<bored><x>",
        ),
        (
            "of no interest behind a gap",
            vec![(0, syn(99)), (0, data(200, b"later")), (1, data(100, b"bored")), (2, data(105, b"more"))],
            "<bored>",
        ),
    ];
    for (name, segments, expected) in cases {
        assert_eq!(read(&segments), expected, "{name}");
    }
}

#[test]
fn held_bytes_are_as_old_as_what_set_them_free() {
    let mut connections = Connections::<()>::new();
    let mut seen = Vec::new();
    let mut sink = |(): &mut (), stretch: Stretch<'_>| {
        if let Part::Bytes(bytes) = stretch.part {
            seen.push((stretch.at.0, bytes.to_vec()));
        }
        Interest::Some
    };
    for (at, sequence, bytes) in [(1, 100, b"a"), (2, 102, b"c"), (9, 101, b"b"), (10, 105, b"f")] {
        connections.segment(Micros(at), &data(sequence, bytes), &mut sink);
    }
    connections.finish(&mut sink);
    let expected = [(1, b"a"), (9, b"b"), (9, b"c"), (10, b"f")].map(|(at, bytes)| (at, bytes.to_vec()));
    assert_eq!(seen, expected);
}

/// The segment that is dropped may have one byte, and the new one the largest possible length.
#[test]
fn small_gaps_do_not_make_room_for_large_segments() {
    let mut connections = Connections::<()>::new();
    let large = vec![7; 60_000];
    for port in 1..=8 {
        let source = SocketAddr::from(([192, 0, 2, 1], port));
        let mut segment = |sequence, bytes| {
            let segment = Segment { source, ..data(sequence, bytes) };
            connections.segment(Micros(0), &segment, &mut |(), _| Interest::Some);
            let bytes: usize = connections.directions.values().map(Direction::waiting_bytes).sum();
            assert!(connections.waiting_bytes() == bytes && bytes <= Connections::<()>::WAITING_BYTES_MAX);
        };
        segment(0, b"x");
        for n in 1..=128 {
            segment(2 * n, b"x");
        }
        for n in 0..128 {
            segment(1_000 + 60_001 * n, &large);
        }
    }
}

#[test]
fn what_nobody_wants_to_know_waits_no_longer() {
    let mut connections = Connections::<()>::new();
    let mut sink = |(): &mut (), stretch: Stretch<'_>| match stretch.part {
        Part::Bytes(_) => Interest::None,
        _ => Interest::Some,
    };
    let syn = Segment { syn: true, ..data(99, b"") };
    for segment in [syn, data(200, b"later"), data(100, b"bored")] {
        connections.segment(Micros(0), &segment, &mut sink);
    }
    assert_eq!(connections.waiting_bytes(), 0);
}

#[test]
fn tables_stay_bounded() {
    let mut connections = Connections::<()>::new();
    let (mut begun, mut ended) = (0_u32, 0_u32);
    let mut sink = |(): &mut (), stretch: Stretch<'_>| {
        match stretch.part {
            Part::Begin => begun += 1,
            Part::End => ended += 1,
            Part::Bytes(_) | Part::Lost(_) => {}
        }
        Interest::Some
    };
    let large = vec![7; 60_000];
    for n in 0..20_000_u32 {
        let source = SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], (n >> 16) as u16 + 1));
        connections.segment(Micros(i64::from(n)), &Segment { source, ..data(1, b"x") }, &mut sink);
        if n < 2_000 {
            connections.segment(Micros(i64::from(n)), &Segment { source, ..data(9, &large) }, &mut sink);
        }
        assert!(
            connections.directions.len() <= DIRECTIONS_MAX
                && connections.waiting_bytes <= Connections::<()>::WAITING_BYTES_MAX
        );
    }
    for n in 0..1_000 {
        connections.segment(Micros(0), &data(100 + n * 2, b"x"), &mut sink);
        assert!(connections.directions.values().all(|one| one.waiting.len() <= WAITING_MAX));
    }
    connections.finish(&mut sink);
    assert_eq!(begun, ended);
}
