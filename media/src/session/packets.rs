//! State that packets of one leg update, and the packets that wait to be folded into it.
//!
//! Expected packets wait in a [`Run`]. The API makes sure that they are always counted: mutable access goes
//! through [`Packets::settled`], which folds them first, and readers get a copy into which they are folded.

use std::net::{SocketAddr, SocketAddrV4};

use crate::rtp::{Header, Packet, PayloadKind};
use crate::session::payloads::PayloadMap;
use crate::session::run::Run;
use crate::session::source::{SourceFilter, key, key_v4};
use crate::session::ssrc::SsrcGate;
use crate::session::transit::TransitFold;
use crate::stats::Stream;
use crate::time::Micros;

/// The packets of one leg.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Packets {
    run: Run,
    /// Boxed, so that the runs of many legs lie close together in memory.
    settled: Box<Settled>,
}

/// State that packets change; the fields that a run changes come first.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Settled {
    pub(super) stream: Stream,
    pub(super) source: SourceFilter,
    /// Datagrams on the port, without those that wait.
    datagrams: u64,
    pub(super) gate: SsrcGate,
    pub(super) payloads: PayloadMap,
    /// Differences of transit, for a party that wants them reported.
    pub(super) transit: Option<Box<TransitFold>>,
}

impl Packets {
    /// No packets yet; payloads are decoded when `listens` is set.
    pub(super) fn new(source: SourceFilter, stream: Stream, listens: bool) -> Self {
        let (gate, payloads) = (SsrcGate::default(), PayloadMap::default());
        Packets {
            run: Run::new(listens),
            settled: Box::new(Settled { source, gate, payloads, stream, datagrams: 0, transit: None }),
        }
    }

    /// Adds a datagram if it is the expected packet; otherwise returns false and changes nothing.
    ///
    /// Call [`Packets::go_on`] when this [`Packets::is_full`].
    #[inline(always)]
    pub(super) fn take(&mut self, now: Micros, source: &SocketAddrV4, datagram: &[u8]) -> bool {
        let Some((header, payload_len)) = Header::split(datagram) else { return false };
        self.run.take(now, key_v4(source), header, payload_len)
    }

    /// Like [`Packets::take`] for a source of IPv6; all of these have the same key in the run.
    pub(super) fn take_v6(&mut self, now: Micros, source: &SocketAddr, datagram: &[u8]) -> bool {
        let Some((header, payload_len)) = Header::split(datagram) else { return false };
        self.settled.source.is_known(source) && self.run.take(now, key(source), header, payload_len)
    }

    /// Like [`Packets::take`] for a packet whose header is already parsed.
    #[inline(always)]
    pub(super) fn take_packet(&mut self, now: Micros, source: &SocketAddr, packet: &Packet) -> bool {
        let is_known = source.is_ipv4() || self.settled.source.is_known(source);
        is_known && self.run.take(now, key(source), packet.header(), packet.payload_len as usize)
    }

    /// Like [`Packets::take`] for a packet that is known to have the same source as the one before it.
    #[inline(always)]
    pub(super) fn take_next(&mut self, now: Micros, header: Header, payload_len: usize) -> bool {
        self.run.take_from_there(now, header, payload_len)
    }

    /// The expected packets that are not folded yet.
    #[inline]
    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// Expects no packet until one was folded.
    pub(super) fn expect_nothing(&mut self) {
        self.settled();
    }

    /// Whether there is no space for another packet.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.run.is_full()
    }

    /// Whether payloads are decoded.
    #[inline]
    pub(super) fn listens(&self) -> bool {
        self.run.listens()
    }

    /// Counts a datagram that was not expected.
    #[inline]
    pub(super) fn count_datagram(&mut self) {
        self.settled.datagrams = self.settled.datagrams.wrapping_add(1);
    }

    /// Mutable state with all packets folded. A change may affect which packet is expected next, so no packet
    /// is expected afterwards.
    #[inline]
    pub(super) fn settled(&mut self) -> &mut Settled {
        if !self.run.is_empty() {
            self.fold();
        }
        self.run.forget();
        &mut self.settled
    }

    /// Computes the packet that is expected after `packet` of `source`, which was folded, if there is one.
    #[inline]
    pub(super) fn expect(&mut self, source: &SocketAddr, packet: &Packet) {
        let Settled { source: filter, gate, payloads, stream, .. } = &*self.settled;
        let is_known = filter.is_known(source)
            && gate.current() == Some(packet.ssrc)
            && payloads.kind(packet.payload_type) == Some(PayloadKind::Audio);
        if let Some(next) = stream.next().filter(|_| is_known) {
            self.run.expect(source, packet, &next);
        }
    }

    /// Adds the mean square of the decoded samples of a packet that arrived at `now`, which was folded or waits.
    #[inline]
    pub(super) fn hear(&mut self, now: Micros, power: u64) {
        // Folding the waiting packets opens the row of the timeline that holds the last of them.
        if self.settled.stream.is_row_over(now) && !self.run.is_empty() {
            self.go_on();
        }
        self.settled.stream.hear(power);
    }

    /// Packets of the party.
    pub(super) fn received(&self) -> u64 {
        self.settled.stream.received().wrapping_add(self.run.len().into())
    }

    /// Datagrams on the port.
    pub(super) fn datagrams(&self) -> u64 {
        self.settled.datagrams.wrapping_add(self.run.len().into())
    }

    /// The source filter; waiting packets do not change what can be read from it.
    pub(super) fn source(&self) -> &SourceFilter {
        &self.settled.source
    }

    /// The SSRC gate; waiting packets have its confirmed SSRC.
    pub(super) fn gate(&self) -> &SsrcGate {
        &self.settled.gate
    }

    /// The payload types negotiated and received; waiting packets have the type received last.
    pub(super) fn payloads(&self) -> &PayloadMap {
        &self.settled.payloads
    }

    /// Arrival of the last packet.
    pub(super) fn last(&self) -> Option<Micros> {
        self.run.last().or_else(|| self.settled.stream.last())
    }

    /// Whether the sender suppresses silence, see [`Stream::may_be_silent`]; no pause is expected.
    pub(super) fn may_be_silent(&self) -> bool {
        self.settled.stream.may_be_silent()
    }

    /// The stream without the waiting packets.
    pub(super) fn folded(&self) -> &Stream {
        &self.settled.stream
    }

    /// The stream so far.
    pub(super) fn stream(&self) -> Stream {
        self.with_those_that_wait(self.settled.stream.clone())
    }

    /// The stream so far without its rows, see [`Stream::outline`].
    pub(super) fn outline(&self) -> Stream {
        self.with_those_that_wait(self.settled.stream.outline())
    }

    fn with_those_that_wait(&self, mut stream: Stream) -> Stream {
        stream.push_steps(self.run.steps());
        stream
    }

    /// Folds the waiting packets and computes the next expected one.
    #[inline(never)]
    pub(super) fn go_on(&mut self) {
        self.fold();
        self.expect_next();
    }

    /// Like [`Packets::go_on`], and folds the same packets, which came from `source`, into `other` if they are the
    /// expected ones there; otherwise returns false and changes nothing.
    pub(super) fn go_on_with(&mut self, source: &SocketAddr, other: &mut Packets) -> bool {
        let is_known = source.is_ipv4() || other.settled.source.is_known(source);
        if !is_known || !other.run.goes_on_with(key(source), &self.run) {
            return false;
        }
        if !other.run.is_empty() {
            other.fold();
        }
        let (own, others) = (&mut *self.settled, &mut *other.settled);
        own.stream.push_steps_into_both(&mut others.stream, self.run.steps());
        own.count(&self.run);
        others.count(&self.run);
        self.run.clear();
        self.expect_next();
        other.expect_next();
        true
    }

    #[inline]
    fn expect_next(&mut self) {
        match self.settled.stream.next() {
            Some(next) => self.run.go_on(&next),
            None => self.run.forget(),
        }
    }

    #[inline]
    fn fold(&mut self) {
        self.settled.fold(&self.run);
        self.run.clear();
    }
}

impl Settled {
    /// Folds the packets that wait in a run.
    #[inline]
    fn fold(&mut self, run: &Run) {
        self.stream.push_steps(run.steps());
        self.count(run);
    }

    /// Whether a packet has the confirmed SSRC and one of the next numbers.
    pub(super) fn continues(&self, packet: &Packet) -> bool {
        let newest = self.stream.numbering().map(|(newest, ..)| newest);
        let ahead = newest.map_or(0, |newest| packet.sequence.wrapping_sub(newest));
        self.gate.current() == Some(packet.ssrc) && (1..=CONTINUES_MAX).contains(&ahead)
    }

    /// Counts the packets that wait in a run, beside the statistics.
    #[inline]
    fn count(&mut self, run: &Run) {
        self.source.heard(run.last());
        self.datagrams = self.datagrams.wrapping_add(run.len().into());
        if self.transit.is_some() {
            run.packets().for_each(|(at, packet)| self.note_transit(at, &packet));
        }
    }

    /// Notes an accepted packet of audio for the differences of transit.
    #[cold]
    fn note_transit(&mut self, at: Micros, packet: &Packet) {
        if let (Some(transit), Some(audio)) = (&mut self.transit, self.payloads.audio()) {
            transit.note(at, packet, audio.clock);
        }
    }

    /// The same for a packet that did not wait in a run.
    #[inline]
    pub(super) fn hear_transit(&mut self, at: Micros, packet: &Packet, kind: PayloadKind) {
        if self.transit.is_some() && kind == PayloadKind::Audio {
            self.note_transit(at, packet);
        }
    }
}

/// The number of a packet that continues a stream is at most this far ahead: two seconds of packets of ten milliseconds.
const CONTINUES_MAX: u16 = 200;
