//! Explains a verdict: every checked rule, who should act, when the fault was visible, and a sentence.

use crate::session::Report;
use crate::stats::Hundredths;
use crate::verdict::affected::affected;
use crate::verdict::blame::blame;
use crate::verdict::explanation::{Explanation, Outcome, Party, RuleCheck};
use crate::verdict::flags::flags;
use crate::verdict::leg::Leg;
use crate::verdict::phrase::Name;
use crate::verdict::rules::{RULES, RULES_VERSION};
use crate::verdict::wording::Wording;

/// Explains the verdict of `report` on `party`'s audio.
pub fn explain(report: &Report, party: Party) -> Explanation {
    let checks = checks(report);
    let mut explanation = Explanation {
        rules_version: RULES_VERSION,
        verdict: report.verdict,
        reason: report.evidence.reason,
        blame: blame(report),
        affected: affected(report),
        checks,
        flags: flags(report),
        sentence: String::new(),
    };
    explanation.sentence = sentence(report, &explanation, party);
    explanation
}

fn checks(report: &Report) -> Vec<RuleCheck> {
    if report.verdict.is_none() {
        return Vec::new();
    }
    let leg = Leg { figures: &report.figures, facts: &report.facts, thresholds: &report.thresholds };
    let mut fired = false;
    RULES
        .iter()
        .map(|rule| {
            let not_judged = rule.is_not_judged(&leg);
            let reached_pct = not_judged.is_none().then(|| (rule.reach)(&leg).0);
            let outcome = match reached_pct {
                None => Outcome::NotJudged,
                Some(reached) if reached < Hundredths::from_integer(100) => Outcome::Clear,
                Some(_) if fired => Outcome::Outranked,
                Some(_) => Outcome::Fired,
            };
            fired |= outcome == Outcome::Fired;
            RuleCheck {
                verdict: rule.verdict,
                reason: rule.reason,
                outcome,
                not_judged,
                measures: (rule.measures)(&leg),
                reached_pct,
            }
        })
        .collect()
}

/// The sentences about `report`; the other fields of `explanation` are already filled.
fn sentence(report: &Report, explanation: &Explanation, party: Party) -> String {
    let wording = Wording { report, explanation, party, who: Name::of(party) };
    let mut text = wording.verdict();
    for remark in wording.remarks() {
        text.push(' ');
        text.push_str(&remark);
    }
    text
}
