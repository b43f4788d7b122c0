//! The media verdict: one named judgement on a leg, with the numbers that led to it.

pub(crate) mod address;
pub(crate) mod evidence;
mod rules;
mod thresholds;

pub use evidence::{Evidence, Measure, Value, Verdict};
pub use rules::{Facts, judge};
pub use thresholds::{ThresholdError, Thresholds};
