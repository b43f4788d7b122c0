//! How late packets come against the quickest, and what a playout buffer would have had to conceal.

use crate::stats::Lateness;
use crate::time::Micros;

/// Lateness against a sliding minimum of the transit time, and a notional 100 ms adaptive buffer.
///
/// All of it is relative: transit counts from zero at every rebase.
#[derive(Clone, Debug)]
pub(crate) struct Playout {
    transit_us: i64,
    /// The smallest transit of the current bucket, and of the one before.
    least_us: i64,
    least_before_us: i64,
    bucket_start: Micros,
    /// The transit to which the notional buffer has grown.
    buffer_us: i64,
    late_before_us: i64,
    late_limit_us: u32,
    late_in_a_row: u32,
    rebased: bool,
    pub(crate) late_count: u32,
    /// The latest packet since the timeline's row began.
    pub(crate) row_max_us: u32,
    pub(crate) underrun_us: i64,
}

impl Playout {
    pub(crate) fn new(late_limit_us: u32) -> Self {
        Playout {
            transit_us: 0,
            least_us: 0,
            least_before_us: 0,
            bucket_start: Micros::default(),
            buffer_us: 0,
            late_before_us: 0,
            late_limit_us,
            late_in_a_row: 0,
            rebased: true,
            late_count: 0,
            row_max_us: 0,
            underrun_us: 0,
        }
    }

    /// Lets the next packet set the transit that others are compared with.
    pub(crate) fn rebase(&mut self) {
        self.rebased = true;
    }

    /// The packet at `now` sets that transit.
    pub(crate) fn begin(&mut self, now: Micros) {
        self.transit_us = 0;
        self.least_us = 0;
        self.least_before_us = 0;
        self.buffer_us = 0;
        self.bucket_start = now;
        self.rebased = false;
        self.late_in_a_row = 0;
    }

    /// The network held packets back for `late_us`, which the buffer covers in part.
    pub(crate) fn stall(&mut self, late_us: i64) {
        self.underrun_us = self.underrun_us.saturating_add((late_us - BUFFER_US).max(0));
    }

    /// Takes in one packet that came `late_us` later than the one before it.
    ///
    /// Every five seconds it says how far below the packet's transit the least one of them was, never positive.
    #[inline]
    pub(crate) fn fold(
        &mut self,
        now: Micros,
        late_us: i64,
        overtaken: bool,
        ptime_us: i64,
        counts: &mut Lateness,
    ) -> Option<i64> {
        if self.rebased {
            self.begin(now);
            return Some(0);
        }
        let mut least_us = None;
        self.transit_us = self.transit_us.wrapping_add(late_us);
        if now.0.wrapping_sub(self.bucket_start.0) > BUCKET_US {
            self.least_before_us = self.least_us;
            self.least_us = self.transit_us;
            self.bucket_start = now;
            least_us = Some(self.least_before_us.wrapping_sub(self.transit_us).min(0));
            self.buffer_us = self.least_before_us;
        }
        self.least_us = self.least_us.min(self.transit_us);
        let lateness_us = self.transit_us.wrapping_sub(self.least_us.min(self.least_before_us));
        let narrow_us = u32::try_from(lateness_us.max(0)).unwrap_or(u32::MAX);
        counts.count(narrow_us);
        self.row_max_us = self.row_max_us.max(narrow_us);
        if lateness_us > i64::from(self.late_limit_us) {
            self.late(now, lateness_us, ptime_us);
        } else {
            self.late_in_a_row = 0;
        }
        self.late_before_us = lateness_us;
        let over_us = self.transit_us.wrapping_sub(self.buffer_us).wrapping_sub(BUFFER_US);
        if over_us > 0 {
            self.run_dry(over_us, overtaken, ptime_us);
        }
        least_us
    }

    #[cold]
    fn late(&mut self, now: Micros, lateness_us: i64, ptime_us: i64) {
        self.late_count = self.late_count.saturating_add(1);
        let steady = lateness_us.abs_diff(self.late_before_us) < ptime_us.unsigned_abs() / 2;
        self.late_in_a_row = if steady { self.late_in_a_row + 1 } else { 0 };
        if self.late_in_a_row >= STEP_PACKETS {
            // All equally late: the delay made a step, another route or clock. That is not jitter.
            self.late_count = self.late_count.saturating_sub(self.late_in_a_row);
            self.least_us = self.transit_us;
            self.least_before_us = self.transit_us;
            self.bucket_start = now;
            self.late_in_a_row = 0;
        }
    }

    /// The buffer ran empty: an overtaken packet costs one frame, any other makes it grow.
    #[cold]
    fn run_dry(&mut self, over_us: i64, overtaken: bool, ptime_us: i64) {
        if overtaken {
            self.underrun_us = self.underrun_us.saturating_add(ptime_us);
        } else {
            self.underrun_us = self.underrun_us.saturating_add(over_us);
            self.buffer_us = self.buffer_us.saturating_add(over_us);
        }
    }
}

/// The buffer that every phone is taken to have.
const BUFFER_US: i64 = 100_000;
/// The sliding minimum forgets after one to two of these.
const BUCKET_US: i64 = 5_000_000;
/// So many equally late packets in a row are a step of the delay.
const STEP_PACKETS: u32 = 10;
