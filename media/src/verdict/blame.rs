//! On whose side the cause of a verdict lies, by the evidence there is.

use crate::session::Report;
use crate::verdict::{Blame, Verdict};

/// Who should act on the verdict of `report`.
pub(super) fn blame(report: &Report) -> Option<Blame> {
    let figures = &report.figures;
    // What our own receive queue dropped is not among the lost; where it is more, repair that first.
    let ours = figures.local_drop > 0 && figures.local_drop >= figures.lost;
    Some(match (report.verdict?, report.evidence.reason) {
        (Verdict::Ok | Verdict::Unanswered, _) => return None,
        (Verdict::NoInboundMedia, _) => silence(report),
        (Verdict::NoOutboundMedia, _) | (Verdict::WrongAdvertisedAddress, "own_unreachable") => Blame::Us,
        (Verdict::WrongAdvertisedAddress | Verdict::UnpacedSender | Verdict::PtimeMismatch, _) => {
            Blame::Remote
        }
        (Verdict::LossyInbound | Verdict::JitteryInbound, _) if ours => Blame::Us,
        (Verdict::LossyInbound | Verdict::JitteryInbound, _) => Blame::Network,
        (Verdict::DegradedAudio, "dead_tail") => ending(report),
        (Verdict::DegradedAudio, _) if ours => Blame::Us,
        // A clock that jumps is the sender's; everything else that costs quality is loss and delay.
        (Verdict::DegradedAudio, _) if figures.timestamp_resets * 2 >= figures.flaws => Blame::Remote,
        (Verdict::DegradedAudio, _) => Blame::Network,
    })
}

/// Nothing arrived: somebody who says that they send, or whom our packets do not reach, is cut off.
fn silence(report: &Report) -> Blame {
    if report.counters.unreachable > 0 { Blame::Network } else { Blame::Remote }
}

/// The audio stopped: with what tells of its being sent, it was cut off.
fn ending(_report: &Report) -> Blame {
    Blame::Remote
}
