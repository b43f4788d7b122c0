//! The router determines the type of each frame and its call or stream, and passes the event to the accumulator.
//!
//! A UDP payload is SIP when it begins with a SIP start line, and RTP when signalling announced its
//! destination or when it is recognised (see [`super::probation`]). Ports have no influence.

use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_media::pcap::{Content, Datagram, PlainDatagram, Record, dissect, dissect_plain};
use sidetone_media::rtcp::is_plausible;
use sidetone_media::rtp::{Header, Packet};
use sidetone_media::session::{AudioSample, Withheld};
use sidetone_media::time::Micros;

use super::accumulator::Accumulator;
use super::analysis::Skipped;
use super::calls::{Calls, News, Refused};
use super::embedded_sdp::session_description;
use super::endpoints::Bound;
use super::flow_key::Key;
use super::flows::{Binding, Flows};
use super::payload_kind::{is_rtp, is_sip, unpadded};
use super::payloads::{self, Meanings};
use super::probation::{CONTINUED_ANNOUNCED, CONTINUED_UNANNOUNCED, Waiting, is_known_type};
use super::reassembly::{Arrival, Reassembly};
use super::rtcp::{RTCP_BYTES_MAX, about};
use super::signal::{LegEnd, LegSignal, NONE, StreamSignal};
use super::times::Times;
use super::turn_protocol;

/// All state between frames, except statistics.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) skipped: Skipped,
    pub(super) flows: Flows,
    pub(super) streams: Streams,
    pub(super) calls: Calls,
    /// Whether payloads are decoded for silence, clipping and level.
    pub(super) listens: bool,
    /// Whether RTP or RTCP of any call, or a stream of no call, was seen. In a capture with signalling only, no
    /// media is reported as missing.
    pub(super) has_media: bool,
    /// What is wrong with the times of the frames.
    pub(super) times: Times,
    /// The meaning of payload types that no SDP announced.
    unannounced: Meanings,
    /// A datagram being reassembled.
    scratch: Vec<u8>,
    /// Fragments and segments that wait for the others.
    reassembly: Reassembly,
}

/// The streams as the router knows them, by number.
#[derive(Debug, Default)]
pub(super) struct Streams {
    slots: Vec<Option<Known>>,
    /// Numbers that can be reused.
    free: Vec<u32>,
    /// Streams begun so far.
    begun: u64,
}

/// A stream as the router knows it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) flow: u32,
    pub(super) ssrc: u32,
    /// Its position among all streams, by first packet.
    pub(super) serial: u64,
    /// The calls that announced it, the current one last; empty when no call ever did.
    pub(super) bindings: Vec<Binding>,
    /// When a packet last took the slow path.
    pub(super) seen: Micros,
    /// The generation of the endpoint table when the last binding was looked up.
    generation: u32,
    payloads: Meanings,
}

/// An RTP packet in the form that almost every frame of a call has, with its source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainRtp {
    /// The source address in the upper, the destination address in the lower half.
    pub(super) addresses: u64,
    /// The source port in the upper, the destination port in the lower half.
    pub(super) ports: u32,
    pub(super) header: Header,
    pub(super) payload_len: u16,
}

impl PlainRtp {
    /// Returns the packet of a frame; `None` for everything that has to take the slow path.
    // If it were not inlined, the fields would be written one by one and then read as wider words; such a read has to
    // wait for the writes.
    #[inline(always)]
    pub(super) fn of(record: &Record<'_>) -> Option<PlainRtp> {
        let PlainDatagram { addresses, ports, payload } = dissect_plain(record.link, record.frame)?;
        let (header, payload_len) = Header::split(payload)?;
        if !is_rtp(payload) || !header.is_plain() {
            return None;
        }
        // The length came from a 16-bit field.
        Some(PlainRtp { addresses, ports, header, payload_len: payload_len as u16 })
    }
}

/// An RTP packet with the datagram that contains it.
struct Rtp<'a> {
    packet: Packet,
    /// The captured part of the datagram; its length on the wire is separate.
    kept: &'a [u8],
    len: usize,
}

impl Rtp<'_> {
    /// The audio sample of the packet, if it is one of those that are decoded.
    #[inline]
    fn heard(&self) -> Option<AudioSample> {
        let is_due = AudioSample::is_due(&self.packet);
        is_due.then(|| AudioSample::of(self.packet.payload_in(self.kept, self.len))).flatten()
    }
}

impl Router {
    /// Returns an empty router.
    pub(super) fn new(keeps_ladders: bool, evicts: bool) -> Self {
        Router {
            packets: 0,
            bytes: 0,
            skipped: Skipped::default(),
            flows: Flows::new(),
            streams: Streams::default(),
            calls: Calls::new(keeps_ladders, evicts),
            listens: false,
            has_media: false,
            times: Times::default(),
            unannounced: payloads::meanings(&[]),
            scratch: Vec::new(),
            reassembly: Reassembly::default(),
        }
    }

    /// Takes one frame.
    #[inline]
    pub(super) fn record(&mut self, record: &Record<'_>, accumulator: &mut Accumulator) {
        self.packets += 1;
        self.bytes += u64::from(record.wire_len);
        if let Some(plain) = dissect_plain(record.link, record.frame)
            && is_rtp(plain.payload)
        {
            let Some((header, len)) = Header::split(plain.payload) else { return };
            let ends = (plain.addresses, plain.ports);
            if self.listens || !self.continues(record.at, ends, header, len, accumulator) {
                self.plain(record.at, plain, accumulator);
            }
        } else {
            self.unusual(record, accumulator);
        }
    }

    /// RTP that is not the next packet of its stream, or any RTP when payloads are decoded.
    #[inline(never)]
    fn plain(&mut self, at: Micros, plain: PlainDatagram<'_>, accumulator: &mut Accumulator) {
        let Ok(packet) = Packet::parse(plain.payload) else { return };
        let rtp = Rtp { packet, kept: plain.payload, len: plain.payload.len() };
        self.rtp(at, &Key::v4(plain.addresses, plain.ports), &rtp, accumulator);
    }

    /// Takes an RTP packet that was read ahead; its payload is not decoded, and its frame is already counted.
    #[inline(always)]
    pub(super) fn ahead(&mut self, at: Micros, rtp: PlainRtp, accumulator: &mut Accumulator) {
        let PlainRtp { addresses, ports, header, payload_len } = rtp;
        if !self.continues(at, (addresses, ports), header, payload_len.into(), accumulator) {
            self.closer_ahead(at, &rtp, accumulator);
        }
    }

    /// Takes the next packet of a known stream. For any other packet returns false, and changes only the time
    /// when its flow was last seen.
    #[inline(always)]
    fn continues(
        &mut self,
        at: Micros,
        ends: (u64, u32),
        header: Header,
        payload_len: usize,
        accumulator: &mut Accumulator,
    ) -> bool {
        let stream = self.flows.continued(at, ends, header.ssrc());
        stream.is_some_and(|stream| accumulator.continues(at, header, payload_len, stream))
    }

    /// A packet that is not the next of its stream.
    #[inline(never)]
    fn closer_ahead(&mut self, at: Micros, rtp: &PlainRtp, accumulator: &mut Accumulator) {
        let packet = rtp.header.packet(rtp.payload_len);
        self.rtp(at, &Key::v4(rtp.addresses, rtp.ports), &Rtp { packet, kept: &[], len: 0 }, accumulator);
    }

    /// A frame that is not RTP in its most frequent form.
    #[cold]
    fn unusual(&mut self, record: &Record<'_>, accumulator: &mut Accumulator) {
        match dissect(record.link, record.frame) {
            Content::Udp(datagram) => self.datagram(record.at, &datagram, accumulator),
            Content::Other => {}
            Content::NotIp => self.skipped.not_ip += 1,
            Content::Fragment | Content::Head(_) => {
                self.reassemble(accumulator, |reassembly, sink| reassembly.fragment(record, sink));
            }
            Content::Tcp(segment) => {
                self.reassemble(accumulator, |reassembly, sink| reassembly.segment(record.at, &segment, sink))
            }
            Content::Truncated => self.skipped.truncated += 1,
        }
    }

    /// Why calls are not judged.
    pub(super) fn withheld(&self) -> Option<Withheld> {
        let silent = (!self.has_media).then_some(Withheld::NothingCaptured);
        self.times.withheld().or(silent)
    }

    /// Processes what still waits for missing fragments and segments.
    pub(super) fn finish(&mut self, accumulator: &mut Accumulator) {
        self.reassemble(accumulator, Reassembly::finish);
        self.skipped.fragments = self.reassembly.fragments_left();
    }

    /// Passes a fragment or segment to the reassembly, and processes what it completes.
    fn reassemble(
        &mut self,
        accumulator: &mut Accumulator,
        take: impl FnOnce(&mut Reassembly, &mut dyn FnMut(Micros, Arrival<'_>)),
    ) {
        let mut reassembly = std::mem::take(&mut self.reassembly);
        take(&mut reassembly, &mut |at, arrival| match arrival {
            Arrival::Datagram(datagram) => self.datagram(at, &datagram, accumulator),
            Arrival::Malformed => self.skipped.malformed_sip += 1,
            Arrival::Message(source, destination, message) => {
                let news = self.calls.take(at, (source, destination), message);
                self.news(at, news, accumulator);
            }
            Arrival::OverLimit => self.skipped.over_limit += 1,
            Arrival::Truncated => self.skipped.truncated += 1,
        });
        self.reassembly = reassembly;
    }

    fn datagram(&mut self, at: Micros, datagram: &Datagram<'_>, accumulator: &mut Accumulator) {
        let (source, destination) = (datagram.source, datagram.destination);
        let is_whole = datagram.payload.len() == datagram.payload_len;
        if is_rtp(datagram.payload) {
            let payload = if is_whole { datagram.payload } else { pad(datagram, &mut self.scratch) };
            if let Ok(packet) = Packet::parse(payload) {
                let rtp = Rtp { packet, kept: datagram.payload, len: payload.len() };
                self.rtp(at, &Key::new(source, destination), &rtp, accumulator);
            }
        } else if is_sip(unpadded(datagram.payload)) {
            if self.reassembly.has_heads() {
                self.reassemble(accumulator, |reassembly, sink| {
                    reassembly.release_heads(source.ip(), destination.ip(), sink)
                });
            }
            let payload = if is_whole { datagram.payload } else { pad_lines(datagram, &mut self.scratch) };
            let news = self.calls.message(at, (source, destination), payload);
            self.news(at, news, accumulator);
        } else if is_whole && datagram.payload.len() <= RTCP_BYTES_MAX && is_plausible(datagram.payload) {
            self.rtcp(at, datagram, accumulator);
        } else if let Some((payload, payload_len)) = turn_protocol::relayed(datagram.payload) {
            // Relayed data is not unpacked again, whatever it looks like.
            if turn_protocol::relayed(payload).is_none() {
                self.datagram(at, &Datagram { payload, payload_len, ..*datagram }, accumulator);
            }
        } else if let Some(description) = session_description(datagram.payload) {
            let news = self.calls.describe(at, &description);
            self.news(at, Ok(Some(news)), accumulator);
        }
    }

    /// Passes the changes of a message on to flows and legs.
    fn news(&mut self, at: Micros, news: Result<Option<News>, Refused>, accumulator: &mut Accumulator) {
        match news {
            Ok(Some(news)) => {
                for signal in news.leg {
                    accumulator.leg(at, LegEnd::new(news.call, true), signal);
                }
                for address in news.announced {
                    self.flows.announced(address);
                }
                if news.anything {
                    self.flows.announced_anything();
                }
            }
            Ok(None) => {}
            Err(Refused::Malformed) => self.skipped.malformed_sip += 1,
            Err(Refused::OverLimit) => self.skipped.over_limit += 1,
        }
    }

    /// Passes RTCP to the leg of its call, and to the streams that it reports on.
    fn rtcp(&mut self, at: Micros, datagram: &Datagram<'_>, accumulator: &mut Accumulator) {
        let (source, destination) = self.rtp_ends(datagram.source, datagram.destination);
        let bound = self.calls.binding(at, source, destination);
        let bindings = bound.iter().flat_map(|bound| bound.others.iter().chain([&bound.binding]));
        for binding in bindings {
            self.has_media |= binding.has_call();
            let leg = binding.leg();
            let (source, datagram) = (datagram.source, Box::from(datagram.payload));
            let signal = if leg.is_from_caller() {
                LegSignal::ReceivedRtcp { source, datagram }
            } else {
                LegSignal::SentRtcp { source, datagram }
            };
            accumulator.leg(at, leg, signal);
        }
        for about in about(datagram.payload) {
            let ends = if about.by_sender { (source, destination) } else { (destination, source) };
            let flow = self.flows.find(&Key::new(ends.0, ends.1)).map(|(number, _)| number);
            let streams = flow.and_then(|number| self.flows.get(number)).map(|flow| &flow.streams);
            let stream = streams.into_iter().flatten().find(|(ssrc, _)| *ssrc == about.ssrc);
            if let Some((_, stream)) = stream {
                accumulator.stream(
                    at,
                    *stream,
                    StreamSignal::Rtcp { about, datagram: datagram.payload.into() },
                );
            }
        }
    }

    /// The addresses of the RTP that RTCP between two addresses belongs to: the same when both share a port
    /// (RFC 5761), those that SDP names (RFC 3605), or the ports below (RFC 3550 §11).
    fn rtp_ends(&mut self, source: SocketAddr, destination: SocketAddr) -> (SocketAddr, SocketAddr) {
        let shared = [Key::new(source, destination), Key::new(destination, source)];
        if shared.iter().any(|key| self.flows.find(key).is_some()) {
            return (source, destination);
        }
        (self.calls.rtp_address(source), self.calls.rtp_address(destination))
    }

    /// A packet that is RTP or looks like RTP.
    #[inline]
    fn rtp(&mut self, at: Micros, key: &Key, rtp: &Rtp<'_>, accumulator: &mut Accumulator) {
        let packet = rtp.packet;
        if let Some((_, hot)) = self.flows.find(key)
            && hot.ssrc == packet.ssrc
            && hot.stream != NONE
        {
            hot.last = at;
            if self.listens {
                accumulator.packet(at, &packet, key.ends(), rtp.heard().as_ref(), hot.stream, hot.leg);
            } else if !accumulator.continues(at, packet.header(), packet.payload_len as usize, hot.stream) {
                accumulator.packet(at, &packet, key.ends(), None, hot.stream, hot.leg);
            }
        } else {
            self.look_closely(at, key, rtp, accumulator);
        }
    }

    /// A packet of a new flow, of another SSRC than the one before, or the first after an announcement.
    #[cold]
    fn look_closely(&mut self, at: Micros, key: &Key, rtp: &Rtp<'_>, accumulator: &mut Accumulator) {
        let packet = rtp.packet;
        let Some(number) = self.flows.find_or_make(at, key) else {
            self.skipped.over_limit += 1;
            return;
        };
        let ends = key.ends();
        let binding = self.bind(at, number, ends);
        self.has_media |= binding.as_ref().is_some_and(Binding::has_call);
        let Some(flow) = self.flows.get_mut(number) else { return };
        let generation = flow.generation;
        let found = flow.streams.iter().position(|(known, _)| *known == packet.ssrc).and_then(|place| {
            let before = flow.streams.first().map(|(_, number)| *number);
            flow.streams.swap(0, place);
            flow.streams.first().map(|(_, stream)| (*stream, before))
        });
        let leg = binding.map_or(LegEnd::NONE, Binding::leg);
        let Some((stream, before)) = found else {
            let leg = self.release(at, number).map_or(LegEnd::NONE, Binding::leg);
            self.unknown_ssrc(at, number, ends, packet, accumulator);
            // The leg counts the packet whether or not it belongs to a stream.
            let heard = if self.listens { rtp.heard() } else { None };
            accumulator.leg(at, leg, LegSignal::packet(leg, ends, packet, heard));
            self.share(at, number, rtp, accumulator);
            return;
        };
        if let Some(before) = before.and_then(|before| self.streams.get_mut(before)) {
            before.seen = at;
        }
        if let Some(known) = self.streams.get_mut(stream) {
            known.seen = at;
            if known.generation != generation {
                known.generation = generation;
                let flow = self.flows.get(number);
                flow.into_iter().flat_map(|flow| &flow.others).for_each(|other| known.add(*other));
                let payloads = binding.and_then(|binding| self.calls.payloads(binding, ends));
                if let Some(payloads) = binding.and_then(|binding| known.bind(binding, payloads)) {
                    accumulator.stream(at, stream, StreamSignal::Described(payloads));
                }
            }
        }
        let heard = if self.listens { rtp.heard() } else { None };
        accumulator.packet(at, &packet, ends, heard.as_ref(), stream, leg);
        let is_listed = !self.share(at, number, rtp, accumulator) && self.flows.list(number);
        if let Some(hot) = self.flows.hot_mut(number).filter(|_| is_listed) {
            hot.ssrc = packet.ssrc;
            hot.stream = stream;
            hot.leg = leg;
        }
    }

    /// Passes a packet to the legs of the other calls that its flow belongs to; returns whether there are any.
    fn share(&mut self, at: Micros, number: u32, rtp: &Rtp<'_>, accumulator: &mut Accumulator) -> bool {
        let Some(ends) = self.flows.ends(number) else { return false };
        let others = self.flows.get(number).map(|flow| &flow.others).filter(|others| !others.is_empty());
        for other in others.into_iter().flatten() {
            let heard = if self.listens { rtp.heard() } else { None };
            let leg = other.leg();
            accumulator.leg(at, leg, LegSignal::packet(leg, ends, rtp.packet, heard));
        }
        others.is_some()
    }

    /// Returns the call that a flow belongs to; looks it up again if announcements were made since.
    fn bind(
        &mut self,
        at: Micros,
        number: u32,
        (source, destination): (SocketAddr, SocketAddr),
    ) -> Option<Binding> {
        let flow = self.flows.get_mut(number)?;
        if flow.generation != self.calls.generation() {
            flow.generation = self.calls.generation();
            if let Some(Bound { binding, others }) = self.calls.binding(at, source, destination) {
                let before = std::mem::replace(&mut flow.others, others);
                let others = flow.others.iter().copied().filter(|other| !before.contains(other));
                let is_new = flow.binding.replace(binding) != Some(binding);
                let news = others.chain(is_new.then_some(binding));
                news.for_each(|binding| self.calls.bound(binding.call, number));
            }
        }
        flow.binding
    }

    /// Unbinds a flow from a call that was over before a new stream of the flow begins: the ports are used by another
    /// call, whose signalling was not captured. Returns the call that the flow belongs to.
    fn release(&mut self, at: Micros, number: u32) -> Option<Binding> {
        let flow = self.flows.get_mut(number)?;
        if flow.binding.is_some_and(|binding| self.calls.is_over(binding.call, at)) {
            (flow.binding, flow.others) = (None, Box::default());
        }
        flow.binding
    }

    /// A packet of an SSRC that is not a stream of its flow yet.
    fn unknown_ssrc(
        &mut self,
        at: Micros,
        number: u32,
        (source, destination): (SocketAddr, SocketAddr),
        packet: Packet,
        accumulator: &mut Accumulator,
    ) {
        let Some(flow) = self.flows.get_mut(number) else { return };
        let binding = flow.binding;
        if binding.is_none() && !is_known_type(packet.payload_type) {
            return;
        }
        if flow.streams.len() >= STREAMS_PER_FLOW_MAX || self.streams.len() >= STREAMS_MAX {
            self.skipped.over_limit += 1;
            return;
        }
        // An announced flow is RTP from its first packet on; only further SSRCs are put on probation.
        let waiting = if binding.is_some() && flow.streams.is_empty() {
            let mut waiting = flow.probation.release(packet.ssrc);
            waiting.push(Waiting { at, packet });
            waiting
        } else {
            let needed = if binding.is_some() { CONTINUED_ANNOUNCED } else { CONTINUED_UNANNOUNCED };
            match flow.probation.examine(at, packet, needed) {
                Some(waiting) => waiting,
                None => return,
            }
        };
        let payloads = binding
            .and_then(|binding| self.calls.payloads(binding, (source, destination)))
            .unwrap_or_else(|| Arc::clone(&self.unannounced));
        let stream = self.streams.add(Known {
            flow: number,
            ssrc: packet.ssrc,
            serial: 0,
            bindings: flow.others.iter().copied().chain(binding).collect(),
            seen: at,
            generation: flow.generation,
            payloads: Arc::clone(&payloads),
        });
        flow.streams.insert(0, (packet.ssrc, stream));
        let begin = waiting.first().map_or(at, |first| first.at);
        accumulator.stream(begin, stream, StreamSignal::Opened { ends: (source, destination), payloads });
        for Waiting { at, packet } in waiting {
            accumulator.packet(at, &packet, (source, destination), None, stream, LegEnd::NONE);
        }
    }
}

impl Streams {
    /// One stream.
    pub(super) fn get(&self, number: u32) -> Option<&Known> {
        self.slots.get(number as usize)?.as_ref()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Known> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// Streams that are kept.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The size of the table.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.slots.len()
    }

    /// The numbers of all streams.
    pub(super) fn numbers(&self) -> Vec<u32> {
        (0_u32..).zip(&self.slots).filter(|(_, slot)| slot.is_some()).map(|(number, _)| number).collect()
    }

    /// Removes a stream from the table; its number may be reused.
    pub(super) fn remove(&mut self, number: u32) -> Option<Known> {
        let known = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(known)
    }

    /// Adds a stream, with a number and a serial.
    fn add(&mut self, known: Known) -> u32 {
        let known = Some(Known { serial: self.begun, ..known });
        self.begun += 1;
        match self.free.pop() {
            Some(number) => {
                if let Some(slot) = self.slots.get_mut(number as usize) {
                    *slot = known;
                }
                number
            }
            None => {
                self.slots.push(known);
                self.slots.len() as u32 - 1
            }
        }
    }
}

impl Known {
    fn add(&mut self, binding: Binding) {
        if self.bindings.len() < BINDINGS_MAX && !self.bindings.contains(&binding) {
            self.bindings.push(binding);
        }
    }

    /// Binds the stream to its latest announcement, and returns its payload types if they have changed.
    fn bind(&mut self, binding: Binding, payloads: Option<Meanings>) -> Option<Meanings> {
        self.add(binding);
        let payloads = payloads.filter(|payloads| !Arc::ptr_eq(payloads, &self.payloads))?;
        let changes = payloads != self.payloads;
        self.payloads = Arc::clone(&payloads);
        changes.then_some(payloads)
    }
}

/// Extends a datagram that the snap length has cut to its length on the wire.
#[cold]
fn pad<'a>(datagram: &Datagram<'_>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    scratch.extend_from_slice(datagram.payload);
    // The length came from a 16-bit field or from the frame itself.
    scratch.resize(datagram.payload_len.min(PAYLOAD_LEN_MAX).max(datagram.payload.len()), 0);
    // The length of the padding was cut off with it.
    if let Some(first) = scratch.first_mut() {
        *first &= !0x20;
    }
    scratch
}

/// Extends a text message that was cut off, by the snap length or by fragmentation, to its length with empty
/// lines. Its last line is dropped, because half an address is a wrong one.
#[cold]
fn pad_lines<'a>(datagram: &Datagram<'_>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let kept = datagram.payload.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    scratch.clear();
    scratch.extend_from_slice(datagram.payload.get(..kept).unwrap_or_default());
    scratch.resize(datagram.payload_len.min(PAYLOAD_LEN_MAX).max(kept), b'\n');
    scratch
}

/// Streams of one flow; further SSRCs are ignored.
const STREAMS_PER_FLOW_MAX: usize = 256;
/// Streams of one capture.
const STREAMS_MAX: usize = 100_000;
/// Calls recorded for one stream; reused ports and SSRCs give more than one.
const BINDINGS_MAX: usize = 64;
/// The largest UDP payload.
const PAYLOAD_LEN_MAX: usize = 65_535;
