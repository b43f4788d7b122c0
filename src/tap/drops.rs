//! When the kernel dropped packets of an interface because they were not read in time.
//!
//! A call at that time may have lost packets only here, so its loss is not evidence about the network.

use std::collections::VecDeque;

use sidetone_media::time::Micros;

/// The times in which packets were dropped, the most recent ones.
///
/// *Bounds*: 1,024 spans; beyond that the two oldest are merged, so that a long call is marked too often rather than
/// not at all.
#[derive(Debug, Default)]
pub struct Drops {
    spans: VecDeque<Span>,
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: Micros,
    to: Micros,
    packets: u64,
}

impl Drops {
    /// Returns an empty list.
    pub fn new() -> Self {
        Drops::default()
    }

    /// Records that packets were dropped at some time between two times.
    pub fn note(&mut self, from: Micros, to: Micros, packets: u64) {
        if packets == 0 {
            return;
        }
        self.total = self.total.saturating_add(packets);
        match self.spans.back_mut() {
            // Consecutive drops are one span.
            Some(last) if from <= last.to => {
                last.to = last.to.max(to);
                last.packets = last.packets.saturating_add(packets);
            }
            _ => self.spans.push_back(Span { from, to, packets }),
        }
        if self.spans.len() > SPANS_MAX
            && let (Some(oldest), Some(next)) = (self.spans.pop_front(), self.spans.front_mut())
        {
            next.from = oldest.from;
            next.packets = next.packets.saturating_add(oldest.packets);
        }
    }

    /// Returns how many packets were dropped in the spans that overlap the time between two times.
    pub fn between(&self, from: Micros, to: Micros) -> u64 {
        let touching = self.spans.iter().filter(|span| span.from <= to && span.to >= from);
        touching.fold(0, |sum, span| sum.saturating_add(span.packets))
    }

    /// How many packets were dropped in total.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// Spans that are kept.
const SPANS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Micros {
        Micros(seconds * 1_000_000)
    }

    #[test]
    fn a_call_is_told_of_the_drops_while_it_was_up() {
        let mut drops = Drops::new();
        drops.note(seconds(10), seconds(11), 0);
        drops.note(seconds(20), seconds(21), 5);
        drops.note(seconds(21), seconds(22), 7);
        drops.note(seconds(40), seconds(41), 1);
        let cases =
            [((0, 19), 0), ((0, 20), 12), ((22, 30), 12), ((23, 39), 0), ((0, 100), 13), ((41, 99), 1)];
        for ((from, to), packets) in cases {
            assert_eq!(drops.between(seconds(from), seconds(to)), packets, "{from} to {to}");
        }
        assert_eq!(drops.total(), 13);
    }

    #[test]
    fn memory_is_bounded_and_no_drop_is_forgotten() {
        let mut drops = Drops::new();
        for second in 0..10_000 {
            drops.note(seconds(2 * second), seconds(2 * second + 1), 1);
        }
        assert_eq!(drops.spans.len(), SPANS_MAX);
        assert_eq!(drops.between(seconds(0), seconds(100_000)), 10_000);
        assert_eq!(drops.between(seconds(19_998), seconds(20_000)), 1);
    }
}
