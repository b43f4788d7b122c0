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
        // Who should have sent to a captured party is not known.
        (Verdict::NoOutboundMedia, _) if report.observed => return None,
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

/// Nothing arrived: a party that reports that it sends, or that our packets do not reach, is cut off.
fn silence(report: &Report) -> Blame {
    let says_it_sends = report.rtcp.sent_by_party.is_some_and(|sent| sent.packets > 0);
    if says_it_sends || report.counters.unreachable > 0 { Blame::Network } else { Blame::Remote }
}

/// The audio stopped: what the party says it went on to send was cut off.
fn ending(report: &Report) -> Blame {
    let went_on = report.rtcp.sent_by_party.is_some_and(|sent| sent.tail_missing > 0);
    if went_on { Blame::Network } else { Blame::Remote }
}
