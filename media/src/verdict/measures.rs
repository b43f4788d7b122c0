//! The numbers that each rule compares, with their thresholds, most significant first.

use crate::stats::Hundredths;
use crate::verdict::evidence::{Measure, count, decimal, flag, millis, share};
use crate::verdict::leg::{Leg, signed};

impl Leg<'_> {
    pub(super) fn answer_measures(&self) -> Vec<Measure> {
        vec![flag("answered", self.facts.answered)]
    }

    pub(super) fn refused_measures(&self) -> Vec<Measure> {
        self.unheard(self.refused())
    }

    pub(super) fn advertised_measures(&self) -> Vec<Measure> {
        self.unheard(flag("advertised_unreachable", self.facts.advertised_unreachable))
    }

    pub(super) fn own_address_measures(&self) -> Vec<Measure> {
        self.unheard(flag("own_unreachable", self.facts.own_unreachable))
    }

    pub(super) fn icmp_measures(&self) -> Vec<Measure> {
        self.unheard(self.icmp())
    }

    pub(super) fn received_measures(&self) -> Vec<Measure> {
        vec![self.received(), self.receive_expected(), self.refused(), self.icmp()]
    }

    pub(super) fn sent_measures(&self) -> Vec<Measure> {
        let (facts, limits) = (self.facts, self.thresholds);
        vec![
            count("sent_after_answer", facts.sent_after_answer).held_to(limits.media_packets),
            millis("send_expected_ms", facts.send_expected_us).held_to(limits.media_grace_ms),
        ]
    }

    pub(super) fn blackhole_measures(&self) -> Vec<Measure> {
        let (facts, limits) = (self.facts, self.thresholds);
        vec![
            millis("blackhole_ms", facts.blackhole_us).held_to(limits.blackhole_ms),
            share("blackhole_share_pct", facts.blackhole_us, facts.send_expected_us)
                .held_to(limits.blackhole_share_pct),
        ]
    }

    pub(super) fn relocated_measures(&self) -> Vec<Measure> {
        vec![flag("latched", self.facts.relocated)]
    }

    pub(super) fn loss_measures(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        vec![
            decimal("loss_pct", figures.loss_pct).held_to(limits.loss_pct),
            count("lost", figures.lost).held_to(limits.lost_packets),
            count("expected", figures.expected),
        ]
    }

    pub(super) fn clumps_measures(&self) -> Vec<Measure> {
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

    pub(super) fn pace_measures(&self) -> Vec<Measure> {
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

    pub(super) fn jitter_measures(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        vec![
            decimal("jitter_ms", figures.jitter_ms).held_to(limits.jitter_ms),
            share("high_jitter_pct", signed(sums.jitter_high_count), signed(sums.jitter_count))
                .held_to(limits.jitter_share_pct),
            count("high_jitter_packets", sums.jitter_high_count).held_to(limits.jitter_packets),
        ]
    }

    pub(super) fn lateness_measures(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        let sums = &figures.sums;
        vec![
            share("late_pct", signed(sums.late_count), signed(figures.received))
                .held_to(limits.late_share_pct),
            count("late_packets", sums.late_count).held_to(limits.late_packets),
            decimal("jitter_peak_ms", figures.jitter_ms).held_to(limits.late_jitter_ms),
        ]
    }

    pub(super) fn ptime_measures(&self) -> Vec<Measure> {
        self.durations(self.figures.ptime_ms)
    }

    pub(super) fn stamp_measures(&self) -> Vec<Measure> {
        self.durations(self.figures.payload_ptime_ms)
    }

    fn durations(&self, measured: Option<Hundredths>) -> Vec<Measure> {
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

    pub(super) fn quality_measures(&self) -> Vec<Measure> {
        let (figures, limits) = (self.figures, self.thresholds);
        vec![
            decimal("quality_pct", figures.quality_pct).held_to(limits.quality_pct),
            count("flaws", figures.flaws),
            count("late_80", figures.late_80),
            count("late_200", figures.late_200),
            count("received", figures.received).held_to(limits.quality_packets),
        ]
    }

    pub(super) fn tail_measures(&self) -> Vec<Measure> {
        let (facts, limits) = (self.facts, self.thresholds);
        vec![
            millis("tail_ms", facts.tail_us).held_to(limits.tail_ms),
            share("tail_share_pct", facts.tail_us, facts.receive_expected_us).held_to(limits.tail_share_pct),
            count("received", self.figures.received),
        ]
    }

    fn unheard(&self, first: Measure) -> Vec<Measure> {
        vec![first, self.received(), self.receive_expected()]
    }

    fn received(&self) -> Measure {
        count("received_after_answer", self.facts.received_after_answer)
            .held_to(self.thresholds.media_packets)
    }

    fn receive_expected(&self) -> Measure {
        millis("receive_expected_ms", self.facts.receive_expected_us).held_to(self.thresholds.media_grace_ms)
    }

    fn refused(&self) -> Measure {
        count("rejected_source", self.facts.rejected_source).held_to(self.thresholds.rejected_packets)
    }

    fn icmp(&self) -> Measure {
        count("unreachable_errors", self.facts.unreachable_errors).held_to(self.thresholds.unreachable_errors)
    }
}
