//! What came from, and went to, addresses that are not the party's.

use std::net::SocketAddr;

use crate::session::{Description, Session, StrictSource};
use crate::time::Micros;

/// What came from, and went to, addresses that are not the party's.
///
/// An address is foreign when its packets are refused, when it loses the leg to a source of a better rank or to the one
/// that had it before, or when neither SDP nor signalling names it although [`StrictSource::Any`] admits it.
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
    past: Foreign,
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
    fn with_accepted(&self, source: SocketAddr, received: u64, sent: u64) -> Foreign {
        let Foreign { accepted_packets, sent_packets, .. } = self.past;
        Foreign {
            accepted_packets: accepted_packets.saturating_add(received.saturating_sub(self.received_before)),
            sent_packets: sent_packets.saturating_add(sent.saturating_sub(self.sent_before)),
            source: Some(source),
            ..self.past
        }
    }
}

impl Session {
    /// What came from, and went to, addresses that are not the party's; `None` when nothing did, and of a capture.
    pub fn foreign(&self) -> Option<Foreign> {
        let description = self.state.description.as_ref()?;
        if self.strict_source(description) == StrictSource::Observed {
            return None;
        }
        let fold = &self.state.foreign;
        let foreign = self.packets.source().stranger().map_or(fold.past, |stranger| {
            let foreign = fold.with_accepted(stranger, self.packets.received(), self.state.counters.sent);
            // Packets that were refused say more.
            Foreign { source: fold.past.source.or(foreign.source), ..foreign }
        });
        (foreign != Foreign::default()).then_some(foreign)
    }

    /// Whether RTCP from `source` is the party's.
    ///
    /// It comes from the address of the party's RTP. The port of a party behind NAT cannot be known: the first one that is
    /// heard is the party's until it is silent for fifteen seconds, or until the port that SDP names is heard.
    pub(super) fn admits_rtcp(&self, now: Micros, source: SocketAddr) -> bool {
        let filter = self.packets.source();
        let Some(party) = filter.accepted().or(filter.described()) else { return false };
        if party.ip().to_canonical() != source.ip().to_canonical() {
            return false;
        }
        let Some(description) = &self.state.description else { return true };
        if self.strict_source(description) == StrictSource::Observed {
            return true;
        }
        let named = match description.remote_rtcp.filter(|_| !filter.is_latched()) {
            _ if description.rtcp_mux => Some(party.port()),
            Some(named) => Some(named.port()),
            None => party.port().checked_add(1),
        };
        let is_named = named == Some(source.port());
        let is_free = self.state.rtcp_source.is_none_or(|(heard, last)| {
            heard == source || heard.ip() != source.ip() || now.since(last) >= RTCP_SILENT_US
        });
        is_named || is_free
    }

    fn strict_source(&self, description: &Description) -> StrictSource {
        description.strict_source.unwrap_or(self.state.config.strict_source)
    }
}

/// Packets that must be refused before it is worth a warning, as many as rule `rejected_source` asks for.
const NOTABLE_MIN: u64 = 10;
/// A source of RTCP this long silent may be replaced by one of the same address: reports come every five seconds
/// (RFC 3550 §6.2), so two are missing.
const RTCP_SILENT_US: i64 = 15_000_000;
