//! Rules that are not the verdict and yet hold, or nearly do, in words.

use sidetone_model::media_quality::{QualityValue, RuleCheck, RuleMeasure, RuleOutcome};

/// What is said of a rule beside the verdict: `also true: quality 93.1 % (limit 95 %)` where it holds and another came
/// first, `close to a limit: jitter 27.5 ms (limit 30 ms)` where it nearly holds; `None` for any other.
pub fn remark(check: &RuleCheck) -> Option<String> {
    let is_near = check.reached_pct.is_some_and(|reached| reached.0 >= NEAR);
    let opening = match check.outcome {
        RuleOutcome::Outranked => "also true",
        RuleOutcome::Clear if is_near => "close to a limit",
        RuleOutcome::Clear | RuleOutcome::Fired | RuleOutcome::NotJudged => return None,
    };
    let limited = || check.measures.iter().filter(|measure| measure.threshold.is_some());
    let told: Vec<String> =
        limited().filter(|measure| unit(&measure.name).1 != "").filter_map(told).collect();
    let told = if told.is_empty() { limited().filter_map(self::told).collect() } else { told };
    if told.is_empty() {
        // A rule without limits, such as an address that cannot be reached.
        let reason = check.reason.as_deref().unwrap_or(check.rule.as_str());
        return Some(format!("{opening}: {}", reason.replace('_', " ")));
    }
    Some(format!("{opening}: {}", told.join(", ")))
}

/// A number and its limit: `quality 93.1 % (limit 95 %)`.
fn told(measure: &RuleMeasure) -> Option<String> {
    let (name, unit) = unit(&measure.name);
    let with_unit =
        |value: &QualityValue| if unit.is_empty() { value.to_string() } else { format!("{value} {unit}") };
    let (value, limit) = (measure.value.as_ref()?, measure.threshold.as_ref()?);
    Some(format!("{} {} (limit {})", name.replace('_', " "), with_unit(value), with_unit(limit)))
}

/// The name of a number without its unit, and the unit.
fn unit(name: &str) -> (&str, &'static str) {
    let units = [("_pct", "%"), ("_ms", "ms")];
    units
        .into_iter()
        .find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, unit)))
        .unwrap_or((name, ""))
}

/// From this share of its threshold on a rule is worth a remark, in hundredths of a percent.
const NEAR: i64 = 8_000;

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use sidetone_model::quality::{Hundredths, MediaVerdict};

    use super::*;

    fn check(outcome: RuleOutcome, reached: i64, measures: &[(&'static str, i64, Option<i64>)]) -> RuleCheck {
        let decimal = |value: i64| QualityValue::Decimal(Hundredths(value));
        RuleCheck {
            rule: MediaVerdict::DegradedAudio,
            reason: None,
            outcome,
            reached_pct: Some(Hundredths(reached)),
            measures: measures
                .iter()
                .map(|(name, value, limit)| RuleMeasure {
                    name: Cow::Borrowed(*name),
                    value: Some(decimal(*value)),
                    threshold: limit.map(decimal),
                })
                .collect(),
        }
    }

    #[test]
    fn what_holds_too_and_what_nearly_holds_is_said_with_its_limit() {
        let quality =
            [("quality_pct", 9_310, Some(9_500)), ("flaws", 700, None), ("received", 50_000, Some(10_000))];
        let said = |outcome, reached, measures| remark(&check(outcome, reached, measures));
        assert_eq!(
            said(RuleOutcome::Outranked, 14_700, &quality).as_deref(),
            Some("also true: quality 93.1 % (limit 95 %)")
        );
        assert_eq!(
            said(RuleOutcome::Clear, 9_166, &[("jitter_ms", 2_750, Some(3_000))]).as_deref(),
            Some("close to a limit: jitter 27.5 ms (limit 30 ms)")
        );
        assert_eq!(
            said(RuleOutcome::Outranked, 20_000, &[("rejected_source", 20_000, Some(10_000))]).as_deref(),
            Some("also true: rejected source 200 (limit 100)")
        );
        assert_eq!(said(RuleOutcome::Outranked, 10_000, &[]).as_deref(), Some("also true: degraded audio"));
        assert_eq!(said(RuleOutcome::Clear, 7_999, &quality), None);
        assert_eq!(said(RuleOutcome::Fired, 14_700, &quality), None);
        assert_eq!(said(RuleOutcome::NotJudged, 14_700, &quality), None);
    }
}
