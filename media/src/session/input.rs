//! What a media session is told, what it says in return, and what becomes of a datagram.

use std::net::SocketAddr;

use crate::session::Description;

/// Something that happened on a leg.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The leg was answered: a 2xx was sent or received.
    Answered,
    /// Our own receive queue dropped packets (`SO_RXQ_OVFL`); the count is what was added.
    LocalDrop {
        /// Packets dropped since the last input of this kind.
        packets: u32,
    },
    /// A datagram on the leg's RTCP port.
    Rtcp {
        /// Where it came from.
        source: SocketAddr,
        /// Its bytes.
        datagram: &'a [u8],
    },
    /// A datagram on the leg's RTP port.
    Rtp {
        /// Where it came from.
        source: SocketAddr,
        /// Its bytes.
        datagram: &'a [u8],
    },
    /// The RTP that is sent to the party is of another source from now on.
    Sends {
        /// Its synchronisation source.
        ssrc: u32,
    },
    /// RTP was sent to the party.
    Sent {
        /// Packets sent since the last input of this kind.
        packets: u32,
        /// Where they went.
        to: SocketAddr,
    },
    /// RTCP was sent to the party: a report of ours, or one that was relayed.
    SentRtcp {
        /// Its bytes.
        datagram: &'a [u8],
    },
    /// SDP settled something, for the first time or anew.
    Signalled(Box<Description>),
    /// The time of [`Session::next_timeout`](crate::session::Session::next_timeout) has come.
    Timeout,
    /// ICMP said that nobody listens where we sent.
    Unreachable,
}

/// Something the driver of a session should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The party's packets come from here, and ours go there from now on.
    Latched {
        /// The party's RTP source.
        remote: SocketAddr,
        /// Packets that had gone to a source which has just lost the leg to the party.
        foreign_sent: u32,
    },
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It goes nowhere.
    Discard(Reason),
    /// It goes to the other leg, as what the port says: RTP or RTCP.
    Relay,
    /// It came on the RTP port and is RTCP (RFC 5761): it goes to the other leg's RTCP destination.
    RelayRtcp,
}

/// Why a datagram goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The session is closed.
    Closed,
    /// An RTP packet without payload: a keepalive (RFC 6263 §4.1).
    Empty,
    /// STUN, DTLS or another protocol on the port.
    Foreign,
    /// Neither RTP nor RTCP as its standard has it.
    Malformed,
    /// The payload type was not negotiated.
    PayloadType,
    /// It came from an address that may become the party's.
    Probation,
    /// RTCP on the RTP port without `a=rtcp-mux`.
    Rtcp,
    /// It came from an address that is not the party's.
    Source,
}
