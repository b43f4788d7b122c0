//! Whether the node is too loaded to place calls for programs: measured once a second, by the lateness of the packet
//! path and by processor time. It reports load before calls are impaired; calls of phones are not refused because of
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sidetone_media::net::{Counters, Relay};
use sidetone_model::metrics::Family;
use tokio::sync::watch;

use crate::clock::instant;
use crate::config::LoadLimits;
use crate::process;

/// The measured load; clones of the `Arc` share it.
#[derive(Debug)]
pub struct Load {
    limits: LoadLimits,
    began: Instant,
    /// Until when the node counts as loaded, in milliseconds from the beginning.
    until_ms: AtomicU64,
}

/// The measurements of one time window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its length.
    pub length: Duration,
    /// Datagrams of RTP and RTCP received.
    pub received: u64,
    /// Of those, the ones that waited for the relay.
    pub waited: u64,
    /// Ticks of mixes that were later than 5 ms, or skipped.
    pub late_ticks: u64,
    /// All ticks of mixes.
    pub ticks: u64,
    /// Processor time of this process.
    pub cpu: Duration,
    /// Processors that it may use.
    pub processors: u32,
}

impl Window {
    /// Whether the node is about to lose quality.
    pub fn is_loaded(&self, limits: LoadLimits) -> bool {
        let LoadLimits { cpu_pct, late_pct } = limits;
        let is_late = |part: u64, whole: u64| {
            let (share, limit) = (part.saturating_mul(100), whole.saturating_mul(late_pct.into()));
            late_pct > 0 && part >= PARTS_MIN && share >= limit
        };
        let available = self.length.saturating_mul(self.processors.max(1));
        let limit = available.saturating_mul(cpu_pct);
        is_late(self.waited, self.received)
            || is_late(self.late_ticks, self.ticks)
            || (!limit.is_zero() && self.cpu.saturating_mul(100) >= limit)
    }
}

impl Load {
    /// No load, from `now` on.
    pub fn new(limits: LoadLimits, now: Instant) -> Arc<Load> {
        Arc::new(Load { limits, began: now, until_ms: AtomicU64::new(0) })
    }

    /// Processes the measurements of a window that ended now. Calls are placed again once no window was loaded for
    /// five seconds.
    pub fn note(&self, now: Instant, window: &Window) {
        if window.is_loaded(self.limits) {
            let until_ms = self.millis(now).saturating_add(HELD_MS);
            if self.until_ms.fetch_max(until_ms, Ordering::Relaxed) < self.millis(now) {
                tracing::warn!(?window, "the node is loaded: calls of programs are answered 503 node_busy");
            }
        }
    }

    /// Whether calls of programs are refused now.
    pub fn is_busy(&self, now: Instant) -> bool {
        let until_ms = self.until_ms.load(Ordering::Relaxed);
        until_ms > 0 && self.millis(now) < until_ms
    }

    /// The metric.
    pub fn family(&self, now: Instant) -> Family {
        Family::gauge(
            "sidetone_node_loaded",
            "Whether calls of programs are refused because packets wait or processors are busy.",
        )
        .is(u64::from(self.is_busy(now)))
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Measures once a second until `stop` turns true.
pub async fn watch(load: &Arc<Load>, relay: &Arc<Relay>, mut stop: watch::Receiver<bool>) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let processors = u32::try_from(processors).unwrap_or(u32::MAX);
    let mut before = Reading::of(relay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(WINDOW) => {}
        }
        let after = Reading::of(relay);
        load.note(after.at, &after.since(&before, processors));
        before = after;
    }
}

/// The counters at one time.
struct Reading {
    at: Instant,
    received: u64,
    waited: u64,
    late_ticks: u64,
    ticks: u64,
    cpu_us: u64,
}

impl Reading {
    fn of(relay: &Relay) -> Self {
        let counters = relay.counters();
        Reading {
            at: instant(),
            received: counters.received,
            waited: counters.waited,
            late_ticks: late_ticks(&counters),
            ticks: counters.ticks.total(),
            cpu_us: process::cpu_us(),
        }
    }

    fn since(&self, before: &Reading, processors: u32) -> Window {
        Window {
            length: self.at.saturating_duration_since(before.at),
            received: self.received.saturating_sub(before.received),
            waited: self.waited.saturating_sub(before.waited),
            late_ticks: self.late_ticks.saturating_sub(before.late_ticks),
            ticks: self.ticks.saturating_sub(before.ticks),
            cpu: Duration::from_micros(self.cpu_us.saturating_sub(before.cpu_us)),
            processors,
        }
    }
}

fn late_ticks(counters: &Counters) -> u64 {
    let in_time = counters.ticks.late.iter().filter(|(bound_us, _)| *bound_us <= LATE_TICK_US);
    let in_time: u64 = in_time.map(|(_, ticks)| ticks).sum();
    let late = counters.ticks.total().saturating_sub(in_time);
    late.saturating_add(counters.mixing.skipped_ticks)
}

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(1);
/// How long a loaded window counts.
const HELD_MS: u64 = 5_000;
/// Fewer late ones are ignored: a single pause of the system delays all packets of that moment.
const PARTS_MIN: u64 = 20;
/// A tick is late from this delay on.
const LATE_TICK_US: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Window = Window {
        length: Duration::from_secs(1),
        received: 10_000,
        waited: 0,
        late_ticks: 0,
        ticks: 500,
        cpu: Duration::from_millis(1_700),
        processors: 2,
    };

    #[test]
    fn a_window_is_loaded_by_late_packets_late_ticks_or_busy_processors() {
        for (name, window, loaded) in [
            ("nothing happens", Window::default(), false),
            ("busy and in time", QUIET, false),
            ("a few packets waited", Window { waited: 199, ..QUIET }, false),
            ("one in fifty waited", Window { waited: 200, ..QUIET }, true),
            ("all of a few waited", Window { received: 19, waited: 19, ..QUIET }, false),
            ("a few ticks are late", Window { ticks: 1_000, late_ticks: 19, ..QUIET }, false),
            ("ticks are late", Window { late_ticks: 20, ..QUIET }, true),
            ("processors are busy", Window { cpu: Duration::from_millis(1_800), ..QUIET }, true),
            (
                "no processors are known",
                Window { processors: 0, cpu: Duration::from_millis(899), ..QUIET },
                false,
            ),
        ] {
            assert_eq!(window.is_loaded(LoadLimits::default()), loaded, "{name}");
            assert!(!window.is_loaded(LoadLimits { cpu_pct: 0, late_pct: 0 }), "{name}, without limits");
        }
    }

    #[test]
    fn a_loaded_window_counts_for_five_seconds() {
        let start = instant();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let load = Load::new(LoadLimits::default(), start);
        assert!(!load.is_busy(at(0)));
        load.note(at(1_000), &QUIET);
        assert!(!load.is_busy(at(1_000)));
        load.note(at(2_000), &Window { waited: 5_000, ..QUIET });
        load.note(at(3_000), &QUIET);
        assert!(load.is_busy(at(2_000)) && load.is_busy(at(6_999)));
        assert!(!load.is_busy(at(7_000)));
        load.note(at(8_000), &Window { cpu: Duration::from_secs(2), ..QUIET });
        assert!(load.is_busy(at(8_001)) && !load.is_busy(at(13_000)));
    }
}
