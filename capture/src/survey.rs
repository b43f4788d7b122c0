//! Whose fragments and segments of TCP are: found for a whole capture before its frames are handed out.
//!
//! What a fragment is a part of, and which message a segment carries, is often known only later than its frame. A
//! fragment belongs to the excerpts of its packet, which is known by addresses, protocol and identification; a segment to
//! those of the messages and packets that it holds a byte of; an acknowledgement to those of the last byte that it
//! acknowledges, and what opens a connection to those of its first bytes. What is never completed goes by what is known of its beginning.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use sidetone_media::pcap::tcp::{Connections, Interest, Part, Stretch};
use sidetone_media::pcap::{Content, Dissector, FragmentKey, Record, Segment, dissect, fragment_of};
use sidetone_media::time::Micros;

use super::carrier::{Carrier, Load, LoadKind};
use super::excerpt::{Excerpt, Owners, Splitter};
use super::track::{Found, Span, Track};

/// A survey of a capture under way.
///
/// *Bounds*: the limits of [`Dissector`] and [`Connections`], 32 MiB of unfinished messages, and 16 bytes for each
/// fragment and segment that belongs to an excerpt, of which 8 million are remembered.
#[derive(Debug, Default)]
pub struct Survey {
    owners: Owners,
    /// The number of the next frame.
    frame: u64,
    found: Found,
    dissector: Dissector,
    packets: HashMap<FragmentKey, Pieces>,
    /// The packets in the order in which they began; those that were completed are left in place.
    order: VecDeque<(u64, FragmentKey)>,
    begun: u64,
    connections: Connections<Carrier>,
    tracks: HashMap<Ends, Track>,
    /// Bytes that all carriers hold.
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

/// What a fragment completed.
enum Whole {
    /// A datagram of these excerpts.
    Datagram(Vec<usize>),
    /// The first fragment of a datagram of these excerpts.
    Head(Vec<usize>),
    /// Nothing that is looked at.
    Other,
    /// A segment, and its payload.
    Segment(Segment<'static>, Vec<u8>),
    /// A fragment of a packet that waits for others.
    Waits,
}

impl Survey {
    /// A survey of a capture that has these excerpts.
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

    /// Ends the survey: the splitter for the same frames from the first one on, and how many fragments and segments
    /// were too many to be remembered.
    pub fn finish(mut self) -> (Splitter, u64) {
        let keys: Vec<FragmentKey> = self.packets.keys().copied().collect();
        for key in keys {
            self.give_up(&key);
        }
        let Survey { owners, mut found, mut connections, mut tracks, mut held, .. } = self;
        connections.finish(&mut |carrier, stretch| {
            let known = Known { owners: &owners, tracks: &mut tracks, found: &mut found, held: &mut held };
            known.stretch(carrier, &stretch, &mut None)
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

    /// The frames of the packets that the last fragment completed; `key` is what it is a part of.
    fn completed(&mut self, key: FragmentKey) -> Vec<u64> {
        let joined = self.dissector.joined().iter().copied();
        let keys: Vec<FragmentKey> = joined.chain([key]).collect();
        let packets = keys.iter().filter_map(|key| self.packets.remove(key));
        packets.flat_map(|pieces| pieces.frames).collect()
    }

    /// A packet that is not completed goes by its first fragment.
    fn give_up(&mut self, key: &FragmentKey) {
        let Some(pieces) = self.packets.remove(key) else { return };
        for frame in pieces.frames {
            self.found.add(frame, &pieces.head);
        }
    }

    /// Takes a segment, which came in these frames.
    fn segment(&mut self, frames: &[u64], at: Micros, segment: &Segment<'_>) {
        let ends = (segment.source, segment.destination);
        let mut named = Vec::new();
        self.owners.text(at, segment.payload, &mut named);
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let (opens, len) = (segment.syn, segment.payload_len);
        let mut arrived = Some(Arrived { ends, first, opens, len, frames, named });
        let Survey { owners, found, connections, tracks, held, .. } = self;
        connections.segment(at, segment, &mut |carrier, stretch| {
            let known = Known { owners, tracks: &mut *tracks, found: &mut *found, held: &mut *held };
            known.stretch(carrier, &stretch, &mut arrived)
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

/// The segment at hand, until it is in its track.
struct Arrived<'a> {
    ends: Ends,
    /// The sequence number of its first byte.
    first: u32,
    /// It opens the connection.
    opens: bool,
    len: usize,
    frames: &'a [u64],
    /// The excerpts whose Call-ID stands in it.
    named: Vec<usize>,
}

impl Arrived<'_> {
    fn enter(self, track: &mut Track, found: &mut Found) {
        for frame in self.frames.iter().filter(|_| self.opens) {
            track.opens(*frame, found);
        }
        for frame in self.frames.iter().filter(|_| self.len > 0) {
            let span = Span { frame: *frame, named: self.named.clone() };
            track.enter(self.first, self.len, span, found);
        }
    }
}

/// What a stretch of a connection changes.
struct Known<'a> {
    owners: &'a Owners,
    tracks: &'a mut HashMap<Ends, Track>,
    found: &'a mut Found,
    held: &'a mut usize,
}

impl Known<'_> {
    fn stretch(
        self,
        carrier: &mut Carrier,
        stretch: &Stretch<'_>,
        arrived: &mut Option<Arrived<'_>>,
    ) -> Interest {
        let Stretch { at, source, destination, part } = *stretch;
        let Known { owners, tracks, found, held } = self;
        let ends = (source, destination);
        let len = match part {
            Part::Begin => {
                // A direction begins with the segment at hand.
                let first = arrived.as_ref().map_or(0, |arrived| arrived.first);
                tracks.insert(ends, Track::new(first));
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
        let before = carrier.held();
        let mut places = Vec::new();
        let mut loads = |load: Load<'_>| {
            places.clear();
            match load.kind {
                LoadKind::Datagram(_) => owners.media(at, ends, &mut places),
                LoadKind::Malformed => {}
                LoadKind::Message(message) => {
                    owners.call_id(at, message.headers().call_id(), &mut places);
                }
            }
            track.load(load.behind, &places, found);
        };
        let goes_on = match part {
            Part::Bytes(bytes) => carrier.take(bytes, &mut loads),
            _ => {
                carrier.lose(len, &mut loads);
                true
            }
        };
        *held = (*held + carrier.held()).saturating_sub(before);
        if *held > HELD_MAX {
            *held = held.saturating_sub(carrier.held());
            carrier.forget();
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

/// Packets that wait for fragments, as many as in the [`Dissector`] and their predecessors; the oldest one gives way.
const PACKETS_MAX: usize = 2_048;
/// Places in the queue of packets, completed ones among them.
const ORDER_MAX: usize = 4 * PACKETS_MAX;
/// Fragments of one packet that are remembered: eight bytes in each.
const PIECES_MAX: usize = 8_192;
/// How long fragments wait for the others, in microseconds, as in the [`Dissector`].
const AGE_MAX_US: i64 = 30_000_000;
/// Bytes of unfinished messages in all connections.
const HELD_MAX: usize = 32 << 20;
