//! The report of a media session about its leg, at any moment and at its end.

use std::net::{IpAddr, SocketAddr};

use crate::rtcp::RtcpView;
use crate::session::{FaxCounters, Foreign, VideoCounters};
use crate::stats::{AudioEvidence, Figures, Hundredths, Timeline};
use crate::time::{ClockRate, Micros};
use crate::trace::TraceFile;
use crate::verdict::{Evidence, Facts, Thresholds, Verdict, judge};

/// The figures, the verdict and the circumstances of one leg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The time of the report: when it was requested, or the end of the leg.
    pub at: Micros,
    /// Figures of the party's packets.
    pub figures: Figures,
    /// The same per second, until audio was no longer expected.
    pub timeline: Timeline,
    /// The verdict; `None` before the first SDP result, for video, and for a fax with too little audio to judge.
    pub verdict: Option<Verdict>,
    /// Why the verdict was removed; `None` when it was not.
    pub withheld: Option<Withheld>,
    /// Whether the packets were captured between other systems: no address is ours, and we sent nothing.
    pub observed: bool,
    /// The evidence of the verdict.
    pub evidence: Evidence,
    /// The encoding name of the audio last received.
    pub codec: Option<String>,
    /// Its RTP clock.
    pub clock_rate: Option<ClockRate>,
    /// The synchronisation source last confirmed.
    pub ssrc: Option<u32>,
    /// Whether no SDP announced that audio, so that its clock was inferred.
    pub is_clock_inferred: bool,
    /// The payload types received, in ascending order.
    pub payload_types: Vec<u8>,
    /// The payload types received that were not negotiated, in ascending order.
    pub refused_types: Vec<u8>,
    /// Whether the party's source differs from SDP.
    pub latched: bool,
    /// Source of the party's accepted packets.
    pub source: Option<SocketAddr>,
    /// The RTP address in the party's last SDP.
    pub advertised: Option<SocketAddr>,
    /// The address in our SDP to the party.
    pub own_advertised: Option<IpAddr>,
    /// Source address of the party's SIP.
    pub signalling: Option<IpAddr>,
    /// The last destination of our RTP.
    pub sent_to: Option<SocketAddr>,
    /// The last source whose packets were rejected.
    pub rejected_source: Option<SocketAddr>,
    /// Counts of packets from and to foreign addresses; `None` when there are none, and for a capture.
    pub foreign: Option<Foreign>,
    /// Time after the answer in which the party should have sent, in milliseconds.
    pub receive_expected_ms: i64,
    /// Time after the answer in which we should have sent, in milliseconds.
    pub send_expected_ms: i64,
    /// Time from the last packet to the end while audio was expected, in milliseconds.
    pub tail_ms: i64,
    /// Time from the answer to the first packet after it, in milliseconds.
    pub first_after_answer_ms: Option<Hundredths>,
    /// Time from the first packet of the latched source to the latching, in milliseconds.
    pub latch_delay_ms: Option<Hundredths>,
    /// Results of decoded payloads; `None` when none was decoded.
    pub audio: Option<AudioEvidence>,
    /// Figures from RTCP: the round trip, the far end's reports, and the party's own counts.
    pub rtcp: RtcpView,
    /// The counters that are not part of the statistics.
    pub counters: SessionCounters,
    /// Counts of UDPTL; `None` for a leg that never carried a fax.
    pub fax: Option<FaxCounters>,
    /// Counts of video; `None` for ports that carry none.
    pub video: Option<VideoCounters>,
    /// The trace file of the leg, once it is closed; the figures do not depend on it.
    pub trace: Option<TraceFile>,
    /// When the leg was answered, in the driver's time.
    pub answered: Option<Micros>,
    /// The inputs of the verdict rules besides the figures.
    pub facts: Facts,
    /// The thresholds of the rules.
    pub thresholds: Thresholds,
}

impl Report {
    /// Judges a leg that rang and was never answered, of which no answer in SDP was seen: that verdict needs no media.
    pub fn judge_unanswered(&mut self) {
        let evidence = judge(&self.figures, &self.facts, &self.thresholds);
        if evidence.rule == Some(Verdict::Unanswered) {
            (self.verdict, self.evidence) = (evidence.rule, evidence);
        }
    }

    /// Removes the verdict, because the capture contains nothing by which the leg could be judged, and the figures
    /// that it makes wrong.
    ///
    /// The verdict that a call was never answered stays, because it does not depend on audio; unless the messages
    /// may be in another order than they were sent in.
    pub fn leave_unjudged(&mut self, why: Withheld) {
        if self.verdict != Some(Verdict::Unanswered) || why == Withheld::OutOfOrder {
            (self.verdict, self.evidence, self.withheld) = (None, Evidence::default(), Some(why));
        }
        if why != Withheld::NothingCaptured {
            self.figures = self.figures.counts();
            if why == Withheld::Untimed {
                (self.figures.first, self.figures.last) = (None, None);
            }
            (self.timeline, self.facts) = (Timeline::default(), Facts::default());
            (self.receive_expected_ms, self.send_expected_ms, self.tail_ms) = (0, 0, 0);
            (self.first_after_answer_ms, self.latch_delay_ms, self.rtcp.round_trip) = (None, None, None);
        }
    }
}

/// Why a leg of a capture has no verdict although it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// The capture holds no audio at all, so missing audio is no evidence.
    NothingCaptured,
    /// The capture is not in the order of time: what seems to be missing may be elsewhere in it.
    OutOfOrder,
    /// Frames of the capture have no time.
    Untimed,
}

/// Counters of a session that are not part of the statistics of accepted packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Datagrams on the RTP port, of every kind, except SRTP that could not be authenticated.
    pub datagrams: u64,
    /// RTP packets from sources that are not the party's.
    pub rejected_source: u64,
    /// Datagrams that are neither valid RTP nor valid RTCP.
    pub malformed: u64,
    /// STUN, DTLS and other protocols.
    pub foreign: u64,
    /// RTP packets without payload.
    pub empty: u64,
    /// RTP packets of payload types that were not negotiated, including comfort noise.
    pub payload_type: u64,
    /// RTCP datagrams accepted.
    pub rtcp: u64,
    /// RTCP datagrams rejected: from a foreign source, or on the RTP port without `a=rtcp-mux`.
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
    /// SRTP packets that could not be authenticated.
    pub srtp_failed: u64,
}
