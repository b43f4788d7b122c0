//! State of a leg's session besides the statistics of accepted packets, and the rules that decide from which
//! address RTCP is accepted.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::rtcp::RtcpFold;
use crate::session::clock::Stopwatch;
use crate::session::foreign::{Foreign, ForeignFold};
use crate::session::packets::Packets;
use crate::session::udptl::Fax;
use crate::session::video::Video;
use crate::session::{Description, SessionConfig, SessionCounters, StrictSource};
use crate::stats::AudioFold;
use crate::time::Micros;

/// State from signalling, sending, RTCP and other sources.
#[derive(Clone, Debug, Default)]
pub(super) struct LegState {
    /// Shared between sessions with the same settings.
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
    /// The accepted source of RTCP, and its last arrival.
    pub(super) rtcp_source: Option<(SocketAddr, Micros)>,
    pub(super) rtcp: RtcpFold,
    /// When signalling first described the party; it cannot have sent before that.
    pub(super) described_at: Option<Micros>,
    pub(super) counters: SessionCounters,
    /// Comfort noise packets among those whose payload type was not negotiated.
    pub(super) noise_unannounced: u64,
    pub(super) closed: Option<Micros>,
    /// Results of decoded payloads; boxed, because most sessions do not decode any.
    pub(super) audio: Option<Box<AudioFold>>,
    /// Counts of UDPTL; boxed, because few calls are faxes.
    pub(super) fax: Option<Box<Fax>>,
    /// Counts of video; boxed too.
    pub(super) video: Option<Box<Video>>,
    pub(super) latched: Option<SocketAddr>,
    /// The count to report with [`Output::Latched`].
    pub(super) foreign_sent: u32,
}

impl LegState {
    /// Counts of packets from and to foreign addresses; `None` when there are none, and for a capture.
    pub(super) fn foreign(&self, packets: &Packets) -> Option<Foreign> {
        let description = self.description.as_ref()?;
        if self.strict_source(description) == StrictSource::Observed {
            return None;
        }
        let fold = &self.foreign;
        let foreign = packets.source().stranger().map_or(fold.past, |stranger| {
            let foreign = fold.with_accepted(stranger, packets.received(), self.counters.sent);
            // A rejected source is the more useful address to report.
            Foreign { source: fold.past.source.or(foreign.source), ..foreign }
        });
        (foreign != Foreign::default()).then_some(foreign)
    }

    /// Whether RTCP from `source` belongs to the party.
    ///
    /// It must come from the address of the party's RTP. The RTCP port of a party behind NAT is unknown in
    /// advance: the first port from which RTCP arrives is accepted until it is silent for fifteen seconds, or
    /// until RTCP arrives from the port that SDP names.
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

/// A source of RTCP that is silent for this time may be replaced by another port of the same address. Reports
/// are sent every five seconds (RFC 3550 §6.2), so two are missing.
const RTCP_SILENT_US: i64 = 15_000_000;
