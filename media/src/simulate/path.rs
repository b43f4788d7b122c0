//! The network: which packets are lost, how much the others are delayed, and in which order they arrive.

use super::packet::Packet;
use super::random::Random;
use super::scenario::{Delay, Loss, Path, Scenario};
use crate::time::Micros;

/// Carries packets, one by one in sending order.
#[derive(Debug)]
pub(super) struct Network {
    path: Path,
    ptime_us: i64,
    losses: Vec<Loser>,
    delays: Random,
    noise: Random,
    order: Random,
    stalls: Random,
    /// Packets sent so far.
    sent: u32,
    /// When the last random delay was drawn, and its value.
    drawn: (Micros, i64),
    /// The last delivery: a queue delivers nothing before it.
    last_us: i64,
    /// The current or next random stall.
    stall: Option<(i64, i64)>,
}

/// The result for one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// When it arrives; `None` when it is lost.
    pub(super) at: Option<Micros>,
    /// When its duplicate arrives, if there is one.
    pub(super) again: Option<Micros>,
}

impl Network {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let path = scenario.path.clone();
        let seed = scenario.seed;
        Network {
            ptime_us: i64::from(scenario.talker.ptime_ms) * 1_000,
            losses: path
                .losses
                .iter()
                .enumerate()
                .map(|(n, loss)| Loser {
                    loss: loss.clone(),
                    random: Random::for_purpose(seed, &format!("loss {n}")),
                    in_burst: false,
                    counted: 0,
                })
                .collect(),
            delays: Random::for_purpose(seed, "delay"),
            noise: Random::for_purpose(seed, "noise"),
            order: Random::for_purpose(seed, "order"),
            stalls: Random::for_purpose(seed, "stalls"),
            sent: 0,
            drawn: (Micros(i64::MIN), 0),
            last_us: i64::MIN,
            stall: None,
            path,
        }
    }

    /// Carries one packet; `packet.at` is when it was sent.
    pub(super) fn carry(&mut self, packet: &Packet) -> Arrival {
        let number = self.sent;
        self.sent += 1;
        // Every loss model counts every packet, so that each is reproducible by itself.
        let mut lost = false;
        for loser in &mut self.losses {
            lost |= loser.loses(number, packet.at);
        }
        let delayed = packet.at.0 + self.delay_us(packet.at);
        let stalled = self.release_us(delayed);
        if lost {
            return Arrival::default();
        }
        let swapped = self.path.swap_pct > 0.0 && self.order.percent(self.path.swap_pct);
        let overtaken = self.path.overtaken.filter(|(every, _)| *every > 0 && number % every == every - 1);
        let at = if let Some((_, by_ms)) = overtaken {
            stalled + i64::from(by_ms) * 1_000
        } else if swapped {
            stalled + self.ptime_us + SWAP_US
        } else if self.path.reordering {
            stalled
        } else {
            self.last_us = self.last_us.max(stalled);
            self.last_us
        };
        let again = self.path.duplicate_pct > 0.0 && self.order.percent(self.path.duplicate_pct);
        Arrival { at: Some(Micros(at)), again: again.then_some(Micros(at + DUPLICATE_US)) }
    }

    fn delay_us(&mut self, sent: Micros) -> i64 {
        // Packets that are sent together have the same delay; with reordering each has its own.
        let together = !self.path.reordering && sent.since(self.drawn.0) < TOGETHER_US;
        if !together {
            let delay_ms = match self.path.delay {
                None => 0.0,
                Some(Delay::Normal(mean, deviation)) => self.delays.normal(mean, deviation).max(0.0),
                Some(Delay::Pareto(least, shape)) => {
                    (least / (1.0 - self.delays.unit()).powf(1.0 / shape)).min(DELAY_MS_MAX)
                }
                Some(Delay::Uniform(low, high)) => self.delays.uniform(low, high),
            };
            self.drawn = (sent, (delay_ms * 1_000.0) as i64);
        }
        let noise_us = i64::from(self.noise.integer(0, self.path.noise_us.unwrap_or(NOISE_US)));
        let steps_ms: i64 = self
            .path
            .steps
            .iter()
            .filter(|(at_ms, _)| sent.0 >= i64::from(*at_ms) * 1_000)
            .map(|(_, by_ms)| i64::from(*by_ms))
            .sum();
        let ramp_us = self.path.ramp.map_or(0, |(span, peak_ms)| {
            let (from, to) = (i64::from(span.from_ms) * 1_000, i64::from(span.to_ms) * 1_000);
            let half = ((to - from) / 2).max(1);
            let into = sent.0 - from;
            let height = if sent.0 < from || sent.0 >= to { 0 } else { half - (into - half).abs() };
            i64::from(peak_ms) * 1_000 * height.max(0) / half
        });
        self.drawn.1 + noise_us + (steps_ms * 1_000 + ramp_us).max(0)
    }

    /// When a packet that reaches the stall at `us` leaves it.
    fn release_us(&mut self, mut us: i64) -> i64 {
        for stall in &self.path.stalls {
            let (from, to) = (i64::from(stall.from_ms) * 1_000, i64::from(stall.to_ms) * 1_000);
            if (from..to).contains(&us) {
                us = to;
            }
        }
        if let Some(stalls) = self.path.random_stalls {
            let (every, len) = (f64::from(stalls.every_ms) * 1_000.0, i64::from(stalls.len_ms) * 1_000);
            let mut draw = |after: i64| {
                let begin = after + self.stalls.uniform(0.5 * every, 1.5 * every).max(1_000.0) as i64;
                (begin, begin + len)
            };
            let mut stall = self.stall.unwrap_or_else(|| draw(0));
            // Each iteration advances by at least a millisecond of simulated time.
            while us >= stall.1 {
                stall = draw(stall.1);
            }
            self.stall = Some(stall);
            if us >= stall.0 {
                us = stall.1;
            }
        }
        match self.path.delivery_every_ms {
            Some(every_ms) if every_ms > 0 => {
                let every = i64::from(every_ms) * 1_000;
                (us + every - 1).div_euclid(every) * every
            }
            _ => us,
        }
    }
}

/// A loss model with its state.
#[derive(Debug)]
struct Loser {
    loss: Loss,
    random: Random,
    in_burst: bool,
    counted: u32,
}

impl Loser {
    fn loses(&mut self, number: u32, sent: Micros) -> bool {
        match &self.loss {
            Loss::Bursts { pct, mean_len } => {
                // Two states; every packet in the bad state is lost. The long-term rate is `pct`.
                let end = 1.0 / mean_len.max(1.0);
                let share = (pct / 100.0).min(0.99);
                let begin = share * end / (1.0 - share);
                let draw = self.random.unit();
                self.in_burst = if self.in_burst { draw >= end } else { draw < begin };
                self.in_burst
            }
            Loss::Every(n) => *n > 0 && number % n == n - 1,
            Loss::Hole(span) => {
                (i64::from(span.from_ms) * 1_000..i64::from(span.to_ms) * 1_000).contains(&sent.0)
            }
            Loss::Numbers(numbers) => numbers.contains(&number),
            Loss::Random(pct) => self.random.percent(*pct),
            Loss::Spell(spell) => {
                if sent.0 < i64::from(spell.from_ms) * 1_000 || self.counted >= spell.lost * 2 {
                    return false;
                }
                self.counted += 1;
                self.counted % 2 == 1
            }
        }
    }
}

/// A swapped packet arrives this long after its successor.
const SWAP_US: i64 = 500;
/// Packets sent within this time of the first one have the same delay.
const TOGETHER_US: i64 = 1_000;
/// Time between a packet and its duplicate.
const DUPLICATE_US: i64 = 100;
/// Random variation of an arrival on a quiet network.
const NOISE_US: u32 = 200;
/// Upper bound of a random delay, so that the number of packets under way is bounded.
const DELAY_MS_MAX: f64 = 2_000.0;
