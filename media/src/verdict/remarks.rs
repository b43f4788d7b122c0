//! Remarks after the sentence on a verdict: packets missing at the start and the end, flags, foreign
//! addresses.

use crate::rtcp::SenderCount;
use crate::session::{Foreign, Report};
use crate::stats::Hundredths;
use crate::verdict::flags::{
    CLIPPED_AUDIO, COMFORT_NOISE_ONLY, FAR_END_DEAF, FAR_END_LOSS, LOCAL_DROP, SILENT_AUDIO,
};
use crate::verdict::phrase::{Name, counted, grouped, packets, seconds_of_ms, short, text};
use crate::verdict::words::Teller;
use crate::verdict::{Blame, Party, not_audio};

/// A sentence on packets from and to foreign addresses; `None` when they are not notable.
pub fn foreign_sentence(report: &Report, party: Party) -> Option<String> {
    let Name { within: who, .. } = Name::of(party);
    let foreign = report.foreign.filter(Foreign::is_notable)?;
    let source = text(foreign.source);
    let refused = match foreign.rejected_packets {
        0 => String::new(),
        count => {
            format!(" {} from there {} refused.", packets(count), if count == 1 { "was" } else { "were" })
        }
    };
    let taken = match (foreign.taken_back, foreign.accepted_packets, foreign.sent_packets) {
        (0, ..) => String::new(),
        (_, accepted, sent) => format!(
            " For a time that address was taken for {who}'s: {} from there {} heard, and {} of ours went there.",
            packets(accepted),
            if accepted == 1 { "was" } else { "were" },
            packets(sent),
        ),
    };
    Some(format!("Packets came from {source}, which is not {who}'s address for audio.{refused}{taken}"))
}

impl Teller<'_> {
    /// The remarks for the flags that matter to a customer.
    pub(super) fn remarks(&self) -> Vec<String> {
        let flags = &self.explanation.flags;
        let dropped = self.report.figures.local_drop;
        let mut remarks = Vec::new();
        remarks.extend(self.uncounted());
        if flags.contains(&COMFORT_NOISE_ONLY) {
            remarks.push(format!(
                "{}'s device sent comfort noise alone and no speech, as a muted microphone does.",
                self.who.first
            ));
        }
        remarks.extend(not_audio::remark(self.report, self.who.within));
        remarks.extend(self.inferred());
        remarks.extend(self.heard());
        // The sentence on a wrong address already covers this.
        if self.report.evidence.reason != "rejected_source" {
            remarks.extend(foreign_sentence(self.report, self.party));
        }
        if flags.contains(&FAR_END_DEAF) {
            remarks.push(format!(
                "{}'s device reports by RTCP that nothing of what is sent to it arrives.",
                self.who.first
            ));
        }
        let far_end_loss = self.report.rtcp.far_end.as_ref().and_then(|far_end| far_end.loss_pct);
        if let (true, Some(loss)) = (flags.contains(&FAR_END_LOSS), far_end_loss) {
            remarks.push(format!(
                "The other way round, {}'s device reports by RTCP that it lost {} % of what was sent to it.",
                self.who.within,
                short(loss)
            ));
        }
        if flags.contains(&LOCAL_DROP) && self.explanation.blame != Some(Blame::Us) {
            remarks.push(format!(
                "Our own machine dropped {} because it was overloaded.",
                counted(dropped, "more packet", "more packets")
            ));
        }
        remarks
    }

    /// How the clock was inferred when no SDP announced it.
    fn inferred(&self) -> Option<String> {
        let report = self.report;
        let clock = report.clock_rate.filter(|_| report.is_clock_inferred)?;
        Some(format!(
            "No SDP says what {} sent; by its timestamps it is audio at {} Hz.",
            self.who.within,
            grouped(clock.hz().into())
        ))
    }

    /// The result of decoding payloads, when it does not match a conversation.
    fn heard(&self) -> Option<String> {
        let (audio, flags) = (self.report.audio?, &self.explanation.flags);
        if flags.contains(&SILENT_AUDIO) {
            let sounds = Hundredths::from_integer(100).0.saturating_sub(audio.silent_share_pct.0);
            let heard = if sounds <= 0 {
                "nothing can be heard in any of them".to_owned()
            } else {
                format!("nothing can be heard in {} % of them", short(audio.silent_share_pct))
            };
            return Some(format!(
                "What the packets carry is silence: {heard} ({} of audio were listened to, one packet in four). Either {}'s \
                 microphone is muted or broken, or the equipment that sends the packets gets no audio itself.",
                seconds_of_ms(i64::try_from(audio.looked_at_ms).unwrap_or(i64::MAX)),
                self.who.within
            ));
        }
        let clipped = audio.clipped_share_pct.filter(|_| flags.contains(&CLIPPED_AUDIO))?;
        Some(format!(
            "{}'s audio is overdriven: its loudest parts are cut off in {} % of the packets with sound. The microphone or the gateway must be set to a lower level.",
            self.who.first,
            short(clipped)
        ))
    }

    /// Whether a notable part of the audio did not arrive although no number between two packets is missing.
    pub(super) fn is_short(&self) -> bool {
        self.short_by_reports().is_some() || self.short_by_time().is_some()
    }

    /// Packets missing before the first one that arrived and after the last one, which leave no gap in the
    /// numbers. Computed from the sender's own count when there is one, otherwise from the time in which
    /// audio was expected.
    fn uncounted(&self) -> Option<String> {
        if let Some(sent) = self.short_by_reports() {
            let ends = match (sent.head_missing.unwrap_or(0), sent.tail_missing) {
                (0, 0) => String::new(),
                (head, 0) => format!(", {} of them before the first that came", grouped(head)),
                (0, tail) => format!(", {} of them after the last that came", grouped(tail)),
                (head, tail) => format!(
                    ", {} of them before the first that came and {} after the last",
                    grouped(head),
                    grouped(tail)
                ),
            };
            return Some(format!(
                "By the sender reports (RTCP) of {}'s device, which count {}, {} never came{ends}.",
                self.who.within,
                packets(sent.packets),
                grouped(sent.missing),
            ));
        }
        let due = self.short_by_time()?;
        let report = self.report;
        let begins_ms = report.first_after_answer_ms.map_or(0, |ms| ms.0 / 100);
        let edges =
            [(begins_ms, "the first", "after the answer"), (report.tail_ms, "the last", "before the end")];
        let edges = edges.into_iter().filter(|(ms, ..)| *ms >= EDGE_MIN_MS);
        let edges: Vec<String> =
            edges.map(|(ms, which, of)| format!("{which} {} {of}", seconds_of_ms(ms))).collect();
        Some(format!(
            "By the time, some {} were due in the {} for which audio was expected, and {} came: {}. Without sender \
             reports (RTCP) it is not known whether more were sent.",
            packets(due),
            seconds_of_ms(report.receive_expected_ms),
            grouped(report.counters.received_after_answer),
            edges.join(", "),
        ))
    }

    /// The sender's count, when it shows more missing packets than the sequence numbers do, and as many as
    /// would be a verdict.
    fn short_by_reports(&self) -> Option<SenderCount> {
        let report = self.report;
        let sent = report.rtcp.sent_by_party.filter(|_| self.speaks_of_what_came())?;
        short_of(&sent, report).then_some(sent)
    }

    /// The number of packets expected in the time, when packets for at least a second are missing at the
    /// start and the end together.
    fn short_by_time(&self) -> Option<u64> {
        let (report, figures) = (self.report, &self.report.figures);
        if report.rtcp.sent_by_party.is_some() || !self.speaks_of_what_came() {
            return None;
        }
        // For a sender that pauses, or has its own pace, the expected number cannot be computed.
        let paused = figures.pauses > 0 || figures.interruptions > 0 || figures.comfort_noise > 0;
        let is_steady = figures.pace_ratio.is_some_and(|pace| (STEADY_MIN..=STEADY_MAX).contains(&pace));
        let ptime = figures.ptime_ms.filter(|ptime| ptime.0 > 0 && !paused && is_steady)?;
        let begins_late_ms = report.first_after_answer_ms.map_or(0, |ms| ms.0 / 100);
        let silent_ms = begins_late_ms + report.tail_ms;
        let share_pct = Hundredths::ratio(i128::from(silent_ms) * 100, report.receive_expected_ms.into())?;
        let notable = silent_ms >= UNCOUNTED_MIN_MS && share_pct >= report.thresholds.loss_pct;
        let due = report.receive_expected_ms.saturating_mul(100) / ptime.0;
        u64::try_from(due).ok().filter(|due| notable && *due > report.counters.received_after_answer)
    }

    /// Whether the sentence is about packets that arrived; a sentence about silence needs no such remark.
    fn speaks_of_what_came(&self) -> bool {
        let report = self.report;
        let ended = report.evidence.reason == "dead_tail";
        let heard = report.counters.received_after_answer >= HEARD_MIN;
        report.figures.enough && report.answered.is_some() && heard && !ended
    }
}

/// Whether the sender's count shows more missing packets than the sequence numbers do, and as many as would
/// be a verdict.
pub(super) fn short_of(sent: &SenderCount, report: &Report) -> bool {
    let limits = &report.thresholds;
    let beyond = i128::from(sent.missing.saturating_sub(report.figures.lost)) * 100;
    let share_pct = Hundredths::ratio(i128::from(sent.missing) * 100, sent.packets.into());
    beyond >= i128::from(limits.lost_packets.0) && share_pct.is_some_and(|share| share >= limits.loss_pct)
}

/// Silence at the start and the end together from which it is reported.
const UNCOUNTED_MIN_MS: i64 = 1_000;
/// Silence at the start or at the end that is mentioned separately: when both together reach the limit, at
/// least one has half of it.
const EDGE_MIN_MS: i64 = UNCOUNTED_MIN_MS / 2;
/// Fewer packets after the answer do not count as audio.
const HEARD_MIN: u64 = 5;
/// Media time to real time of a sender for which the expected number can be computed, in percent.
const STEADY_MIN: Hundredths = Hundredths::from_integer(95);
const STEADY_MAX: Hundredths = Hundredths::from_integer(105);
