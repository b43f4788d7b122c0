//! The pause of a worker before it waits for packets.
//!
//! A wake-up costs more than relaying the packet that caused it, and at 25,000 packets a second a worker wakes for one
//! or two packets. From [`FROM_PPS`] on the worker sleeps for a short time before each wait, and the wait then returns
//! several packets.

use std::time::Duration;

use crate::time::Micros;

/// Measures a worker's packets, and decides about the pause before its next wait.
#[derive(Debug)]
pub(super) struct Gather {
    /// Since when packets are counted.
    since: Micros,
    packets: u32,
    /// The pause at the rate of the last window; zero below [`FROM_PPS`].
    pause_us: i64,
}

impl Gather {
    /// No packets since `now`.
    pub(super) fn new(now: Micros) -> Self {
        Gather { since: now, packets: 0, pause_us: 0 }
    }

    /// Takes the number of packets that a turn received, and returns the pause before the next wait.
    ///
    /// No pause follows a turn that found enough packets: under load, packets gather while others are relayed.
    pub(super) fn after_turn(&mut self, now: Micros, packets: u32) -> Duration {
        self.packets = self.packets.saturating_add(packets);
        let passed_us = now.since(self.since);
        if passed_us >= WINDOW_US {
            self.pause_us = pause_us(i64::from(self.packets), passed_us);
            (self.since, self.packets) = (now, 0);
        }
        if packets >= ENOUGH { Duration::ZERO } else { Duration::from_micros(self.pause_us.unsigned_abs()) }
    }
}

/// The time in which [`ENOUGH`] packets arrive, [`PAUSE_US_MAX`] at most.
fn pause_us(packets: i64, passed_us: i64) -> i64 {
    if packets.saturating_mul(1_000_000) < FROM_PPS * passed_us {
        return 0;
    }
    (i64::from(ENOUGH) * passed_us / packets.max(1)).min(PAUSE_US_MAX)
}

/// Packets a second from which on they gather.
const FROM_PPS: i64 = 10_000;
/// Number of packets that justify a wake-up.
const ENOUGH: u32 = 12;
/// The longest delay that gathering adds to a packet, without the timer's own slack of 0.05 ms.
const PAUSE_US_MAX: i64 = 500;
/// How long packets are counted for one decision.
const WINDOW_US: i64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after a second of turns that receive `packets` every `every_us`.
    fn pause(packets: u32, every_us: i64) -> u128 {
        let mut gather = Gather::new(Micros(0));
        let mut pause = Duration::MAX;
        for turn in 1..=1_000_000 / every_us {
            pause = gather.after_turn(Micros(turn * every_us), packets);
        }
        pause.as_micros()
    }

    #[test]
    fn packets_gather_at_high_rates_and_for_half_a_millisecond_at_most() {
        for (name, packets, every_us, expected) in [
            ("one call", 1, 10_000, 0),
            ("9,900 a second", 1, 101, 0),
            ("10,000 a second", 1, 100, 500),
            ("20,000 a second", 1, 50, 500),
            ("25,000 a second", 1, 40, 480),
            ("25,000 a second, gathered", 11, 440, 480),
            ("100,000 a second", 1, 10, 120),
            ("100,000 a second, enough in each turn", 12, 120, 0),
        ] {
            assert_eq!(pause(packets, every_us), expected, "{name}");
        }
    }

    #[test]
    fn a_silence_ends_it() {
        let mut gather = Gather::new(Micros(0));
        for turn in 1..=2_000 {
            gather.after_turn(Micros(turn * 40), 1);
        }
        assert!(!gather.after_turn(Micros(80_040), 1).is_zero());
        assert_eq!(gather.after_turn(Micros(380_040), 1), Duration::ZERO, "0.3 s later");
    }
}
