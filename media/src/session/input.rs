//! Inputs and outputs of a media session, and the disposition of each datagram.

use std::net::SocketAddr;

use crate::session::Description;

/// An event on a leg.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The leg was answered: a 2xx was sent or received.
    Answered,
    /// Our own receive queue dropped packets (`SO_RXQ_OVFL`).
    LocalDrop {
        /// Packets dropped since the last input of this kind.
        packets: u32,
    },
    /// A datagram on the leg's RTCP port.
    Rtcp {
        /// Its source.
        source: SocketAddr,
        /// Its bytes.
        datagram: &'a [u8],
    },
    /// A datagram on the leg's RTP port.
    Rtp {
        /// Its source.
        source: SocketAddr,
        /// Its bytes.
        datagram: &'a [u8],
    },
    /// The RTP sent to the party has another SSRC from now on.
    Sends {
        /// Its synchronisation source.
        ssrc: u32,
    },
    /// RTP was sent to the party.
    Sent {
        /// Packets sent since the last input of this kind.
        packets: u32,
        /// The destination.
        to: SocketAddr,
    },
    /// RTCP was sent to the party: our own report, or a relayed one.
    SentRtcp {
        /// Its bytes.
        datagram: &'a [u8],
    },
    /// SDP was negotiated, for the first time or again.
    Signalled(Box<Description>),
    /// SRTP packets that could not be authenticated; they give no other information.
    Unauthenticated {
        /// Packets since the last input of this kind.
        packets: u32,
    },
    /// ICMP reported that the destination is unreachable.
    Unreachable,
}

/// An event for the driver of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The party's packets arrive from this source, and from now on our packets are sent there.
    Latched {
        /// The party's RTP source.
        remote: SocketAddr,
        /// Packets sent to a source that has just lost the leg to the party.
        foreign_sent: u32,
    },
}

/// The action to take for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Do not relay it.
    Discard(Reason),
    /// Relay it to the other leg, as RTP or RTCP according to its port.
    Relay,
    /// It is RTCP that arrived on the RTP port (RFC 5761): relay it to the other leg's RTCP destination.
    RelayRtcp,
}

/// Why a datagram is not relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The session is closed.
    Closed,
    /// An RTP packet without payload: a keepalive (RFC 6263 §4.1).
    Empty,
    /// STUN, DTLS or another protocol on the port.
    Foreign,
    /// Neither valid RTP nor valid RTCP.
    Malformed,
    /// The payload type was not negotiated.
    PayloadType,
    /// Its source may become the party's, but has not sent enough packets yet.
    Probation,
    /// An SRTP or SRTCP packet that is a repetition, or too old to decide this.
    Replayed,
    /// RTCP on the RTP port without `a=rtcp-mux`.
    Rtcp,
    /// Its source is not the party's.
    Source,
    /// The tag of an SRTP or SRTCP packet is wrong.
    Unauthenticated,
}
