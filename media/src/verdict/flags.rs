//! What is worth knowing of a leg beside its verdict, which the closed list of verdicts cannot say.

use crate::session::Report;

/// The flags of `report`, in a fixed order.
pub(super) fn flags(report: &Report) -> Vec<&'static str> {
    let figures = &report.figures;
    let quiet = figures.audio == 0 && figures.comfort_noise > 0;
    let all = [
        (COMFORT_NOISE_ONLY, quiet),
        (LATCHED, report.latched),
        (LOCAL_DROP, figures.local_drop > 0),
        (REJECTED_SOURCE, report.counters.rejected_source > 0),
    ];
    all.into_iter().filter_map(|(name, holds)| holds.then_some(name)).collect()
}

/// Only comfort noise arrived: the microphone was muted, or silence suppression never ended.
pub(super) const COMFORT_NOISE_ONLY: &str = "comfort_noise_only";
/// The party was found elsewhere than SDP said.
const LATCHED: &str = "latched";
/// Our own receive queue dropped packets.
pub(super) const LOCAL_DROP: &str = "local_drop";
/// Packets from somebody else were refused.
const REJECTED_SOURCE: &str = "rejected_source";
