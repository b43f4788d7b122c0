//! The rules of the verdict; the first one that holds gives it.
//!
//! Address rules come before silence, because they name the cause; loss before timing, because lost packets
//! distort it; clumps before jitter, because they look alike and clumps are the sender's fault.

use crate::stats::Figures;
use crate::verdict::evidence::count;
use crate::verdict::leg::Leg;
use crate::verdict::reading::Reach;
use crate::verdict::{Evidence, Measure, Thresholds, Verdict};

/// The version of the rules and of their figures; it changes when a leg may get another verdict.
pub const RULES_VERSION: &str = "2";

/// Inputs of the rules from signalling, the source filter and the sending side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether the leg was answered.
    pub answered: bool,
    /// Time after the answer in which the party should have sent, in microseconds.
    pub receive_expected_us: i64,
    /// Time after the answer in which we should have sent, in microseconds.
    pub send_expected_us: i64,
    /// RTP packets of any kind accepted after the answer.
    pub received_after_answer: u64,
    /// RTP packets sent after the answer.
    pub sent_after_answer: u64,
    /// RTP packets rejected because of their source.
    pub rejected_source: u64,
    /// Whether the address in the party's SDP is not reachable.
    pub advertised_unreachable: bool,
    /// Whether the address in our SDP is not reachable for the party.
    pub own_unreachable: bool,
    /// ICMP errors on the leg's socket.
    pub unreachable_errors: u64,
    /// Time for which our packets went to an unreachable address, in microseconds.
    pub blackhole_us: i64,
    /// Whether the party's packets came from another address than in SDP, and were latched to.
    pub relocated: bool,
    /// Time from the last packet to the end of expected audio, in microseconds.
    pub tail_us: i64,
    /// The packet duration that the party advertised, or its default, in milliseconds.
    pub ptime_ms: u32,
    /// Our own `a=ptime` in milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime` in milliseconds.
    pub own_maxptime_ms: Option<u32>,
    /// Whether SDP makes the party receive only (`a=recvonly`).
    pub only_listens: bool,
}

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

/// One line of [`RULES`]: verdict, reason, whether it needs audio, its condition and what it measures.
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
