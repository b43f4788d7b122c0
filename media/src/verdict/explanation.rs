//! Explains a verdict: the rule that matched, how close every other rule was, and who should act.

use crate::stats::Hundredths;
use crate::time::Micros;
use crate::verdict::{Measure, Verdict};

/// A verdict with the facts that a person needs to verify it and to act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The version of the rules that were applied.
    pub rules_version: &'static str,
    /// The verdict; `None` before the first SDP result, and for media that is not judged.
    pub verdict: Option<Verdict>,
    /// The condition of the verdict that held; empty when the verdict has only one, or when no rule matched.
    pub reason: &'static str,
    /// The side that should act; `None` when no action is needed.
    pub blame: Option<Blame>,
    /// When the cause was visible; `None` when there is no fault, or when the times are not known.
    pub affected: Option<Affected>,
    /// Every rule in the order of evaluation; empty without a verdict.
    pub checks: Vec<RuleCheck>,
    /// Names of further observations beside the verdict.
    pub flags: Vec<&'static str>,
    /// One to four sentences that a support person can read out.
    pub sentence: String,
}

/// The side that has the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The path between the party and the measuring point.
    Network,
    /// The party's device, or its own network.
    Remote,
    /// Our own side: this host, its addresses, or the system that should have sent through it.
    Us,
}

impl Blame {
    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Blame::Network => "network",
            Blame::Remote => "remote",
            Blame::Us => "us",
        }
    }
}

/// The first and the last second in which the cause of a verdict was visible.
///
/// Seconds count from the start of the timeline, or from the answer when there is no timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The first affected second; 0 is the timeline's first.
    pub first_s: u32,
    /// The last affected second; equal to the first when only one is affected.
    pub last_s: u32,
    /// The start of the first second.
    pub from: Micros,
    /// The end of the last second.
    pub to: Micros,
}

/// The result of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCheck {
    /// The verdict that the rule gives.
    pub verdict: Verdict,
    /// The condition of the verdict that it checks.
    pub reason: &'static str,
    /// The result.
    pub outcome: Outcome,
    /// Why it was not judged, if it was not.
    pub not_judged: Option<&'static str>,
    /// Its numbers with their thresholds.
    pub measures: Vec<Measure>,
    /// How much of its threshold the rule's furthest condition reached, in percent.
    ///
    /// When several conditions must hold together, the lowest value counts. For a threshold that a number
    /// must fall below, the value is threshold over number; for quality, it is the loss of quality over the
    /// allowed loss. It is 100 or more exactly when the rule holds, and at most 10,000; `None` when the rule
    /// was not judged.
    pub reached_pct: Option<Hundredths>,
}

/// The result of checking a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It does not hold.
    Clear,
    /// It gives the verdict.
    Fired,
    /// There was too little audio to check it, or the packets are not known to be audio.
    NotJudged,
    /// It holds as well, but an earlier rule gives the verdict.
    Outranked,
}

impl Outcome {
    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Clear => "clear",
            Outcome::Fired => "fired",
            Outcome::NotJudged => "not_judged",
            Outcome::Outranked => "outranked",
        }
    }
}

/// Whose audio is explained; it determines the name in the sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Party {
    /// The far leg of a call.
    Called,
    /// The leg of the calling party.
    Caller,
    /// A single stream of a capture.
    Sender,
    /// A leg without further information.
    #[default]
    Unnamed,
}
