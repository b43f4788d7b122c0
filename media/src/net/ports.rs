//! Which port pairs of the configured range are free; a state machine without sockets.
//!
//! RTP uses the even port and RTCP the odd one above it (RFC 3550 §11). Pairs are taken in random order, so
//! that the next one cannot be guessed. A released pair rests before it is used again, so that late packets
//! of the old call are not heard in a new one.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::time::Micros;

/// How long a pair rests after its call.
pub(super) const REST_US: i64 = 5_000_000;

/// The pairs of a range: free, in use, or resting.
#[derive(Debug)]
pub(super) struct Ports {
    /// Free even ports, unordered.
    free: Vec<u16>,
    /// Resting even ports with the time at which they become free, oldest first.
    resting: VecDeque<(Micros, u16)>,
    random: SplitMix64,
    pairs: usize,
}

impl Ports {
    /// All complete pairs within `range`, all free; `seed` determines the order in which they are taken.
    pub(super) fn new(range: &RangeInclusive<u16>, seed: u64) -> Self {
        let free: Vec<u16> = range
            .clone()
            .filter(|port| {
                port % 2 == 0 && *port > 0 && port.checked_add(1).is_some_and(|odd| range.contains(&odd))
            })
            .collect();
        // Neither list grows beyond the number of pairs.
        Ports {
            resting: VecDeque::with_capacity(free.len()),
            random: SplitMix64(seed),
            pairs: free.len(),
            free,
        }
    }

    /// Takes a random free pair and returns its even port; `None` when every pair is in use or rests.
    pub(super) fn take(&mut self, now: Micros) -> Option<u16> {
        while let Some(&(free_at, port)) = self.resting.front() {
            if free_at > now {
                break;
            }
            self.resting.pop_front();
            self.free.push(port);
        }
        if self.free.is_empty() {
            return None;
        }
        let index = self.random.below(self.free.len());
        Some(self.free.swap_remove(index))
    }

    /// Releases a pair by its even port; it rests from `now` on.
    pub(super) fn release(&mut self, now: Micros, port: u16) {
        debug_assert!(self.free.len() + self.resting.len() < self.pairs, "a pair was given back twice");
        self.resting.push_back((now + REST_US, port));
    }

    /// How many pairs the range has.
    pub(super) fn pairs(&self) -> usize {
        self.pairs
    }
}

/// Random generator for the order of the ports (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014). Seeded by the caller; not for secrets.
#[derive(Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0. With at most 32,768 pairs the bias of the product is
    /// negligible.
    fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        (product >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn only_whole_pairs_are_given() {
        for (name, range, expected) in [
            ("even to odd", 10_000..=10_003, vec![10_000, 10_002]),
            ("odd start", 10_001..=10_005, vec![10_002, 10_004]),
            ("even end", 10_000..=10_002, vec![10_000]),
            ("one port", 10_000..=10_000, vec![]),
            ("one odd port", 10_001..=10_001, vec![]),
            ("the end of the number space", 65_532..=65_535, vec![65_532, 65_534]),
            ("never port 0", 0..=3, vec![2]),
        ] {
            let mut ports = Ports::new(&range, 1);
            let mut taken: Vec<u16> = std::iter::from_fn(|| ports.take(Micros(0))).collect();
            taken.sort_unstable();
            assert_eq!(taken, expected, "{name}");
            assert_eq!(ports.pairs(), expected.len(), "{name}");
        }
    }

    #[test]
    fn the_order_follows_the_seed() {
        let order = |seed| {
            let mut ports = Ports::new(&(20_000..=20_999), seed);
            std::iter::from_fn(move || ports.take(Micros(0))).collect::<Vec<u16>>()
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let ascending: Vec<u16> = (20_000..=20_999).step_by(2).collect();
        assert_ne!(order(7), ascending);
        assert_eq!(order(7).into_iter().collect::<HashSet<_>>().len(), 500);
    }

    #[test]
    fn a_pair_rests_for_five_seconds() {
        let mut ports = Ports::new(&(30_000..=30_003), 3);
        let first = ports.take(Micros(0)).unwrap();
        let second = ports.take(Micros(0)).unwrap();
        assert_eq!(ports.take(Micros(0)), None, "both in use");
        ports.release(Micros(1_000_000), first);
        ports.release(Micros(2_000_000), second);
        assert_eq!(ports.take(Micros(5_999_999)), None, "the first still rests");
        assert_eq!(ports.take(Micros(6_000_000)), Some(first));
        assert_eq!(ports.take(Micros(6_999_999)), None, "the second still rests");
        assert_eq!(ports.take(Micros(7_000_000)), Some(second));
    }

    #[test]
    fn ten_simulated_minutes_never_reuse_a_pair_early() {
        let mut ports = Ports::new(&(30_000..=30_099), 11);
        let mut choice = SplitMix64(5);
        let mut in_use: Vec<u16> = Vec::new();
        let mut released: std::collections::HashMap<u16, Micros> = std::collections::HashMap::new();
        let mut refused = 0;
        for step in 0..60_000 {
            let now = Micros(step * 10_000);
            if choice.below(2) == 0 {
                match ports.take(now) {
                    Some(port) => {
                        assert!(!in_use.contains(&port));
                        if let Some(at) = released.get(&port) {
                            assert!(
                                now.since(*at) >= REST_US,
                                "{port} was reused after {} us",
                                now.since(*at)
                            );
                        }
                        in_use.push(port);
                    }
                    None => refused += 1,
                }
            } else if !in_use.is_empty() {
                let port = in_use.swap_remove(choice.below(in_use.len()));
                released.insert(port, now);
                ports.release(now, port);
            }
        }
        assert!(refused > 0, "the range was never exhausted: the test proves too little");
    }
}
