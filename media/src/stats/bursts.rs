//! Counts bursts of loss (RFC 3611 §4.7.2).
//!
//! A burst begins and ends with a lost packet and has fewer than sixteen received packets in a row inside;
//! everything outside bursts is gap. A single lost packet with sixteen received ones on both sides is part of
//! a gap.

use crate::stats::Hundredths;

/// The bursts among the packets that left the window so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BurstCount {
    bursts: u32,
    /// Packets within bursts, and how many of them were lost.
    packets: u64,
    lost: u64,
    open: Open,
}

/// A stretch that may become a burst or stay a single loss.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    packets: u64,
    lost: u64,
}

impl BurstCount {
    /// Adds `count` lost packets in a row, `since` arrivals after the previous loss.
    pub(crate) fn miss(&mut self, since: u32, count: u32) {
        if self.open.lost == 0 || since >= GMIN {
            self.close();
        } else {
            self.open.packets += u64::from(since);
        }
        self.open.packets += u64::from(count);
        self.open.lost += u64::from(count);
    }

    /// Ends the stretch, because the numbering ends here.
    pub(crate) fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.lost > 1 {
            self.bursts = self.bursts.saturating_add(1);
            self.packets += open.packets;
            self.lost += open.lost;
        }
    }

    /// The figures of the closed bursts, for `expected` packets of which `missing` did not arrive.
    pub(crate) fn figures(&self, expected: u64, missing: u64, ptime_us: i64) -> Option<Bursts> {
        let share = |part: u64, whole: u64| Hundredths::ratio(i128::from(part) * 100, i128::from(whole));
        // Mean duration of `stretches` stretches, in milliseconds.
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

/// How the missing packets of a stream were distributed; own drops included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Bursts of loss, with fewer than sixteen packets in a row received inside each.
    pub bursts: u64,
    /// Missing packets inside bursts, in percent of all missing.
    pub lost_share_pct: Hundredths,
    /// Burst density: missing packets inside bursts, in percent of the packets there.
    pub burst_loss_pct: Option<Hundredths>,
    /// Mean duration of a burst in milliseconds of media.
    pub burst_mean_ms: Option<Hundredths>,
    /// Gap density: missing packets outside bursts, in percent of the packets there.
    pub gap_loss_pct: Option<Hundredths>,
    /// Mean duration of the gaps between bursts, in milliseconds of media.
    pub gap_mean_ms: Option<Hundredths>,
}

/// Received packets in a row that end a burst (RFC 3611 §4.7.2, the recommended value).
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
