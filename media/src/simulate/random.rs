//! A small seeded generator: xoshiro256++ (Blackman and Vigna), seeded by SplitMix64.
//!
//! It makes scenarios repeatable on every machine; it is not for secrets.

/// A pseudo-random generator whose sequence follows from its seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Random {
            state: std::array::from_fn(|_| {
                x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = x;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }),
        }
    }

    /// The generator for one purpose: draws for `purpose` never affect those for another.
    pub fn for_purpose(seed: u64, purpose: &str) -> Self {
        // FNV-1a mixes the name into the seed.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Random::new(seed ^ hash)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }

    /// A number of `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of `low..high`; `low` when the range is empty.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low).max(0.0) * self.unit()
    }

    /// An integer of `low..=high`; `low` when the range is empty.
    pub fn integer(&mut self, low: u32, high: u32) -> u32 {
        let span = u64::from(high.saturating_sub(low)) + 1;
        low + (self.bits() % span) as u32
    }

    /// A normally distributed number (Box and Muller).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        mean + deviation * radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// An exponentially distributed number.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// True once in `100 / percent` draws.
    pub fn percent(&mut self, percent: f64) -> bool {
        self.unit() * 100.0 < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_ne!(Random::for_purpose(1, "loss").bits(), Random::for_purpose(1, "delay").bits());
    }

    #[test]
    fn distributions_have_their_mean_and_range() {
        let mut random = Random::new(42);
        let mut mean = |draw: &mut dyn FnMut(&mut Random) -> f64| {
            (0..20_000).map(|_| draw(&mut random)).sum::<f64>() / 20_000.0
        };
        let cases = [
            ("uniform", mean(&mut |r| r.uniform(10.0, 30.0)), 20.0),
            ("integer", mean(&mut |r| f64::from(r.integer(3, 7))), 5.0),
            ("normal", mean(&mut |r| r.normal(100.0, 40.0)), 100.0),
            ("exponential", mean(&mut |r| r.exponential(20.0)), 20.0),
            ("percent", mean(&mut |r| f64::from(u8::from(r.percent(5.0)))) * 100.0, 5.0),
        ];
        for (name, mean, expected) in cases {
            assert!((mean - expected).abs() < expected * 0.1, "{name}: {mean}");
        }
        assert_eq!(Random::new(1).integer(9, 3), 9);
    }
}
