//! The conditions that the rules check on one leg, each written once.

use crate::stats::{Figures, Hundredths};
use crate::verdict::Thresholds;
use crate::verdict::facts::Facts;
use crate::verdict::reading::{Reading, falls_short, given, lasts, makes_up, reaches};

/// One leg's figures and circumstances, with the thresholds.
#[derive(Clone, Copy)]
pub(super) struct Leg<'a> {
    pub(super) figures: &'a Figures,
    pub(super) facts: &'a Facts,
    pub(super) thresholds: &'a Thresholds,
}

impl Leg<'_> {
    pub(super) fn is_unanswered<R: Reading>(&self) -> R {
        given(!self.facts.answered)
    }

    /// No audio arrived for long enough to count as missing.
    pub(super) fn is_unheard<R: Reading>(&self) -> R {
        let (facts, limits) = (self.facts, self.thresholds);
        R::all([
            falls_short(facts.received_after_answer, limits.media_packets),
            lasts(facts.receive_expected_us, limits.media_grace_ms),
        ])
    }

    /// No audio arrived, and packets from another address were rejected.
    pub(super) fn comes_from_elsewhere<R: Reading>(&self) -> R {
        R::all([self.is_unheard(), reaches(self.facts.rejected_source, self.thresholds.rejected_packets)])
    }

    /// No audio arrived, and the address in the party's SDP is not reachable.
    pub(super) fn advertises_a_dead_end<R: Reading>(&self) -> R {
        R::all([self.is_unheard(), given(self.facts.advertised_unreachable)])
    }

    /// No audio arrived, and the address in our SDP is not reachable for the party.
    pub(super) fn was_told_a_dead_end<R: Reading>(&self) -> R {
        R::all([self.is_unheard(), given(self.facts.own_unreachable)])
    }

    /// No audio arrived, and the port in the party's SDP is closed (ICMP).
    pub(super) fn does_not_listen<R: Reading>(&self) -> R {
        let (facts, limits) = (self.facts, self.thresholds);
        R::all([self.is_unheard(), reaches(facts.unreachable_errors, limits.unreachable_errors)])
    }

    /// We should have sent audio and sent none.
    pub(super) fn was_sent_nothing<R: Reading>(&self) -> R {
        let (facts, limits) = (self.facts, self.thresholds);
        R::all([
            falls_short(facts.sent_after_answer, limits.media_packets),
            lasts(facts.send_expected_us, limits.media_grace_ms),
        ])
    }

    /// Audio of the party arrived, but ours was sent to an unreachable address.
    pub(super) fn was_sent_nowhere<R: Reading>(&self) -> R {
        let (facts, limits) = (self.facts, self.thresholds);
        R::all([
            lasts(facts.blackhole_us, limits.blackhole_ms),
            makes_up(facts.blackhole_us, facts.send_expected_us, limits.blackhole_share_pct),
        ])
    }

    /// With `strict_address` only: the audio came from an address other than in SDP, and latching made it
    /// work.
    pub(super) fn is_relocated<R: Reading>(&self) -> R {
        given(self.thresholds.strict_address && self.facts.relocated)
    }

    pub(super) fn is_lossy<R: Reading>(&self) -> R {
        let (figures, limits) = (self.figures, self.thresholds);
        R::all([
            reaches(figures.lost, limits.lost_packets),
            makes_up(signed(figures.lost), signed(figures.expected), limits.loss_pct),
        ])
    }

    /// Most packets are back to back, in clumps with equal spacing.
    pub(super) fn is_clumped<R: Reading>(&self) -> R {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let [clumps, sum_us] = [i128::from(sums.clump_count), i128::from(sums.clump_sum_us)];
        let enough = R::all([
            reaches(sums.gap_count, limits.clump_gaps),
            R::condition(clumps >= CLUMPS_MIN, || (clumps, CLUMPS_MIN)),
        ]);
        let least_us = i128::from(limits.clump_spacing_ms.0) * 10 * clumps;
        let least_ptimes = i128::from(limits.clump_spacing_ptimes.0) * i128::from(sums.step_us) * clumps;
        R::all([
            enough,
            makes_up(signed(sums.short_gap_count), signed(sums.gap_count), limits.clump_share_pct),
            R::condition(sum_us >= least_us, || (sum_us, least_us)),
            R::condition(sum_us * 100 >= least_ptimes, || (sum_us * 100, least_ptimes)),
            self.is_equidistant(),
        ])
    }

    /// The spacing of the clumps varies little.
    fn is_equidistant<R: Reading>(&self) -> R {
        let sums = &self.figures.sums;
        let [clumps, sum_us] = [i128::from(sums.clump_count), i128::from(sums.clump_sum_us)];
        let most = i128::from(self.thresholds.clump_variation_pct.0);
        let variance = clump_variance(sums.clump_square_sum, clumps, sum_us).saturating_mul(100_000_000);
        let limit = (most * most).saturating_mul(sum_us.saturating_mul(sum_us));
        // The comparison uses squares; the value shown to people is their root.
        R::condition(variance <= limit, || match self.clump_variation_pct() {
            Some(varies) if varies.0 > 0 => (most, varies.0.into()),
            _ => (i128::MAX, 1),
        })
    }

    /// The coefficient of variation of the clumps' spacing.
    pub(super) fn clump_variation_pct(&self) -> Option<Hundredths> {
        let sums = &self.figures.sums;
        let variance =
            clump_variance(sums.clump_square_sum, sums.clump_count.into(), sums.clump_sum_us.into());
        let variance = u128::try_from(variance).unwrap_or(0);
        let deviation =
            u64::try_from(variance).map_or_else(|_| variance.isqrt(), |small| small.isqrt().into());
        Hundredths::ratio(i128::try_from(deviation).ok()?.checked_mul(100)?, sums.clump_sum_us.into())
    }

    /// Audio arrives faster or slower than real time.
    pub(super) fn is_off_pace<R: Reading>(&self) -> R {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        let drift_us = sums.media_sum_us.saturating_sub(sums.gap_sum_us).saturating_abs();
        R::all([
            given(sums.pace_windows > 0),
            makes_up(signed(sums.pace_windows_off), signed(sums.pace_windows), limits.pace_share_pct),
            lasts(drift_us, limits.pace_drift_ms),
            self.rate_is_off(1, 1),
            given(!self.is_paced_by_payload()),
        ])
    }

    /// The timestamps are wrong, and according to the payload lengths the pace is right.
    fn is_paced_by_payload(&self) -> bool {
        let figures = self.figures;
        match (figures.payload_ptime_ms, figures.ptime_ms) {
            (Some(payload), Some(stamps)) if self.has_wrong_stamps() => {
                !self.rate_is_off::<bool>(payload.0, stamps.0)
            }
            _ => false,
        }
    }

    /// Media time over real time, times `factor / divisor`, is outside the tolerance.
    fn rate_is_off<R: Reading>(&self, factor: i64, divisor: i64) -> R {
        let sums = &self.figures.sums;
        let tolerance = i128::from(self.thresholds.pace_pct.0);
        let media = i128::from(sums.media_sum_us) * i128::from(factor) * 10_000;
        let real = i128::from(sums.gap_sum_us) * i128::from(divisor);
        let off = media < real * (10_000 - tolerance) || media > real * (10_000 + tolerance);
        R::condition(off, || ((media - real * 10_000).abs(), real * tolerance))
    }

    /// The smoothed jitter is high for a share of the packets.
    pub(super) fn is_jittery<R: Reading>(&self) -> R {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        R::all([
            reaches(sums.jitter_high_count, limits.jitter_packets),
            makes_up(signed(sums.jitter_high_count), signed(sums.jitter_count), limits.jitter_share_pct),
        ])
    }

    /// A share of the packets arrives too late to be played, and not because of slow drift.
    pub(super) fn is_late<R: Reading>(&self) -> R {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        R::all([
            reaches(sums.late_count, limits.late_packets),
            makes_up(signed(sums.late_count), signed(figures.received), limits.late_share_pct),
            lasts(sums.jitter_peak_us, limits.late_jitter_ms),
        ])
    }

    /// The payloads contain another duration than the timestamps state.
    pub(super) fn has_wrong_stamps<R: Reading>(&self) -> R {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        let (Some(payload), Some(stamps)) = (figures.payload_ptime_ms, figures.ptime_ms) else {
            return given(false);
        };
        R::all([
            self.agrees_on_a_step(),
            makes_up(signed(sums.payload_len_count), signed(sums.pair_count), limits.ptime_share_pct),
            differs(payload, stamps, limits.ptime_ms),
        ])
    }

    /// The packet duration differs from what the party advertised and from what we advertised.
    pub(super) fn has_other_ptime<R: Reading>(&self) -> R {
        let (facts, least) = (self.facts, self.thresholds.ptime_ms);
        let Some(measured) = self.figures.ptime_ms else { return given(false) };
        let differs_from = |from_ms: u32| differs(measured, Hundredths::from_integer(from_ms.into()), least);
        let from_theirs = differs_from(facts.ptime_ms);
        let from_ours = facts.own_ptime_ms.map_or(from_theirs, differs_from);
        R::all([self.agrees_on_a_step(), from_theirs, from_ours])
    }

    /// The packets are longer than our `a=maxptime`.
    pub(super) fn exceeds_maxptime<R: Reading>(&self) -> R {
        let (Some(measured), Some(most_ms)) = (self.figures.ptime_ms, self.facts.own_maxptime_ms) else {
            return given(false);
        };
        let most = Hundredths::from_integer(most_ms.into());
        R::all([
            self.agrees_on_a_step(),
            given(measured > most),
            differs(measured, most, self.thresholds.ptime_ms),
        ])
    }

    /// There are enough successive packets, and most of them have the same step.
    fn agrees_on_a_step<R: Reading>(&self) -> R {
        let (sums, limits) = (&self.figures.sums, self.thresholds);
        R::all([
            reaches(sums.pair_count, limits.ptime_pairs),
            makes_up(signed(sums.step_count), signed(sums.pair_count), limits.ptime_share_pct),
        ])
    }

    pub(super) fn is_degraded<R: Reading>(&self) -> R {
        let (figures, limits) = (self.figures, self.thresholds);
        let Some(quality) = figures.quality_pct else { return given(false) };
        // The loss of quality is compared with the allowed loss.
        let (missing, may_miss) = (10_000 - quality.0, 10_000 - limits.quality_pct.0);
        R::all([
            R::condition(quality < limits.quality_pct, || (missing.into(), may_miss.max(0).into())),
            reaches(figures.received, limits.quality_packets),
        ])
    }

    /// The audio stopped before the call ended, and the sender never paused before.
    pub(super) fn ends_dead<R: Reading>(&self) -> R {
        let (figures, facts, limits) = (self.figures, self.facts, self.thresholds);
        let spoke_on = figures.sums.ends_in_audio && figures.pauses == 0 && figures.interruptions == 0;
        R::all([
            lasts(facts.tail_us, limits.tail_ms),
            makes_up(facts.tail_us, facts.receive_expected_us, limits.tail_share_pct),
            given(spoke_on),
        ])
    }
}

/// Two durations differ by at least `least`.
fn differs<R: Reading>(one: Hundredths, other: Hundredths, least: Hundredths) -> R {
    let apart = (one.0 - other.0).abs();
    R::condition(apart >= least.0, || (apart.into(), least.0.into()))
}

/// `count²` times the variance of the clumps' spacing, in µs²; the squares were summed in (32 µs)².
fn clump_variance(square_sum: i64, count: i128, sum_us: i128) -> i128 {
    (i128::from(square_sum) * 1024 * count).saturating_sub(sum_us.saturating_mul(sum_us)).max(0)
}

pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// With fewer intervals between clumps a deviation has no meaning.
const CLUMPS_MIN: i128 = 5;
