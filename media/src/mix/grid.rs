//! When ticks are due: every 20 ms on a fixed grid, even when the driver calls late.

use super::rate::TICK_US;
use crate::time::Micros;

/// The grid of one mix.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grid {
    /// The next tick; `None` before the first one and while the mix is idle.
    next: Option<Micros>,
    /// The latest time that any caller passed.
    seen: Option<Micros>,
}

/// A tick that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Its time on the grid.
    pub(super) at: Micros,
    /// How many ticks before it are skipped.
    pub(super) skipped: u64,
}

impl Grid {
    /// Keeps the latest time.
    pub(super) fn see(&mut self, now: Micros) {
        self.seen = Some(self.seen.map_or(now, |seen| seen.max(now)));
    }

    /// Drops the grid; the next tick starts a new one.
    pub(super) fn rest(&mut self) {
        self.next = None;
    }

    /// When the next tick is due; immediately when none is scheduled yet.
    pub(super) fn next(&self) -> Micros {
        self.next.or(self.seen).unwrap_or(Micros(i64::MIN))
    }

    /// The tick that is due at `now`. A late driver catches up one tick, and earlier missed ticks are
    /// skipped: a burst of packets would only wait in the receiver's playout buffer, or be dropped there.
    pub(super) fn take(&mut self, now: Micros) -> Option<Due> {
        let due = *self.next.get_or_insert(now);
        if now < due {
            return None;
        }
        let missed = now.since(due) / TICK_US;
        let skipped = (missed - 1).max(0);
        let at = due + skipped.saturating_mul(TICK_US);
        self.next = Some(at + TICK_US);
        Some(Due { at, skipped: skipped.unsigned_abs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks that run when the driver calls at each of these times (in ms), repeated while one is due.
    fn ticks(times: &[i64]) -> Vec<(i64, u64)> {
        let (mut grid, mut ticks) = (Grid::default(), Vec::new());
        for time in times {
            let now = Micros::from_millis(*time);
            grid.see(now);
            while grid.next() <= now {
                let Some(due) = grid.take(now) else { break };
                ticks.push((due.at.0 / 1_000, due.skipped));
            }
        }
        ticks
    }

    #[test]
    fn a_late_driver_makes_one_more_tick_and_leaves_out_the_rest() {
        type Case = (&'static str, &'static [i64], &'static [(i64, u64)]);
        let cases: &[Case] = &[
            ("on time", &[100, 120, 140], &[(100, 0), (120, 0), (140, 0)]),
            ("early", &[100, 110, 119, 120], &[(100, 0), (120, 0)]),
            ("a little late", &[100, 125, 141], &[(100, 0), (120, 0), (140, 0)]),
            ("a tick late", &[100, 141, 160], &[(100, 0), (120, 0), (140, 0), (160, 0)]),
            ("two late", &[100, 165, 180], &[(100, 0), (140, 1), (160, 0), (180, 0)]),
            ("a second late", &[0, 1_005, 1_020], &[(0, 0), (980, 48), (1_000, 0), (1_020, 0)]),
        ];
        for (name, times, expected) in cases {
            assert_eq!(ticks(times), *expected, "{name}");
        }
    }

    #[test]
    fn a_grid_that_rested_begins_where_it_is() {
        let mut grid = Grid::default();
        assert!(grid.take(Micros(7)).is_some());
        grid.rest();
        grid.see(Micros(9_000_000));
        assert_eq!(grid.next(), Micros(9_000_000));
        assert_eq!(grid.take(Micros(9_000_500)), Some(Due { at: Micros(9_000_500), skipped: 0 }));
    }
}
