//! Expected packets that wait to be folded: three cache lines per leg, and the only memory that most packets
//! touch.
//!
//! During continuous audio the next header is known in advance: sequence number and timestamp are one step
//! on, and everything else is unchanged. A datagram with this header is the party's, and only its arrival
//! time has to be stored.

use std::net::SocketAddr;

use crate::rtp::{Header, Packet};
use crate::session::source::{NO_SOURCE, key};
use crate::stats::{Next, STEPS_MAX, Steps};
use crate::time::Micros;

/// The next expected header, and the arrivals of the packets that matched.
///
/// *Bounds*: 63 packets.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Run {
    /// The [`key`] of the expected source; [`NO_SOURCE`] while no packet is expected.
    source: u64,
    /// Arrival of the previous packet.
    at: Micros,
    header: Header,
    step: u16,
    payload_len: u16,
    len: u8,
    /// Whether payloads are decoded, see [`SessionConfig::audio_evidence`](crate::session::SessionConfig). Stored here
    /// because this cache line is loaded in any case.
    listens: bool,
    /// The time between each packet and the one before it, in microseconds.
    gaps: [u16; STEPS_MAX],
    /// Arrival of the packet before the first waiting one.
    from: Micros,
}

impl Run {
    /// No packet is expected; payloads are decoded when `listens` is set.
    pub(super) fn new(listens: bool) -> Self {
        Run {
            source: NO_SOURCE,
            at: Micros::default(),
            header: Header::default(),
            step: 0,
            payload_len: 0,
            len: 0,
            listens,
            gaps: [0; STEPS_MAX],
            from: Micros::default(),
        }
    }

    /// Whether payloads are decoded.
    #[inline]
    pub(super) fn listens(&self) -> bool {
        self.listens
    }

    /// Adds a packet from the source with this [`key`] if it is the expected one; otherwise returns false and
    /// changes nothing.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Micros, source: u64, header: Header, payload_len: usize) -> bool {
        self.source == source && self.take_due(now, header, payload_len)
    }

    /// Like [`Run::take`], for a packet that is known to come from the expected source.
    #[inline(always)]
    pub(super) fn take_from_there(&mut self, now: Micros, header: Header, payload_len: usize) -> bool {
        self.source != NO_SOURCE && self.take_due(now, header, payload_len)
    }

    #[inline(always)]
    fn take_due(&mut self, now: Micros, header: Header, payload_len: usize) -> bool {
        if self.header != header || usize::from(self.payload_len) != payload_len {
            return false;
        }
        let Ok(gap_us) = u16::try_from(now.0.wrapping_sub(self.at.0)) else { return false };
        let Some(slot) = self.gaps.get_mut(usize::from(self.len)) else { return false };
        *slot = gap_us;
        self.len += 1;
        self.at = now;
        self.header = self.header.after(self.step);
        true
    }

    /// Whether there is no space for another packet.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        usize::from(self.len) == STEPS_MAX
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of waiting packets.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Arrival of the last waiting packet.
    pub fn last(&self) -> Option<Micros> {
        (self.len > 0).then_some(self.at)
    }

    /// Synchronisation source of all waiting packets.
    pub fn ssrc(&self) -> u32 {
        self.header.ssrc
    }

    /// The waiting packets with their arrivals.
    pub fn packets(&self) -> impl Iterator<Item = (Micros, Packet)> + '_ {
        let mut header = self.header.before(self.len, self.step);
        let mut at = self.from;
        self.gaps.iter().take(self.len.into()).map(move |gap_us| {
            at = Micros(at.0.wrapping_add((*gap_us).into()));
            let packet = header.packet(self.payload_len);
            header = header.after(self.step);
            (at, packet)
        })
    }

    /// Whether the packets of `other`, all from the source with this [`key`], are the expected ones.
    pub(super) fn goes_on_with(&self, source: u64, other: &Run) -> bool {
        let first = other.header.before(other.len, other.step);
        (self.source, self.at, self.header) == (source, other.from, first)
            && (self.step, self.payload_len) == (other.step, other.payload_len)
    }

    /// The waiting packets as steps for the statistics.
    pub(super) fn steps(&self) -> Steps<'_> {
        let gaps = self.gaps.get(..usize::from(self.len)).unwrap_or_default();
        let first = self.header.before(self.len, self.step);
        let first = Next {
            after: self.from,
            timestamp: first.timestamp,
            step: self.step,
            payload_len: self.payload_len,
            sequence: first.sequence,
        };
        // Each gap has at most 16 bits, so the sum fits.
        let elapsed_us = self.at.0.wrapping_sub(self.from.0) as u32;
        Steps { first, gaps, elapsed_us }
    }

    /// Empties the run after its packets were folded.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.from = self.at;
    }

    /// No packet is expected any more.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.source = NO_SOURCE;
    }

    /// Expects `next` after `packet` of `source`; the run is empty.
    pub(super) fn expect(&mut self, source: &SocketAddr, packet: &Packet, next: &Next) {
        let due = Packet { sequence: next.sequence, timestamp: next.timestamp, marker: false, ..*packet };
        self.source = key(source);
        self.header = due.header();
        self.go_on(next);
    }

    /// Expects `next` after the packets that were folded.
    pub(super) fn go_on(&mut self, next: &Next) {
        self.at = next.after;
        self.from = next.after;
        self.header.sequence = next.sequence;
        self.header.timestamp = next.timestamp;
        self.step = next.step;
        self.payload_len = next.payload_len;
    }
}
