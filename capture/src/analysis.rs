//! The result of an analysis, in the JSON structure of `analyze`.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use sidetone_call::quality::{self, WallClock};
use sidetone_call::quality_rtcp;
use sidetone_media::rtcp::RtcpView;
use sidetone_media::session::{Evidence, Figures, Report};
use sidetone_media::verdict::Party;
use sidetone_model::call::HangupCause;
use sidetone_model::failure::Failure;
use sidetone_model::media_quality::{FarEnd, LegQuality, LegSide, RoundTrip};
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::time::Timestamp;

use super::call_leg::{CallLeg, ValueReport};
use super::explained;
use super::ladder::Ladder;
use super::registrations::RegistrationReport;
use super::times::Times;

/// The content of a capture.
#[derive(Debug, Serialize)]
pub struct Analysis {
    /// The name it was given.
    pub file: String,
    /// Frames read.
    pub packets: u64,
    /// Their length on the wire in bytes.
    pub bytes: u64,
    /// Frames that could not be read.
    pub skipped: Skipped,
    /// What is wrong with the times of the frames; absent when nothing is.
    #[serde(skip_serializing_if = "Times::are_sound")]
    pub times: Times,
    /// Registrations, by their first REGISTER.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationReport>,
    /// Calls, by their first INVITE.
    pub calls: Vec<CallReport>,
    /// RTP streams, by their first packet.
    pub streams: Vec<StreamReport>,
}

/// The figures of a capture as a whole.
#[derive(Clone, Debug)]
pub struct Head {
    /// The name it was given.
    pub file: String,
    /// Frames read.
    pub packets: u64,
    /// Their length on the wire in bytes.
    pub bytes: u64,
    /// Frames that could not be read.
    pub skipped: Skipped,
    /// What is wrong with the times of the frames.
    pub times: Times,
    /// Registrations, by their first REGISTER.
    pub registrations: Vec<RegistrationReport>,
}

/// Why frames were not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// No IP packet, or a link layer that is not supported.
    pub not_ip: u64,
    /// Cut off inside the headers.
    pub truncated: u64,
    /// Fragments that could not be reassembled.
    #[serde(skip_serializing_if = "is_zero")]
    pub fragments: u64,
    /// SIP that the message guard refuses.
    #[serde(skip_serializing_if = "is_zero")]
    pub malformed_sip: u64,
    /// Packets of flows, streams or calls beyond the limits.
    #[serde(skip_serializing_if = "is_zero")]
    pub over_limit: u64,
}

/// One call: the caller's leg at the top level, the called party's in `callee`.
#[derive(Debug, Serialize)]
pub struct CallReport {
    /// The SIP Call-ID.
    pub call_id: String,
    /// The caller: the user part, or the host if there is none.
    pub from: String,
    /// The called party.
    pub to: String,
    /// The first INVITE.
    pub started_at: Timestamp,
    /// The 200 OK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// The BYE or the final refusal; absent when the capture ends before the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Whole seconds from the answer to the end.
    pub billsec: i64,
    /// The final response to the INVITE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip_status: Option<u16>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hangup_cause: Option<HangupCause>,
    /// The codec of the caller's leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec_a: Option<String>,
    /// Peak jitter of the caller's audio, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Hundredths>,
    /// Lost packets in percent of the expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_pct: Option<Hundredths>,
    /// Mean gap between arriving packets, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_interval_ms: Option<Hundredths>,
    /// Intact packets in percent of the received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality_pct: Option<Hundredths>,
    /// Mean opinion score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<Hundredths>,
    /// The judgement; absent when no SDP was exchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_verdict: Option<&'static str>,
    /// The worse of this verdict and the called party's, for lists of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_verdict_worse: Option<&'static str>,
    /// The figures behind the caller's verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceReport>,
    /// Why the call was not answered; absent when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Failure>>,
    /// The called party's leg as measured, where SDP settled it; written only under the conditions of
    /// [`CallReport::callee`].
    #[serde(rename = "callee", skip_serializing_if = "has_no_callee", serialize_with = "explained::callee")]
    pub far_leg: Option<Box<Report>>,
    /// Its streams, as indices into [`Analysis::streams`].
    pub streams: Vec<usize>,
    /// Its messages, when the engine was asked to keep them.
    #[serde(skip)]
    pub ladder: Ladder,
    /// All data about the caller's leg, in the API's form.
    #[serde(flatten, serialize_with = "explained::call")]
    pub leg: CallLeg,
}

impl CallReport {
    /// The leg that the call is judged by, in the API's structure: why its verdict was given, and every
    /// figure.
    pub fn quality(&self) -> LegQuality {
        let party = match self.leg.side {
            LegSide::A => self.from.clone(),
            LegSide::B => self.to.clone(),
        };
        let quality = quality::leg(&self.leg, self.leg.side, Some(party), WallClock::unix());
        match &self.leg.words {
            Some(words) => LegQuality { sentence: words.clone(), ..quality },
            None => quality,
        }
    }

    /// The called party's leg: the audio towards the caller. `None` for a call that was not answered, or whose media
    /// was not settled.
    pub fn callee(&self) -> Option<&Report> {
        callee(self.far_leg.as_deref())
    }

    /// The called party's leg in the API's structure.
    pub fn callee_quality(&self) -> Option<LegQuality> {
        let report = self.callee()?;
        Some(quality::leg(report, LegSide::B, Some(self.to.clone()), WallClock::unix()))
    }

    /// The leg on that side in the API's structure.
    pub fn quality_of(&self, side: LegSide) -> Option<LegQuality> {
        match side {
            LegSide::A => Some(self.quality()),
            LegSide::B => self.callee_quality(),
        }
    }

    /// The directions of the call that have a verdict, the worse one first; only the caller's if neither has.
    pub fn directions(&self) -> Vec<CallDirection> {
        let caller = CallDirection {
            side: LegSide::A,
            codec: self.codec_a.clone(),
            figures: Quality {
                jitter_ms: self.jitter_ms,
                loss_pct: self.loss_pct,
                mean_interval_ms: self.mean_interval_ms,
                mos: self.mos,
                quality_pct: self.quality_pct,
                verdict: self.media_verdict.and_then(MediaVerdict::from_name),
            },
        };
        let callee = self.callee().map(|report| CallDirection {
            side: LegSide::B,
            codec: report.codec.clone(),
            figures: quality::figures(report),
        });
        match callee {
            None => vec![caller],
            Some(callee) if caller.figures.verdict.is_none() => vec![callee],
            Some(callee) if callee.is_worse_than(&caller) => vec![callee, caller],
            Some(callee) => vec![caller, callee],
        }
    }
}

/// One direction of a call: the audio from one party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDirection {
    /// The sender: [`LegSide::A`] is the caller.
    pub side: LegSide,
    /// Its codec.
    pub codec: Option<String>,
    /// Its figures and its verdict.
    pub figures: Quality,
}

impl CallDirection {
    /// The name of the sender in lists.
    pub fn sender(&self) -> &'static str {
        match self.side {
            LegSide::A => "caller",
            LegSide::B => "callee",
        }
    }

    /// The name of the verdict.
    pub fn verdict(&self) -> Option<&'static str> {
        self.figures.verdict.map(MediaVerdict::as_str)
    }

    fn is_worse_than(&self, other: &CallDirection) -> bool {
        let (own, others) = (self.figures.verdict, other.figures.verdict);
        own != others && MediaVerdict::worse(own, others) == own
    }
}

/// One source, destination and SSRC.
#[derive(Debug, Serialize)]
pub struct StreamReport {
    /// Its source.
    pub src: String,
    /// Its destination.
    pub dst: String,
    /// Its SSRC in hexadecimal.
    pub ssrc: String,
    /// The payload types seen, in ascending order.
    pub payload_types: Vec<u8>,
    /// The encoding name; absent for a dynamic type that no SDP announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// The RTP clock in Hz, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_rate: Option<u32>,
    /// The clock was inferred from timestamps and arrival times, because no SDP names it.
    #[serde(skip_serializing_if = "is_false")]
    pub clock_rate_inferred: bool,
    /// Unique packets captured.
    pub packets: u64,
    /// Packets that were sent according to the sequence numbers.
    pub expected: u64,
    /// Packets that never arrived.
    pub lost: u64,
    /// The same in percent of the expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_pct: Option<Hundredths>,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Peak jitter, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Hundredths>,
    /// Mean jitter, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_mean_ms: Option<Hundredths>,
    /// Mean gap between arriving packets, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_interval_ms: Option<Hundredths>,
    /// Longest gap between two packets, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap_ms: Option<Hundredths>,
    /// Measured packet duration, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptime_ms: Option<Ptime>,
    /// Intact packets in percent of the received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality_pct: Option<Hundredths>,
    /// Mean opinion score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<Hundredths>,
    /// The judgement on this stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// The content of its RTCP; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtcp: Option<StreamRtcp>,
    /// `from_caller` or `to_caller`; absent without signalling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'static str>,
    /// Without signalling: the stream of the other direction, as an index into [`Analysis::streams`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<usize>,
    /// All data about the stream, in the API's form.
    #[serde(flatten, serialize_with = "explained::stream")]
    pub report: Box<Report>,
}

/// RTCP about one stream: the sender's reports of sent packets, and the receiver's reports of received packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamRtcp {
    /// Packets sent according to the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sr_packets: Option<u64>,
    /// Packets of them that were not captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sr_missing: Option<u64>,
    /// Packets after the last captured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sr_missing_tail: Option<u64>,
    /// Whether the sender has sent a BYE.
    pub goodbye: bool,
    /// The receiver's report of received packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_end: Option<FarEnd>,
    /// Round-trip time to the receiver, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<RoundTrip>,
}

impl StreamRtcp {
    /// The summary of a stream's RTCP; `None` without any.
    fn of(view: &RtcpView) -> Option<StreamRtcp> {
        let sent = view.sent_by_party;
        let far_end = quality_rtcp::far_end(view);
        (sent.is_some() || far_end.is_some() || view.goodbye).then(|| StreamRtcp {
            sr_packets: sent.map(|sent| sent.packets),
            sr_missing: sent.map(|sent| sent.missing),
            sr_missing_tail: sent.map(|sent| sent.tail_missing),
            goodbye: view.goodbye,
            far_end,
            round_trip_ms: quality_rtcp::round_trip(view),
        })
    }
}

/// Facts about a stream that are not in its report.
pub(super) struct StreamFacts {
    pub(super) src: String,
    pub(super) dst: String,
    pub(super) ssrc: u32,
    pub(super) codec: Option<String>,
    pub(super) clock_rate: Option<u32>,
    /// No SDP announced the clock.
    pub(super) is_clock_inferred: bool,
    /// Whether the caller sends it; `None` without signalling.
    pub(super) from_caller: Option<bool>,
}

impl StreamReport {
    /// The clock in Hz, where it was inferred because no SDP names it.
    pub fn inferred_clock(&self) -> Option<u32> {
        self.clock_rate.filter(|_| self.clock_rate_inferred)
    }

    /// The payload types in words, for a stream whose codec is not known, with the clock that was inferred:
    /// `type 124 (48000 Hz inferred)`.
    pub fn types_in_words(&self) -> String {
        let types: Vec<String> = self.payload_types.iter().map(|number| format!("type {number}")).collect();
        match self.inferred_clock() {
            Some(hz) => format!("{} ({hz} Hz inferred)", types.join(", ")),
            None => types.join(", "),
        }
    }

    /// A stream with this report.
    pub(super) fn of(facts: StreamFacts, report: Box<Report>) -> Self {
        let StreamFacts { src, dst, ssrc, codec, clock_rate, is_clock_inferred, from_caller } = facts;
        let figures = &report.figures;
        let shared = Shared::new(figures);
        StreamReport {
            src,
            dst,
            ssrc: format!("0x{ssrc:08x}"),
            payload_types: report.payload_types.clone(),
            codec,
            clock_rate,
            clock_rate_inferred: is_clock_inferred,
            packets: figures.received,
            expected: figures.expected,
            lost: figures.lost,
            loss_pct: shared.loss_pct,
            duplicates: figures.duplicates,
            reordered: figures.reordered,
            jitter_ms: shared.jitter_ms,
            jitter_mean_ms: figures.jitter_mean_ms.map(decimal),
            mean_interval_ms: shared.mean_interval_ms,
            max_gap_ms: figures.max_gap_ms.map(decimal),
            ptime_ms: figures.ptime_ms.map(|ms| Ptime(decimal(ms))),
            quality_pct: shared.quality_pct,
            mos: shared.mos,
            verdict: verdict(&report),
            rtcp: StreamRtcp::of(&report.rtcp),
            direction: from_caller.map(|is_so| if is_so { "from_caller" } else { "to_caller" }),
            mirror: None,
            report,
        }
    }

    /// The stream in the API's structure, as the leg of its sender.
    pub fn quality(&self) -> LegQuality {
        quality::leg_of(&self.report, LegSide::A, Party::Sender, None, WallClock::unix())
    }
}

/// A packet duration: written as an integer if it is a whole number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ptime(pub Hundredths);

impl Serialize for Ptime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.0 % 100 == 0 {
            serializer.serialize_i64(self.0.0 / 100)
        } else {
            self.0.serialize(serializer)
        }
    }
}

/// Why a verdict was given, as a flat JSON object: the rule, then each number and its threshold.
#[derive(Debug, PartialEq, Eq)]
pub struct EvidenceReport(pub Evidence);

impl Serialize for EvidenceReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(rule) = self.0.rule {
            map.serialize_entry("rule", rule.as_str())?;
        }
        if !self.0.reason.is_empty() {
            map.serialize_entry("reason", self.0.reason)?;
        }
        for (place, measure) in self.0.measures.iter().enumerate() {
            // A rule may compare one figure with two thresholds; the JSON object contains it once.
            if self.0.measures.iter().take(place).any(|earlier| earlier.name == measure.name) {
                continue;
            }
            map.serialize_entry(measure.name, &ValueReport(&measure.value))?;
            if let Some(threshold) = &measure.threshold {
                map.serialize_entry(&format!("{}_threshold", measure.name), &ValueReport(threshold))?;
            }
        }
        map.end()
    }
}

/// The five figures that calls and streams share.
pub(super) struct Shared {
    pub(super) jitter_ms: Option<Hundredths>,
    pub(super) loss_pct: Option<Hundredths>,
    pub(super) mean_interval_ms: Option<Hundredths>,
    pub(super) quality_pct: Option<Hundredths>,
    pub(super) mos: Option<Hundredths>,
}

impl Shared {
    pub(super) fn new(figures: &Figures) -> Self {
        Shared {
            jitter_ms: figures.jitter_ms.map(decimal),
            loss_pct: figures.loss_pct.map(decimal),
            mean_interval_ms: figures.mean_interval_ms.map(decimal),
            quality_pct: figures.quality_pct.map(decimal),
            mos: figures.mos.map(decimal),
        }
    }
}

/// The media core's decimal in the record's type.
pub(super) fn decimal(number: sidetone_media::session::Hundredths) -> Hundredths {
    Hundredths(number.0)
}

/// The name of a report's verdict.
pub(super) fn verdict(report: &Report) -> Option<&'static str> {
    report.verdict.map(sidetone_media::session::Verdict::as_str)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The called party's leg, if it was judged and the call was answered.
fn callee(far_leg: Option<&Report>) -> Option<&Report> {
    far_leg.filter(|report| quality::figures(report).of_callee().is_some())
}

fn has_no_callee(far_leg: &Option<Box<Report>>) -> bool {
    callee(far_leg.as_deref()).is_none()
}

/// The worse of the caller's verdict and the called party's.
pub(super) fn worse(caller: Option<&'static str>, far_leg: Option<&Report>) -> Option<&'static str> {
    let callee = callee(far_leg).and_then(|report| quality::figures(report).verdict);
    MediaVerdict::worse(caller.and_then(MediaVerdict::from_name), callee).map(MediaVerdict::as_str)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
