//! The level of PCM.
//!
//! dBov is relative to the largest square wave in 16 bits (RFC 6465). 0 dBm0 is the level of a sine 3.14 dB
//! below the largest one in G.711 (ITU-T G.711 §5), which is -6.15 dBov.

/// The mean square of the samples; zero without samples.
#[inline]
pub fn power(pcm: &[i16]) -> u64 {
    let sum: u64 = pcm.iter().map(|sample| u64::from(sample.unsigned_abs()).pow(2)).sum();
    sum / u64::try_from(pcm.len().max(1)).unwrap_or(u64::MAX)
}

/// The level of a mean square in dBov, 0 and below; `None` for digital silence.
pub fn dbov(power: u64) -> Option<f64> {
    (power > 0).then(|| 10.0 * (power as f64 / FULL_POWER).log10())
}

/// The level of a mean square in dBm0; `None` for digital silence.
pub fn dbm0(power: u64) -> Option<f64> {
    dbov(power).map(|level| level - DBM0_IN_DBOV)
}

/// The mean square at `level_dbov`: thresholds compare mean squares, so that no frame needs a logarithm.
pub fn power_at_dbov(level_dbov: f64) -> u64 {
    (FULL_POWER * 10_f64.powf(level_dbov / 10.0)) as u64
}

/// The mean square of a square wave of 32,768.
const FULL_POWER: f64 = 32_768.0 * 32_768.0;
/// 0 dBm0 in dBov.
const DBM0_IN_DBOV: f64 = -6.15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_known_waves() {
        let sine = |peak: f64| -> Vec<i16> {
            (0..800).map(|n| (peak * (std::f64::consts::TAU * f64::from(n) / 80.0).sin()) as i16).collect()
        };
        let near = |level: Option<f64>, wanted: f64| (level.unwrap() - wanted).abs() < 0.02;
        assert!(near(dbov(power(&[-32_768; 160])), 0.0));
        assert!(near(dbov(power(&sine(32_767.0))), -3.01));
        assert!(near(dbm0(power(&sine(32_767.0))), 3.135));
        assert!(near(dbov(power(&sine(3_276.7))), -23.01));
        assert_eq!((dbov(power(&[])), dbm0(power(&[0; 160]))), (None, None));
        assert!(power_at_dbov(-50.0).abs_diff(10_737) <= 1);
    }
}
