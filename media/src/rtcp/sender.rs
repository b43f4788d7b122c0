//! Compares the packets that the party's sender reports count with the packets that arrived.
//!
//! Sequence numbers show losses between packets that arrived; only the party's own count shows losses before the first
//! and after the last one.

use super::bounds::packets_within;
use super::compound::SenderInfo;
use super::heard::Heard;
use super::view::SenderCount;
use crate::time::Micros;

/// The accumulated sender reports of one leg.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderFold {
    current: Option<Source>,
    /// The earlier sources.
    closed: SenderCount,
    reports: u64,
}

/// One source's reports, compared with the packets that arrived.
#[derive(Clone, Copy, Debug)]
struct Source {
    ssrc: u32,
    at: Micros,
    /// Packets and octets according to the latest report.
    packets: u64,
    octets: u64,
    /// Packets missing according to the sequence numbers at the latest report.
    lost: u64,
    /// Packets in the reports that no sequence number covers: the minimum so far, the value while packets
    /// still arrived, and the current value.
    unknown_min: Option<i64>,
    unknown_flowing: Option<i64>,
    unknown: i64,
    /// Packets that could have been sent unseen before the first that arrived.
    head_max: i64,
    /// Packets discarded because of their payload before the first report of this source.
    refused_before: u64,
}

impl SenderFold {
    /// Processes a report that arrived when `heard` was the state. Returns false when it is implausible, or
    /// of a source other than the confirmed one.
    pub(super) fn report(&mut self, now: Micros, info: &SenderInfo, heard: &Heard) -> bool {
        if heard.ssrc.is_some_and(|ssrc| ssrc != info.ssrc) {
            return false;
        }
        let mut source = match self.current {
            Some(source) if source.ssrc == info.ssrc => source,
            before => {
                self.close(before);
                let refused_before = if before.is_some() { heard.refused } else { 0 };
                Source::new(now, info, refused_before)
            }
        };
        let risen = i64::from(info.packets.wrapping_sub(source.packets as u32) as i32);
        let most = packets_within(now.since(source.at));
        let began_anew = risen < 0;
        if began_anew {
            self.close(Some(source));
            source = Source { unknown_min: Some(0), ..Source::new(now, info, heard.refused) };
        } else if risen > most {
            return false;
        }
        source.packets = source.packets.saturating_add(u64::try_from(risen).unwrap_or(0));
        source.octets =
            u64::from(info.octets.wrapping_sub(source.octets as u32)).saturating_add(source.octets);
        source.at = now;
        if began_anew {
            // It is unknown how many packets arrived since the party restarted its count.
            source.head_max = -1;
        } else {
            source.compare(now, heard);
        }
        self.current = Some(source);
        self.reports += 1;
        true
    }

    pub(super) fn view(&self) -> Option<SenderCount> {
        let mut whole = self.clone();
        whole.close(whole.current);
        (self.reports > 0).then_some(SenderCount { reports: self.reports, ..whole.closed })
    }

    fn close(&mut self, source: Option<Source>) {
        let Some(source) = source else { return };
        let closed = &mut self.closed;
        let (head, missing, tail) = source.missing();
        closed.packets = closed.packets.saturating_add(source.packets);
        closed.octets = closed.octets.saturating_add(source.octets);
        closed.missing = closed.missing.saturating_add(missing);
        closed.tail_missing = closed.tail_missing.saturating_add(tail);
        if let Some(head) = head {
            closed.head_missing = Some(closed.head_missing.unwrap_or(0).saturating_add(head));
        }
    }
}

impl Source {
    fn new(now: Micros, info: &SenderInfo, refused_before: u64) -> Source {
        Source {
            ssrc: info.ssrc,
            at: now,
            packets: info.packets.into(),
            octets: info.octets.into(),
            lost: 0,
            unknown_min: None,
            unknown_flowing: None,
            unknown: 0,
            head_max: -1,
            refused_before,
        }
    }

    /// Compares the party's count with the packets that arrived.
    fn compare(&mut self, now: Micros, heard: &Heard) {
        let refused = heard.refused.saturating_sub(self.refused_before);
        let known = heard.expected.saturating_add(refused);
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.unknown = whole(self.packets).saturating_sub(whole(known));
        self.lost = heard.expected.saturating_sub(heard.received);
        if heard.ssrc.is_none() {
            return;
        }
        self.unknown_min = Some(self.unknown_min.map_or(self.unknown, |least| least.min(self.unknown)));
        self.head_max = heard.unseen_us.max(0) / PACKET_US_MIN + NOISE;
        if heard.last.is_some_and(|last| now.since(last) < FLOWING_US) {
            self.unknown_flowing = Some(self.unknown);
        }
    }

    /// Packets missing before the first one, in total, and after the last one.
    fn missing(&self) -> (Option<u64>, u64, u64) {
        let Some(least) = self.unknown_min else {
            // No packet of this source arrived: all are missing, neither before nor after another packet.
            return (None, self.packets, 0);
        };
        let head = (0..=self.head_max).contains(&least).then(|| real(least));
        let head = if least < 0 && self.head_max >= 0 { Some(0) } else { head };
        let behind = real(self.unknown.saturating_sub(least));
        let tail = real(self.unknown.saturating_sub(self.unknown_flowing.unwrap_or(least)));
        (head, self.lost.saturating_add(head.unwrap_or(0)).saturating_add(behind), tail)
    }
}

/// Removes small differences: a report may overtake a packet or two on the path, or be overtaken by them.
fn real(packets: i64) -> u64 {
    if packets > NOISE { packets.unsigned_abs() } else { 0 }
}

const NOISE: i64 = 2;
/// The shortest packets in use.
const PACKET_US_MIN: i64 = 10_000;
/// The stream is flowing when its last packet is at most this old.
const FLOWING_US: i64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// One report: second, packets reported; packets expected and received by then, and the arrival of the
    /// last one.
    type Step = (i64, u32, u64, u64, i64);

    fn heard(expected: u64, received: u64, last_s: i64, unseen_s: i64) -> Heard {
        Heard {
            ssrc: (received > 0).then_some(7),
            received,
            expected,
            refused: 0,
            last: Some(Micros(last_s * 1_000_000)),
            unseen_us: unseen_s * 1_000_000,
            ..Heard::default()
        }
    }

    fn fold(unseen_s: i64, steps: &[Step]) -> (Option<u64>, u64, u64) {
        let mut fold = SenderFold::default();
        for (at_s, packets, expected, received, last_s) in steps {
            let info = SenderInfo {
                ssrc: 7,
                packets: *packets,
                octets: packets.wrapping_mul(160),
                ..SenderInfo::default()
            };
            fold.report(Micros(at_s * 1_000_000), &info, &heard(*expected, *received, *last_s, unseen_s));
        }
        let view = fold.view().unwrap();
        (view.head_missing, view.missing, view.tail_missing)
    }

    #[test]
    fn head_and_tail_are_told_apart() {
        type Case<'a> = (&'a str, i64, Vec<Step>, (Option<u64>, u64, u64));
        let cases: Vec<Case<'_>> = vec![
            ("nothing is missing", 1, vec![(5, 250, 250, 250, 5), (10, 500, 500, 500, 10)], (Some(0), 0, 0)),
            (
                "a report one packet early and late",
                1,
                vec![(5, 250, 251, 251, 5), (10, 500, 499, 499, 10)],
                (Some(0), 0, 0),
            ),
            ("lost in between", 1, vec![(5, 250, 250, 240, 5), (10, 500, 500, 480, 10)], (Some(0), 20, 0)),
            (
                "the first 40 never came",
                1,
                vec![(5, 250, 210, 210, 5), (10, 500, 460, 460, 10)],
                (Some(40), 40, 0),
            ),
            (
                "a capture that begins in the call",
                0,
                vec![(5, 9_250, 250, 250, 5), (10, 9_500, 500, 490, 10)],
                (None, 10, 0),
            ),
            (
                "the last 200 never came",
                1,
                vec![(5, 250, 250, 250, 5), (10, 500, 300, 300, 6)],
                (Some(0), 200, 200),
            ),
            ("head and tail", 1, vec![(5, 250, 240, 238, 5), (10, 500, 240, 238, 5)], (Some(10), 262, 250)),
            ("nothing came", 1, vec![(5, 250, 0, 0, 0), (10, 500, 0, 0, 0)], (None, 500, 0)),
            (
                "a count that cannot be",
                1,
                vec![(5, 250, 250, 250, 5), (10, 90_000_000, 500, 500, 10)],
                (Some(0), 0, 0),
            ),
            (
                "a count that began anew",
                1,
                vec![(5, 250, 250, 250, 5), (10, 20, 500, 500, 10)],
                (Some(0), 0, 0),
            ),
        ];
        for (name, unseen_s, steps, expected) in cases {
            assert_eq!(fold(unseen_s, &steps), expected, "{name}");
        }
    }

    #[test]
    fn counts_wrap() {
        let mut fold = SenderFold::default();
        for (at, packets) in [(5, u32::MAX - 9), (10, 240)] {
            let info = SenderInfo { ssrc: 7, packets, octets: packets, ..SenderInfo::default() };
            assert!(fold.report(Micros(at * 1_000_000), &info, &heard(250, 250, at, 0)));
        }
        let view = fold.view().unwrap();
        assert_eq!(view.packets, u64::from(u32::MAX) + 1 + 240);
    }

    #[test]
    fn another_source_is_ignored_until_it_is_heard() {
        let mut fold = SenderFold::default();
        let info = SenderInfo { ssrc: 9, packets: 10, octets: 1600, ..SenderInfo::default() };
        assert!(!fold.report(Micros(0), &info, &heard(10, 10, 0, 0)));
        assert_eq!(fold.view(), None);
        let other = Heard { ssrc: Some(9), ..heard(10, 10, 0, 0) };
        assert!(fold.report(Micros(0), &info, &other));
        assert_eq!(fold.view().map(|view| (view.packets, view.missing)), Some((10, 0)));
    }
}
