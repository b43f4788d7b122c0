//! Converts the report of a media session to the form that is stored, shown and printed; pure.
//!
//! This is the only conversion of a [`Report`]: live calls, their records and the analysis of captures use
//! it.

use std::borrow::Cow;
use std::net::SocketAddr;

use sidetone_media::session::{
    Change, Figures, Foreign, Measure, Report, SessionCounters, Value, Verdict, Warning, Withheld,
};
use sidetone_media::stats::{self, Second, Timeline};
use sidetone_media::time::Micros;
use sidetone_media::verdict::{self, Party, RULES_VERSION};
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::{
    Affected, AudioEvidence, Blame, CallQuality, FaxMedia, ForeignMedia, InboundMedia, LegAddresses,
    LegQuality, LegSide, LegTrace, MediaChange, MediaWarning, OutboundMedia, QualitySecond, QualityState,
    QualityTimeline, QualityValue, RuleCheck, RuleMeasure, RuleOutcome, WorstStretch,
};
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::time::Timestamp;

use crate::quality_rtcp;

/// Converts times of a media session to wall-clock time.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    at: Micros,
    wall: Timestamp,
}

impl WallClock {
    /// The clock of a session that made `report` at `wall`.
    pub fn of(report: &Report, wall: Timestamp) -> Self {
        WallClock { at: report.at, wall }
    }

    /// The clock of a capture, whose times are counted from the Unix epoch.
    pub fn unix() -> Self {
        WallClock { at: Micros(0), wall: Timestamp::from_micros(0) }
    }

    /// The wall-clock time of a session time.
    pub fn of_micros(self, at: Micros) -> Timestamp {
        self.wall.plus_micros(at.since(self.at))
    }
}

/// The quality of a call, from its legs.
pub fn call(call: CallId, state: QualityState, at: Timestamp, legs: Vec<LegQuality>) -> CallQuality {
    let rules_version = legs.iter().any(|leg| leg.media_verdict.is_some()).then(|| RULES_VERSION.to_owned());
    CallQuality { rules_version, ..CallQuality::of_legs(call, state, at, legs) }
}

/// The quality of a leg from its session's report; `party` is the number at its far end.
pub fn leg(report: &Report, side: LegSide, party: Option<String>, clock: WallClock) -> LegQuality {
    leg_of(report, side, party_of(side), party, clock)
}

/// The same for a leg whose party is `whom`; needed because a leg created by a room has no caller.
pub fn leg_of(
    report: &Report,
    side: LegSide,
    whom: Party,
    party: Option<String>,
    clock: WallClock,
) -> LegQuality {
    let explanation = verdict::explain(report, whom);
    LegQuality {
        leg: side,
        party,
        media_verdict: explanation.verdict.map(named),
        reason: reason(explanation.reason).map(Cow::into_owned),
        blame: explanation.blame.and_then(|blame| Blame::from_name(blame.as_str())),
        sentence: explanation.sentence,
        flags: explanation.flags.into_iter().map(str::to_owned).collect(),
        codec: report.codec.clone(),
        affected: explanation.affected.map(|stretch| affected(stretch, clock)),
        rules: explanation.checks.iter().map(rule).collect(),
        addresses: addresses(report),
        foreign: report.foreign.as_ref().map(foreign),
        fax: report.fax.map(|fax| FaxMedia { received: fax.received, sent: fax.sent, missing: fax.missing }),
        // It has a separate port and report.
        video: None,
        inbound: inbound(report, clock),
        outbound: outbound(report),
        trace: report.trace.as_ref().map(|trace| LegTrace { file: trace.name.clone(), bytes: trace.bytes }),
    }
}

/// The figures of a leg that a record contains.
pub fn figures(report: &Report) -> Quality {
    let figures = &report.figures;
    Quality {
        jitter_ms: figures.jitter_ms.map(decimal),
        loss_pct: figures.loss_pct.map(decimal),
        mean_interval_ms: figures.mean_interval_ms.map(decimal),
        mos: figures.mos.map(decimal),
        quality_pct: figures.quality_pct.map(decimal),
        verdict: report.verdict.map(named),
    }
}

/// The party of a leg, as sentences name it.
pub fn party_of(side: LegSide) -> Party {
    match side {
        LegSide::A => Party::Caller,
        LegSide::B => Party::Called,
    }
}

/// The quality of a leg whose call has not been answered yet, without a judgement.
pub fn before_answer(leg: LegQuality) -> LegQuality {
    LegQuality {
        media_verdict: None,
        reason: None,
        blame: None,
        sentence: "The call has not been answered yet.".to_owned(),
        rules: Vec::new(),
        ..leg
    }
}

/// The warning for a leg whose quality became worse, or is good again, noticed at `wall`.
pub fn warning(
    warning: &Warning,
    side: LegSide,
    whom: Party,
    party: Option<String>,
    wall: Timestamp,
) -> MediaWarning {
    let report = &warning.report;
    let clock = WallClock::of(report, wall);
    let name = if whom == Party::Caller { "the caller" } else { "the called party" };
    let lasted_s = report.at.since(warning.since) / 1_000_000;
    let (state, sentence) = match warning.change {
        Change::AudioBack => (MediaChange::AudioBack, format!("Audio comes from {name} again.")),
        Change::ForeignSource => {
            let sentence = verdict::foreign_sentence(report, whom);
            (MediaChange::ForeignSource, sentence.unwrap_or_default())
        }
        Change::NoAudio => {
            (MediaChange::NoAudio, format!("No audio has come from {name} for {lasted_s} seconds."))
        }
        Change::Verdict => (MediaChange::Verdict, verdict::explain(report, whom).sentence),
    };
    MediaWarning {
        leg: side,
        media_verdict: report.verdict.map(named),
        previous: named(warning.previous),
        state,
        sentence,
        since: clock.of_micros(warning.since),
        at: wall,
        party,
    }
}

/// The verdict as the record's type.
fn named(verdict: Verdict) -> MediaVerdict {
    match verdict {
        Verdict::DegradedAudio => MediaVerdict::DegradedAudio,
        Verdict::JitteryInbound => MediaVerdict::JitteryInbound,
        Verdict::LossyInbound => MediaVerdict::LossyInbound,
        Verdict::NoInboundMedia => MediaVerdict::NoInboundMedia,
        Verdict::NoOutboundMedia => MediaVerdict::NoOutboundMedia,
        Verdict::Ok => MediaVerdict::Ok,
        Verdict::PtimeMismatch => MediaVerdict::PtimeMismatch,
        Verdict::Unanswered => MediaVerdict::Unanswered,
        Verdict::UnpacedSender => MediaVerdict::UnpacedSender,
        Verdict::WrongAdvertisedAddress => MediaVerdict::WrongAdvertisedAddress,
    }
}

/// The affected stretch in wall-clock time.
pub fn affected(stretch: verdict::Affected, clock: WallClock) -> Affected {
    Affected {
        first_s: stretch.first_s,
        last_s: stretch.last_s,
        from: clock.of_micros(stretch.from),
        to: clock.of_micros(stretch.to),
    }
}

fn reason(reason: &'static str) -> Option<Cow<'static, str>> {
    Some(reason).filter(|reason| !reason.is_empty()).map(Cow::Borrowed)
}

fn rule(check: &verdict::RuleCheck) -> RuleCheck {
    RuleCheck {
        rule: named(check.verdict),
        reason: reason(check.reason),
        outcome: match check.outcome {
            verdict::Outcome::Clear => RuleOutcome::Clear,
            verdict::Outcome::Fired => RuleOutcome::Fired,
            verdict::Outcome::NotJudged => RuleOutcome::NotJudged,
            verdict::Outcome::Outranked => RuleOutcome::Outranked,
        },
        reached_pct: check.reached_pct.map(decimal),
        measures: check.measures.iter().map(measure).collect(),
    }
}

fn measure(measure: &Measure) -> RuleMeasure {
    RuleMeasure {
        name: Cow::Borrowed(measure.name),
        value: value(&measure.value),
        threshold: measure.threshold.as_ref().and_then(value),
    }
}

/// Whether the value is the word that replaces a number that cannot be judged.
pub fn is_absent(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text == "absent")
}

/// A number as it is published; `None` where it could not be judged.
fn value(value: &Value) -> Option<QualityValue> {
    Some(match value {
        Value::Flag(flag) => QualityValue::Flag(*flag),
        Value::Hundredths(number) => QualityValue::Decimal(decimal(*number)),
        Value::Integer(number) => QualityValue::Integer(*number),
        absent if is_absent(absent) => return None,
        Value::Text(text) => QualityValue::Text(text.clone()),
    })
}

/// The addresses of a leg, written out.
pub fn addresses(report: &Report) -> LegAddresses {
    let text = |address: Option<SocketAddr>| address.map(|address| address.to_string());
    LegAddresses {
        source: text(report.source),
        advertised: text(report.advertised),
        own_advertised: report.own_advertised.map(|address| address.to_string()),
        sent_to: text(report.sent_to),
        signalling: report.signalling.map(|address| address.to_string()),
        rejected_source: text(report.rejected_source),
        latched: report.latched,
    }
}

fn foreign(foreign: &Foreign) -> ForeignMedia {
    ForeignMedia {
        rejected_packets: foreign.rejected_packets,
        accepted_packets: foreign.accepted_packets,
        sent_packets: foreign.sent_packets,
        last_source: foreign.source.map(|source| source.to_string()),
    }
}

/// The figures of the stream that the party sent.
pub fn inbound(report: &Report, clock: WallClock) -> InboundMedia {
    let counters = &report.counters;
    let is_timed = is_timed(report);
    InboundMedia {
        after_answer: Some(counters.received_after_answer),
        source_changes: Some(counters.source_changes),
        receive_expected_ms: is_timed.then_some(report.receive_expected_ms),
        first_rtp_after_answer_ms: report.first_after_answer_ms.map(decimal),
        tail_silence_ms: is_timed.then_some(report.tail_ms),
        latch_delay_ms: report.latch_delay_ms.map(decimal),
        first_at: report.figures.first.map(|at| clock.of_micros(at)),
        last_at: report.figures.last.map(|at| clock.of_micros(at)),
        ssrc: report.ssrc.map(|ssrc| format!("0x{ssrc:08x}")),
        clock_rate: report.clock_rate.map(|rate| rate.hz()),
        payload_types: Some(report.payload_types.clone()),
        datagrams: Some(counters.datagrams),
        rejected_source: Some(counters.rejected_source),
        rejected_payload_type: Some(counters.payload_type),
        srtp_failed: (counters.srtp_failed > 0).then_some(counters.srtp_failed),
        malformed: Some(counters.malformed),
        foreign: Some(counters.foreign),
        empty: Some(counters.empty),
        rtcp_packets: Some(counters.rtcp),
        rtcp_rejected: Some(counters.rtcp_rejected),
        timeline: timeline(&report.timeline, clock),
        audio: report.audio.as_ref().map(heard),
        ..quality_rtcp::inbound(&report.rtcp, measured(&report.figures, is_timed))
    }
}

/// The evidence from decoded samples.
fn heard(audio: &stats::AudioEvidence) -> AudioEvidence {
    AudioEvidence {
        looked_at_packets: Some(audio.looked_at_packets),
        looked_at_ms: Some(audio.looked_at_ms),
        level_dbov: Some(decimal(audio.level_dbov)),
        peak_dbov: Some(decimal(audio.peak_dbov)),
        silent_share_pct: Some(decimal(audio.silent_share_pct)),
        clipped_share_pct: audio.clipped_share_pct.map(decimal),
        longest_silence_ms: Some(audio.longest_silence_ms),
    }
}

/// The rows by second; `None` when no packet arrived.
fn timeline(timeline: &Timeline, clock: WallClock) -> Option<QualityTimeline> {
    let begins_at = clock.of_micros(timeline.begins?);
    let seconds = timeline.seconds.iter().map(second).collect();
    Some(QualityTimeline::new(begins_at, timeline.step_s, seconds))
}

fn second(second: &Second) -> QualitySecond {
    let has_audio = second.interval_mean_us() > 0;
    let millis = |us: u32| Some(Hundredths((i64::from(us) + 5) / 10)).filter(|_| has_audio);
    QualitySecond {
        received: second.received.into(),
        lost: second.lost.into(),
        late: second.late.into(),
        duplicates: second.duplicates.into(),
        jitter_max_ms: millis(second.jitter_max_us()),
        interval_mean_ms: millis(second.interval_mean_us()),
        interval_max_ms: millis(second.interval_max_us),
        lateness_max_ms: millis(second.lateness_max_us),
        audio_expected: second.is_audio_expected(),
        silence_announced: second.has_silence(),
        event: second.has_events(),
        level_dbov: second.level_dbov().map(|level| Hundredths(i64::from(level) * 100)),
    }
}

/// Whether the times of the packets are known, so that what depends on them was measured.
fn is_timed(report: &Report) -> bool {
    !matches!(report.withheld, Some(Withheld::OutOfOrder | Withheld::Untimed))
}

/// The figures measured on the packets; only the counts if their times are not known.
fn measured(figures: &Figures, is_timed: bool) -> InboundMedia {
    InboundMedia {
        packets: Some(figures.received),
        expected: Some(figures.expected),
        lost: Some(figures.lost),
        loss_pct: figures.loss_pct.map(decimal),
        local_drop: Some(figures.local_drop),
        duplicates: Some(figures.duplicates),
        reordered: Some(figures.reordered),
        before_segment: Some(figures.before_segment),
        audio_packets: Some(figures.audio),
        cn_packets: Some(figures.comfort_noise),
        event_packets: Some(figures.events),
        segments: Some(figures.segments),
        sequence_jumps: Some(figures.sequence_jumps),
        ssrc_changes: Some(figures.ssrc_changes),
        stray_ssrc: Some(figures.stray_ssrc),
        ts_resets: is_timed.then_some(figures.timestamp_resets),
        pauses: is_timed.then_some(figures.pauses),
        silence_ms: is_timed.then_some(figures.silence_ms),
        interruptions: is_timed.then_some(figures.interruptions),
        interruption_ms: is_timed.then_some(figures.interruption_ms),
        flaws: is_timed.then_some(figures.flaws),
        quality_pct: figures.quality_pct.map(decimal),
        mos: figures.mos.map(decimal),
        jitter_ms: figures.jitter_ms.map(decimal),
        jitter_mean_ms: figures.jitter_mean_ms.map(decimal),
        mean_interval_ms: figures.mean_interval_ms.map(decimal),
        max_gap_ms: figures.max_gap_ms.map(decimal),
        ptime_ms: figures.ptime_ms.map(decimal),
        payload_ptime_ms: figures.payload_ptime_ms.map(decimal),
        loss_runs: Some(figures.loss_runs.to_vec()),
        lateness_packets: is_timed.then(|| figures.lateness.to_vec()),
        longest_loss_packets: Some(figures.longest_loss_packets.into()),
        longest_loss_ms: is_timed.then_some(figures.longest_loss_ms),
        burst_share: figures.burst_share.map(decimal),
        late_80: is_timed.then_some(figures.late_80),
        late_200: is_timed.then_some(figures.late_200),
        pace_ratio: figures.pace_ratio.map(decimal),
        clock_skew_ppm: figures.clock_skew_ppm,
        mos_e_model: figures.mos_e_model.map(decimal),
        lateness_p50_ms: figures.lateness_percentiles.map(|late| decimal(late.p50_ms)),
        lateness_p95_ms: figures.lateness_percentiles.map(|late| decimal(late.p95_ms)),
        lateness_p99_ms: figures.lateness_percentiles.map(|late| decimal(late.p99_ms)),
        lateness_max_ms: figures.lateness_percentiles.map(|late| decimal(late.max_ms)),
        // Among packets of unknown types there may be telephone-events.
        dtmf_events: (figures.dtmf_events > 0 || figures.others == 0).then_some(figures.dtmf_events),
        worst_10s: figures.worst_10s.map(|worst| WorstStretch {
            at_s: Some(worst.at_s),
            loss_pct: Some(decimal(worst.loss_pct)),
            jitter_ms: Some(decimal(worst.jitter_ms)),
            quality_pct: Some(decimal(worst.quality_pct)),
        }),
        ..InboundMedia::default()
    }
}

/// The figures of the stream that was sent to the party.
pub fn outbound(report: &Report) -> OutboundMedia {
    let SessionCounters { sent, sent_after_answer, unreachable, .. } = report.counters;
    OutboundMedia {
        packets: Some(sent),
        after_answer: Some(sent_after_answer),
        send_expected_ms: is_timed(report).then_some(report.send_expected_ms),
        unreachable: Some(unreachable),
        round_trip_ms: quality_rtcp::round_trip(&report.rtcp),
        far_end: quality_rtcp::far_end(&report.rtcp),
    }
}

/// The media core's decimal in the record's type.
pub fn decimal(number: sidetone_media::session::Hundredths) -> Hundredths {
    Hundredths(number.0)
}
