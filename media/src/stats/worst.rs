//! The worst ten seconds of a leg: users complain about them even when the mean is good.

use crate::stats::Hundredths;
use crate::stats::figures::{Figures, Worst};
use crate::stats::timeline::{Second, Timeline};

impl Timeline {
    /// The worst ten seconds of a leg that lasts at least ten seconds and has enough audio to be judged.
    pub(crate) fn worst_10s(&self, figures: &Figures) -> Option<Worst> {
        let rows = usize::try_from(WINDOW_S.div_ceil(self.step_s.max(1))).ok()?;
        if !figures.enough || self.seconds.len() < rows {
            return None;
        }
        let mut sums = Sums::default();
        let mut worst: Option<(usize, Sums, u32)> = None;
        for (end, second) in self.seconds.iter().enumerate() {
            sums.add(second);
            let Some(begin) = (end + 1).checked_sub(rows) else { continue };
            let jitter_us = self.jitter_us(begin, rows);
            let is_worse = worst
                .as_ref()
                .is_none_or(|(_, before, before_us)| sums.is_worse_than(before, jitter_us, *before_us));
            if is_worse && sums.received + sums.lost > 0 {
                worst = Some((begin, sums, jitter_us));
            }
            if let Some(oldest) = self.seconds.get(begin) {
                sums.remove(oldest);
            }
        }
        let (begin, sums, jitter_us) = worst?;
        let expected = i128::from(sums.received + sums.lost);
        let good = sums.received.saturating_sub(sums.late);
        Some(Worst {
            at_s: u32::try_from(begin).ok()?.saturating_mul(self.step_s),
            loss_pct: Hundredths::ratio(i128::from(sums.lost) * 100, expected)?,
            jitter_ms: Hundredths::millis_from_us(jitter_us.into()),
            quality_pct: Hundredths::ratio(i128::from(good) * 100, expected)?,
        })
    }

    fn jitter_us(&self, begin: usize, rows: usize) -> u32 {
        let rows = self.seconds.get(begin..begin + rows).unwrap_or_default();
        rows.iter().map(Second::jitter_max_us).max().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    received: u64,
    lost: u64,
    late: u64,
}

impl Sums {
    fn add(&mut self, second: &Second) {
        self.received += u64::from(second.received);
        self.lost += u64::from(second.lost);
        self.late += u64::from(second.late);
    }

    fn remove(&mut self, second: &Second) {
        self.received -= u64::from(second.received);
        self.lost -= u64::from(second.lost);
        self.late -= u64::from(second.late);
    }

    fn is_worse_than(&self, other: &Sums, jitter_us: u32, other_us: u32) -> bool {
        // Compares the shares without a division.
        let here = (self.lost + self.late) * (other.received + other.lost);
        let there = (other.lost + other.late) * (self.received + self.lost);
        here > there || (here == there && self.lost + self.late == 0 && jitter_us > other_us)
    }
}

const WINDOW_S: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(step_s: u32, seconds: Vec<Second>) -> Timeline {
        Timeline { step_s, seconds, ..Timeline::default() }
    }

    #[test]
    fn the_worst_window_is_found() {
        let figures = Figures { enough: true, ..Figures::default() };
        let plain = Second { received: 50, ..Second::default() };
        let lossy = Second { received: 40, lost: 10, ..Second::default() };
        let late = Second { received: 50, late: 5, ..Second::default() };
        let mut seconds = vec![plain; 60];
        assert_eq!(timeline(1, seconds[..9].to_vec()).worst_10s(&figures), None, "under ten seconds");
        let fine = timeline(1, seconds.clone()).worst_10s(&figures).unwrap();
        assert_eq!((fine.at_s, fine.quality_pct), (0, Hundredths(10_000)));
        seconds[20] = late;
        seconds[40] = lossy;
        let worst = timeline(1, seconds.clone()).worst_10s(&figures).unwrap();
        assert_eq!((worst.at_s, worst.loss_pct, worst.quality_pct), (31, Hundredths(200), Hundredths(9_800)));
        let worst = timeline(16, seconds.clone()).worst_10s(&figures).unwrap();
        assert_eq!((worst.at_s, worst.loss_pct), (640, Hundredths(2_000)));
        assert_eq!(timeline(1, seconds).worst_10s(&Figures::default()), None, "not enough audio");
        assert_eq!(timeline(1, vec![Second::default(); 20]).worst_10s(&figures), None, "nothing at all");
    }
}
