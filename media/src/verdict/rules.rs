//! The rules of the verdict, first match wins.
//!
//! Address evidence comes before silence, because it says what to repair; loss before timing, because lost
//! packets distort it; clumps before jitter, because they look alike and the sender is to blame.

use crate::stats::{Figures, Hundredths};
use crate::verdict::evidence::{count, decimal, flag, millis, share};
use crate::verdict::{Evidence, Measure, Thresholds, Verdict};

/// What signalling, the source filter and the sending side know of a leg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether the leg was answered.
    pub answered: bool,
    /// Time after the answer in which the party should have sent, in microseconds.
    pub receive_expected_us: i64,
    /// Time after the answer in which we should have sent, in microseconds.
    pub send_expected_us: i64,
    /// RTP packets of any kind accepted after the answer.
    pub received_after_answer: u64,
    /// RTP packets sent after the answer.
    pub sent_after_answer: u64,
    /// RTP packets refused for their source.
    pub rejected_source: u64,
    /// Whether the address in the party's SDP leads nowhere.
    pub advertised_unreachable: bool,
    /// Whether the address in our SDP leads the party nowhere.
    pub own_unreachable: bool,
    /// ICMP errors on the leg's socket.
    pub unreachable_errors: u64,
    /// Time for which our packets went to a dead end, in microseconds.
    pub blackhole_us: i64,
    /// Whether the party's packets came from another address than SDP said, and were latched to.
    pub relocated: bool,
    /// Time from the last packet to the end of expected audio, in microseconds.
    pub tail_us: i64,
    /// The packet duration the party advertised, or what stands for it, in milliseconds.
    pub ptime_ms: u32,
    /// Our own `a=ptime` in milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime` in milliseconds.
    pub own_maxptime_ms: Option<u32>,
}

/// Judges one leg.
pub fn judge(figures: &Figures, facts: &Facts, thresholds: &Thresholds) -> Evidence {
    let leg = Leg { figures, facts, thresholds };
    let found = leg
        .unanswered()
        .or_else(|| leg.nothing_received())
        .or_else(|| leg.nothing_sent())
        .or_else(|| leg.sent_nowhere())
        .or_else(|| leg.relocated());
    let found = match found {
        Some(found) => Some(found),
        None if !figures.enough => leg.dead_tail(),
        None => leg
            .lossy()
            .or_else(|| leg.unpaced())
            .or_else(|| leg.jittery())
            .or_else(|| leg.other_ptime())
            .or_else(|| leg.poor_quality())
            .or_else(|| leg.dead_tail()),
    };
    found.unwrap_or_else(|| leg.fine())
}

/// One leg under judgement.
struct Leg<'a> {
    figures: &'a Figures,
    facts: &'a Facts,
    thresholds: &'a Thresholds,
}

impl Leg<'_> {
    fn unanswered(&self) -> Option<Evidence> {
        (!self.facts.answered).then(|| found(Verdict::Unanswered, "", vec![flag("answered", false)]))
    }

    /// Nobody heard: first why, as far as addresses tell.
    fn nothing_received(&self) -> Option<Evidence> {
        let (facts, limits) = (self.facts, self.thresholds);
        let silent = !reaches(facts.received_after_answer, limits.media_packets)
            && lasts(facts.receive_expected_us, limits.media_grace_ms);
        if !silent {
            return None;
        }
        let received =
            count("received_after_answer", facts.received_after_answer).held_to(limits.media_packets);
        let expected =
            millis("receive_expected_ms", facts.receive_expected_us).held_to(limits.media_grace_ms);
        let address = |reason, measure| {
            let measures = vec![measure, received.clone(), expected.clone()];
            Some(found(Verdict::WrongAdvertisedAddress, reason, measures))
        };
        let refused = count("rejected_source", facts.rejected_source).held_to(limits.rejected_packets);
        let icmp = count("unreachable_errors", facts.unreachable_errors).held_to(limits.unreachable_errors);
        if reaches(facts.rejected_source, limits.rejected_packets) {
            address("rejected_source", refused)
        } else if facts.advertised_unreachable {
            address("advertised_unreachable", flag("advertised_unreachable", true))
        } else if facts.own_unreachable {
            address("own_unreachable", flag("own_unreachable", true))
        } else if reaches(facts.unreachable_errors, limits.unreachable_errors) {
            address("icmp_unreachable", icmp)
        } else {
            Some(found(
                Verdict::NoInboundMedia,
                "silent",
                vec![received.clone(), expected.clone(), refused, icmp],
            ))
        }
    }

    fn nothing_sent(&self) -> Option<Evidence> {
        let (facts, limits) = (self.facts, self.thresholds);
        let silent = !reaches(facts.sent_after_answer, limits.media_packets)
            && lasts(facts.send_expected_us, limits.media_grace_ms);
        let measures = || {
            vec![
                count("sent_after_answer", facts.sent_after_answer).held_to(limits.media_packets),
                millis("send_expected_ms", facts.send_expected_us).held_to(limits.media_grace_ms),
            ]
        };
        silent.then(|| found(Verdict::NoOutboundMedia, "silent", measures()))
    }

    /// The party was heard, but could not hear us.
    fn sent_nowhere(&self) -> Option<Evidence> {
        let (facts, limits) = (self.facts, self.thresholds);
        let dead = lasts(facts.blackhole_us, limits.blackhole_ms)
            && makes_up(facts.blackhole_us, facts.send_expected_us, limits.blackhole_share_pct);
        let measures = || {
            vec![
                millis("blackhole_ms", facts.blackhole_us).held_to(limits.blackhole_ms),
                share("blackhole_share_pct", facts.blackhole_us, facts.send_expected_us)
                    .held_to(limits.blackhole_share_pct),
            ]
        };
        dead.then(|| found(Verdict::WrongAdvertisedAddress, "blackhole", measures()))
    }

    /// Strict reading only: the audio came from elsewhere, and latching made it work.
    fn relocated(&self) -> Option<Evidence> {
        (self.thresholds.strict_address && self.facts.relocated)
            .then(|| found(Verdict::WrongAdvertisedAddress, "relocated", vec![flag("latched", true)]))
    }

    fn lossy(&self) -> Option<Evidence> {
        let (figures, limits) = (self.figures, self.thresholds);
        let lossy = reaches(figures.lost, limits.lost_packets)
            && makes_up(signed(figures.lost), signed(figures.expected), limits.loss_pct);
        lossy.then(|| found(Verdict::LossyInbound, "loss", self.loss()))
    }

    fn unpaced(&self) -> Option<Evidence> {
        if self.is_clumped() {
            Some(found(Verdict::UnpacedSender, "clumps", self.clumps()))
        } else if self.is_off_pace() {
            Some(found(Verdict::UnpacedSender, "pace", self.pace()))
        } else {
            None
        }
    }

    /// Most packets back to back, in clumps that come equidistant.
    fn is_clumped(&self) -> bool {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let [clumps, sum_us] = [i128::from(sums.clump_count), i128::from(sums.clump_sum_us)];
        if !reaches(sums.gap_count, limits.clump_gaps) || clumps < CLUMPS_MIN {
            return false;
        }
        let spacing_min_us = i128::from(limits.clump_spacing_ms.0) * 10;
        let wide = sum_us >= spacing_min_us * clumps
            && sum_us * 100 >= i128::from(limits.clump_spacing_ptimes.0) * i128::from(sums.step_us) * clumps;
        let variation = i128::from(limits.clump_variation_pct.0);
        let equidistant = clump_variance(sums.clump_square_sum, clumps, sum_us).saturating_mul(100_000_000)
            <= (variation * variation).saturating_mul(sum_us.saturating_mul(sum_us));
        makes_up(signed(sums.short_gap_count), signed(sums.gap_count), limits.clump_share_pct)
            && wide
            && equidistant
    }

    /// Audio comes faster or slower than it is made.
    fn is_off_pace(&self) -> bool {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let drift_us = sums.media_sum_us.saturating_sub(sums.gap_sum_us).saturating_abs();
        sums.pace_windows > 0
            && makes_up(signed(sums.pace_windows_off), signed(sums.pace_windows), limits.pace_share_pct)
            && lasts(drift_us, limits.pace_drift_ms)
            && self.rate_is_off(1, 1)
            && !self.is_paced_by_payload()
    }

    /// The timestamps are wrong, and by what the payloads hold the pace is right.
    fn is_paced_by_payload(&self) -> bool {
        let figures = self.figures;
        match (figures.payload_ptime_ms, figures.ptime_ms) {
            (Some(payload), Some(stamps)) if self.has_wrong_stamps() => {
                !self.rate_is_off(payload.0, stamps.0)
            }
            _ => false,
        }
    }

    /// Whether media over real time, times `factor / divisor`, is outside the tolerance.
    fn rate_is_off(&self, factor: i64, divisor: i64) -> bool {
        let sums = &self.figures.sums;
        let tolerance = i128::from(self.thresholds.pace_pct.0);
        let media = i128::from(sums.media_sum_us) * i128::from(factor) * 10_000;
        let real = i128::from(sums.gap_sum_us) * i128::from(divisor);
        media < real * (10_000 - tolerance) || media > real * (10_000 + tolerance)
    }

    fn jittery(&self) -> Option<Evidence> {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        let high = reaches(sums.jitter_high_count, limits.jitter_packets)
            && makes_up(signed(sums.jitter_high_count), signed(sums.jitter_count), limits.jitter_share_pct);
        let late = reaches(sums.late_count, limits.late_packets)
            && makes_up(signed(sums.late_count), signed(figures.received), limits.late_share_pct)
            && lasts(sums.jitter_peak_us, limits.late_jitter_ms);
        match (high, late) {
            (true, _) => Some(found(Verdict::JitteryInbound, "jitter", self.jitter())),
            (_, true) => Some(found(Verdict::JitteryInbound, "late", self.lateness())),
            _ => None,
        }
    }

    fn other_ptime(&self) -> Option<Evidence> {
        let (figures, facts, limits) = (self.figures, self.facts, self.thresholds);
        let sums = &figures.sums;
        if self.has_wrong_stamps() {
            return Some(found(Verdict::PtimeMismatch, "timestamps", self.ptime(figures.payload_ptime_ms)));
        }
        let agreed = reaches(sums.pair_count, limits.ptime_pairs)
            && makes_up(signed(sums.step_count), signed(sums.pair_count), limits.ptime_share_pct);
        let measured = figures.ptime_ms.filter(|_| agreed)?;
        let differs = |from_ms: u32| {
            (measured.0 - Hundredths::from_integer(from_ms.into()).0).abs() >= limits.ptime_ms.0
        };
        let beyond = facts
            .own_maxptime_ms
            .is_some_and(|max_ms| measured.0 > Hundredths::from_integer(max_ms.into()).0 && differs(max_ms));
        let other = differs(facts.ptime_ms) && facts.own_ptime_ms.is_none_or(differs);
        match (other, beyond) {
            (true, _) => Some(found(Verdict::PtimeMismatch, "ptime", self.ptime(Some(measured)))),
            (_, true) => Some(found(Verdict::PtimeMismatch, "maxptime", self.ptime(Some(measured)))),
            _ => None,
        }
    }

    /// The payloads hold another duration than the timestamps say.
    fn has_wrong_stamps(&self) -> bool {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        let (Some(payload), Some(stamps)) = (figures.payload_ptime_ms, figures.ptime_ms) else {
            return false;
        };
        reaches(sums.pair_count, limits.ptime_pairs)
            && makes_up(signed(sums.step_count), signed(sums.pair_count), limits.ptime_share_pct)
            && makes_up(signed(sums.payload_len_count), signed(sums.pair_count), limits.ptime_share_pct)
            && (payload.0 - stamps.0).abs() >= limits.ptime_ms.0
    }

    fn poor_quality(&self) -> Option<Evidence> {
        let (figures, limits) = (self.figures, self.thresholds);
        let poor = figures.quality_pct.is_some_and(|quality| quality < limits.quality_pct)
            && reaches(figures.received, limits.quality_packets);
        poor.then(|| found(Verdict::DegradedAudio, "quality", self.quality()))
    }

    /// The audio died before the call did, and the sender never paused before.
    fn dead_tail(&self) -> Option<Evidence> {
        let (figures, facts, limits) = (self.figures, self.facts, self.thresholds);
        let dead = lasts(facts.tail_us, limits.tail_ms)
            && makes_up(facts.tail_us, facts.receive_expected_us, limits.tail_share_pct)
            && figures.sums.ends_in_audio
            && figures.pauses == 0
            && figures.interruptions == 0;
        let measures = || {
            vec![
                millis("tail_ms", facts.tail_us).held_to(limits.tail_ms),
                share("tail_share_pct", facts.tail_us, facts.receive_expected_us)
                    .held_to(limits.tail_share_pct),
                count("received", figures.received),
            ]
        };
        dead.then(|| found(Verdict::DegradedAudio, "dead_tail", measures()))
    }

    fn fine(&self) -> Evidence {
        if !self.figures.enough {
            return found(Verdict::Ok, "too_little_audio", vec![count("received", self.figures.received)]);
        }
        let parts =
            [self.loss(), self.jitter(), self.lateness(), self.ptime(self.figures.ptime_ms), self.quality()];
        found(Verdict::Ok, "", parts.into_iter().flatten().collect())
    }

    fn loss(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        vec![
            decimal("loss_pct", figures.loss_pct).held_to(limits.loss_pct),
            count("lost", figures.lost).held_to(limits.lost_packets),
            count("expected", figures.expected),
        ]
    }

    fn clumps(&self) -> Vec<Measure> {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let clumps = i128::from(sums.clump_count);
        let spacing = Hundredths::ratio(sums.clump_sum_us.into(), clumps * 1000);
        vec![
            share("back_to_back_pct", signed(sums.short_gap_count), signed(sums.gap_count))
                .held_to(limits.clump_share_pct),
            decimal("clump_spacing_ms", spacing).held_to(limits.clump_spacing_ms),
            decimal("clump_variation_pct", self.clump_variation_pct()).held_to(limits.clump_variation_pct),
            count("gaps", sums.gap_count).held_to(limits.clump_gaps),
        ]
    }

    /// The coefficient of variation of the clumps' spacing.
    fn clump_variation_pct(&self) -> Option<Hundredths> {
        let sums = &self.figures.sums;
        let variance =
            clump_variance(sums.clump_square_sum, sums.clump_count.into(), sums.clump_sum_us.into());
        let deviation = u128::try_from(variance).unwrap_or(0).isqrt();
        Hundredths::ratio(i128::try_from(deviation).ok()?.checked_mul(100)?, sums.clump_sum_us.into())
    }

    fn pace(&self) -> Vec<Measure> {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let drift_us = sums.media_sum_us.saturating_sub(sums.gap_sum_us);
        vec![
            share("pace_ratio_pct", sums.media_sum_us, sums.gap_sum_us),
            share("windows_off_pct", signed(sums.pace_windows_off), signed(sums.pace_windows))
                .held_to(limits.pace_share_pct),
            millis("drift_ms", drift_us).held_to(limits.pace_drift_ms),
            decimal("mean_interval_ms", self.figures.mean_interval_ms),
        ]
    }

    fn jitter(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        vec![
            decimal("jitter_ms", figures.jitter_ms).held_to(limits.jitter_ms),
            share("high_jitter_pct", signed(sums.jitter_high_count), signed(sums.jitter_count))
                .held_to(limits.jitter_share_pct),
            count("high_jitter_packets", sums.jitter_high_count).held_to(limits.jitter_packets),
        ]
    }

    fn lateness(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        vec![
            share("late_pct", signed(sums.late_count), signed(figures.received))
                .held_to(limits.late_share_pct),
            count("late_packets", sums.late_count).held_to(limits.late_packets),
            decimal("jitter_peak_ms", figures.jitter_ms).held_to(limits.late_jitter_ms),
        ]
    }

    fn ptime(&self, measured: Option<Hundredths>) -> Vec<Measure> {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let advertised = Hundredths::from_integer(self.facts.ptime_ms.into());
        vec![
            decimal("ptime_ms", measured),
            decimal("advertised_ptime_ms", Some(advertised)),
            share("ptime_share_pct", signed(sums.step_count), signed(sums.pair_count))
                .held_to(limits.ptime_share_pct),
            decimal("mean_interval_ms", self.figures.mean_interval_ms),
        ]
    }

    fn quality(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        vec![
            decimal("quality_pct", figures.quality_pct).held_to(limits.quality_pct),
            count("flaws", figures.flaws),
            count("received", figures.received).held_to(limits.quality_packets),
        ]
    }
}

fn found(rule: Verdict, reason: &'static str, measures: Vec<Measure>) -> Evidence {
    Evidence { rule: Some(rule), reason, measures }
}

/// `count²` times the variance of the clumps' spacing, in µs²; the squares were summed in (32 µs)².
fn clump_variance(square_sum: i64, count: i128, sum_us: i128) -> i128 {
    (i128::from(square_sum) * 1024 * count).saturating_sub(sum_us.saturating_mul(sum_us)).max(0)
}

/// Whether a count is at least its threshold.
fn reaches(count: u64, threshold: Hundredths) -> bool {
    i128::from(count) * 100 >= i128::from(threshold.0)
}

/// Whether a time in microseconds is at least its threshold in milliseconds.
fn lasts(us: i64, threshold_ms: Hundredths) -> bool {
    i128::from(us) >= i128::from(threshold_ms.0) * 10
}

/// Whether `part` is at least so many percent of `whole`; never of nothing.
fn makes_up(part: i64, whole: i64, threshold_pct: Hundredths) -> bool {
    whole > 0 && i128::from(part) * 10_000 >= i128::from(threshold_pct.0) * i128::from(whole)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Fewer intervals between clumps have no deviation worth the name.
const CLUMPS_MIN: i128 = 5;
