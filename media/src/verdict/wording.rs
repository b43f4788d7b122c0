//! Describes the verdict of a leg in words, and finds audio of it that never arrived.

use crate::rtcp::SenderCount;
use crate::session::Report;
use crate::stats::Hundredths;
use crate::verdict::flags::short_of;
use crate::verdict::phrase::{Name, grouped, packets, seconds_of_ms};
use crate::verdict::{Explanation, Party};

/// Produces the sentences about one leg.
pub(super) struct Wording<'a> {
    pub(super) report: &'a Report,
    pub(super) explanation: &'a Explanation,
    pub(super) party: Party,
    pub(super) who: Name,
}

impl Wording<'_> {
    /// Whether a notable part of the audio did not arrive although no number between two packets is missing.
    pub(super) fn is_short(&self) -> bool {
        self.short_by_reports().is_some() || self.short_by_time().is_some()
    }

    /// Packets missing before the first one that arrived and after the last one, which leave no gap in the
    /// numbers. Computed from the sender's own count when there is one, otherwise from the time in which
    /// audio was expected.
    pub(super) fn uncounted(&self) -> Option<String> {
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
            "About {} were due in the {} for which audio was expected, and {} arrived: {}. Without sender \
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
