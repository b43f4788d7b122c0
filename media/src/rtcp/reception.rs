//! The content of our own report blocks about the party's stream (RFC 3550 §6.4.1, appendix A.3 and A.8).

use super::compound::{Block, SenderInfo, middle};
use super::extended::Delay;
use super::write::SummaryContent;
use crate::time::{ClockRate, Micros};

/// Packets that arrived from the party's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The confirmed SSRC.
    pub ssrc: u32,
    /// The newest sequence number.
    pub newest: u16,
    /// Numbers of the open segment so far.
    pub in_segment: u32,
    /// The number of the segment within the leg.
    pub segment: u64,
    /// Packets of the source that were sent according to their numbers.
    pub expected: u64,
    /// Unique packets of it that arrived.
    pub received: u64,
    /// The smoothed interarrival jitter in microseconds.
    pub jitter_us: u32,
    /// The clock of its audio.
    pub clock: ClockRate,
    /// Repeated packets, of all sources of the leg.
    pub duplicates: u64,
    /// Minimum, maximum, mean and deviation of the difference of transit of consecutive packets since the last block,
    /// in ticks.
    pub transit_ticks: Option<[u32; 4]>,
}

/// The content of our previous report, and of the party's latest sender report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceptionFold {
    ssrc: Option<u32>,
    segment: u64,
    /// Added to the segment's own extended number, so that it continues from the previous segment.
    offset: u32,
    highest: u32,
    expected: u64,
    received: u64,
    duplicates: u64,
    /// The SSRC of the latest sender report, the middle 32 bits of its NTP time, and its arrival.
    heard: Option<(u32, u32, Micros)>,
    /// The same of the latest reference time (RFC 3611 §4.4).
    reference: Option<(u32, u32, Micros)>,
    /// The source, and a summary of its packets between the last two blocks.
    summary: Option<(u32, SummaryContent)>,
}

impl ReceptionFold {
    /// Records a sender report of the party.
    pub(super) fn sender_report(&mut self, now: Micros, info: &SenderInfo) {
        self.heard = Some((info.ssrc, middle(info.ntp), now));
    }

    /// Records a reference time of the party.
    pub(super) fn reference_time(&mut self, now: Micros, ssrc: u32, middle: u32) {
        self.reference = Some((ssrc, middle, now));
    }

    /// The answer to the party's latest reference time, for a report sent at `now`. Each is answered once.
    pub(super) fn take_delay(&mut self, now: Micros) -> Option<Delay> {
        let (ssrc, last_report, at) = self.reference.take()?;
        Some(Delay { ssrc, last_report, delay: delay_since(now, at) })
    }

    /// The source, and a summary of its packets between the last two blocks.
    pub(super) fn summary(&self) -> Option<(u32, SummaryContent)> {
        self.summary
    }

    /// The block for a report sent at `now`; the next one counts from here.
    pub(super) fn block(&mut self, now: Micros, reception: &Reception) -> Block {
        if self.ssrc != Some(reception.ssrc) {
            let ReceptionFold { heard, reference, duplicates, .. } = *self;
            *self = ReceptionFold {
                ssrc: Some(reception.ssrc),
                heard,
                reference,
                duplicates,
                ..ReceptionFold::default()
            };
        }
        let expected = reception.expected.saturating_sub(self.expected);
        let received = reception.received.saturating_sub(self.received);
        let lost = expected.saturating_sub(received);
        // Duplicates and late packets may make it negative; it is then 0 (A.3).
        let fraction = (lost.saturating_mul(256)).checked_div(expected).unwrap_or(0).min(255);
        let cumulative = reception.expected.saturating_sub(reception.received).min(LOST_MAX);
        self.expected = reception.expected;
        self.received = reception.received;
        self.highest = self.extended(reception);
        let end = (self.highest as u16).wrapping_add(1);
        let begin = end.wrapping_sub(u16::try_from(expected).unwrap_or(u16::MAX));
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        let duplicates = reception.duplicates.saturating_sub(self.duplicates);
        self.duplicates = reception.duplicates;
        let duplicates = u32::try_from(duplicates).unwrap_or(u32::MAX);
        let jitter_ticks = reception.transit_ticks;
        let summary = SummaryContent { begin, end, lost, duplicates, jitter_ticks };
        self.summary = (expected > 0).then_some((reception.ssrc, summary));
        let (last_report, delay) = self
            .heard
            .filter(|(ssrc, ..)| *ssrc == reception.ssrc)
            .map_or((0, 0), |(_, middle, at)| (middle, delay_since(now, at)));
        Block {
            ssrc: reception.ssrc,
            fraction_lost: fraction as u8,
            cumulative_lost: cumulative as i32,
            highest: self.highest,
            jitter_ticks: ticks(reception.jitter_us, reception.clock),
            last_report,
            delay,
        }
    }

    /// The newest number with its cycles: counted within a segment, and continued from the segment before.
    fn extended(&mut self, reception: &Reception) -> u32 {
        let behind = reception.in_segment.saturating_sub(1);
        let first = reception.newest.wrapping_sub(behind as u16);
        let own = u32::from(first).wrapping_add(behind);
        if self.segment != reception.segment {
            let ahead = reception.newest.wrapping_sub(self.highest as u16);
            let begins = self.segment == 0;
            // A lower number than the last one belongs to the next cycle, or to a sender that restarted its
            // numbering.
            let next = if begins { own } else { self.highest.wrapping_add(u32::from(ahead)) };
            self.offset = next.wrapping_sub(own);
            self.segment = reception.segment;
        }
        own.wrapping_add(self.offset)
    }
}

/// Jitter in units of the payload's clock.
fn ticks(us: u32, clock: ClockRate) -> u32 {
    u32::try_from(u64::from(us) * u64::from(clock.hz()) / 1_000_000).unwrap_or(u32::MAX)
}

/// Time in 65,536ths of a second.
fn delay_since(now: Micros, at: Micros) -> u32 {
    let us = u64::try_from(now.since(at)).unwrap_or(0);
    u32::try_from((us << 16) / 1_000_000).unwrap_or(u32::MAX)
}

/// The largest loss that fits into 24 signed bits.
const LOST_MAX: u64 = 0x007f_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(newest: u16, in_segment: u32, segment: u64, expected: u64, received: u64) -> Reception {
        Reception {
            ssrc: 5,
            newest,
            in_segment,
            segment,
            expected,
            received,
            jitter_us: 2_500,
            clock: ClockRate::HZ_8000,
            duplicates: received / 100,
            transit_ticks: Some([0, 9, 4, 2]),
        }
    }

    #[test]
    fn blocks_count_from_one_report_to_the_next() {
        let mut fold = ReceptionFold::default();
        let report = SenderInfo { ssrc: 5, ntp: 0x0000_aaaa_bbbb_0000, ..SenderInfo::default() };
        let steps = [
            ("the first", 1_000_000, at(65_500, 250, 1, 250, 225), (25, 25, 65_500)),
            ("over the wrap", 6_000_000, at(214, 500, 1, 500, 475), (0, 25, 65_750)),
            ("nothing came", 11_000_000, at(214, 500, 1, 500, 475), (0, 25, 65_750)),
            ("another segment goes on", 16_000_000, at(300, 50, 2, 550, 500), (128, 50, 65_836)),
        ];
        for (name, us, reception, (fraction, cumulative, highest)) in steps {
            let block = fold.block(Micros(us), &reception);
            assert_eq!(
                (block.fraction_lost, block.cumulative_lost, block.highest, block.jitter_ticks),
                (fraction, cumulative, highest, 20),
                "{name}"
            );
            assert_eq!((block.last_report, block.delay), (0, 0), "{name}");
            let told =
                fold.summary().map(|(ssrc, told)| (ssrc, told.end.wrapping_sub(told.begin), told.duplicates));
            let wanted = match name {
                "the first" => Some((5, 250, 2)),
                "over the wrap" => Some((5, 250, 2)),
                "nothing came" => None,
                _ => Some((5, 50, 1)),
            };
            assert_eq!(told, wanted, "{name}");
        }
        fold.sender_report(Micros(16_500_000), &report);
        let block = fold.block(Micros(18_000_000), &at(300, 50, 2, 550, 500));
        assert_eq!((block.last_report, block.delay), (0xaaaa_bbbb, 98_304));
        let other = Reception { ssrc: 6, ..at(10, 11, 3, 11, 11) };
        let block = fold.block(Micros(20_000_000), &other);
        assert_eq!((block.ssrc, block.cumulative_lost, block.highest, block.last_report), (6, 0, 10, 0));
    }
}
