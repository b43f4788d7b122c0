//! The resource usage of a process, from `/proc`: memory, descriptors, processor time, sampled by a thread.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The resource usage of a process at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the sampler began.
    pub at: Duration,
    pub rss_kib: u64,
    pub virtual_kib: u64,
    pub fds: usize,
}

impl Sample {
    /// A sample of a process now; `None` when it has ended.
    pub fn of(pid: u32, at: Duration) -> Option<Sample> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Sample {
            at,
            rss_kib: kib("VmRSS:")?,
            virtual_kib: kib("VmSize:")?,
            fds: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count(),
        })
    }

    pub fn rss_mib(&self) -> f64 {
        self.rss_kib as f64 / 1024.0
    }
}

/// Processor time of a process since its start, user and system.
pub fn cpu(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces; it ends with the last parenthesis, and utime and stime are the 12th and 13th behind it.
    let behind = stat.rsplit_once(')')?.1;
    let ticks: u64 =
        behind.split_whitespace().skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum();
    let ticks_per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    Some(Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64))
}

/// A thread that samples a process twice a second.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    pub fn start(pid: u32) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (began, mut samples) = (Instant::now(), Vec::new());
            while !until.load(Ordering::Relaxed) {
                samples.extend(Sample::of(pid, began.elapsed()));
                std::thread::sleep(EVERY);
            }
            samples.extend(Sample::of(pid, began.elapsed()));
            samples
        });
        Sampler { stop, thread }
    }

    /// All samples.
    pub fn stop(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// The slope of the resident memory in MiB a second after `from`, by least squares; 0 with fewer than three samples.
pub fn slope_mib_per_s(samples: &[Sample], from: Duration) -> f64 {
    let points: Vec<(f64, f64)> = samples
        .iter()
        .filter(|sample| sample.at >= from)
        .map(|sample| (sample.at.as_secs_f64(), sample.rss_mib()))
        .collect();
    if points.len() < 3 {
        return 0.0;
    }
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
        (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
    });
    if below == 0.0 { 0.0 } else { above / below }
}

/// The largest resident memory of some samples, in MiB.
pub fn peak_mib(samples: &[Sample]) -> f64 {
    samples.iter().map(Sample::rss_mib).fold(0.0, f64::max)
}

const EVERY: Duration = Duration::from_millis(500);
