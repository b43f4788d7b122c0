//! The media verdict: one named judgement on a leg, with its evidence and its explanation.

pub(crate) mod address;
mod affected;
mod blame;
pub(crate) mod evidence;
mod explanation;
mod flags;
mod leg;
mod measures;
mod not_audio;
mod phrase;
mod reading;
mod remarks;
mod rules;
mod thresholds;
mod words;

pub use address::socket_text;
pub use evidence::{Evidence, Measure, Value, Verdict};
pub use explanation::{Affected, Blame, Explanation, Outcome, Party, RuleCheck, explain};
pub use remarks::foreign_sentence;
pub use rules::{Facts, RULES_VERSION, judge};
pub use thresholds::{ThresholdError, Thresholds};
