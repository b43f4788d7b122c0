//! Flags: observations about a leg that the closed list of verdicts cannot express.

use crate::rtcp::SenderCount;
use crate::session::Report;
use crate::stats::Hundredths;

/// The flags of `report`, in a fixed order.
pub(super) fn flags(report: &Report) -> Vec<&'static str> {
    let figures = &report.figures;
    let quiet = figures.audio == 0 && figures.comfort_noise > 0;
    let far_end = report.rtcp.far_end.as_ref();
    let deaf = far_end.is_some_and(|far_end| !far_end.highest_sequence_moves && far_end.unheard >= DEAF_MIN);
    let loses = far_end
        .and_then(|far_end| far_end.loss_pct)
        .is_some_and(|loss| loss >= report.thresholds.loss_pct && !deaf);
    let (silent, clipped) = heard(report);
    let all = [
        (CLIPPED_AUDIO, clipped),
        (COMFORT_NOISE_ONLY, quiet),
        (FAR_END_DEAF, deaf),
        (FAR_END_LOSS, loses),
        (LATCHED, report.latched),
        (LOCAL_DROP, figures.local_drop > 0),
        (REJECTED_SOURCE, report.counters.rejected_source > 0),
        (SENDER_COUNTS_MORE, report.rtcp.sent_by_party.is_some_and(|sent| short_of(&sent, report))),
        (SILENT_AUDIO, silent),
    ];
    all.into_iter().filter_map(|(name, holds)| holds.then_some(name)).collect()
}

/// Whether the packets contain silence that no SDP announced, and whether they are clipped.
fn heard(report: &Report) -> (bool, bool) {
    let Some(audio) = report.audio.filter(|audio| audio.looked_at_ms >= HEARD_MIN_MS) else {
        return (false, false);
    };
    let announced = report.figures.comfort_noise > 0;
    let silent = audio.silent_share_pct >= SILENT_MIN_PCT;
    (silent && !announced, !silent && audio.clipped_share_pct >= Some(CLIPPED_MIN_PCT))
}

/// Whether the sender's count shows more missing packets than the sequence numbers do, and as many as would
/// be a verdict.
pub(super) fn short_of(sent: &SenderCount, report: &Report) -> bool {
    let limits = &report.thresholds;
    let beyond = i128::from(sent.missing.saturating_sub(report.figures.lost)) * 100;
    let share_pct = Hundredths::ratio(i128::from(sent.missing) * 100, sent.packets.into());
    beyond >= i128::from(limits.lost_packets.0) && share_pct.is_some_and(|share| share >= limits.loss_pct)
}

/// The party's audio is overdriven.
pub(super) const CLIPPED_AUDIO: &str = "clipped_audio";
/// Only comfort noise arrived: the microphone was muted, or silence suppression never ended.
pub(super) const COMFORT_NOISE_ONLY: &str = "comfort_noise_only";
/// The party's own reports show that it receives none of the packets sent to it.
pub(super) const FAR_END_DEAF: &str = "far_end_deaf";
/// The party's own reports show as much loss as would be a verdict here.
pub(super) const FAR_END_LOSS: &str = "far_end_loss";
/// The party's source differs from SDP.
const LATCHED: &str = "latched";
/// Our own receive queue dropped packets.
pub(super) const LOCAL_DROP: &str = "local_drop";
/// Packets from another source were rejected.
const REJECTED_SOURCE: &str = "rejected_source";
/// The party's sender reports count more packets than its sequence numbers show; the difference is as large
/// as for a verdict.
const SENDER_COUNTS_MORE: &str = "sender_counts_more";
/// The packets arrive but contain no audible sound.
pub(super) const SILENT_AUDIO: &str = "silent_audio";

/// Packets sent to a party before missing reception reports count as evidence: a second of audio.
const DEAF_MIN: u64 = 50;
/// Audio that must have been decoded before it is called silent or clipped.
const HEARD_MIN_MS: u64 = 10_000;
/// Even a party that mostly listens causes less silence than this in a conversation.
const SILENT_MIN_PCT: Hundredths = Hundredths::from_integer(95);
/// Share of the packets that are not silent.
const CLIPPED_MIN_PCT: Hundredths = Hundredths::from_integer(5);
