//! What a media session says about its leg, at any moment and at its end.

use std::net::{IpAddr, SocketAddr};

use crate::rtcp::RtcpView;
use crate::session::Foreign;
use crate::stats::{AudioEvidence, Figures, Hundredths, Timeline};
use crate::time::{ClockRate, Micros};
use crate::trace::TraceFile;
use crate::verdict::{Evidence, Facts, Thresholds, Verdict};

/// The figures, the verdict and the circumstances of one leg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The moment it speaks of: when it was asked for, or the end of the leg.
    pub at: Micros,
    /// What was measured on the party's packets.
    pub figures: Figures,
    /// The same second by second, until audio was expected no more.
    pub timeline: Timeline,
    /// The judgement; `None` while no SDP was settled.
    pub verdict: Option<Verdict>,
    /// The verdict was taken back: the capture holds no audio at all, so its absence says nothing.
    pub nothing_captured: bool,
    /// The packets were captured on their way between others: none of the addresses is ours, and we sent nothing.
    pub observed: bool,
    /// What the judgement rests on.
    pub evidence: Evidence,
    /// The encoding name of the audio last received.
    pub codec: Option<String>,
    /// Its RTP clock.
    pub clock_rate: Option<ClockRate>,
    /// The synchronisation source last confirmed.
    pub ssrc: Option<u32>,
    /// Whether no SDP announced that audio: its clock was inferred.
    pub is_clock_inferred: bool,
    /// The payload types received, in ascending order.
    pub payload_types: Vec<u8>,
    /// Those received that were not negotiated, in ascending order.
    pub refused_types: Vec<u8>,
    /// Whether the party was found elsewhere than SDP said.
    pub latched: bool,
    /// Where the party's accepted packets come from.
    pub source: Option<SocketAddr>,
    /// Where SDP last said the party wants RTP.
    pub advertised: Option<SocketAddr>,
    /// The address we put into our SDP to the party.
    pub own_advertised: Option<IpAddr>,
    /// Where the party's SIP comes from.
    pub signalling: Option<IpAddr>,
    /// Where we last sent RTP.
    pub sent_to: Option<SocketAddr>,
    /// The last source whose packets were refused.
    pub rejected_source: Option<SocketAddr>,
    /// What came from, and went to, addresses that are not the party's; `None` when nothing did, and of a capture.
    pub foreign: Option<Foreign>,
    /// Time after the answer in which the party should have sent, in milliseconds.
    pub receive_expected_ms: i64,
    /// Time after the answer in which we should have sent, in milliseconds.
    pub send_expected_ms: i64,
    /// Time from the last packet to the end while audio was expected, in milliseconds.
    pub tail_ms: i64,
    /// Time from the answer to the first packet after it, in milliseconds.
    pub first_after_answer_ms: Option<Hundredths>,
    /// Time from the first packet of the source that was latched to the latching, in milliseconds.
    pub latch_delay_ms: Option<Hundredths>,
    /// What was heard in the packets; `None` when none was looked at.
    pub audio: Option<AudioEvidence>,
    /// What RTCP said: the round trip, the far end's view, what the party says it has sent.
    pub rtcp: RtcpView,
    /// What was counted beside the statistics.
    pub counters: SessionCounters,
    /// The trace that was written of the leg, once it is closed; what was measured does not depend on it.
    pub trace: Option<TraceFile>,
    /// When the leg was answered, in the driver's time.
    pub answered: Option<Micros>,
    /// What the rules asked beside the figures.
    pub facts: Facts,
    /// The numbers they compared with.
    pub thresholds: Thresholds,
}

impl Report {
    /// Takes the verdict back: nothing was captured by which an answered leg could be judged.
    ///
    /// That a call was never answered stays said: audio plays no part in it.
    pub fn leave_unjudged(&mut self) {
        if self.verdict != Some(Verdict::Unanswered) {
            (self.verdict, self.evidence, self.nothing_captured) = (None, Evidence::default(), true);
        }
    }
}

/// What a session counts beside the statistics of accepted packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Datagrams on the RTP port, of every sort.
    pub datagrams: u64,
    /// RTP packets from sources that are not the party's.
    pub rejected_source: u64,
    /// Datagrams that are neither RTP nor RTCP as their standard has it.
    pub malformed: u64,
    /// STUN, DTLS and other protocols.
    pub foreign: u64,
    /// RTP packets without payload.
    pub empty: u64,
    /// RTP packets of payload types that were not negotiated, comfort noise among them.
    pub payload_type: u64,
    /// RTCP datagrams accepted.
    pub rtcp: u64,
    /// RTCP datagrams refused: a foreign source, or on the RTP port without `a=rtcp-mux`.
    pub rtcp_rejected: u64,
    /// Changes of the accepted source after the first.
    pub source_changes: u64,
    /// RTP packets accepted after the answer.
    pub received_after_answer: u64,
    /// RTP packets sent to the party.
    pub sent: u64,
    /// RTP packets sent to the party after the answer.
    pub sent_after_answer: u64,
    /// ICMP errors on the leg's socket.
    pub unreachable: u64,
    /// Packets dropped by our own receive queue.
    pub local_drop: u64,
}
