//! Lateness of packets relative to the fastest packet, and the input of the two model phones.

use crate::stats::Lateness;
use crate::stats::players::{Kept, Players};
use crate::stats::timeline::Rows;

/// Lateness relative to a sliding minimum of the transit time, and the range of transits with which the
/// phones of [`Players`] change.
///
/// All transits are relative: they count from zero at every rebase, and the origin moves before a transit
/// exceeds its 32 bits.
#[derive(Clone, Debug)]
pub(crate) struct Playout {
    pub(super) transit_us: i32,
    /// The smallest transit in the current bucket, and in the one before.
    pub(super) least_us: i32,
    pub(super) least_before_us: i32,
    /// The range of transits with which neither phone changes.
    pub(super) kept: Kept,
    /// Age of the current bucket.
    pub(super) bucket_us: i32,
    pub(super) late_before_us: u32,
    pub(super) late_limit_us: u32,
    /// The largest lateness since the timeline's row began.
    pub(super) row_max_us: u32,
    /// Packets by lateness in the first eight steps that are not in [`PlayoutTotals`] yet; most packets of
    /// most calls.
    pub(super) recent: [u8; 8],
    pub(super) late_in_a_row: u8,
    pub(super) rebased: bool,
}

/// State that packets in time do not touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlayoutTotals {
    pub(crate) late_count: u32,
    pub(crate) players: Players,
    pub(super) lateness: Lateness,
}

/// One packet.
pub(crate) struct Due {
    /// Time since the packet before it.
    pub(crate) gap_us: i64,
    /// Increase of the transit since the packet before it: arrival gap minus timestamp step.
    pub(crate) late_us: i64,
    pub(crate) is_overtaken: bool,
    pub(crate) ptime_us: i64,
}

impl Playout {
    pub(crate) fn new(late_limit_us: u32) -> Self {
        Playout {
            transit_us: 0,
            least_us: 0,
            least_before_us: 0,
            kept: Kept::NONE,
            bucket_us: 0,
            late_before_us: 0,
            late_limit_us,
            row_max_us: 0,
            recent: [0; 8],
            late_in_a_row: 0,
            rebased: true,
        }
    }

    /// Makes the next packet the new reference for transits.
    pub(crate) fn rebase(&mut self) {
        self.rebased = true;
    }

    /// Makes the current packet the new reference for transits.
    pub(crate) fn begin(&mut self, totals: &mut PlayoutTotals) {
        self.transit_us = 0;
        self.least_us = 0;
        self.least_before_us = 0;
        totals.players.rebase();
        self.kept = Kept::NONE;
        self.bucket_us = 0;
        self.rebased = false;
        self.late_in_a_row = 0;
    }

    /// Processes one packet.
    ///
    /// Every five seconds it returns how far the smallest transit was below this packet's; zero or negative.
    pub(crate) fn fold(&mut self, due: &Due, totals: &mut PlayoutTotals, rows: &mut Rows) -> Option<i64> {
        if self.rebased {
            self.begin(totals);
            return Some(0);
        }
        let transit_us = i64::from(self.transit_us) + due.late_us;
        match i32::try_from(transit_us) {
            Ok(transit_us) if transit_us.unsigned_abs() < TRANSIT_MAX_US => self.transit_us = transit_us,
            _ => self.shift(transit_us, totals),
        }
        self.bucket_us = narrow(i64::from(self.bucket_us) + due.gap_us);
        self.settle(due.is_overtaken, due.ptime_us, totals, rows)
    }

    /// Like [`Playout::fold`] for an in-step packet: neither `gap_us` nor `late_us` is over a second, there
    /// was no rebase, and the packet overtook none.
    #[inline]
    pub(crate) fn fold_in_step(
        &mut self,
        gap_us: i32,
        late_us: i32,
        ptime_us: i64,
        totals: &mut PlayoutTotals,
        rows: &mut Rows,
    ) -> Option<i64> {
        let transit_us = self.transit_us.saturating_add(late_us);
        if transit_us.unsigned_abs() < TRANSIT_MAX_US {
            self.transit_us = transit_us;
        } else {
            self.shift(transit_us.into(), totals);
        }
        self.bucket_us = self.bucket_us.wrapping_add(gap_us);
        self.settle(false, ptime_us, totals, rows)
    }

    /// Whether the next packet sets the reference for transits.
    pub(crate) fn is_rebased(&self) -> bool {
        self.rebased
    }

    /// The current bucket lasts for less than this time.
    #[inline]
    pub(super) fn bucket_left_us(&self) -> i64 {
        i64::from(BUCKET_US) + 1 - i64::from(self.bucket_us)
    }

    /// Updates lateness and phones from a packet's transit.
    #[inline(always)]
    fn settle(
        &mut self,
        is_overtaken: bool,
        ptime_us: i64,
        totals: &mut PlayoutTotals,
        rows: &mut Rows,
    ) -> Option<i64> {
        let mut below_us = None;
        if self.bucket_us > BUCKET_US {
            below_us = Some(self.end_bucket());
        }
        self.least_us = self.least_us.min(self.transit_us);
        let lateness_us = self.transit_us.abs_diff(self.least_us.min(self.least_before_us));
        self.count(lateness_us, totals);
        if lateness_us > self.late_limit_us {
            self.late(lateness_us, ptime_us, totals, rows);
        } else {
            self.late_in_a_row = 0;
        }
        self.late_before_us = lateness_us;
        if !self.kept.holds(self.transit_us) {
            self.kept = totals.players.play(self.transit_us, ptime_us, is_overtaken);
        }
        below_us
    }

    /// The largest lateness since the last call.
    pub(crate) fn take_row_max_us(&mut self) -> u32 {
        std::mem::take(&mut self.row_max_us)
    }

    /// Packets by lateness; `peak_us` is the maximum before the open row.
    pub(crate) fn lateness(&self, totals: &PlayoutTotals, peak_us: u32) -> Lateness {
        let mut lateness = totals.lateness;
        lateness.add_least(self.recent);
        lateness.note_max(peak_us.max(self.row_max_us));
        lateness
    }

    #[inline]
    pub(super) fn count(&mut self, lateness_us: u32, totals: &mut PlayoutTotals) {
        self.row_max_us = self.row_max_us.max(lateness_us);
        let step = Lateness::step(lateness_us);
        match self.recent.get_mut(step) {
            Some(count) => {
                *count = count.wrapping_add(1);
                if *count == u8::MAX {
                    totals.lateness.add_least(std::mem::take(&mut self.recent));
                }
            }
            None => totals.lateness.count(step, lateness_us),
        }
    }

    /// Ends the bucket after five seconds; returns how far its smallest transit was below this packet's.
    #[cold]
    fn end_bucket(&mut self) -> i64 {
        self.least_before_us = self.least_us;
        self.least_us = self.transit_us;
        self.bucket_us = 0;
        (i64::from(self.least_before_us) - i64::from(self.transit_us)).min(0)
    }

    /// Moves the origin of transits to `transit_us`, the packet's own; values more than half an hour away are
    /// clipped.
    #[cold]
    fn shift(&mut self, transit_us: i64, totals: &mut PlayoutTotals) {
        for kept in [&mut self.least_us, &mut self.least_before_us] {
            *kept = narrow(i64::from(*kept).saturating_sub(transit_us));
        }
        self.transit_us = 0;
        self.kept = totals.players.shift(transit_us);
    }

    #[cold]
    fn late(&mut self, lateness_us: u32, ptime_us: i64, totals: &mut PlayoutTotals, rows: &mut Rows) {
        totals.late_count = totals.late_count.saturating_add(1);
        rows.late();
        let apart_us = u64::from(lateness_us.abs_diff(self.late_before_us));
        let steady = apart_us < ptime_us.unsigned_abs() / 2;
        self.late_in_a_row = if steady { self.late_in_a_row + 1 } else { 0 };
        if self.late_in_a_row >= STEP_PACKETS {
            // All packets are equally late: the delay changed in a step, because of another route or clock.
            // That is not jitter.
            totals.late_count = totals.late_count.saturating_sub(self.late_in_a_row.into());
            rows.forgive(self.late_in_a_row.into());
            self.least_us = self.transit_us;
            self.least_before_us = self.transit_us;
            self.bucket_us = 0;
            self.late_in_a_row = 0;
        }
    }
}

fn narrow(us: i64) -> i32 {
    i32::try_from(us).unwrap_or(if us < 0 { i32::MIN } else { i32::MAX })
}

/// Length of a bucket; the sliding minimum covers one to two buckets.
const BUCKET_US: i32 = 5_000_000;
/// The origin of transits moves before one reaches this value, a quarter of an hour.
pub(super) const TRANSIT_MAX_US: u32 = 1 << 30;
/// This many equally late packets in a row are a step of the delay.
const STEP_PACKETS: u8 = 10;
