//! The records of a trace: one for each input of a session.

use std::net::SocketAddr;

use super::bytes::{Cursor, put_address, put_bytes, put_varint};
use super::description;
use super::forecast::{Forecast, RTP, RTP_UNUSED};
use crate::rtp::Packet;
use crate::session::Description;
use crate::time::Micros;

/// An input of a session, or the end of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// The leg was answered.
    Answered,
    /// The leg was closed.
    Closed,
    /// SDP was negotiated.
    Described(Box<Description>),
    /// The trace ends; this many inputs were not recorded.
    End { missing: u64 },
    /// A datagram of another protocol on the RTP port.
    Foreign,
    /// Our own receive queue dropped packets.
    LocalDrop { packets: u32 },
    /// A datagram on the RTP port that is not valid RTP.
    Malformed,
    /// A datagram on the RTP port that is RTCP.
    Muxed { source: SocketAddr, datagram: &'a [u8] },
    /// A datagram on the RTCP port.
    Rtcp { source: SocketAddr, datagram: &'a [u8] },
    /// An RTP packet.
    Rtp { source: SocketAddr, packet: Packet },
    /// The RTP sent has another SSRC from now on.
    Sends { ssrc: u32 },
    /// RTP was sent.
    Sent { packets: u32, to: SocketAddr },
    /// RTCP was sent.
    SentRtcp { datagram: &'a [u8] },
    /// A datagram of UDPTL, while the leg carried a fax.
    Udptl { source: SocketAddr, sequence: u16 },
    /// SRTP packets arrived that could not be authenticated.
    Unauthenticated { packets: u32 },
    /// ICMP reported that the destination is unreachable.
    Unreachable,
}

impl<'a> Record<'a> {
    /// Appends the record with time `at`; an end has no time.
    pub(super) fn put(&self, out: &mut Vec<u8>, forecast: &mut Forecast, at: Micros) {
        match self {
            Record::Rtp { source, packet } => return forecast.put_rtp(out, at, *source, packet),
            Record::Sent { packets, to } => {
                return forecast.put_sent(out, (SENT_ONE, SENT), at, *packets, *to);
            }
            Record::End { missing } => {
                out.push(END);
                return put_varint(out, *missing);
            }
            _ => {}
        }
        out.push(self.tag());
        forecast.put_time(out, at);
        match self {
            Record::Described(description) => description::put(out, description),
            Record::LocalDrop { packets } | Record::Unauthenticated { packets } => {
                put_varint(out, (*packets).into());
            }
            Record::Muxed { source, datagram } | Record::Rtcp { source, datagram } => {
                put_address(out, *source);
                put_bytes(out, datagram);
            }
            Record::Sends { ssrc } => out.extend_from_slice(&ssrc.to_be_bytes()),
            Record::SentRtcp { datagram } => put_bytes(out, datagram),
            Record::Udptl { source, sequence } => {
                put_address(out, *source);
                out.extend_from_slice(&sequence.to_be_bytes());
            }
            _ => {}
        }
    }

    /// Reads the next record and its time; `None` when the bytes are not a valid record.
    pub(super) fn read(cursor: &mut Cursor<'a>, forecast: &mut Forecast) -> Option<(Micros, Record<'a>)> {
        let tag = cursor.byte()?;
        if tag & RTP != 0 {
            if tag & RTP_UNUSED != 0 {
                return None;
            }
            let (at, source, packet) = forecast.rtp(tag, cursor)?;
            return Some((at, Record::Rtp { source, packet }));
        }
        if let SENT_ONE | SENT = tag {
            let (at, packets, to) = forecast.sent(tag == SENT_ONE, cursor)?;
            return Some((at, Record::Sent { packets, to }));
        }
        if tag == END {
            return Some((Micros::default(), Record::End { missing: cursor.varint()? }));
        }
        let at = forecast.time(cursor)?;
        let record = match tag {
            ANSWERED => Record::Answered,
            CLOSED => Record::Closed,
            DESCRIBED => Record::Described(Box::new(description::read(cursor)?)),
            FOREIGN => Record::Foreign,
            LOCAL_DROP => Record::LocalDrop { packets: cursor.small()? },
            MALFORMED => Record::Malformed,
            MUXED => Record::Muxed { source: cursor.address()?, datagram: cursor.bytes()? },
            RTCP => Record::Rtcp { source: cursor.address()?, datagram: cursor.bytes()? },
            SENDS => Record::Sends { ssrc: u32::from_be_bytes(cursor.array()?) },
            SENT_RTCP => Record::SentRtcp { datagram: cursor.bytes()? },
            UDPTL => {
                Record::Udptl { source: cursor.address()?, sequence: u16::from_be_bytes(cursor.array()?) }
            }
            UNAUTHENTICATED => Record::Unauthenticated { packets: cursor.small()? },
            UNREACHABLE => Record::Unreachable,
            _ => return None,
        };
        Some((at, record))
    }

    /// The largest length of the record; a plain packet takes three bytes.
    pub(super) fn room(&self) -> usize {
        let body = match self {
            Record::Described(description) => {
                let named: usize = description.payloads.iter().map(|payload| payload.name.len() + 32).sum();
                named + 160
            }
            Record::Muxed { datagram, .. }
            | Record::Rtcp { datagram, .. }
            | Record::SentRtcp { datagram } => datagram.len(),
            _ => 0,
        };
        body + RECORD_BYTES
    }

    fn tag(&self) -> u8 {
        match self {
            Record::Answered => ANSWERED,
            Record::Closed => CLOSED,
            Record::Described(_) => DESCRIBED,
            Record::End { .. } => END,
            Record::Foreign => FOREIGN,
            Record::LocalDrop { .. } => LOCAL_DROP,
            Record::Malformed => MALFORMED,
            Record::Muxed { .. } => MUXED,
            Record::Rtcp { .. } => RTCP,
            Record::Rtp { .. } => RTP,
            Record::Sends { .. } => SENDS,
            Record::Sent { .. } => SENT,
            Record::SentRtcp { .. } => SENT_RTCP,
            Record::Udptl { .. } => UDPTL,
            Record::Unauthenticated { .. } => UNAUTHENTICATED,
            Record::Unreachable => UNREACHABLE,
        }
    }
}

/// A tag, a time, and the fields of a packet with an IPv6 source; enough for every record without a body.
const RECORD_BYTES: usize = 64;

const SENT_ONE: u8 = 0x01;
const SENT: u8 = 0x02;
const FOREIGN: u8 = 0x03;
const MALFORMED: u8 = 0x04;
const RTCP: u8 = 0x05;
const MUXED: u8 = 0x06;
const SENDS: u8 = 0x07;
const DESCRIBED: u8 = 0x08;
const ANSWERED: u8 = 0x09;
const LOCAL_DROP: u8 = 0x0a;
const UNREACHABLE: u8 = 0x0b;
const CLOSED: u8 = 0x0c;
const END: u8 = 0x0d;
const SENT_RTCP: u8 = 0x0e;
const UNAUTHENTICATED: u8 = 0x0f;
const UDPTL: u8 = 0x10;
