//! When the cause of a verdict showed.

use crate::session::Report;
use crate::time::Micros;
use crate::verdict::{Affected, Verdict};

/// The affected seconds of `report`, where its verdict has a time.
pub(super) fn affected(report: &Report) -> Option<Affected> {
    let origin = report.figures.first.or(report.answered)?;
    let span = |from: Micros, to: Micros| between(origin, from, to);
    match (report.verdict?, report.evidence.reason) {
        (Verdict::NoInboundMedia | Verdict::NoOutboundMedia, _) => span(report.answered?, report.at),
        (Verdict::WrongAdvertisedAddress, reason) if reason != "relocated" => {
            span(report.answered?, report.at)
        }
        (Verdict::DegradedAudio, "dead_tail") => span(report.figures.last?, report.at),
        (Verdict::UnpacedSender | Verdict::PtimeMismatch, _) => {
            span(report.figures.first?, report.figures.last?)
        }
        _ => None,
    }
}

/// The whole seconds from `origin` that `from` and `to` lie in.
fn between(origin: Micros, from: Micros, to: Micros) -> Option<Affected> {
    let second = |at: Micros| u32::try_from(at.since(origin).max(0) / SECOND_US).ok();
    let first_s = second(from)?;
    // What ends on a second's boundary did not reach into the next.
    let last_s = second(to - 1)?.max(first_s);
    Some(Affected {
        first_s,
        last_s,
        from: origin + i64::from(first_s) * SECOND_US,
        to: origin + (i64::from(last_s) + 1) * SECOND_US,
    })
}

const SECOND_US: i64 = 1_000_000;
