//! The current load of this node, for its heartbeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sidetone_cluster::membership::Figures;

use crate::clock::instant;
use crate::driver::Handle;
use crate::load::Load;
use crate::process;

/// Reads the figures; clones share the sources and measure processor time separately.
#[derive(Clone)]
pub struct FigureSource {
    switch: Handle,
    load: Arc<Load>,
    draining: Arc<AtomicBool>,
    cpu: Cpu,
}

/// Processor time, measured between two readings.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    at: Instant,
    used_us: u64,
    percent: u32,
}

impl FigureSource {
    /// The figures of these sources.
    pub fn new(switch: Handle, load: Arc<Load>, draining: Arc<AtomicBool>) -> Self {
        let cpu = Cpu { at: instant(), used_us: process::cpu_us(), percent: 0 };
        FigureSource { switch, load, draining, cpu }
    }

    /// The figures now.
    pub fn read(&mut self) -> Figures {
        let now = instant();
        self.cpu.measure(now, process::cpu_us(), processors());
        Figures {
            calls: self.switch.live_calls() as u64,
            rooms: self.switch.live_rooms() as u64,
            registrations: self.switch.bindings() as u64,
            cpu_percent: self.cpu.percent,
            loaded: self.load.is_busy(now),
            draining: self.draining.load(Ordering::Relaxed),
        }
    }
}

impl Cpu {
    /// Processes a reading; one within a second of the last keeps the last figure.
    fn measure(&mut self, now: Instant, used_us: u64, processors: u32) {
        let length = now.saturating_duration_since(self.at);
        if length < WINDOW_MIN {
            return;
        }
        let available_us = length.as_micros().saturating_mul(u128::from(processors.max(1))).max(1);
        let used = u128::from(used_us.saturating_sub(self.used_us));
        let percent = used.saturating_mul(100) / available_us;
        *self = Cpu { at: now, used_us, percent: u32::try_from(percent).unwrap_or(u32::MAX).min(100) };
    }
}

fn processors() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(processors).unwrap_or(u32::MAX)
}

/// Shorter windows do not represent the load well.
const WINDOW_MIN: Duration = Duration::from_millis(900);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_a_share_of_all_processors() {
        let at = instant();
        let mut cpu = Cpu { at, used_us: 1_000_000, percent: 7 };
        cpu.measure(at + Duration::from_millis(100), 2_000_000, 2);
        assert_eq!((cpu.percent, cpu.at), (7, at), "the window is too short");
        cpu.measure(at + Duration::from_secs(1), 1_500_000, 2);
        assert_eq!(cpu.percent, 25);
        cpu.measure(at + Duration::from_secs(2), 9_500_000, 2);
        assert_eq!(cpu.percent, 100);
    }
}
