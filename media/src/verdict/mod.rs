//! The media verdict: one named judgement on a leg, with the numbers that led to it.

mod evidence;
mod thresholds;

pub use evidence::{Evidence, Measure, Value, Verdict};
pub use thresholds::{ThresholdError, Thresholds};
