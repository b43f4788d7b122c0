//! Whether the capture times of packets can be relied on: noticed while a capture is read.

use serde::Serialize;
use sidetone_media::session::Withheld;
use sidetone_media::time::Micros;

/// What is wrong with the times of a capture; then nothing in it is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Packets without a time of their own: simple packet blocks of pcapng, and times outside the years 0 to 9999.
    #[serde(skip_serializing_if = "is_zero")]
    pub untimed: u64,
    /// The number, from 1 on, of the first packet that was captured more than a second before an earlier one, in a
    /// capture that could not be read in the order of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order_from: Option<u64>,
}

impl Times {
    /// Whether nothing is wrong.
    pub fn are_sound(&self) -> bool {
        *self == Times::default()
    }

    /// Why calls and streams are not judged.
    pub(super) fn withheld(&self) -> Option<Withheld> {
        let untimed = (self.untimed > 0).then_some(Withheld::Untimed);
        untimed.or(self.out_of_order_from.map(|_| Withheld::OutOfOrder))
    }
}

/// Watches the times of packets for steps back.
///
/// Kernels and network cards with several queues swap packets within some milliseconds, which is no step.
#[derive(Debug)]
pub(super) struct Watch {
    /// A packet with an earlier time follows a step back.
    floor_us: i64,
    begun_us: i64,
    packets: u64,
    steps: Option<Steps>,
}

/// The steps back so far.
#[derive(Debug)]
struct Steps {
    /// The number of the first packet after a step.
    first: u64,
    /// The number of the latest packet after a step.
    latest: u64,
    /// Whether packets before the floor and after it alternate.
    are_several: bool,
    /// How far the first step went back, and how long the capture was by then.
    back_us: i64,
    length_us: i64,
}

impl Default for Watch {
    fn default() -> Self {
        Watch { floor_us: i64::MIN, begun_us: 0, packets: 0, steps: None }
    }
}

impl Watch {
    /// Takes the time of the next packet.
    #[inline(always)]
    pub(super) fn see(&mut self, at: Micros) {
        self.packets += 1;
        let floor_us = at.0 - STEP_US;
        if floor_us > self.floor_us {
            if self.packets == 1 {
                self.begun_us = at.0;
            }
            self.floor_us = floor_us;
        } else if at.0 < self.floor_us {
            self.step(at);
        }
    }

    #[cold]
    fn step(&mut self, at: Micros) {
        let newest_us = self.floor_us + STEP_US;
        let steps = self.steps.get_or_insert(Steps {
            first: self.packets,
            latest: self.packets,
            are_several: false,
            back_us: newest_us - at.0,
            length_us: newest_us - self.begun_us,
        });
        steps.are_several |= self.packets > steps.latest + 1;
        steps.latest = self.packets;
    }

    /// The number of the first packet that is not in the order of time.
    ///
    /// A single step back by less than half of the time captured before it is a step of the clock: the packets are in
    /// the order in which they arrived, and sorting them would mix them. Appended captures step back by about the length
    /// of the first one, and interfaces that were written late step back repeatedly.
    pub(super) fn out_of_order_from(&self) -> Option<u64> {
        let is_clock = |steps: &Steps| !steps.are_several && steps.back_us < steps.length_us / 2;
        self.steps.as_ref().filter(|steps| !is_clock(steps)).map(|steps| steps.first)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The smallest step back that is noticed.
const STEP_US: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_clock_is_no_other_order() {
        let seconds = |range: std::ops::Range<i64>| range.collect::<Vec<_>>();
        let cases = [
            ("in order", seconds(0..60), None),
            ("the clock is set back by five seconds", [seconds(0..30), seconds(25..60)].concat(), None),
            ("two captures of the same minute", [seconds(0..30), seconds(2..30)].concat(), Some(31)),
            ("the later capture first", [seconds(60..90), seconds(0..60)].concat(), Some(31)),
            ("an interface that is written late", vec![10, 20, 30, 26, 31, 27, 32, 28], Some(4)),
            ("two packets in one second", vec![10, 11, 10, 11, 12], None),
        ];
        for (name, times, expected) in cases {
            let mut watch = Watch::default();
            times.iter().for_each(|second| watch.see(Micros(second * 1_000_000)));
            assert_eq!(watch.out_of_order_from(), expected, "{name}");
        }
    }
}
