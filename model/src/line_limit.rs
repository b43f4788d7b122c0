//! A limit on log lines that peers cause: one line a second for each source, and a maximum per second in
//! total.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::time::Timestamp;

/// Decides which lines are written, and counts the suppressed ones.
#[derive(Debug, Default)]
pub struct LineLimit {
    /// Sources with a line in the last seconds.
    sources: HashMap<IpAddr, Source>,
    second: i64,
    written: u32,
    /// Suppressed lines of sources that are not in the table.
    left_out: u64,
}

#[derive(Debug)]
struct Source {
    second: i64,
    left_out: u64,
}

impl LineLimit {
    /// Returns whether a line about `source` is written now, with the number of earlier lines that were
    /// suppressed, about this source or about sources without a line of their own.
    ///
    /// *Bounds*: [`LINES_PER_SECOND_MAX`] lines a second; a table of `SOURCES_MAX` sources.
    pub fn take(&mut self, now: Timestamp, source: IpAddr) -> Option<u64> {
        let second = now.as_micros().div_euclid(1_000_000);
        if second != self.second {
            (self.second, self.written) = (second, 0);
        }
        let source = network_of(source);
        let known = self.sources.get_mut(&source);
        if self.written >= LINES_PER_SECOND_MAX || known.as_ref().is_some_and(|known| known.second == second)
        {
            match known {
                Some(known) => known.left_out += 1,
                None => self.left_out += 1,
            }
            return None;
        }
        self.written += 1;
        let own = self.sources.remove(&source).map_or(0, |known| known.left_out);
        if self.sources.len() >= SOURCES_MAX {
            self.left_out += self.sources.drain().map(|(_, known)| known.left_out).sum::<u64>();
        }
        self.sources.insert(source, Source { second, left_out: 0 });
        Some(own + std::mem::take(&mut self.left_out))
    }
}

/// An IPv4 address, or the /64 of an IPv6 address.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
        v4 => v4,
    }
}

/// Lines a second over all sources.
pub const LINES_PER_SECOND_MAX: u32 = 20;
/// Sources in the table.
const SOURCES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_000_000 + ms * 1_000)
    }

    #[test]
    fn one_line_a_second_for_each_source_says_what_was_left_out() {
        let mut limit = LineLimit::default();
        let (here, there): (IpAddr, IpAddr) = ("2001:db8::1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let beside: IpAddr = "2001:db8::2".parse().unwrap();
        assert_eq!(limit.take(at(0), here), Some(0));
        assert_eq!(limit.take(at(10), there), Some(0));
        assert_eq!(limit.take(at(20), beside), None, "the same /64");
        assert_eq!(limit.take(at(999), here), None);
        assert_eq!(limit.take(at(1_000), here), Some(2));
        assert_eq!(limit.take(at(1_000), there), Some(0));
    }

    #[test]
    fn many_sources_write_few_lines_and_take_little_memory() {
        let mut limit = LineLimit::default();
        let mut written = 0;
        for number in 0..600_000_u32 {
            let source = IpAddr::V4((0x0A00_0000 + number).into());
            written += u32::from(limit.take(at(i64::from(number)), source).is_some());
        }
        assert_eq!(written, 600 * LINES_PER_SECOND_MAX);
        assert!(limit.sources.len() <= SOURCES_MAX);
        assert_eq!(limit.take(at(600_000), "192.0.2.1".parse().unwrap()), Some(980));
    }
}
