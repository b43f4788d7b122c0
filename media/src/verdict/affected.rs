//! The seconds in which the cause of a verdict is visible.

use crate::session::Report;
use crate::stats::Second;
use crate::time::Micros;
use crate::verdict::{Affected, Verdict};

/// The affected seconds of `report`, when its verdict has a time.
pub(super) fn affected(report: &Report) -> Option<Affected> {
    let figures = &report.figures;
    let limits = &report.thresholds;
    match (report.verdict?, report.evidence.reason) {
        (Verdict::Ok | Verdict::Unanswered, _) | (Verdict::WrongAdvertisedAddress, "relocated") => None,
        (Verdict::NoInboundMedia | Verdict::NoOutboundMedia | Verdict::WrongAdvertisedAddress, _) => {
            span(report, report.answered?, report.at)
        }
        (Verdict::LossyInbound, _) => rows(report, |row| row.lost > 0),
        (Verdict::JitteryInbound, "late") => rows(report, |row| row.late > 0),
        (Verdict::JitteryInbound, _) => {
            rows(report, |row| i64::from(row.jitter_max_us()) >= limits.jitter_ms.0 * 10)
        }
        // These affect all packets, from the first to the last.
        (Verdict::UnpacedSender | Verdict::PtimeMismatch, _) => span(report, figures.first?, figures.last?),
        (Verdict::DegradedAudio, "dead_tail") => span(report, figures.last?, report.at),
        (Verdict::DegradedAudio, _) => rows(report, |row| {
            let late = i64::from(row.lateness_max_us) >= CONCEALED_US.min(limits.late_ms.0 * 10);
            let jumps = figures.timestamp_resets > 0 && row.has_restart();
            row.lost > 0 || row.late > 0 || late || jumps
        }),
    }
}

/// From the first row for which `shows` is true to the last.
fn rows(report: &Report, shows: impl Fn(&Second) -> bool) -> Option<Affected> {
    let timeline = &report.timeline;
    let first = timeline.seconds.iter().position(&shows)?;
    let last = timeline.seconds.iter().rposition(&shows)?;
    let second = |row: usize| u32::try_from(row).ok()?.checked_mul(timeline.step_s);
    Some(seconds(timeline.begins?, second(first)?, second(last + 1)?.checked_sub(1)?))
}

/// From one time to another, in seconds of the timeline, or since the answer when there is no timeline.
fn span(report: &Report, from: Micros, to: Micros) -> Option<Affected> {
    let begins = report.timeline.begins.or(report.answered)?;
    let second = |at: Micros| u32::try_from(at.since(begins).max(0) / SECOND_US).ok();
    let first = second(from)?;
    // An interval that ends on a second's boundary does not include the next second.
    Some(seconds(begins, first, second(to - 1)?.max(first)))
}

fn seconds(begins: Micros, first_s: u32, last_s: u32) -> Affected {
    Affected {
        first_s,
        last_s,
        from: begins + i64::from(first_s) * SECOND_US,
        to: begins + (i64::from(last_s) + 1) * SECOND_US,
    }
}

const SECOND_US: i64 = 1_000_000;
/// Packets with more lateness may be too late for the smaller of the two buffers.
const CONCEALED_US: i64 = 80_000;
