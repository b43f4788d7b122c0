//! Resource usage of a process: processor time, also per thread, memory and context switches, from `/proc` (proc(5)).

use std::collections::BTreeMap;
use std::fs;

use nix::unistd::{SysconfVar, sysconf};

use crate::program::drops::dropped_datagrams;
use crate::program::error::LoadError;
use crate::program::report::Report;

/// The processes that are watched; several count as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pids: Vec<u32>,
    ticks_per_second: f64,
}

/// The total usage of the processes so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    cpu_ms: f64,
    /// Processor time by the name of the thread.
    threads: BTreeMap<String, f64>,
    rss_kib: f64,
    voluntary: u64,
    involuntary: u64,
    /// Datagrams that arrived when the buffer of a socket was full.
    dropped: u64,
}

impl Watch {
    /// Watches processes by number, and those of a name.
    ///
    /// # Errors
    /// One of them does not run.
    pub(crate) fn find(pids: &[u32], name: Option<&str>) -> Result<Watch, LoadError> {
        let mut pids = pids.to_vec();
        if let Some(name) = name {
            let named = named(name);
            if named.is_empty() {
                return Err(LoadError::Process(format!("none is called {name}")));
            }
            pids.extend(named);
        }
        if let Some(pid) = pids.iter().find(|pid| read(**pid, "stat").is_none()) {
            return Err(LoadError::Process(format!("{pid} does not run")));
        }
        let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        Ok(Watch { pids, ticks_per_second: ticks as f64 })
    }

    /// Whether no process is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    /// Reads only the resident memory.
    pub(crate) fn rss_kib(&self) -> f64 {
        self.pids.iter().map(|pid| rss_kib(*pid)).sum()
    }

    /// Reads the total usage of the processes so far. An ended process counts as zero.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage { dropped: dropped_datagrams(&self.pids), ..Usage::default() };
        for pid in &self.pids {
            let ms = |ticks: u64| ticks as f64 * 1_000.0 / self.ticks_per_second;
            usage.cpu_ms += read(*pid, "stat").and_then(|stat| Some(ms(stat_of(&stat)?.1))).unwrap_or(0.0);
            usage.rss_kib += rss_kib(*pid);
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            for task in tasks.filter_map(|task| task.file_name().into_string().ok()) {
                if let Some((name, ticks)) =
                    read(*pid, &format!("task/{task}/stat")).and_then(|stat| stat_of(&stat))
                {
                    *usage.threads.entry(name).or_default() += ms(ticks);
                }
                let status = read(*pid, &format!("task/{task}/status")).unwrap_or_default();
                usage.voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
                usage.involuntary += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
            }
        }
        usage
    }
}

impl Usage {
    /// Returns the resident memory.
    pub(crate) fn rss_kib(&self) -> f64 {
        self.rss_kib
    }

    /// Writes the usage between two readings into a report: in total, for each of the `count` pieces of `unit`, and per
    /// thread. `scale` is the number of `shown` in a millisecond.
    pub(crate) fn report_since(&self, before: &Usage, report: &mut Report, per: &Per<'_>) {
        let cpu_ms = self.cpu_ms - before.cpu_ms;
        report.number("CPU time", cpu_ms / 1_000.0, "s");
        let each = |ms: f64| ms * per.scale / per.count.max(1) as f64;
        if per.count > 0 {
            report.number(&format!("CPU per {}", per.unit), each(cpu_ms), per.shown);
        }
        let mut threads: Vec<(&String, f64)> = self
            .threads
            .iter()
            .map(|(name, ms)| (name, ms - before.threads.get(name).copied().unwrap_or(0.0)))
            .filter(|(_, ms)| *ms > 0.0)
            .collect();
        threads.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (name, ms) in threads {
            report.number(&format!("CPU per {} in thread {name}", per.unit), each(ms), per.shown);
        }
        report.number("resident memory before", before.rss_kib / 1_024.0, "MiB");
        report.number("resident memory after", self.rss_kib / 1_024.0, "MiB");
        report.count("datagrams dropped at its sockets", self.dropped.saturating_sub(before.dropped));
        report.count("context switches, voluntary", self.voluntary.saturating_sub(before.voluntary));
        report.count("context switches, involuntary", self.involuntary.saturating_sub(before.involuntary));
    }
}

/// The unit of work of a report.
pub(crate) struct Per<'a> {
    /// The name of the unit.
    pub(crate) unit: &'a str,
    /// The number of units.
    pub(crate) count: u64,
    /// The number of `shown` in a millisecond.
    pub(crate) scale: f64,
    /// The unit of time.
    pub(crate) shown: &'a str,
}

fn rss_kib(pid: u32) -> f64 {
    read(pid, "status").and_then(|status| field(&status, "VmRSS:")).unwrap_or(0) as f64
}

fn named(name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> =
        pids.filter(|pid| read(*pid, "comm").is_some_and(|comm| comm.trim_end() == name)).collect();
    pids.sort_unstable();
    pids
}

fn read(pid: u32, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

/// The name and the ticks in user and system mode of a `stat` line. The name may hold spaces and brackets.
fn stat_of(stat: &str) -> Option<(String, u64)> {
    let (front, rest) = stat.rsplit_once(')')?;
    let (_, name) = front.split_once('(')?;
    // Fields 14 and 15; `rest` begins with field 3.
    let mut fields = rest.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((name.to_owned(), user + system))
}

/// The number after a name in a `status` file.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_and_status_are_read_as_documented() {
        let stat = "42 (rtp (0) worker) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 3 0 99 1024 256";
        assert_eq!(stat_of(stat), Some(("rtp (0) worker".to_owned(), 200)));
        assert_eq!(stat_of("42 (short) S 1"), None);
        let status =
            "Name:\tx\nVmRSS:\t   2048 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "VmRSS:"), Some(2_048));
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(7));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), Some(3));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_is_found_and_missing_ones_are_errors() {
        let own = std::process::id();
        let comm = read(own, "comm").unwrap();
        assert!(named(comm.trim_end()).contains(&own));
        let usage = Watch::find(&[own], None).unwrap().usage();
        assert!(usage.rss_kib() > 100.0 && !usage.threads.is_empty(), "{usage:?}");
        assert!(Watch::find(&[u32::MAX], None).is_err());
        assert!(Watch::find(&[], Some("no process has this name")).is_err());
        assert!(Watch::find(&[], None).unwrap().is_empty());
    }

    #[test]
    fn a_report_divides_by_the_units_of_work() {
        let usage = |cpu_ms, voluntary| Usage {
            cpu_ms,
            threads: BTreeMap::from([("sip".to_owned(), cpu_ms / 2.0), ("idle".to_owned(), 5.0)]),
            rss_kib: 2_048.0,
            voluntary,
            involuntary: 1,
            dropped: 0,
        };
        let mut report = Report::new("calls");
        let per = Per { unit: "call", count: 100, scale: 1.0, shown: "ms" };
        usage(300.0, 9).report_since(&usage(100.0, 4), &mut report, &per);
        assert_eq!(report.value("CPU per call [ms]"), Some(&2.0.into()));
        assert_eq!(report.value("CPU per call in thread sip [ms]"), Some(&1.0.into()));
        assert_eq!(report.value("CPU per call in thread idle [ms]"), None);
        assert_eq!(report.value("context switches, voluntary"), Some(&5.into()));
    }
}
