//! Comfort noise: low and without a pitch, at the level that the party sends (RFC 3389).

use crate::audio::level::power_at_dbov;

/// Noise of one level.
#[derive(Debug)]
pub(super) struct Noise {
    state: u64,
    peak: i32,
    before: i32,
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Noise { state: seed | 1, peak: 0, before: 0 }
    }

    /// Sets the level from a payload of comfort noise (RFC 3389 §3.1): its first byte, in -dBov.
    pub(super) fn set_level(&mut self, payload: &[u8]) {
        let level_dbov = -f64::from(payload.first().map_or(LEVEL, |level| level & 0x7f).max(LOUDEST));
        // The power of uniform noise is a third of its squared peak; the filter halves the power.
        self.peak = ((power_at_dbov(level_dbov) * 6) as f64).sqrt() as i32;
    }

    /// Fills `pcm`.
    pub(super) fn fill(&mut self, pcm: &mut [i16]) {
        for sample in pcm {
            self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let white = (self.state >> 48) as i32 * 2 - 65_535;
            let now = white * self.peak / 65_536;
            *sample = ((now + self.before) / 2) as i16;
            self.before = now;
        }
    }
}

/// The level when the party sends none: that of a quiet room.
const LEVEL: u8 = 70;
/// The highest level, whatever the party sends.
const LOUDEST: u8 = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level::{dbov, power};

    #[test]
    fn noise_is_as_loud_as_it_says() {
        for (payload, level_dbov) in
            [(&[40_u8][..], -40.0), (&[55, 1, 2], -55.0), (&[0], -30.0), (&[0xff], -90.0), (&[], -70.0)]
        {
            let mut noise = Noise::new(3);
            noise.set_level(payload);
            let mut pcm = [0; 8_000];
            noise.fill(&mut pcm);
            let level = dbov(power(&pcm)).unwrap_or(-90.0);
            assert!((level - level_dbov).abs() < 2.0 || level <= -72.0, "{payload:?}: {level:.1}");
        }
    }
}
