//! For how long a condition was true, on the leg's own time.

use crate::time::Micros;

/// A clock that starts and stops and keeps its total.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stopwatch {
    since: Option<Micros>,
    total_us: i64,
}

impl Stopwatch {
    /// Starts or stops the clock at `now`; does nothing when it is already in that state.
    pub(crate) fn set(&mut self, now: Micros, running: bool) {
        match (self.since, running) {
            (None, true) => self.since = Some(now),
            (Some(_), false) => {
                self.total_us = self.read(now);
                self.since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// When it was last started, while it runs.
    pub(crate) fn since(&self) -> Option<Micros> {
        self.since
    }

    /// The total running time, in microseconds.
    pub(crate) fn read(&self, now: Micros) -> i64 {
        let open_us = self.since.map_or(0, |since| now.since(since).max(0));
        self.total_us.saturating_add(open_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_time_counts() {
        let mut watch = Stopwatch::default();
        for (at, running) in [(10, false), (20, true), (30, true), (50, false), (60, false), (100, true)] {
            watch.set(Micros(at), running);
        }
        assert_eq!(watch.read(Micros(105)), 35);
        assert_eq!(watch.since(), Some(Micros(100)));
        assert_eq!(watch.read(Micros(90)), 30, "time that runs backwards does not count");
    }
}
