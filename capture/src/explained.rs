//! Extends the JSON of `analyze` with the explanation of a verdict: every figure that the API reports of a leg and that
//! has no key there yet.
//!
//! It is written without an intermediate copy: a capture of a thousand calls has three thousand legs and
//! streams, each with its seconds.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use sidetone_call::quality::{self, WallClock};
use sidetone_media::session::{Measure, Report};
use sidetone_media::verdict::{self, Explanation, Party, RULES_VERSION, RuleCheck};
use sidetone_model::media_quality::{Affected, InboundMedia, LegAddresses, OutboundMedia};
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};

use super::call_leg::{CallLeg, ValueReport};

/// Extends a call with the API's report of the leg that it is judged by.
pub(super) fn call<S: Serializer>(leg: &CallLeg, serializer: S) -> Result<S::Ok, S::Error> {
    let (clock, report) = (WallClock::unix(), &*leg.report);
    let explanation = verdict::explain(report, quality::party_of(leg.side));
    let sentence = leg.words.clone().unwrap_or_else(|| explanation.sentence.clone());
    OfCall {
        why: Why::of(Explanation { sentence, ..explanation }, clock),
        addresses: quality::addresses(report),
        inbound: quality::inbound(report, clock),
        outbound: quality::outbound(report),
        rules_version: report.verdict.map(|_| RULES_VERSION),
    }
    .serialize(serializer)
}

/// Writes for the called party's leg what a call reports for the caller's.
pub(super) fn callee<S: Serializer>(report: &Option<Box<Report>>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(report) = report else { return serializer.serialize_none() };
    let clock = WallClock::unix();
    let Quality { jitter_ms, loss_pct, mean_interval_ms, mos, quality_pct, verdict } =
        quality::figures(report);
    OfCallee {
        media_verdict: verdict,
        codec: report.codec.as_deref(),
        jitter_ms,
        loss_pct,
        mean_interval_ms,
        quality_pct,
        mos,
        why: Why::of(verdict::explain(report, Party::Called), clock),
        addresses: quality::addresses(report),
        inbound: quality::inbound(report, clock),
        outbound: quality::outbound(report),
    }
    .serialize(serializer)
}

/// Extends a stream with the reasons of its verdict, and with the figures that have no key of their own yet.
/// keys.
pub(super) fn stream<S: Serializer>(report: &Report, serializer: S) -> Result<S::Ok, S::Error> {
    let clock = WallClock::unix();
    OfStream {
        why: Why::of(verdict::explain(report, Party::Sender), clock),
        inbound: without_stream_figures(quality::inbound(report, clock)),
    }
    .serialize(serializer)
}

#[derive(Serialize)]
struct OfCall {
    #[serde(flatten)]
    why: Why,
    addresses: LegAddresses,
    inbound: InboundMedia,
    outbound: OutboundMedia,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_version: Option<&'static str>,
}

#[derive(Serialize)]
struct OfCallee<'a> {
    media_verdict: Option<MediaVerdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_ms: Option<Hundredths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_pct: Option<Hundredths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_interval_ms: Option<Hundredths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality_pct: Option<Hundredths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mos: Option<Hundredths>,
    #[serde(flatten)]
    why: Why,
    addresses: LegAddresses,
    inbound: InboundMedia,
    outbound: OutboundMedia,
}

#[derive(Serialize)]
struct OfStream {
    #[serde(flatten)]
    why: Why,
    #[serde(flatten)]
    inbound: InboundMedia,
}

/// The reasons of a verdict on a leg or a stream, in the API's terms.
#[derive(Serialize)]
struct Why {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<&'static str>,
    sentence: String,
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    affected: Option<Affected>,
    rules: Vec<Rule>,
}

impl Why {
    fn of(explanation: Explanation, clock: WallClock) -> Self {
        // Without `..`, so that a new field of an explanation is a compile error here.
        let Explanation { rules_version: _, verdict: _, reason, blame, affected, checks, flags, sentence } =
            explanation;
        Why {
            reason,
            blame: blame.map(verdict::Blame::as_str),
            sentence,
            flags,
            affected: affected.map(|stretch| quality::affected(stretch, clock)),
            rules: checks.into_iter().map(Rule).collect(),
        }
    }
}

/// A rule as [`sidetone_model::media_quality::RuleCheck`] serializes it, but without copying: rules are most
/// of the output.
struct Rule(RuleCheck);

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RuleCheck { verdict, reason, outcome, not_judged: _, measures, reached_pct } = &self.0;
        let mut rule = serializer.serialize_struct("RuleCheck", 5)?;
        rule.serialize_field("rule", &Word(verdict.as_str()))?;
        if !reason.is_empty() {
            rule.serialize_field("reason", &Word(reason))?;
        }
        rule.serialize_field("outcome", &Word(outcome.as_str()))?;
        if let Some(reached) = reached_pct {
            rule.serialize_field("reached_pct", &reached.as_f64())?;
        }
        rule.serialize_field("measures", &Measures(measures))?;
        rule.end()
    }
}

/// A word of the rules, written as the name of a variant: a serializer need not look for characters to escape.
struct Word(&'static str);

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit_variant("Word", 0, self.0)
    }
}

struct Measures<'a>(&'a [Measure]);

impl Serialize for Measures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Number))
    }
}

/// As [`sidetone_model::media_quality::RuleMeasure`].
struct Number<'a>(&'a Measure);

impl Serialize for Number<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Measure { name, value, threshold } = self.0;
        let mut number = serializer.serialize_struct("RuleMeasure", 3)?;
        number.serialize_field("name", &Word(name))?;
        if !quality::is_absent(value) {
            number.serialize_field("value", &ValueReport(value))?;
        }
        if let Some(threshold) = threshold {
            number.serialize_field("threshold", &ValueReport(threshold))?;
        }
        number.end()
    }
}

/// Leaves out the figures that every stream already has at its top level.
pub(crate) fn without_stream_figures(inbound: InboundMedia) -> InboundMedia {
    InboundMedia {
        ssrc: None,
        payload_types: None,
        clock_rate: None,
        packets: None,
        expected: None,
        lost: None,
        loss_pct: None,
        duplicates: None,
        reordered: None,
        jitter_ms: None,
        jitter_mean_ms: None,
        mean_interval_ms: None,
        max_gap_ms: None,
        ptime_ms: None,
        quality_pct: None,
        mos: None,
        ..inbound
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use sidetone_media::simulate::Scenario;

    use crate::{self as capture, compose};

    /// Keys of the API's leg that a call or a stream of a capture has under other names or does not have.
    const ELSEWHERE: [&str; 6] = ["leg", "party", "media_verdict", "codec", "addresses", "outbound"];

    #[test]
    fn a_capture_is_explained_as_the_api_explains_a_leg() {
        for text in ["clean duration=30s", "hole=30s..32s", "clean duration=5s answer=never", "jitter=0..90"]
        {
            let mut file = Vec::new();
            compose(&text.parse::<Scenario>().unwrap(), &mut file).unwrap();
            let analysis = capture::read("simulated", &mut &file[..], &mut |_| {}).analysis;
            for call in &analysis.calls {
                let (told, api) = (to_value(call), to_value(&call.quality()));
                for (name, value) in api.as_object().unwrap() {
                    let is_told = !ELSEWHERE[..4].contains(&name.as_str());
                    assert!(!is_told || told[name] == *value, "{text}: {name} of a call");
                }
                let far = call.callee_quality().map(|quality| to_value(&quality));
                assert_eq!(far.is_some(), told.get("callee").is_some(), "{text}");
                for (name, value) in far.iter().filter_map(Value::as_object).flatten() {
                    let is_told = !["leg", "party", "inbound"].contains(&name.as_str());
                    assert!(!is_told || told["callee"][name] == *value, "{text}: {name} of a callee");
                }
                for (name, value) in far.iter().filter_map(|far| far["inbound"].as_object()).flatten() {
                    assert_eq!(told["callee"]["inbound"][name], *value, "{text}: {name} of a callee");
                }
            }
            for stream in &analysis.streams {
                let (told, api) = (to_value(stream), to_value(&stream.quality()));
                let inbound = api["inbound"].as_object().unwrap();
                for (name, value) in api.as_object().unwrap().iter().chain(inbound) {
                    let is_told = !ELSEWHERE.contains(&name.as_str()) && *name != "inbound";
                    // A packet duration that is a whole number is written as an integer.
                    let is_told = is_told && name != "ptime_ms";
                    assert!(!is_told || told[name] == *value, "{text}: {name} of a stream");
                }
            }
        }
    }

    fn to_value(value: &impl serde::Serialize) -> Value {
        serde_json::to_value(value).unwrap()
    }
}
