//! Packets that came as they were due and wait to be folded: three cache lines for each leg, and all that most packets
//! touch.
//!
//! In the middle of talk a header is known before it comes: the number and the timestamp one step on, everything else as
//! before. A datagram that begins so is the party's, and all there is to keep of it is when it came.

use std::net::SocketAddr;

use crate::rtp::{Header, Packet};
use crate::session::source::{NOBODY, key};
use crate::stats::{Next, STEPS_MAX, Steps};
use crate::time::Micros;

/// What is due, and when what came as it was due arrived.
///
/// *Bounds*: 63 packets.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Run {
    /// Whom it is due from, see [`key`]; [`NOBODY`] while nothing is due.
    source: u64,
    /// When the packet before it came.
    at: Micros,
    header: Header,
    step: u16,
    payload_len: u16,
    len: u8,
    /// Payloads are looked at, [`SessionConfig::audio_evidence`](crate::session::SessionConfig): here, where a packet
    /// finds it.
    listens: bool,
    /// The time from each packet to the one before it, in microseconds.
    gaps: [u16; STEPS_MAX],
    /// When the packet before the first of those that wait came.
    from: Micros,
}

impl Run {
    /// Nothing is due; payloads are looked at when it `listens`.
    pub(super) fn new(listens: bool) -> Self {
        Run {
            source: NOBODY,
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

    /// Whether payloads are looked at.
    #[inline]
    pub(super) fn listens(&self) -> bool {
        self.listens
    }

    /// Takes in what came from the source of that [`key`] if it is due; false, and nothing has changed, for everything
    /// else.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Micros, source: u64, header: Header, payload_len: usize) -> bool {
        self.source == source && self.take_due(now, header, payload_len)
    }

    /// The same of what is known to come from where something may be due from.
    #[inline(always)]
    pub(super) fn take_from_there(&mut self, now: Micros, header: Header, payload_len: usize) -> bool {
        self.source != NOBODY && self.take_due(now, header, payload_len)
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

    /// Whether there is no room for another.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        usize::from(self.len) == STEPS_MAX
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Packets that wait.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// When the last of them came.
    pub fn last(&self) -> Option<Micros> {
        (self.len > 0).then_some(self.at)
    }

    /// Synchronisation source of all of them.
    pub fn ssrc(&self) -> u32 {
        self.header.ssrc
    }

    /// The packets that wait, and when each came.
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

    /// Whether the packets of `other`, which all come from the `source` of that [`key`], are those that are due now.
    pub(super) fn goes_on_with(&self, source: u64, other: &Run) -> bool {
        let first = other.header.before(other.len, other.step);
        (self.source, self.at, self.header) == (source, other.from, first)
            && (self.step, self.payload_len) == (other.step, other.payload_len)
    }

    /// The packets that wait.
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
        // No gap has more than 16 bits.
        let elapsed_us = self.at.0.wrapping_sub(self.from.0) as u32;
        Steps { first, gaps, elapsed_us }
    }

    /// Those that waited were folded.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.from = self.at;
    }

    /// Nothing is due any more.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.source = NOBODY;
    }

    /// After `packet` of `source`, `next` is due; none waits.
    pub(super) fn expect(&mut self, source: &SocketAddr, packet: &Packet, next: &Next) {
        let due = Packet { sequence: next.sequence, timestamp: next.timestamp, marker: false, ..*packet };
        self.source = key(source);
        self.header = due.header();
        self.go_on(next);
    }

    /// After those that were folded, `next` is due.
    pub(super) fn go_on(&mut self, next: &Next) {
        self.at = next.after;
        self.from = next.after;
        self.header.sequence = next.sequence;
        self.header.timestamp = next.timestamp;
        self.step = next.step;
        self.payload_len = next.payload_len;
    }
}
