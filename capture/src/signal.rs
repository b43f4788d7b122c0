//! Events, other than packets, that the router passes to the accumulator: changes in signalling, and RTCP.

use std::net::SocketAddr;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{AudioSample, Description};

use super::payloads::Meanings;
use super::rtcp::About;

/// A leg and a direction, in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LegEnd(u32);

impl LegEnd {
    /// The packet counts for no leg.
    pub(super) const NONE: LegEnd = LegEnd(NONE);

    /// The leg of the call with `number`: sent by the caller, or to the caller.
    pub(super) fn new(number: u32, from_caller: bool) -> Self {
        LegEnd(number << 1 | u32::from(from_caller))
    }

    /// Returns the number of the call.
    #[inline]
    pub(super) fn number(self) -> Option<u32> {
        (self != LegEnd::NONE).then_some(self.0 >> 1)
    }

    /// Returns whether the caller sent it.
    #[inline]
    pub(super) fn is_from_caller(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Source and destination of packets.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// An event of a call's leg.
#[derive(Debug)]
pub(super) enum LegSignal {
    /// The call was answered.
    Answered,
    /// Offer and answer settled a description; the payload types are apart.
    Described(Box<Description>, Meanings),
    /// The same for the called party's leg.
    FarDescribed(Box<Description>, Meanings),
    /// The call seems to be over: packets do not count any more.
    Ended,
    /// It is not over after all.
    Resumed,
    /// The leg is judged.
    Closed,
    /// A packet from the caller that belongs to no stream yet, or to none at all.
    Received { ends: Ends, packet: Packet, heard: Option<AudioSample> },
    /// RTCP from the caller.
    ReceivedRtcp { source: SocketAddr, datagram: Box<[u8]> },
    /// A packet to the caller that belongs to no stream yet, or to none at all.
    Sent { ends: Ends, packet: Packet, heard: Option<AudioSample> },
    /// RTCP to the caller.
    SentRtcp { source: SocketAddr, datagram: Box<[u8]> },
}

impl LegSignal {
    /// The event of a packet without a stream, for that end of the leg.
    pub(super) fn packet(leg: LegEnd, ends: Ends, packet: Packet, heard: Option<AudioSample>) -> Self {
        if leg.is_from_caller() {
            LegSignal::Received { ends, packet, heard }
        } else {
            LegSignal::Sent { ends, packet, heard }
        }
    }
}

/// An event of a stream.
#[derive(Debug)]
pub(super) enum StreamSignal {
    /// It begins.
    Opened { ends: Ends, payloads: Meanings },
    /// Its payload types have another meaning now.
    Described(Meanings),
    /// RTCP about it, from its sender or its receiver.
    Rtcp { about: About, datagram: Box<[u8]> },
}

/// No stream.
pub(super) const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leg_and_its_direction_are_told_apart() {
        for (number, from_caller) in [(0, false), (0, true), (499_999, true)] {
            let end = LegEnd::new(number, from_caller);
            assert_eq!((end.number(), end.is_from_caller()), (Some(number), from_caller));
        }
        assert_eq!(LegEnd::NONE.number(), None);
    }
}
