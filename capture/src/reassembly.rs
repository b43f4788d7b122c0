//! Reassembles fragments and TCP segments, which can be read only together.

use std::net::{IpAddr, SocketAddr};

use sidetone_media::pcap::tcp::{Connections, Interest, Part, Stretch};
use sidetone_media::pcap::{Content, Datagram, Dissector, Record, Segment};
use sidetone_media::time::Micros;
use sidetone_sip::message::Message;

use super::tcp_framing::{TcpReader, Unit, UnitKind};

/// The parts of packets and streams that wait for the others.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    dissector: Dissector,
    connections: Connections<TcpReader>,
    /// Bytes that all readers hold.
    held: usize,
    heads: Vec<Head>,
}

/// The result of a fragment or segment that completes a packet or message.
#[derive(Debug)]
pub(super) enum Arrival<'a> {
    /// A datagram.
    Datagram(Datagram<'a>),
    /// SIP that the message guard refuses.
    Malformed,
    /// A SIP message with its source and destination.
    Message(SocketAddr, SocketAddr, &'a Message),
    /// A connection for which the memory limit is reached.
    OverLimit,
    /// Truncated headers.
    Truncated,
}

/// The first fragment of a text message, which is read without the others if they do not arrive.
#[derive(Debug)]
struct Head {
    at: Micros,
    source: SocketAddr,
    destination: SocketAddr,
    text: Vec<u8>,
    payload_len: usize,
}

type Sink<'a> = dyn FnMut(Micros, Arrival<'_>) + 'a;

impl Reassembly {
    /// Takes a frame that holds a fragment.
    pub(super) fn fragment(&mut self, record: &Record<'_>, sink: &mut Sink<'_>) {
        let at = record.at;
        match self.dissector.fragment(at, record.link, record.frame) {
            Content::Fragment | Content::NotIp | Content::Other => {}
            Content::Head(datagram) => {
                if datagram.payload.first().is_some_and(u8::is_ascii_uppercase) {
                    hold(&mut self.heads, Head::new(at, &datagram), sink);
                }
            }
            Content::Tcp(segment) => tcp(&mut self.connections, &mut self.held, at, &segment, sink),
            Content::Truncated => sink(at, Arrival::Truncated),
            Content::Udp(datagram) => {
                self.heads.retain(|head| !head.is_of(&datagram));
                sink(at, Arrival::Datagram(datagram));
            }
        }
    }

    /// Takes a segment of TCP.
    pub(super) fn segment(&mut self, at: Micros, segment: &Segment<'_>, sink: &mut Sink<'_>) {
        tcp(&mut self.connections, &mut self.held, at, segment, sink);
    }

    /// Whether first fragments wait.
    #[inline]
    pub(super) fn has_heads(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Stops waiting for further fragments between two hosts, because they have exchanged later messages: a
    /// capture filter for ports drops all fragments but the first.
    pub(super) fn release_heads(&mut self, one: IpAddr, other: IpAddr, sink: &mut Sink<'_>) {
        let is_between = |head: &Head| {
            let ends = (head.source.ip(), head.destination.ip());
            ends == (one, other) || ends == (other, one)
        };
        for head in self.heads.extract_if(.., |head| is_between(head)) {
            head.arrive(sink);
        }
    }

    /// Passes on what still waits.
    pub(super) fn finish(&mut self, sink: &mut Sink<'_>) {
        for head in std::mem::take(&mut self.heads) {
            head.arrive(sink);
        }
        let held = &mut self.held;
        self.connections.finish(&mut |reader, stretch| take(reader, held, &stretch, sink));
    }

    /// Returns the number of fragments that could not be reassembled so far.
    pub(super) fn fragments_left(&self) -> u64 {
        self.dissector.fragments_left()
    }
}

fn tcp(
    connections: &mut Connections<TcpReader>,
    held: &mut usize,
    at: Micros,
    segment: &Segment<'_>,
    sink: &mut Sink<'_>,
) {
    connections.segment(at, segment, &mut |reader, stretch| take(reader, held, &stretch, sink));
}

/// Passes a part of a connection to its reader, and what that returns to `sink`.
fn take(reader: &mut TcpReader, held: &mut usize, stretch: &Stretch<'_>, sink: &mut Sink<'_>) -> Interest {
    let Stretch { at, source, destination, part } = *stretch;
    let before = reader.held();
    let mut units = |unit: Unit<'_>| match unit.kind {
        UnitKind::Datagram(payload) => {
            let payload_len = payload.len();
            sink(at, Arrival::Datagram(Datagram { source, destination, payload, payload_len }));
        }
        UnitKind::Malformed => sink(at, Arrival::Malformed),
        UnitKind::Message(message) => sink(at, Arrival::Message(source, destination, message)),
    };
    let goes_on = match part {
        Part::Begin => true,
        Part::Bytes(bytes) => reader.take(bytes, &mut units),
        Part::Lost(len) => {
            reader.lose(len, &mut units);
            true
        }
        Part::End => {
            reader.forget();
            false
        }
    };
    *held = (*held + reader.held()).saturating_sub(before);
    if *held > HELD_MAX {
        *held = held.saturating_sub(reader.held());
        reader.forget();
        sink(at, Arrival::OverLimit);
    }
    if goes_on { Interest::Some } else { Interest::None }
}

fn hold(heads: &mut Vec<Head>, head: Head, sink: &mut Sink<'_>) {
    if heads.len() >= HEADS_MAX {
        heads.remove(0).arrive(sink);
    }
    heads.push(head);
}

impl Head {
    fn new(at: Micros, datagram: &Datagram<'_>) -> Self {
        Head {
            at,
            source: datagram.source,
            destination: datagram.destination,
            text: datagram.payload.to_vec(),
            payload_len: datagram.payload_len,
        }
    }

    /// Whether this fragment begins `datagram`.
    fn is_of(&self, datagram: &Datagram<'_>) -> bool {
        self.source == datagram.source
            && self.destination == datagram.destination
            && datagram.payload.starts_with(&self.text)
    }

    fn arrive(self, sink: &mut Sink<'_>) {
        let Head { at, source, destination, text, payload_len } = self;
        sink(at, Arrival::Datagram(Datagram { source, destination, payload: &text, payload_len }));
    }
}

/// The maximum number of waiting first fragments of text.
const HEADS_MAX: usize = 64;
/// Bytes of unfinished messages in all connections.
const HELD_MAX: usize = 32 << 20;
