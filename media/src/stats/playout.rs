//! How late packets come against the quickest, and against what two notional phones have a buffer for.

use crate::stats::Lateness;
use crate::stats::players::{Kept, Players};
use crate::stats::timeline::Rows;

/// Lateness against a sliding minimum of the transit time, and the transits with which the phones of [`Players`] change.
///
/// All of it is relative: transit counts from zero at every rebase, and from elsewhere whenever it would grow
/// beyond what its 32 bits hold.
#[derive(Clone, Debug)]
pub(crate) struct Playout {
    pub(super) transit_us: i32,
    /// The smallest transit of the current bucket, and of the one before.
    pub(super) least_us: i32,
    pub(super) least_before_us: i32,
    /// The transits with which neither phone changes.
    pub(super) kept: Kept,
    /// How long the bucket has been going on.
    pub(super) bucket_us: i32,
    pub(super) late_before_us: u32,
    pub(super) late_limit_us: u32,
    /// The latest packet since the timeline's row began.
    pub(super) row_max_us: u32,
    /// Packets of the least latenesses that [`PlayoutTotals`] does not have yet: most packets of most calls.
    pub(super) recent: [u8; 8],
    pub(super) late_in_a_row: u8,
    pub(super) rebased: bool,
}

/// What packets in time do not touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlayoutTotals {
    pub(crate) late_count: u32,
    pub(crate) players: Players,
    pub(super) lateness: Lateness,
}

/// One packet for the buffer.
pub(crate) struct Due {
    /// After the packet before it.
    pub(crate) gap_us: i64,
    /// How much later than its timestamp says, against the packet before it.
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

    /// Lets the next packet set the transit that others are compared with.
    pub(crate) fn rebase(&mut self) {
        self.rebased = true;
    }

    /// The packet that comes now sets that transit.
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

    /// Takes in one packet.
    ///
    /// Every five seconds it says how far below the packet's transit the least one of them was, never positive.
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

    /// The same of a packet in the middle of talk: neither `gap_us` nor `late_us` is over a second, nothing was
    /// rebased, and it overtook none.
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

    /// Whether the next packet sets the transit that others are compared with.
    pub(crate) fn is_rebased(&self) -> bool {
        self.rebased
    }

    /// The bucket goes on for less than this.
    #[inline]
    pub(super) fn bucket_left_us(&self) -> i64 {
        i64::from(BUCKET_US) + 1 - i64::from(self.bucket_us)
    }

    /// What follows from a packet's transit.
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

    /// The latest packet since it was asked last.
    pub(crate) fn take_row_max_us(&mut self) -> u32 {
        std::mem::take(&mut self.row_max_us)
    }

    /// Packets by lateness, the latest of those before the open row by `peak_us`.
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

    /// Five seconds are over; how far below this packet's transit their least one was.
    #[cold]
    fn end_bucket(&mut self) -> i64 {
        self.least_before_us = self.least_us;
        self.least_us = self.transit_us;
        self.bucket_us = 0;
        (i64::from(self.least_before_us) - i64::from(self.transit_us)).min(0)
    }

    /// Counts transit from `transit_us`, the packet's own; what is further off than half an hour stays there.
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
            // All equally late: the delay made a step, another route or clock. That is not jitter.
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

/// The sliding minimum forgets after one to two of these.
const BUCKET_US: i32 = 5_000_000;
/// Transit counts from elsewhere before it gets here, a quarter of an hour.
pub(super) const TRANSIT_MAX_US: u32 = 1 << 30;
/// So many equally late packets in a row are a step of the delay.
const STEP_PACKETS: u8 = 10;
