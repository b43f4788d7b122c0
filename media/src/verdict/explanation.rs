//! Why a leg was judged as it was: the rule that fired, how near every other one came, and who should act.

use crate::stats::Hundredths;
use crate::time::Micros;
use crate::verdict::{Measure, Verdict};

/// A judgement with everything a person needs to believe it and to act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The version of the rules that judged.
    pub rules_version: &'static str,
    /// The verdict; `None` while no SDP was settled.
    pub verdict: Option<Verdict>,
    /// Which of the verdict's conditions held; empty where it has only one, or none fired.
    pub reason: &'static str,
    /// Who should act; `None` where nobody need.
    pub blame: Option<Blame>,
    /// When the cause showed; `None` where nothing was wrong, or where the times are not known.
    pub affected: Option<Affected>,
    /// Every rule in the order in which it was asked; empty without a verdict.
    pub checks: Vec<RuleCheck>,
    /// What is worth knowing beside the verdict, by name.
    pub flags: Vec<&'static str>,
    /// What a support person can read out, in one to four sentences.
    pub sentence: String,
}

/// On whose side the cause lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The path between the party and where the packets were measured.
    Network,
    /// The party's device, or what stands in its own network.
    Remote,
    /// Our own side: this host, its addresses, or what should have sent through it.
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

/// The first and the last second in which the cause of a verdict showed.
///
/// Seconds count from where the timeline begins, or from the answer where there is no timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The first affected second; 0 is the timeline's first.
    pub first_s: u32,
    /// The last one; the same as the first when only one is affected.
    pub last_s: u32,
    /// The begin of the first.
    pub from: Micros,
    /// The end of the last.
    pub to: Micros,
}

/// One rule as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCheck {
    /// The verdict it would give.
    pub verdict: Verdict,
    /// Which of the verdict's conditions it asks for.
    pub reason: &'static str,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it was not judged, where it was not.
    pub not_judged: Option<&'static str>,
    /// Its numbers and their thresholds.
    pub measures: Vec<Measure>,
    /// How much of its threshold the condition reached that is furthest from it, in percent.
    ///
    /// Conditions that must hold together reach what the least of them does. Of a threshold that a number
    /// must fall below, the reached share is threshold over number; of quality, what is missing to 100 %
    /// over what may be missing. 100 and more exactly when the rule holds, 10,000 at most; `None` when it
    /// was not judged.
    pub reached_pct: Option<Hundredths>,
}

/// What came of asking a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It does not hold.
    Clear,
    /// It is the verdict.
    Fired,
    /// There was too little audio to ask it, or what came is no audio as far as is known.
    NotJudged,
    /// It holds as well, but one before it is the verdict.
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

/// Whose audio is explained, as a sentence names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Party {
    /// The far leg of a call.
    Called,
    /// The leg of the party that calls.
    Caller,
    /// A stream of a capture, by itself.
    Sender,
    /// A leg of which nothing else is known.
    #[default]
    Unnamed,
}
