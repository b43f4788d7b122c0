//! Whether loss came in bursts (RFC 3611 §4.7.2).
//!
//! A burst begins and ends with a lost packet and holds fewer than sixteen received ones in a row; all that
//! is not burst is gap. A single lost packet with sixteen received on either side is part of a gap.

use crate::stats::Hundredths;

/// The bursts among the packets that leave the window, while they are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BurstCount {
    bursts: u32,
    /// Packets within bursts, and those of them that were lost.
    packets: u64,
    lost: u64,
    open: Open,
}

/// What may become a burst, or stay a single loss.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    packets: u64,
    lost: u64,
}

impl BurstCount {
    /// `count` packets in a row were lost, `since` arrivals after the loss before.
    pub(crate) fn miss(&mut self, since: u32, count: u32) {
        if self.open.lost == 0 || since >= GMIN {
            self.close();
        } else {
            self.open.packets += u64::from(since);
        }
        self.open.packets += u64::from(count);
        self.open.lost += u64::from(count);
    }

    /// The numbering ends here.
    pub(crate) fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.lost > 1 {
            self.bursts = self.bursts.saturating_add(1);
            self.packets += open.packets;
            self.lost += open.lost;
        }
    }

    /// What the closed bursts say, of `expected` packets of which `missing` never came.
    pub(crate) fn figures(&self, expected: u64, missing: u64, ptime_us: i64) -> Option<Bursts> {
        let share = |part: u64, whole: u64| Hundredths::ratio(i128::from(part) * 100, i128::from(whole));
        // Mean duration of so many stretches, in milliseconds.
        let mean_ms = |packets: u64, stretches: u64| {
            Hundredths::ratio(i128::from(packets) * i128::from(ptime_us), i128::from(stretches) * 1000)
        };
        let gap_packets = expected.saturating_sub(self.packets);
        Some(Bursts {
            bursts: self.bursts.into(),
            lost_share_pct: share(self.lost, missing)?,
            burst_loss_pct: share(self.lost, self.packets),
            burst_mean_ms: mean_ms(self.packets, self.bursts.into()),
            gap_loss_pct: share(missing.saturating_sub(self.lost), gap_packets),
            gap_mean_ms: mean_ms(gap_packets, u64::from(self.bursts) + 1),
        })
    }
}

/// How the missing packets of a stream were spread; own drops among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Bursts of loss, with fewer than sixteen packets in a row received inside each.
    pub bursts: u64,
    /// The missing packets that lay in bursts, in percent of all missing.
    pub lost_share_pct: Hundredths,
    /// Burst density: packets missing within bursts, in percent.
    pub burst_loss_pct: Option<Hundredths>,
    /// Mean duration of a burst in milliseconds of media.
    pub burst_mean_ms: Option<Hundredths>,
    /// Gap density: packets missing outside bursts, in percent.
    pub gap_loss_pct: Option<Hundredths>,
    /// Mean duration of what lies between bursts, in milliseconds of media.
    pub gap_mean_ms: Option<Hundredths>,
}

/// So many received in a row end a burst (RFC 3611 §4.7.2, the recommended value).
const GMIN: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_told_from_single_losses() {
        // (since, lost) of each run, then (bursts, packets within, lost within).
        type Case = (&'static str, &'static [(u32, u32)], (u32, u64, u64));
        let cases: &[Case] = &[
            ("nothing", &[], (0, 0, 0)),
            ("one packet", &[(99, 1)], (0, 0, 0)),
            ("a run", &[(99, 5)], (1, 5, 5)),
            ("two, fifteen apart", &[(99, 1), (15, 1)], (1, 17, 2)),
            ("two, sixteen apart", &[(99, 1), (16, 1)], (0, 0, 0)),
            ("a burst, a single one, a burst", &[(99, 2), (40, 1), (40, 1), (3, 1)], (2, 7, 4)),
        ];
        for (name, runs, expected) in cases {
            let mut count = BurstCount::default();
            runs.iter().for_each(|(since, lost)| count.miss(*since, *lost));
            count.close();
            assert_eq!((count.bursts, count.packets, count.lost), *expected, "{name}");
        }
    }

    #[test]
    fn densities_and_durations_follow() {
        let mut count = BurstCount::default();
        count.miss(99, 2);
        count.miss(6, 2);
        count.miss(50, 1);
        count.close();
        let found = count.figures(1_010, 5, 20_000).unwrap();
        assert_eq!((found.bursts, found.lost_share_pct), (1, Hundredths(8_000)));
        assert_eq!(found.burst_loss_pct, Some(Hundredths(4_000)));
        assert_eq!(found.burst_mean_ms, Some(Hundredths(20_000)));
        assert_eq!(found.gap_loss_pct, Some(Hundredths(10)));
        assert_eq!(found.gap_mean_ms, Some(Hundredths(1_000_000)));
        assert_eq!(BurstCount::default().figures(100, 0, 20_000), None);
    }
}
