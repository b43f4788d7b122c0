//! What the session of a leg knows beside the statistics of accepted packets, and whose packets it tells apart by that.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::rtcp::RtcpFold;
use crate::session::clock::Stopwatch;
use crate::session::foreign::{Foreign, ForeignFold};
use crate::session::packets::Packets;
use crate::session::{Description, SessionConfig, SessionCounters, StrictSource};
use crate::stats::AudioFold;
use crate::time::Micros;

/// What signalling, sending and strangers tell of the leg.
#[derive(Clone, Debug, Default)]
pub(super) struct LegState {
    /// Shared where many sessions are alike.
    pub(super) config: Arc<SessionConfig>,
    /// The current description without its payloads; `None` before the first.
    pub(super) description: Option<Description>,
    pub(super) answered: Option<Micros>,
    pub(super) received_at_answer: u64,
    pub(super) first_after_answer: Option<Micros>,
    pub(super) receive_clock: Stopwatch,
    pub(super) send_clock: Stopwatch,
    pub(super) blackhole_clock: Stopwatch,
    pub(super) sent_to: Option<SocketAddr>,
    pub(super) rejected_source: Option<SocketAddr>,
    pub(super) foreign: ForeignFold,
    /// The accepted source of RTCP, and when it was heard last.
    pub(super) rtcp_source: Option<(SocketAddr, Micros)>,
    pub(super) rtcp: RtcpFold,
    /// When signalling first described the party; before that it cannot have sent.
    pub(super) described_at: Option<Micros>,
    pub(super) counters: SessionCounters,
    /// Comfort noise among the packets whose payload type was not negotiated.
    pub(super) noise_unannounced: u64,
    pub(super) closed: Option<Micros>,
    /// What was heard; boxed, since most sessions do not listen.
    pub(super) audio: Option<Box<AudioFold>>,
    pub(super) latched: Option<SocketAddr>,
    /// What [`Output::Latched`] says beside it.
    pub(super) foreign_sent: u32,
}

impl LegState {
    /// What came from, and went to, addresses that are not the party's; `None` when nothing did, and of a capture.
    pub(super) fn foreign(&self, packets: &Packets) -> Option<Foreign> {
        let description = self.description.as_ref()?;
        if self.strict_source(description) == StrictSource::Observed {
            return None;
        }
        let fold = &self.foreign;
        let foreign = packets.source().stranger().map_or(fold.past, |stranger| {
            let foreign = fold.with_accepted(stranger, packets.received(), self.counters.sent);
            // Packets that were refused say more.
            Foreign { source: fold.past.source.or(foreign.source), ..foreign }
        });
        (foreign != Foreign::default()).then_some(foreign)
    }

    /// Whether RTCP from `source` is the party's.
    ///
    /// It comes from the address of the party's RTP. The port of a party behind NAT cannot be known: the first one that is
    /// heard is the party's until it is silent for fifteen seconds, or until the port that SDP names is heard.
    pub(super) fn admits_rtcp(&self, packets: &Packets, now: Micros, source: SocketAddr) -> bool {
        let filter = packets.source();
        let Some(party) = filter.accepted().or(filter.described()) else { return false };
        if party.ip().to_canonical() != source.ip().to_canonical() {
            return false;
        }
        let Some(description) = &self.description else { return true };
        if self.strict_source(description) == StrictSource::Observed {
            return true;
        }
        let named = match description.remote_rtcp.filter(|_| !filter.is_latched()) {
            _ if description.rtcp_mux => Some(party.port()),
            Some(named) => Some(named.port()),
            None => party.port().checked_add(1),
        };
        let is_named = named == Some(source.port());
        let is_free = self.rtcp_source.is_none_or(|(heard, last)| {
            heard == source || heard.ip() != source.ip() || now.since(last) >= RTCP_SILENT_US
        });
        is_named || is_free
    }

    fn strict_source(&self, description: &Description) -> StrictSource {
        description.strict_source.unwrap_or(self.config.strict_source)
    }
}

/// A source of RTCP this long silent may be replaced by one of the same address: reports come every five seconds
/// (RFC 3550 §6.2), so two are missing.
const RTCP_SILENT_US: i64 = 15_000_000;
