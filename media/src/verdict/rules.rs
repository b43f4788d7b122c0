//! The rules of the verdict; the first one that holds gives it.
//!
//! Address rules come before silence, because they name the cause; loss before timing, because lost packets
//! distort it; clumps before jitter, because they look alike and clumps are the sender's fault.

use crate::stats::Figures;
use crate::verdict::evidence::count;
use crate::verdict::facts::Facts;
use crate::verdict::leg::Leg;
use crate::verdict::reading::Reach;
use crate::verdict::{Evidence, Measure, Thresholds, Verdict};

/// The version of the rules and of their figures; it changes when a leg may get another verdict.
pub const RULES_VERSION: &str = "2";

/// Judges one leg.
pub fn judge(figures: &Figures, facts: &Facts, thresholds: &Thresholds) -> Evidence {
    let leg = Leg { figures, facts, thresholds };
    match RULES.iter().find(|rule| rule.applies(&leg) && (rule.holds)(&leg)) {
        Some(rule) => {
            Evidence { rule: Some(rule.verdict), reason: rule.reason, measures: (rule.measures)(&leg) }
        }
        None => fine(&leg),
    }
}

/// One rule: a condition and the verdict it gives.
pub(super) struct Rule {
    pub(super) verdict: Verdict,
    pub(super) reason: &'static str,
    /// Whether the rule needs more than a few packets.
    needs_audio: bool,
    holds: fn(&Leg<'_>) -> bool,
    pub(super) reach: fn(&Leg<'_>) -> Reach,
    pub(super) measures: fn(&Leg<'_>) -> Vec<Measure>,
}

impl Rule {
    /// Whether the leg has enough data for the rule.
    pub(super) fn applies(&self, leg: &Leg<'_>) -> bool {
        self.is_not_judged(leg).is_none()
    }

    /// Why the rule cannot be checked; `None` when it can.
    pub(super) fn is_not_judged(&self, leg: &Leg<'_>) -> Option<&'static str> {
        if !self.needs_audio {
            None
        } else if !leg.figures.enough {
            Some(TOO_LITTLE_AUDIO)
        } else {
            // Loss needs only sequence numbers.
            (self.verdict != Verdict::LossyInbound && leg.figures.is_mostly_other()).then_some(NOT_AUDIO)
        }
    }
}

/// One line of [`RULES`]: verdict, reason, whether it needs audio, its condition and its measures.
macro_rules! rule {
    ($verdict:ident, $reason:literal, $needs_audio:literal, $condition:ident, $measures:ident) => {
        Rule {
            verdict: Verdict::$verdict,
            reason: $reason,
            needs_audio: $needs_audio,
            holds: |leg| leg.$condition(),
            reach: |leg| leg.$condition(),
            measures: |leg| leg.$measures(),
        }
    };
}

/// Every rule, in the order of evaluation.
pub(super) const RULES: [Rule; 19] = [
    rule!(Unanswered, "", false, is_unanswered, answer_measures),
    rule!(WrongAdvertisedAddress, "rejected_source", false, comes_from_elsewhere, refused_measures),
    rule!(
        WrongAdvertisedAddress,
        "advertised_unreachable",
        false,
        advertises_a_dead_end,
        advertised_measures
    ),
    rule!(WrongAdvertisedAddress, "own_unreachable", false, was_told_a_dead_end, own_address_measures),
    rule!(WrongAdvertisedAddress, "icmp_unreachable", false, does_not_listen, icmp_measures),
    rule!(NoInboundMedia, "silent", false, is_unheard, received_measures),
    rule!(NoOutboundMedia, "silent", false, was_sent_nothing, sent_measures),
    rule!(WrongAdvertisedAddress, "blackhole", false, was_sent_nowhere, blackhole_measures),
    rule!(WrongAdvertisedAddress, "relocated", false, is_relocated, relocated_measures),
    rule!(LossyInbound, "loss", true, is_lossy, loss_measures),
    rule!(UnpacedSender, "clumps", true, is_clumped, clumps_measures),
    rule!(UnpacedSender, "pace", true, is_off_pace, pace_measures),
    rule!(JitteryInbound, "jitter", true, is_jittery, jitter_measures),
    rule!(JitteryInbound, "late", true, is_late, lateness_measures),
    rule!(PtimeMismatch, "timestamps", true, has_wrong_stamps, stamp_measures),
    rule!(PtimeMismatch, "ptime", true, has_other_ptime, ptime_measures),
    rule!(PtimeMismatch, "maxptime", true, exceeds_maxptime, ptime_measures),
    rule!(DegradedAudio, "quality", true, is_degraded, quality_measures),
    rule!(DegradedAudio, "dead_tail", false, ends_dead, tail_measures),
];

/// No fault was found, or there was too little audio.
fn fine(leg: &Leg<'_>) -> Evidence {
    if !leg.figures.enough {
        let measures = vec![count("received", leg.figures.received)];
        return Evidence { rule: Some(Verdict::Ok), reason: TOO_LITTLE_AUDIO, measures };
    }
    if leg.figures.is_mostly_other() {
        return Evidence { rule: Some(Verdict::Ok), reason: NOT_AUDIO, measures: leg.loss_measures() };
    }
    let parts = [
        leg.loss_measures(),
        leg.jitter_measures(),
        leg.lateness_measures(),
        leg.ptime_measures(),
        leg.quality_measures(),
    ];
    // Space for the circumstances too, which are added next.
    let mut measures = Vec::with_capacity(MEASURES_RESERVED);
    parts.into_iter().for_each(|part| measures.extend(part));
    Evidence { rule: Some(Verdict::Ok), reason: "", measures }
}

/// About as many numbers as there are without a fault.
const MEASURES_RESERVED: usize = 24;

/// Why rules about audio were not judged.
pub(super) const TOO_LITTLE_AUDIO: &str = "too_little_audio";
/// Why rules about timing were not judged: most packets are not known to be audio.
pub(super) const NOT_AUDIO: &str = "not_audio";

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
