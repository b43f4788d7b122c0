//! What came from, and went to, addresses that are not the party's.

use std::net::SocketAddr;

use crate::time::Micros;

/// What came from, and went to, addresses that are not the party's.
///
/// An address is foreign when its packets are refused, when it loses the leg to a source of a better rank or to the one
/// that had it before, or when neither SDP nor signalling names it although [`StrictSource::Any`](crate::session::StrictSource::Any) admits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// RTP packets that were refused because of where they came from.
    pub rejected_packets: u64,
    /// RTP packets that were taken for the party's.
    pub accepted_packets: u64,
    /// RTP packets that were sent there.
    pub sent_packets: u64,
    /// Times that the leg was taken back from one.
    pub taken_back: u32,
    /// The last of these addresses.
    pub source: Option<SocketAddr>,
    /// When the first packet came from one, or when the leg was taken back from it.
    pub since: Option<Micros>,
}

impl Foreign {
    /// Whether it is more than a stray packet. A stranger that keeps the leg was admitted by the operator.
    pub fn is_notable(&self) -> bool {
        self.rejected_packets >= NOTABLE_MIN || self.taken_back > 0
    }
}

/// The same as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ForeignFold {
    /// Without the packets of the accepted source.
    pub(super) past: Foreign,
    /// Packets received and sent before the accepted source was accepted.
    received_before: u64,
    sent_before: u64,
}

impl ForeignFold {
    /// A packet of `source` was refused.
    pub(super) fn rejected(&mut self, now: Micros, source: SocketAddr) {
        self.past.rejected_packets += 1;
        self.past.source = Some(source);
        self.past.since.get_or_insert(now);
    }

    /// Another source was accepted, after so many packets.
    pub(super) fn begin(&mut self, received: u64, sent: u64) {
        (self.received_before, self.sent_before) = (received, sent);
    }

    /// The accepted source lost the leg; how many packets had been sent to it.
    pub(super) fn lost_the_leg(&mut self, now: Micros, source: SocketAddr, received: u64, sent: u64) -> u32 {
        let before = self.past.sent_packets;
        self.past = self.with_accepted(source, received, sent);
        self.past.since.get_or_insert(now);
        self.past.taken_back = self.past.taken_back.saturating_add(1);
        u32::try_from(self.past.sent_packets.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// The same with the packets of the accepted source.
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

/// Packets that must be refused before it is worth a warning, as many as rule `rejected_source` asks for.
const NOTABLE_MIN: u64 = 10;
