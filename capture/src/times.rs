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

/// Watches the times of packets for a step back.
///
/// Kernels and network cards with several queues swap packets within some milliseconds, which is no step.
#[derive(Debug)]
pub(super) struct Watch {
    /// A packet before this time is a step back.
    floor_us: i64,
    packets: u64,
    stepped_at: Option<u64>,
}

impl Default for Watch {
    fn default() -> Self {
        Watch { floor_us: i64::MIN, packets: 0, stepped_at: None }
    }
}

impl Watch {
    /// Takes the time of the next packet.
    #[inline(always)]
    pub(super) fn see(&mut self, at: Micros) {
        self.packets += 1;
        let floor_us = at.0 - STEP_US;
        if floor_us > self.floor_us {
            self.floor_us = floor_us;
        } else if at.0 < self.floor_us {
            self.step();
        }
    }

    #[cold]
    fn step(&mut self) {
        self.stepped_at.get_or_insert(self.packets);
    }

    /// The number of the first packet after a step back.
    pub(super) fn stepped_at(&self) -> Option<u64> {
        self.stepped_at
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The smallest step back that is noticed.
const STEP_US: i64 = 1_000_000;
