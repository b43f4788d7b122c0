//! Differences of the transit times of consecutive packets, for the statistics summary that a party requests (RFC 3611
//! §4.6).

use crate::rtp::Packet;
use crate::time::{ClockRate, Micros};

/// The differences since the last report. Only legs whose party wants them have this state.
#[derive(Clone, Debug, Default)]
pub(super) struct TransitFold {
    /// The SSRC, arrival and timestamp of the previous packet.
    last: Option<(u32, Micros, u32)>,
    count: u64,
    /// The least, the greatest and the sum of the differences, in microseconds.
    least: u64,
    most: u64,
    sum: u64,
    /// The sum of the squares; saturates after hours without a report.
    squares: u64,
}

impl TransitFold {
    /// Adds a packet of audio with this clock.
    pub(super) fn note(&mut self, at: Micros, packet: &Packet, clock: ClockRate) {
        let before = self.last.replace((packet.ssrc, at, packet.timestamp));
        let Some((_, last, timestamp)) = before.filter(|(ssrc, ..)| *ssrc == packet.ssrc) else { return };
        // An overtaken packet has the earlier timestamp.
        let sent_ticks = i64::from(packet.timestamp.wrapping_sub(timestamp).cast_signed());
        let sent_us = sent_ticks.saturating_mul(1_000_000) / i64::from(clock.hz());
        let difference = at.since(last).saturating_sub(sent_us).unsigned_abs().min(DIFFERENCE_MAX_US);
        self.least = if self.count == 0 { difference } else { self.least.min(difference) };
        self.most = self.most.max(difference);
        self.count += 1;
        self.sum = self.sum.saturating_add(difference);
        self.squares = self.squares.saturating_add(difference * difference);
    }

    /// Minimum, maximum, mean and standard deviation of the differences, in ticks of this clock; the next ones count
    /// from here. `None` without two consecutive packets.
    pub(super) fn take(&mut self, clock: ClockRate) -> Option<[u32; 4]> {
        let TransitFold { last, count, least, most, sum, squares } = std::mem::take(self);
        self.last = last;
        let mean = sum.checked_div(count)?;
        let variance = (squares / count).saturating_sub(mean.saturating_mul(mean));
        let ticks = |us: u64| u32::try_from(us * u64::from(clock.hz()) / 1_000_000).unwrap_or(u32::MAX);
        Some([least, most, mean, variance.isqrt()].map(ticks))
    }
}

/// A longer difference comes from a pause or a clock that was set, and counts as this: ten seconds.
const DIFFERENCE_MAX_US: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u32, ssrc: u32) -> Packet {
        Packet { ssrc, timestamp: number.wrapping_mul(160), payload_len: 160, ..Packet::default() }
    }

    #[test]
    fn differences_of_transit_are_summed_up_from_one_report_to_the_next() {
        let clock = ClockRate::HZ_8000;
        let mut fold = TransitFold::default();
        assert_eq!(fold.take(clock), None);
        // Every other packet is 5 ms late, so that each gap is 5 ms too long or too short.
        for number in 0..101_u32 {
            let late_us = i64::from(number % 2) * 5_000;
            fold.note(Micros(i64::from(number) * 20_000 + late_us), &packet(number, 9), clock);
        }
        assert_eq!(fold.take(clock), Some([40, 40, 40, 0]));
        // Half of them 10 ms, half not at all; the first gap counts from the last packet of the previous series.
        for number in 101..201_u32 {
            let late_us = i64::from((number / 2) % 2) * 10_000;
            fold.note(Micros(i64::from(number) * 20_000 + late_us), &packet(number, 9), clock);
        }
        assert_eq!(fold.take(clock), Some([0, 80, 40, 40]));
        assert_eq!(fold.take(clock), None, "nothing came");
        // Across the wrap of the timestamps, and with another SSRC.
        let near = Packet { timestamp: u32::MAX - 79, ..packet(0, 9) };
        fold.note(Micros(10_000_000), &near, clock);
        fold.take(clock);
        fold.note(Micros(10_020_000), &Packet { timestamp: 80, ..near }, clock);
        fold.note(Micros(10_020_000), &packet(7, 10), clock);
        assert_eq!(fold.take(clock), Some([0, 0, 0, 0]));
        // A pause of a day counts no more than the maximum.
        fold.note(Micros(100_000_000_000), &packet(8, 10), clock);
        assert_eq!(fold.take(clock), Some([80_000, 80_000, 80_000, 0]));
    }
}
