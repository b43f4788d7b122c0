//! Open-loop pacing: how many units are due by now, whatever became of earlier ones.

use crate::program::clock::{Nanos, SECOND};

/// Releases `rate` units per second for a duration, evenly, from its start on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start: Nanos,
    rate: f64,
    total: u64,
    released: u64,
}

impl Pace {
    /// Paces `rate` units per second from `start` for `lasts`.
    pub(crate) fn new(start: Nanos, rate: f64, lasts: Nanos) -> Self {
        let total = (rate * seconds(lasts)).round();
        Pace { start, rate, total: whole(total), released: 0 }
    }

    /// Paces a number of units.
    pub(crate) fn counted(start: Nanos, rate: f64, total: u64) -> Self {
        Pace { start, rate, total, released: 0 }
    }

    /// Returns the number of the next unit if it is due; each number is returned once, in order.
    pub(crate) fn release(&mut self, now: Nanos) -> Option<u64> {
        let due = self.next_due()?;
        if now < due {
            return None;
        }
        let number = self.released;
        self.released += 1;
        Some(number)
    }

    /// Returns when the next unit is due; `None` after the last.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let is_left = self.released < self.total;
        is_left.then(|| self.start + whole(fraction(self.released) / self.rate * fraction(SECOND)))
    }

    /// Returns the planned end of all units.
    pub(crate) fn end(&self) -> Nanos {
        self.start + whole(fraction(self.total) / self.rate * fraction(SECOND))
    }

    /// Whether every unit was released.
    pub(crate) fn is_done(&self) -> bool {
        self.released >= self.total
    }
}

fn seconds(nanos: Nanos) -> f64 {
    fraction(nanos) / fraction(SECOND)
}

/// Counts and nanoseconds of a run are far below 2^53.
fn fraction(number: u64) -> f64 {
    number as f64
}

/// Never negative, and far below 2^53.
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::clock::MILLISECOND;

    #[test]
    fn releases_by_time_and_not_by_answers() {
        let mut pace = Pace::new(SECOND, 100.0, SECOND / 10);
        let mut released = |now| std::iter::from_fn(|| pace.release(now)).count();
        assert_eq!(
            [
                released(SECOND - 1),
                released(SECOND),
                released(SECOND + 9 * MILLISECOND),
                released(SECOND + 10 * MILLISECOND),
                // After a stall of the generator the missed units are released immediately.
                released(SECOND + 55 * MILLISECOND),
                released(10 * SECOND),
                released(20 * SECOND),
            ],
            [0, 1, 0, 1, 4, 4, 0]
        );
        assert!(pace.is_done());
        assert_eq!(pace.next_due(), None);
    }

    #[test]
    fn rates_that_do_not_divide_a_second_do_not_drift() {
        let mut pace = Pace::new(0, 3.0, 100 * SECOND);
        let numbers: Vec<u64> = std::iter::from_fn(|| pace.release(100 * SECOND)).collect();
        assert_eq!((numbers.len(), numbers.last()), (300, Some(&299)));
        let mut pace = Pace::counted(0, 7.0, 8);
        assert_eq!(std::iter::from_fn(|| pace.release(SECOND)).count(), 8);
    }
}
