//! TCP reassembly: segments of a few connections in any order, repeated, overlapping, truncated and missing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::LazyLock;

use sidetone_media::pcap::tcp::{Connections, Interest, Part, Stretch};
use sidetone_media::pcap::{Content, Dissector, Records, Segment};
use sidetone_media::time::Micros;

use super::choices::Choices;
use super::frames::{Given, file};

/// The directions: two of one call, and two of another.
pub const ENDS: [(&str, &str); 4] = [
    ("192.0.2.1:4000", "192.0.2.2:5060"),
    ("192.0.2.2:5060", "192.0.2.1:4000"),
    ("[2001:db8::1]:4000", "[2001:db8::2]:5061"),
    ("[2001:db8::2]:5061", "[2001:db8::1]:4000"),
];

/// For all inputs, the events of a direction are a start, data and an end, with no more bytes than arrived, and the
/// waiting bytes stay within their bound. When no segments contradict each other, each byte is delivered at most once
/// and at its offset; when no gap was skipped, every byte is delivered.
pub fn tcp_reassembly(data: &[u8]) {
    let mut choices = Choices::new(data);
    match choices.byte() & 3 {
        0 => any_file(choices.rest()),
        1 => any_segments(&mut choices),
        way => one_truth(&mut choices, way == 3),
    }
}

/// The segments of any capture file.
fn any_file(bytes: &[u8]) {
    let (mut reader, mut dissector) = (Reader::default(), Dissector::new());
    for record in Records::new(bytes).map_while(Result::ok) {
        if let Content::Tcp(segment) = dissector.dissect(record.at, record.link, record.frame) {
            reader.segment(record.at, &segment, None);
        }
    }
    reader.finish();
}

/// Segments that contradict each other, large ones among them.
fn any_segments(choices: &mut Choices<'_>) {
    let mut reader = Reader::default();
    let mut now = Micros(0);
    while !choices.is_over() {
        let choice = choices.byte();
        let flags = choices.byte();
        now = match flags & 3 {
            0..=2 => now + i64::from(flags >> 2) * 20_000,
            _ => Micros(choices.u64().cast_signed()),
        };
        let sequence = match choice >> 2 & 3 {
            0 => u32::from(choices.byte()),
            1 => u32::from(choices.u16()),
            2 => u32::from(choices.u16()) << 8,
            _ => choices.u32(),
        };
        let len = usize::from(if choice & 16 != 0 { choices.u16() } else { u16::from(choices.byte()) });
        let payload = &TRUTH[..len];
        let (source, destination) = ends(usize::from(choice & 3));
        let segment = Segment {
            source,
            destination,
            sequence,
            acknowledges: (choice & 32 != 0).then(|| choices.u32()),
            syn: choice >> 6 == 1,
            fin: choice >> 6 == 2,
            rst: choice >> 6 == 3 && flags & 4 != 0,
            payload: &payload[..if flags & 8 != 0 { len / 2 } else { len }],
            payload_len: len,
        };
        reader.segment(now, &segment, None);
    }
    reader.finish();
}

/// Segments of four streams without contradictions.
fn one_truth(choices: &mut Choices<'_>, as_file: bool) {
    let (segments, is_calm) = segments(choices);
    let mut reader = Reader::default();
    if as_file {
        let file = file(&segments);
        let (mut dissector, mut expected) = (Dissector::new(), segments.iter());
        for record in Records::new(&file) {
            let record = record.expect("the file is as it should be");
            if let Content::Tcp(segment) = dissector.dissect(record.at, record.link, record.frame) {
                let given = expected.next().expect("no more segments than were written");
                assert_eq!((record.at, segment), (given.at, given.segment()));
                reader.segment(record.at, &segment, Some(given.place));
            }
        }
        assert!(expected.next().is_none(), "a segment was not found");
    } else {
        for given in &segments {
            reader.segment(given.at, &given.segment(), Some(given.place));
        }
    }
    reader.finish();
    if is_calm && segments.len() <= CALM_SEGMENTS_MAX {
        for direction in 0..ENDS.len() {
            check_complete(&reader, &segments, direction);
        }
    }
}

/// Every byte from the start of the direction on was delivered.
fn check_complete(reader: &Reader, segments: &[Given], direction: usize) {
    let Some(stream) = reader.streams.get(&ends(direction)) else { return };
    let mut spans: Vec<(usize, usize)> = segments
        .iter()
        .filter(|given| given.direction == direction && given.len > 0)
        .map(|given| (given.place.max(stream.first), given.place + given.len))
        .collect();
    spans.sort_unstable();
    let (mut came, mut end) = (0, stream.first);
    for (from, to) in spans {
        came += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    assert_eq!(stream.told, came, "direction {direction} from {}", stream.first);
}

/// The segments of a phone and a switch as a capture may hold them; and whether none of them makes the reader skip a
/// gap.
fn segments(choices: &mut Choices<'_>) -> (Vec<Given>, bool) {
    let first: [u32; 4] = std::array::from_fn(|_| choices.u32());
    let (mut segments, mut is_calm) = (Vec::<Given>::new(), true);
    let (mut sent, mut now) = ([0; 4], Micros(1_000_000_000));
    while !choices.is_over() && segments.len() < SEGMENTS_MAX {
        let choice = choices.byte();
        let direction = usize::from(choice & 3);
        let mut given = Given {
            at: now,
            direction,
            first: first[direction],
            fragments: choice & 0x40 != 0,
            ..Given::default()
        };
        match choice >> 2 & 7 {
            // Continues at the current offset.
            0 | 1 => {
                given.place = sent[direction];
                given.len = 1 + usize::from(choices.byte());
                sent[direction] = (given.place + given.len).min(PLACE_MAX);
            }
            // At any offset.
            2 | 3 => {
                given.place = usize::from(choices.u16());
                given.len = 1 + usize::from(choices.byte()) * 5;
            }
            4 => (given.syn, given.len) = (true, usize::from(choices.byte() >> 4)),
            // A retransmission.
            5 => {
                let back = 1 + usize::from(choices.byte());
                let Some(earlier) = segments.len().checked_sub(back) else { continue };
                given = Given { at: now, ..segments[earlier].clone() };
            }
            6 => {
                given.place = sent[direction];
                given.acknowledges = Some(first[direction ^ 1].wrapping_add(u32::from(choices.u16())));
                is_calm = false;
            }
            _ => {
                let other = choices.byte();
                now = now + i64::from(other) * 20_000;
                given.rst = other & 0x81 == 0x81;
                given.fin = other & 2 != 0;
                given.place = sent[direction];
                is_calm = false;
            }
        }
        if choice & 0x80 != 0 && given.len > 0 {
            given.cut = usize::from(choices.byte()) % (given.len + 1);
            is_calm &= given.cut == 0;
        }
        segments.push(given);
    }
    (segments, is_calm)
}

/// Connections, and the counts of their events.
#[derive(Default)]
struct Reader {
    connections: Connections<State>,
    streams: BTreeMap<(SocketAddr, SocketAddr), Stream>,
    given_bytes: usize,
    told_bytes: usize,
    resets: usize,
}

/// The state of a direction in [`Connections`]'s reader.
#[derive(Default)]
struct State {
    parts: usize,
    is_bored: bool,
    /// The offset of the next byte in the original data.
    place: Option<usize>,
}

#[derive(Default)]
struct Stream {
    is_open: bool,
    begun: usize,
    /// The offset at which it began, and the number of bytes delivered since.
    first: usize,
    told: usize,
}

impl Reader {
    /// `place` is the offset of the segment in the original data, if there is one.
    fn segment(&mut self, at: Micros, segment: &Segment<'_>, place: Option<usize>) {
        self.given_bytes += segment.payload.len();
        self.resets += usize::from(segment.rst);
        let (streams, told, resets) = (&mut self.streams, &mut self.told_bytes, self.resets);
        self.connections.segment(at, segment, &mut |state: &mut State, stretch: Stretch<'_>| {
            if matches!(stretch.part, Part::Begin) {
                assert_eq!((stretch.source, stretch.destination), (segment.source, segment.destination));
            }
            tell(state, stretch, place, streams, told, resets)
        });
        assert!(self.connections.waiting_bytes() <= Connections::<State>::WAITING_BYTES_MAX);
        assert!(self.told_bytes <= self.given_bytes, "more than came");
    }

    fn finish(&mut self) {
        let (streams, told, resets) = (&mut self.streams, &mut self.told_bytes, self.resets);
        self.connections.finish(&mut |state: &mut State, stretch: Stretch<'_>| {
            assert_ne!(stretch.part, Part::Begin, "a beginning at the end");
            tell(state, stretch, None, streams, told, resets)
        });
        assert!(self.streams.values().all(|stream| !stream.is_open), "a direction without an end");
        assert_eq!(self.connections.waiting_bytes(), 0);
        assert!(self.told_bytes <= self.given_bytes, "more than came");
    }
}

fn tell(
    state: &mut State,
    stretch: Stretch<'_>,
    place: Option<usize>,
    streams: &mut BTreeMap<(SocketAddr, SocketAddr), Stream>,
    told: &mut usize,
    resets: usize,
) -> Interest {
    let stream = streams.entry((stretch.source, stretch.destination)).or_default();
    assert_eq!(state.parts == 0, stretch.part == Part::Begin, "the state is not the direction's");
    assert_eq!(stream.is_open, stretch.part != Part::Begin, "ends and begins do not follow each other");
    assert!(!state.is_bored || stretch.part == Part::End, "nobody wants to know");
    state.parts += 1;
    match stretch.part {
        Part::Begin => {
            (stream.is_open, stream.begun) = (true, stream.begun + 1);
            (stream.first, stream.told, state.place) = (place.unwrap_or(0), 0, place);
            assert!(place.is_none() || stream.begun <= 1 + resets, "begins again for no reason");
        }
        Part::Bytes(bytes) => {
            assert!(!bytes.is_empty());
            *told += bytes.len();
            stream.told += bytes.len();
            if let Some(place) = &mut state.place {
                assert_eq!(bytes, &TRUTH[*place..*place + bytes.len()], "other bytes than at {place}");
                *place += bytes.len();
            } else {
                state.is_bored = bytes.len() == BORING_LEN;
            }
        }
        Part::Lost(len) => {
            assert!(len > 0);
            state.place = state.place.map(|place| place + len);
        }
        Part::End => stream.is_open = false,
    }
    if state.is_bored { Interest::None } else { Interest::Some }
}

/// The addresses of a direction.
pub fn ends(direction: usize) -> (SocketAddr, SocketAddr) {
    static PARSED: LazyLock<[(SocketAddr, SocketAddr); 4]> =
        LazyLock::new(|| ENDS.map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap())));
    PARSED[direction]
}

/// The content of every stream: a byte differs from those near it.
pub static TRUTH: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..80_000_u32).map(|place| (place.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect());

/// Contradicting segments are checked up to this number of bytes.
const BORING_LEN: usize = 77;
/// The largest offset at which a segment begins.
const PLACE_MAX: usize = 65_535;
/// Segments of one input.
const SEGMENTS_MAX: usize = 1_000;
/// The number of segments that wait in one direction before a gap is skipped.
const CALM_SEGMENTS_MAX: usize = 256;
