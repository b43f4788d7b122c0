//! What the router tells the folder beside packets: what signalling changed, and what RTCP says.

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

/// Where packets come from, and where they go.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// What concerns a call's leg.
#[derive(Debug)]
pub(super) enum LegSignal {
    /// The call was answered.
    Answered,
    /// Offer and answer settled something; the payload types are apart.
    Described(Box<Description>, Meanings),
    /// The same, as the called party's leg has it.
    FarDescribed(Box<Description>, Meanings),
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
    /// It begins.
    Opened { ends: Ends, payloads: Meanings },
    /// Its payload types mean something else.
    Described(Meanings),
    /// RTCP that tells of it, its sender's or its receiver's.
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
        assert_eq!(LegEnd::NOBODY.number(), None);
    }
}
