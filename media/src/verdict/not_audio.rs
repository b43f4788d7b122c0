//! Sentences about packets that are not known to be audio: video, types that no SDP announced, types that
//! were not negotiated.

use crate::session::{Report, is_static_noise};
use crate::stats::Hundredths;
use crate::verdict::Verdict;
use crate::verdict::phrase::{counted, grouped, packets, short};

/// The sentence about a leg or stream whose packets are mostly not audio. `None` for audio, and when another
/// sentence applies: about silence, addresses, or calls without an answer.
///
/// `who` sent them; `when` states when some were lost, and `repair` who should act.
pub(super) fn sentence(report: &Report, who: &str, when: &str, repair: &str) -> Option<String> {
    let figures = &report.figures;
    if !figures.is_mostly_other() {
        return None;
    }
    let what = types(report);
    let came = format!("What {who} sent ({} {what}) is not known to be audio", packets(figures.received));
    match report.verdict? {
        Verdict::Ok if !figures.enough => Some(format!("{came}, and it is too little to judge.")),
        Verdict::Ok => {
            let missing = match figures.lost {
                0 => "none was lost".to_owned(),
                lost => format!("{} lost ({} %)", counted(lost, "was", "were"), pct(figures.loss_pct)),
            };
            Some(format!(
                "{came}: of {} {missing}. How evenly it came and how it sounded is not judged.",
                packets(figures.expected)
            ))
        }
        Verdict::LossyInbound => Some(format!(
            "{came}: {} of {} ({} %) were lost on the way here{when}. How it sounded is not judged. {repair}",
            grouped(figures.lost),
            packets(figures.expected),
            pct(figures.loss_pct),
        )),
        _ => None,
    }
}

/// A remark besides a verdict about packets whose types were not negotiated; `None` when they are few.
pub(super) fn remark(report: &Report, who: &str) -> Option<String> {
    let refused = report.counters.payload_type;
    let is_much =
        refused >= REFUSED_MIN && refused.saturating_mul(100) >= report.figures.received * REFUSED_PCT;
    let types: Vec<u8> =
        report.refused_types.iter().copied().filter(|number| !is_static_noise(*number)).collect();
    (is_much && !types.is_empty()).then(|| {
        format!(
            "{} from {who} had {}, which the SDP of the call does not agree on; they count as no audio.",
            packets(refused),
            listed(&types)
        )
    })
}

/// The types of these packets in words.
fn types(report: &Report) -> String {
    let figures = &report.figures;
    match &report.refused_types[..] {
        [] => format!("of {}", listed(&report.payload_types)),
        refused if figures.audio + figures.comfort_noise > 0 => format!("mostly of {}", listed(refused)),
        refused => format!("of {}", listed(refused)),
    }
}

/// "payload type 98", or "payload types 98 and 99".
fn listed(types: &[u8]) -> String {
    let text: Vec<String> = types.iter().map(u8::to_string).collect();
    match text.split_last() {
        None => "an unknown payload type".to_owned(),
        Some((last, [])) => format!("payload type {last}"),
        Some((last, before)) => format!("payload types {} and {last}", before.join(", ")),
    }
}

fn pct(share: Option<Hundredths>) -> String {
    share.map_or_else(|| "?".to_owned(), short)
}

/// Fewer packets of other types are considered keepalives and probes.
const REFUSED_MIN: u64 = 10;
/// The same limit in percent of all packets.
const REFUSED_PCT: u64 = 5;
