//! Attributes the cause of a verdict to one side, according to the evidence.

use crate::session::Report;
use crate::verdict::{Blame, Verdict};

/// The side that should act on the verdict of `report`.
pub(super) fn blame(report: &Report) -> Option<Blame> {
    let figures = &report.figures;
    // Packets that our own receive queue dropped are not in `lost`; when there are at least as many of them,
    // that must be solved first.
    let ours = figures.local_drop > 0 && figures.local_drop >= figures.lost;
    Some(match (report.verdict?, report.evidence.reason) {
        (Verdict::Ok | Verdict::Unanswered, _) => return None,
        // In a capture it is unknown which system should have sent to the party.
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
        // A clock that jumps is a fault of the sender; all other loss of quality comes from loss and delay.
        (Verdict::DegradedAudio, _) if figures.timestamp_resets * 2 >= figures.flaws => Blame::Remote,
        (Verdict::DegradedAudio, _) => Blame::Network,
    })
}

/// Nothing arrived: the network is at fault when the party reports that it sends, or when our packets do not
/// reach it. Packets that arrived with wrong tags are the fault of their sender.
fn silence(report: &Report) -> Blame {
    if report.counters.srtp_failed > 0 {
        return Blame::Remote;
    }
    let says_it_sends = report.rtcp.sent_by_party.is_some_and(|sent| sent.packets > 0);
    if says_it_sends || report.counters.unreachable > 0 { Blame::Network } else { Blame::Remote }
}

/// The audio stopped: the network is at fault when the party reports that it continued to send.
fn ending(report: &Report) -> Blame {
    let went_on = report.rtcp.sent_by_party.is_some_and(|sent| sent.tail_missing > 0);
    if went_on { Blame::Network } else { Blame::Remote }
}
