//! The measurement of every rule of the verdict, and how close the rule came to applying.

use sidetone_model::media_quality::{RuleCheck, RuleMeasure, RuleOutcome};

use crate::markup::Html;

/// Writes the rules that pass `wanted` as a table; writes nothing if none does.
pub fn rules(html: &mut Html, checks: &[RuleCheck], wanted: fn(&RuleCheck) -> bool) {
    if !checks.iter().any(wanted) {
        return;
    }
    html.raw(
        "<div class=\"scroll\"><table class=\"rules\"><thead><tr><th>rule</th><th>outcome</th>\
         <th>reached</th><th>measured (limit)</th></tr></thead><tbody>",
    );
    for check in checks.iter().filter(|check| wanted(check)) {
        html.raw(match check.outcome {
            RuleOutcome::Fired => "<tr class=\"fired\"><td>",
            _ => "<tr><td>",
        });
        html.text(check.rule.as_str());
        if let Some(reason) = &check.reason {
            html.element(" <small>", reason, "</small>");
        }
        html.element("</td><td>", outcome(check.outcome), "</td><td class=\"n\">");
        if let Some(reached) = check.reached_pct {
            let whole = (reached.0 / 100).clamp(0, 100);
            html.raw("<meter max=\"100\" high=\"80\" optimum=\"0\" low=\"50\" value=\"")
                .text(whole)
                .raw("\"></meter> ");
            html.text(reached.0 / 100).raw(" %");
        }
        html.raw("</td><td>");
        for (place, measure) in check.measures.iter().enumerate() {
            if place > 0 {
                html.raw(", ");
            }
            self::measure(html, measure);
        }
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table></div>");
}

/// Writes the rules that also apply, and those that nearly apply.
pub fn remarks(html: &mut Html, checks: &[RuleCheck]) {
    let remarks: Vec<String> = checks.iter().filter_map(RuleCheck::remark).collect();
    if remarks.is_empty() {
        return;
    }
    html.raw("<ul class=\"also\">");
    for one in &remarks {
        html.element("<li>", one, "</li>");
    }
    html.raw("</ul>");
}

/// Every rule.
pub fn any(_: &RuleCheck) -> bool {
    true
}

fn measure(html: &mut Html, measure: &RuleMeasure) {
    html.text(&measure.name).raw(" ");
    match &measure.value {
        Some(value) => html.text(value),
        None => html.raw("–"),
    };
    if let Some(limit) = &measure.threshold {
        html.element(" (", limit, ")");
    }
}

fn outcome(outcome: RuleOutcome) -> &'static str {
    match outcome {
        RuleOutcome::Clear => "clear",
        RuleOutcome::Fired => "fired",
        RuleOutcome::NotJudged => "too little audio",
        RuleOutcome::Outranked => "also true",
    }
}
