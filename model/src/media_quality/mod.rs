//! The media quality of a call: the verdict on each leg with its reasons, and the figures in both directions,
//! in total and for every second.
//!
//! Live calls, finished calls and the calls of `analyze` share one structure. A figure that cannot be judged
//! is left out, never zero.

mod call;
mod callee;
mod figures;
mod remark;
mod rules;
mod stored;
mod timeline;
mod warning;

pub use call::{
    CallQuality, FaxMedia, ForeignMedia, LegAddresses, LegQuality, LegSide, LegTrace, LiveCallQuality,
    LiveQuality, QualityState, VideoMedia,
};
pub use callee::CalleeQuality;
pub use figures::{AudioEvidence, FarEnd, InboundMedia, OutboundMedia, RoundTrip, VoipMetrics, WorstStretch};
pub use rules::{Affected, Blame, QualityValue, RuleCheck, RuleMeasure, RuleOutcome};
pub use stored::StoredQuality;
pub use timeline::{QualitySecond, QualityTimeline};
pub use warning::{MediaChange, MediaWarning};
