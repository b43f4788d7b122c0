//! Packets from and to addresses that are not the party's.

use std::net::SocketAddr;

use crate::time::Micros;

/// Counts of packets from and to addresses that are not the party's.
///
/// An address is foreign in three cases: its packets are rejected; it loses the leg to a source of a better
/// rank or to the previous source; or neither SDP nor signalling names it although
/// [`StrictSource::Any`](crate::session::StrictSource::Any) admits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// RTP packets rejected because of their source.
    pub rejected_packets: u64,
    /// RTP packets accepted as the party's.
    pub accepted_packets: u64,
    /// RTP packets sent to such an address.
    pub sent_packets: u64,
    /// How often the leg was taken back from such an address.
    pub taken_back: u32,
    /// The last of these addresses.
    pub source: Option<SocketAddr>,
    /// When the first packet from such an address arrived, or when the leg was taken back from it.
    pub since: Option<Micros>,
}

impl Foreign {
    /// Whether it is more than a few stray packets. A foreign source that keeps the leg was allowed by the
    /// operator's configuration.
    pub fn is_notable(&self) -> bool {
        self.rejected_packets >= NOTABLE_MIN || self.taken_back > 0
    }
}

/// State from which [`Foreign`] is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ForeignFold {
    /// Without the packets of the accepted source.
    pub(super) past: Foreign,
    /// Packets received and sent before the current source was accepted.
    received_before: u64,
    sent_before: u64,
}

impl ForeignFold {
    /// Counts a rejected packet of `source`.
    pub(super) fn rejected(&mut self, now: Micros, source: SocketAddr) {
        self.past.rejected_packets += 1;
        self.past.source = Some(source);
        self.past.since.get_or_insert(now);
    }

    /// Records that another source was accepted, with the totals so far.
    pub(super) fn begin(&mut self, received: u64, sent: u64) {
        (self.received_before, self.sent_before) = (received, sent);
    }

    /// Records that the accepted source lost the leg; returns how many packets had been sent to it.
    pub(super) fn lost_the_leg(&mut self, now: Micros, source: SocketAddr, received: u64, sent: u64) -> u32 {
        let before = self.past.sent_packets;
        self.past = self.with_accepted(source, received, sent);
        self.past.since.get_or_insert(now);
        self.past.taken_back = self.past.taken_back.saturating_add(1);
        u32::try_from(self.past.sent_packets.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// The counts plus the packets of the accepted source.
    pub(super) fn with_accepted(&self, source: SocketAddr, received: u64, sent: u64) -> Foreign {
        let Foreign { accepted_packets, sent_packets, .. } = self.past;
        Foreign {
            accepted_packets: accepted_packets.saturating_add(received.saturating_sub(self.received_before)),
            sent_packets: sent_packets.saturating_add(sent.saturating_sub(self.sent_before)),
            source: Some(source),
            ..self.past
        }
    }
}

/// Rejected packets before a warning is sent; the same number as in rule `rejected_source`.
const NOTABLE_MIN: u64 = 10;
