//! Finds the excerpts that IP fragments and TCP segments belong to, before the frames of a capture are
//! written.
//!
//! The content of a fragment or a segment is often known only after a later frame. So the whole capture is
//! read once before it is split:
//!
//! - A fragment belongs to the excerpts of its packet. Addresses, protocol and identification name the
//!   packet.
//! - A segment belongs to the excerpts of every message and packet of which it carries a byte.
//! - An acknowledgement belongs to the excerpts of the last byte that it acknowledges.
//! - The segments that open a connection belong to the excerpts of its first bytes.
//! - A packet that is never complete belongs to the excerpts of its first fragment. Segments of an incomplete
//!   message belong to the excerpts whose Call-ID they contain.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use sidetone_media::pcap::tcp::{Connections, Interest, Part, Stretch};
use sidetone_media::pcap::{Content, Dissector, FragmentKey, Record, Segment, dissect, fragment_of};
use sidetone_media::time::Micros;

use super::excerpt::{Excerpt, Owners, Splitter};
use super::segment_owners::{Found, SegmentOwners, Span};
use super::tcp_framing::{TcpReader, Unit, UnitKind};

/// The first reading of a capture that is split into excerpts.
///
/// *Bounds*, in addition to those of [`Dissector`] and [`Connections`]:
///
/// - 32 MiB of unfinished messages in all connections.
/// - 2,048 packets that wait for fragments, with 8,192 fragments of 8 bytes each: 128 MiB.
/// - For each direction of a connection, of which there are 16,384, 4,096 segments whose message is not
///   complete, 64 complete messages and 16 segments that opened it. A segment takes 48 bytes, and 8 bytes for
///   each excerpt whose Call-ID it contains.
/// - 8,388,608 pairs of a fragment or segment and its excerpt, of 16 bytes each: 128 MiB. More are counted
///   and left out.
#[derive(Debug, Default)]
pub struct Survey {
    owners: Owners,
    /// The number of the next frame.
    frame: u64,
    found: Found,
    dissector: Dissector,
    packets: HashMap<FragmentKey, Pieces>,
    /// The packets in the order of their first fragments; completed ones stay in the queue.
    order: VecDeque<(u64, FragmentKey)>,
    begun: u64,
    connections: Connections<TcpReader>,
    tracks: HashMap<Ends, SegmentOwners>,
    /// Bytes that all readers hold.
    held: usize,
}

type Ends = (SocketAddr, SocketAddr);

/// The fragments of a packet that is not complete.
#[derive(Debug)]
struct Pieces {
    number: u64,
    begun: Micros,
    frames: Vec<u64>,
    /// The excerpts of its first fragment.
    head: Vec<usize>,
}

/// The result of a fragment.
enum Whole {
    /// A datagram of these excerpts.
    Datagram(Vec<usize>),
    /// The first fragment of a datagram of these excerpts.
    Head(Vec<usize>),
    /// A datagram that is not examined.
    Other,
    /// A segment, and its payload.
    Segment(Segment<'static>, Vec<u8>),
    /// A fragment of a packet that waits for others.
    Waits,
}

impl Survey {
    /// Returns a survey for these excerpts.
    pub fn new(excerpts: &[Excerpt]) -> Self {
        Survey { owners: Owners::new(excerpts), ..Survey::default() }
    }

    /// Takes the next frame of the capture.
    pub fn record(&mut self, record: &Record<'_>) {
        let frame = self.frame;
        self.frame += 1;
        match dissect(record.link, record.frame) {
            Content::Fragment | Content::Head(_) => self.fragment(frame, record),
            Content::Tcp(segment) => self.segment(&[frame], record.at, &segment),
            Content::NotIp | Content::Other | Content::Truncated | Content::Udp(_) => {}
        }
    }

    /// Ends the survey. Returns the splitter, which takes the same frames from the first one on, and the
    /// number of fragments and segments beyond the limit.
    pub fn finish(mut self) -> (Splitter, u64) {
        let keys: Vec<FragmentKey> = self.packets.keys().copied().collect();
        for key in keys {
            self.give_up(&key);
        }
        let Survey { owners, mut found, mut connections, mut tracks, mut held, .. } = self;
        connections.finish(&mut |reader, stretch| {
            let known = Known { owners: &owners, tracks: &mut tracks, found: &mut found, held: &mut held };
            known.stretch(reader, &stretch, &mut None)
        });
        let (surveyed, left_out) = found.finish();
        (Splitter::new(owners, surveyed), left_out)
    }

    fn fragment(&mut self, frame: u64, record: &Record<'_>) {
        let Some(key) = fragment_of(record.link, record.frame) else { return };
        let at = record.at;
        self.pieces(at, key).push([frame]);
        let whole = match self.dissector.fragment(at, record.link, record.frame) {
            Content::Head(datagram) => {
                let mut head = Vec::new();
                let ends = (datagram.source, datagram.destination);
                self.owners.datagram(at, ends, datagram.payload, &mut head);
                Whole::Head(head)
            }
            Content::Udp(datagram) => {
                let mut places = Vec::new();
                let ends = (datagram.source, datagram.destination);
                self.owners.datagram(at, ends, datagram.payload, &mut places);
                Whole::Datagram(places)
            }
            Content::Tcp(segment) => Whole::Segment(without_payload(&segment), segment.payload.to_vec()),
            Content::Fragment => Whole::Waits,
            Content::NotIp | Content::Other | Content::Truncated => Whole::Other,
        };
        match whole {
            Whole::Datagram(places) => {
                for frame in self.completed(key) {
                    self.found.add(frame, &places);
                }
            }
            Whole::Head(places) => self.pieces(at, key).head = places,
            Whole::Other => drop(self.completed(key)),
            Whole::Segment(segment, payload) => {
                let frames = self.completed(key);
                self.segment(&frames, at, &Segment { payload: &payload, ..segment });
            }
            Whole::Waits => {
                if let Some(outer) = self.dissector.within() {
                    let frames = self.completed(key);
                    self.pieces(at, outer).push(frames);
                }
            }
        }
    }

    /// The fragments of a packet so far.
    fn pieces(&mut self, at: Micros, key: FragmentKey) -> &mut Pieces {
        let is_old = |pieces: &Pieces| at.since(pieces.begun) > AGE_MAX_US;
        if self.packets.get(&key).is_some_and(is_old) {
            self.give_up(&key);
        }
        while self.packets.len() >= PACKETS_MAX || self.order.len() >= ORDER_MAX {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.packets.get(&key).is_some_and(|pieces| pieces.number == number) {
                self.give_up(&key);
            }
        }
        let number = self.begun;
        let pieces = self.packets.entry(key).or_insert_with(|| Pieces {
            number,
            begun: at,
            frames: Vec::new(),
            head: Vec::new(),
        });
        if pieces.number == number {
            self.begun += 1;
            self.order.push_back((number, key));
        }
        pieces
    }

    /// The frames of the packets that the last fragment completed; `key` is the packet of that fragment.
    fn completed(&mut self, key: FragmentKey) -> Vec<u64> {
        let joined = self.dissector.joined().iter().copied();
        let keys: Vec<FragmentKey> = joined.chain([key]).collect();
        let packets = keys.iter().filter_map(|key| self.packets.remove(key));
        packets.flat_map(|pieces| pieces.frames).collect()
    }

    /// Assigns the fragments of an incomplete packet to the excerpts of its first fragment.
    fn give_up(&mut self, key: &FragmentKey) {
        let Some(pieces) = self.packets.remove(key) else { return };
        for frame in pieces.frames {
            self.found.add(frame, &pieces.head);
        }
    }

    /// Takes a segment; `frames` are the frames that carried it.
    fn segment(&mut self, frames: &[u64], at: Micros, segment: &Segment<'_>) {
        let ends = (segment.source, segment.destination);
        let mut named = Vec::new();
        self.owners.text(at, segment.payload, &mut named);
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let (opens, len) = (segment.syn, segment.payload_len);
        let mut arrived = Some(Arrived { ends, first, opens, len, frames, named });
        let Survey { owners, found, connections, tracks, held, .. } = self;
        connections.segment(at, segment, &mut |reader, stretch| {
            let known = Known { owners, tracks: &mut *tracks, found: &mut *found, held: &mut *held };
            known.stretch(reader, &stretch, &mut arrived)
        });
        if let (Some(arrived), Some(track)) = (arrived, tracks.get_mut(&ends)) {
            arrived.enter(track, found);
        }
        let acknowledged = segment.acknowledges.filter(|_| segment.payload_len == 0 && !segment.syn);
        if let (Some(number), Some(other)) = (acknowledged, tracks.get(&(ends.1, ends.0))) {
            for frame in frames {
                found.add(*frame, other.places_before(number));
            }
        }
    }
}

impl Pieces {
    fn push(&mut self, frames: impl IntoIterator<Item = u64>) {
        let room = PIECES_MAX.saturating_sub(self.frames.len());
        self.frames.extend(frames.into_iter().take(room));
    }
}

/// The current segment, until it is recorded for its direction.
struct Arrived<'a> {
    ends: Ends,
    /// The sequence number of its first byte.
    first: u32,
    /// Whether it opens the connection.
    opens: bool,
    len: usize,
    frames: &'a [u64],
    /// The excerpts whose Call-ID it contains.
    named: Vec<usize>,
}

impl Arrived<'_> {
    fn enter(self, track: &mut SegmentOwners, found: &mut Found) {
        for frame in self.frames.iter().filter(|_| self.opens) {
            track.opens(*frame, found);
        }
        for frame in self.frames.iter().filter(|_| self.len > 0) {
            let span = Span { frame: *frame, named: self.named.clone() };
            track.enter(self.first, self.len, span, found);
        }
    }
}

/// The state that a part of a connection changes.
struct Known<'a> {
    owners: &'a Owners,
    tracks: &'a mut HashMap<Ends, SegmentOwners>,
    found: &'a mut Found,
    held: &'a mut usize,
}

impl Known<'_> {
    fn stretch(
        self,
        reader: &mut TcpReader,
        stretch: &Stretch<'_>,
        arrived: &mut Option<Arrived<'_>>,
    ) -> Interest {
        let Stretch { at, source, destination, part } = *stretch;
        let Known { owners, tracks, found, held } = self;
        let ends = (source, destination);
        let len = match part {
            Part::Begin => {
                // A direction begins with the current segment.
                let first = arrived.as_ref().map_or(0, |arrived| arrived.first);
                tracks.insert(ends, SegmentOwners::new(first));
                return Interest::Some;
            }
            Part::Bytes(bytes) => bytes.len(),
            Part::End => {
                if let Some(track) = tracks.remove(&ends) {
                    track.finish(found);
                }
                return Interest::None;
            }
            Part::Lost(len) => len,
        };
        let Some(track) = tracks.get_mut(&ends) else { return Interest::None };
        if let Some(arrived) = arrived.take_if(|arrived| arrived.ends == ends) {
            arrived.enter(track, found);
        }
        track.go_on(len);
        let before = reader.held();
        let mut places = Vec::new();
        let mut units = |unit: Unit<'_>| {
            places.clear();
            match unit.kind {
                UnitKind::Datagram(_) => owners.media(at, ends, &mut places),
                UnitKind::Malformed => {}
                UnitKind::Message(message) => {
                    owners.call_id(at, message.headers().call_id(), &mut places);
                }
            }
            track.unit(unit.behind, &places, found);
        };
        let goes_on = match part {
            Part::Bytes(bytes) => reader.take(bytes, &mut units),
            _ => {
                reader.lose(len, &mut units);
                true
            }
        };
        *held = (*held + reader.held()).saturating_sub(before);
        if *held > HELD_MAX {
            *held = held.saturating_sub(reader.held());
            reader.forget();
        }
        if goes_on {
            Interest::Some
        } else {
            tracks.remove(&ends);
            Interest::None
        }
    }
}

fn without_payload(segment: &Segment<'_>) -> Segment<'static> {
    let Segment { source, destination, sequence, acknowledges, syn, fin, rst, payload: _, payload_len } =
        *segment;
    Segment { source, destination, sequence, acknowledges, syn, fin, rst, payload: &[], payload_len }
}

/// Packets that wait for fragments: twice as many as in the [`Dissector`], since a predecessor may be among
/// them. When there are more, the oldest one is given up.
const PACKETS_MAX: usize = 2_048;
/// Entries of the queue of packets, including completed ones.
const ORDER_MAX: usize = 4 * PACKETS_MAX;
/// Fragments of one packet: 65,535 bytes in fragments of eight bytes.
const PIECES_MAX: usize = 8_192;
/// How long fragments wait for the others, in microseconds, as in the [`Dissector`].
const AGE_MAX_US: i64 = 30_000_000;
/// Bytes of unfinished messages in all connections.
const HELD_MAX: usize = 32 << 20;
