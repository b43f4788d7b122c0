//! What the router tells the folders: packets in order of time, and between them what signalling changed.

use std::net::SocketAddr;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{AudioSample, Description};
use sidetone_media::time::Micros;

use super::payloads::Meanings;
use super::rtcp::About;

/// A leg and a direction, in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LegEnd(u32);

impl LegEnd {
    /// The packet counts for no leg.
    pub(super) const NOBODY: LegEnd = LegEnd(NONE);

    /// The leg of the call with `number`: sent by the caller, or to the caller.
    pub(super) fn new(number: u32, from_caller: bool) -> Self {
        LegEnd(number << 1 | u32::from(from_caller))
    }

    /// The number of the call.
    #[inline]
    pub(super) fn number(self) -> Option<u32> {
        (self != LegEnd::NOBODY).then_some(self.0 >> 1)
    }

    /// Whether the caller sent it.
    #[inline]
    pub(super) fn is_from_caller(self) -> bool {
        self.0 & 1 == 1
    }
}

/// One thing that happened, and whom it concerns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) at: Micros,
    pub(super) what: What,
    /// The stream that takes it in; [`NONE`] for no stream.
    pub(super) stream: u32,
    /// The leg that takes it in.
    pub(super) leg: LegEnd,
}

impl Order {
    /// What an empty slot holds.
    const NOTHING: Order =
        Order { at: Micros(0), what: What::Signal(NONE), stream: NONE, leg: LegEnd::NOBODY };
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// An RTP packet of a stream. With [`ENDS_ONLY`] set in its number the stream says only between whom it went.
    Packet(Packet),
    /// What was heard in the packet of the next order, which is in the same batch and concerns the same.
    Heard(AudioSample),
    /// Something that is too large or too rare for an order; its place in [`Batch::signals`].
    Signal(u32),
}

/// Orders that are handed over at once.
#[derive(Debug)]
pub(super) struct Batch {
    /// The first `len` of these are orders: they are written where they lie.
    slots: Vec<Order>,
    len: usize,
    pub(super) signals: Vec<Signal>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { slots: vec![Order::NOTHING; BATCH_LEN + SPARE], len: 0, signals: Vec::new() }
    }
}

impl Batch {
    /// Appends an order; says whether the batch is full then.
    #[inline]
    pub(super) fn push(&mut self, order: Order) -> bool {
        if let Some(slot) = self.slots.get_mut(self.len) {
            *slot = order;
            self.len += 1;
        }
        self.len + SPARE >= self.slots.len()
    }

    /// The orders, and what they refer to.
    pub(super) fn parts(&mut self) -> (&[Order], &mut [Signal]) {
        (self.slots.get(..self.len).unwrap_or_default(), &mut self.signals)
    }

    /// Makes it as good as new, without giving its memory back.
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.signals.clear();
    }
}

/// What is no plain packet of a known stream.
#[derive(Debug)]
pub(super) enum Signal {
    /// Done with already.
    Done,
    Leg(LegSignal),
    Stream(StreamSignal),
}

/// Where packets come from, and where they go.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// What concerns a call's leg.
#[derive(Debug)]
pub(super) enum LegSignal {
    /// The call was answered.
    Answered,
    /// Offer and answer settled something.
    Described(Box<Description>),
    /// The same, as the called party's leg has it.
    FarDescribed(Box<Description>),
    /// The call seems to be over: packets do not count any more.
    Ended,
    /// It is not over after all.
    Resumed,
    /// The leg is judged.
    Closed,
    /// A packet from the caller that belongs to no stream, or not yet.
    Received { ends: Ends, packet: Packet, heard: Option<AudioSample> },
    /// RTCP from the caller.
    ReceivedRtcp { source: SocketAddr, datagram: Box<[u8]> },
    /// A packet to the caller that belongs to no stream, or not yet.
    Sent { ends: Ends, packet: Packet, heard: Option<AudioSample> },
    /// RTCP to the caller.
    SentRtcp { source: SocketAddr, datagram: Box<[u8]> },
    /// The leg is reported and forgotten. `ended` is the call's end, `last` its last message.
    Taken { ended: Option<Micros>, last: Micros },
}

impl LegSignal {
    /// A packet that belongs to no stream, or not yet, as that end of the leg has it.
    pub(super) fn packet(leg: LegEnd, ends: Ends, packet: Packet, heard: Option<AudioSample>) -> Self {
        if leg.is_from_caller() {
            LegSignal::Received { ends, packet, heard }
        } else {
            LegSignal::Sent { ends, packet, heard }
        }
    }
}

/// What concerns a stream.
#[derive(Debug)]
pub(super) enum StreamSignal {
    /// It begins. Every folder is told.
    Opened { source: SocketAddr, destination: SocketAddr, payloads: Meanings },
    /// It is over, and what it was is told before its report, which is asked for later.
    Concluded { announced: bool },
    /// Its payload types mean something else.
    Described(Meanings),
    /// RTCP that tells of it, its sender's or its receiver's.
    Rtcp { about: About, datagram: Box<[u8]> },
    /// The stream is reported and forgotten. `ptime_ms` is what its sender and its receiver advertised.
    Taken { announced: bool, ptime_ms: (Option<u32>, Option<u32>) },
}

/// No stream.
pub(super) const NONE: u32 = u32::MAX;
/// In an order's stream: another folder folds the stream.
pub(super) const ENDS_ONLY: u32 = 1 << 31;
/// Orders of a batch, half a MiB: handing one over wakes a thread, which costs as much as a few hundred packets.
///
/// Tests have small ones, so that batches begin and end everywhere.
const BATCH_LEN: usize = if cfg!(test) { 53 } else { 16_384 };
/// Slots for what was heard in the last packet, and for the packet.
const SPARE: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_half_a_cache_line() {
        assert_eq!(size_of::<Order>(), 32);
    }

    #[test]
    fn a_leg_and_its_direction_are_told_apart() {
        for (number, from_caller) in [(0, false), (0, true), (499_999, true)] {
            let end = LegEnd::new(number, from_caller);
            assert_eq!((end.number(), end.is_from_caller()), (Some(number), from_caller));
        }
        assert_eq!(LegEnd::NOBODY.number(), None);
    }
}
