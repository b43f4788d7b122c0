//! Remarks on rules that apply in addition to the verdict, or nearly apply.

use crate::media_quality::call::REASONS_OF_SILENCE;
use crate::media_quality::{QualityValue, RuleCheck, RuleMeasure, RuleOutcome};
use crate::quality::MediaVerdict;

impl RuleCheck {
    /// The remark on a rule that also applies, or nearly applies: `also true: quality 93 % (limit 95 %)`.
    ///
    /// `None` for the rule that made the verdict, and for one that is not close.
    pub fn remark(&self) -> Option<String> {
        let holds = self.outcome == RuleOutcome::Outranked;
        let is_near = self.outcome == RuleOutcome::Clear
            && self.reached_pct.is_some_and(|reached| reached.0 >= NEAR_MISS_PCT * 100);
        // Only the rule that explains it best states that the party was not heard.
        let is_said = holds && (self.rule == MediaVerdict::NoInboundMedia || self.is_of_silence());
        if is_said || (!holds && !is_near) {
            return None;
        }
        let begin = if holds { "also true" } else { "nearly" };
        let beside = |measure: &&RuleMeasure| {
            self.rule == MediaVerdict::NoInboundMedia && CIRCUMSTANCES.contains(&measure.name.as_ref())
        };
        let numbers: Vec<String> =
            self.measures.iter().filter(|it| !beside(it)).filter_map(RuleMeasure::words).collect();
        let what = if numbers.is_empty() { self.rule.as_str().to_owned() } else { numbers.join(", ") };
        Some(format!("{begin}: {what}"))
    }

    /// Whether it is one of the rules for a party that was not heard.
    fn is_of_silence(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        self.rule == MediaVerdict::WrongAdvertisedAddress && REASONS_OF_SILENCE.contains(&reason)
    }
}

impl RuleMeasure {
    /// The figure with its limit: `quality 93 % (limit 95 %)`; `None` if either is missing.
    fn words(&self) -> Option<String> {
        let (name, unit) = MEASURES
            .iter()
            .find(|(key, ..)| *key == self.name)
            .map_or((self.name.as_ref(), ""), |(_, name, unit)| (name, unit));
        let (value, limit) = (self.value.as_ref()?, self.threshold.as_ref()?);
        if let (QualityValue::Integer(value), QualityValue::Integer(limit)) = (value, limit)
            && GUARDS.contains(&self.name.as_ref())
            && value >= limit
        {
            return None;
        }
        let number = |value: &QualityValue| match value {
            QualityValue::Decimal(number) => number.as_f64().to_string(),
            other => other.to_string(),
        };
        Some(format!("{name} {}{unit} (limit {}{unit})", number(value), number(limit)))
    }
}

/// Figures that must be large enough for a rule to be evaluated at all; mentioned if they are too small.
const GUARDS: &[&str] = &["gaps", "receive_expected_ms", "received", "send_expected_ms"];
/// Figures of the silence rule that only hint at its cause and are not conditions.
const CIRCUMSTANCES: &[&str] = &["rejected_source", "unreachable_errors"];
/// How close a rule must come to be reported, in percent of its threshold.
const NEAR_MISS_PCT: i64 = 80;
/// The figures that have a limit: their key, their name, and their unit.
const MEASURES: &[(&str, &str, &str)] = &[
    ("back_to_back_pct", "packets right behind another", " %"),
    ("blackhole_ms", "sent to an address that cannot be reached for", " ms"),
    ("blackhole_share_pct", "sent to an address that cannot be reached", " % of the time"),
    ("clump_spacing_ms", "time between bursts", " ms"),
    ("clump_variation_pct", "variation of the bursts", " %"),
    ("drift_ms", "media ahead of the time it came in", " ms"),
    ("gaps", "gaps between packets", ""),
    ("high_jitter_packets", "packets with high jitter", ""),
    ("high_jitter_pct", "packets with high jitter", " %"),
    ("jitter_ms", "jitter", " ms"),
    ("jitter_peak_ms", "jitter", " ms"),
    ("late_packets", "packets very late", ""),
    ("late_pct", "packets very late", " %"),
    ("loss_pct", "loss", " %"),
    ("lost", "packets lost", ""),
    ("ptime_share_pct", "packets of one duration", " %"),
    ("quality_pct", "quality", " %"),
    ("receive_expected_ms", "audio expected for", " ms"),
    ("received", "packets received", ""),
    ("received_after_answer", "packets received", ""),
    ("rejected_source", "packets from another address", ""),
    ("send_expected_ms", "audio to it expected for", " ms"),
    ("sent_after_answer", "packets sent to it", ""),
    ("tail_ms", "silence at the end", " ms"),
    ("tail_share_pct", "silence at the end", " % of the time"),
    ("unreachable_errors", "packets that came back as undeliverable", ""),
    ("windows_off_pct", "windows of 5 s at another pace", " %"),
];

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::quality::Hundredths;

    fn check(outcome: RuleOutcome, reached: i64, received: i64) -> RuleCheck {
        let measure =
            |name, value, threshold| RuleMeasure { name: Cow::Borrowed(name), value: Some(value), threshold };
        let percent = |number| QualityValue::Decimal(Hundredths(number));
        RuleCheck {
            rule: MediaVerdict::DegradedAudio,
            reason: Some(Cow::Borrowed("quality")),
            outcome,
            reached_pct: Some(Hundredths(reached)),
            measures: vec![
                measure("quality_pct", percent(9_300), Some(percent(9_500))),
                measure("flaws", QualityValue::Integer(70), None),
                measure("received", QualityValue::Integer(received), Some(QualityValue::Integer(100))),
            ],
        }
    }

    #[test]
    fn what_is_also_true_is_told_with_its_limit() {
        let few = "nearly: quality 93 % (limit 95 %), packets received 90 (limit 100)";
        let cases = [
            (RuleOutcome::Outranked, 14_700, 1_000, Some("also true: quality 93 % (limit 95 %)")),
            (RuleOutcome::Clear, 9_000, 90, Some(few)),
            (RuleOutcome::Clear, 7_999, 90, None),
            (RuleOutcome::Fired, 14_700, 1_000, None),
            (RuleOutcome::NotJudged, 0, 10, None),
        ];
        for (outcome, reached, received, expected) in cases {
            let remark = check(outcome, reached, received).remark();
            assert_eq!(remark.as_deref(), expected, "{outcome:?} {reached}");
        }
    }
}
