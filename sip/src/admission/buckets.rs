//! Token buckets, each stored as a single time (the generic cell rate algorithm, ITU-T I.371 Annex A).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Events per second in the long run, at least one.
    pub per_second: u32,
    /// Maximum number of events at one instant, at least one.
    pub burst: u32,
}

/// One bucket.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    /// The time up to which the bucket is used; `None` when it is full.
    paid: Option<Instant>,
}

/// Buckets for any number of keys, in a table of fixed size.
///
/// Each key has two cells, chosen with a secret, and is admitted while one of them has tokens left. Other
/// keys can block a key only by emptying both of its cells: a flood from 1,000 sources empties 2,000 of
/// 65,536 cells, and with them both cells of one other source in 1,000. An attacker cannot choose keys that
/// hit a given source, and gains nothing from new keys.
#[derive(Debug)]
pub struct Buckets {
    rate: Rate,
    secret: [u64; 2],
    epoch: Instant,
    /// The time up to which each cell is used, in nanoseconds since the epoch. The length is a power of two.
    cells: Box<[u64]>,
}

impl Rate {
    /// A rate; both numbers are raised to at least one.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Rate { per_second: per_second.max(1), burst: burst.max(1) }
    }

    fn interval(self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }

    /// How far in the future the used time of a bucket may be while it still has tokens.
    fn slack(self) -> Duration {
        self.interval() * self.burst.saturating_sub(1)
    }
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate) -> Self {
        Bucket { rate, paid: None }
    }

    /// Whether tokens are left.
    pub fn is_open(&self, now: Instant) -> bool {
        self.paid.is_none_or(|paid| paid.saturating_duration_since(now) <= self.rate.slack())
    }

    /// Whether more than a quarter of the tokens is left.
    pub fn is_well_filled(&self, now: Instant) -> bool {
        let most = self.rate.slack() * 3 / 4;
        self.paid.is_none_or(|paid| paid.saturating_duration_since(now) <= most)
    }

    /// Takes a token; false when none is left.
    pub fn take(&mut self, now: Instant) -> bool {
        let is_open = self.is_open(now);
        if is_open {
            self.paid = Some(self.paid.map_or(now, |paid| paid.max(now)) + self.rate.interval());
        }
        is_open
    }
}

impl Buckets {
    /// Full buckets in `2^bits` cells, at most 24 bits. `epoch` is any time not after the first use.
    pub fn new(rate: Rate, bits: u32, epoch: Instant, rng: &mut StdRng) -> Self {
        let cells = vec![0; 1 << bits.min(24)].into_boxed_slice();
        Buckets { rate, secret: [rng.random(), rng.random()], epoch, cells }
    }

    /// Whether a key has more than half of its burst left, that is, has not sent much lately.
    pub fn is_fresh(&self, now: Instant, key: impl Hash) -> bool {
        let now = nanos(now.saturating_duration_since(self.epoch));
        let most = nanos(self.rate.slack() / 2);
        let paid = |place: usize| self.cells.get(place).copied().unwrap_or_default();
        self.places(key).into_iter().any(|place| paid(place).saturating_sub(now) <= most)
    }

    /// Takes a token of a key; false when none is left.
    pub fn take(&mut self, now: Instant, key: impl Hash) -> bool {
        let now = nanos(now.saturating_duration_since(self.epoch));
        let (interval, slack) = (nanos(self.rate.interval()), nanos(self.rate.slack()));
        let mut taken = false;
        for place in self.places(key) {
            if let Some(paid) = self.cells.get_mut(place)
                && paid.saturating_sub(now) <= slack
            {
                *paid = (*paid).max(now).saturating_add(interval);
                taken = true;
            }
        }
        taken
    }

    /// The two cells of a key; they may be the same.
    fn places(&self, key: impl Hash) -> [usize; 2] {
        // SipHash with the secret before the key: without the secret it is unknown which keys share cells.
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let mask = self.cells.len().saturating_sub(1) as u64;
        [hash & mask, (hash >> 32) & mask].map(|place| usize::try_from(place).unwrap_or_default())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::transaction::ladder::start;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let zero = start();
        let mut bucket = Bucket::new(Rate::new(10, 5));
        let taken = |bucket: &mut Bucket, ms| {
            (0..100).filter(|_| bucket.take(zero + Duration::from_millis(ms))).count()
        };
        for (ms, expected) in [(0, 5), (99, 0), (100, 1), (250, 1), (400, 2), (60_000, 5)] {
            assert_eq!(taken(&mut bucket, ms), expected, "{ms} ms");
        }
    }

    #[test]
    fn each_key_has_its_own_and_the_table_never_grows() {
        let zero = start();
        let mut rng = StdRng::seed_from_u64(1);
        let mut buckets = Buckets::new(Rate::new(30, 60), 16, zero, &mut rng);
        // 1,000 sources take all their tokens for ten seconds.
        let mut given = 0;
        for ms in (0..10_000).step_by(10) {
            let now = zero + Duration::from_millis(ms);
            given += (0..1_000).filter(|source| buckets.take(now, (1, source))).count();
        }
        assert!((350_000..=366_000).contains(&given), "60 at once and 30 a second each: {given}");
        // Of 1,000 other sources, the first request of each is admitted, except where both cells are empty.
        let now = zero + Duration::from_secs(10);
        let starved = (0..1_000).filter(|source| !buckets.take(now, (2, source))).count();
        assert!(starved <= 5, "{starved}");
        assert_eq!(buckets.cells.len(), 65_536);
    }
}
