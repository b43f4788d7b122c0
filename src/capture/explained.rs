//! What an explanation adds to the JSON of `analyze`: everything the API says of a leg that has no place there yet.
//!
//! It is written as it is made: a capture of a thousand calls has three thousand of these, each with its seconds.

use serde::{Serialize, Serializer};
use sidetone_media::session::Report;
use sidetone_media::verdict::{Party, RULES_VERSION};
use sidetone_model::media_quality::{
    Affected, Blame, InboundMedia, LegAddresses, LegQuality, LegSide, OutboundMedia, RuleCheck,
};

use crate::quality::{self, WallClock};

/// Adds to a call what the API says of its caller's leg.
pub(super) fn call<S: Serializer>(report: &Report, serializer: S) -> Result<S::Ok, S::Error> {
    let quality = quality::leg(report, LegSide::A, None, WallClock::unix());
    let rules_version = quality.media_verdict.is_some().then_some(RULES_VERSION);
    let LegQuality { addresses, inbound, outbound, .. } = &quality;
    OfCall { why: Why::of(&quality), addresses, inbound, outbound, rules_version }.serialize(serializer)
}

/// Adds to a stream why it was judged so, and the figures that it does not have under their names already.
pub(super) fn stream<S: Serializer>(report: &Report, serializer: S) -> Result<S::Ok, S::Error> {
    let mut quality = quality::leg_of(report, LegSide::A, Party::Sender, None, WallClock::unix());
    let inbound = without_stream_figures(std::mem::take(&mut quality.inbound));
    OfStream { why: Why::of(&quality), inbound }.serialize(serializer)
}

#[derive(Serialize)]
struct OfCall<'a> {
    #[serde(flatten)]
    why: Why<'a>,
    addresses: &'a LegAddresses,
    inbound: &'a InboundMedia,
    outbound: &'a OutboundMedia,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_version: Option<&'static str>,
}

#[derive(Serialize)]
struct OfStream<'a> {
    #[serde(flatten)]
    why: Why<'a>,
    #[serde(flatten)]
    inbound: InboundMedia,
}

/// Why a leg or a stream was judged so.
#[derive(Serialize)]
struct Why<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<Blame>,
    sentence: &'a str,
    flags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    affected: &'a Option<Affected>,
    rules: &'a [RuleCheck],
}

impl<'a> Why<'a> {
    fn of(quality: &'a LegQuality) -> Self {
        // Without `..`, so that whatever the API comes to say of a leg is thought of here.
        let LegQuality {
            leg: _,
            party: _,
            media_verdict: _,
            reason,
            blame,
            sentence,
            flags,
            codec: _,
            affected,
            rules,
            addresses: _,
            inbound: _,
            outbound: _,
            trace: _,
        } = quality;
        Why { reason, blame: *blame, sentence, flags, affected, rules }
    }
}

/// Leaves out what every stream has at its top, from before it was explained.
fn without_stream_figures(inbound: InboundMedia) -> InboundMedia {
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
