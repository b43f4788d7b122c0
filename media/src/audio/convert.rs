//! Converts the sample rate of a complete recording when it is loaded: exact ratios, long filters.
//!
//! Live audio is resampled in [`resample`](super::resample), with a filter of short delay.

/// The audio converted to `to_hz`. Both rates must be above zero.
pub(super) fn to_rate(samples: Vec<i16>, from_hz: u32, to_hz: u32) -> Vec<i16> {
    if from_hz == to_hz || samples.is_empty() {
        return samples;
    }
    let common = gcd(from_hz, to_hz);
    let (up, down) = ((to_hz / common) as usize, (from_hz / common) as usize);
    let filter = Filter::new(up, down);
    let len = (samples.len() as u64 * up as u64).div_ceil(down as u64) as usize;
    (0..len).map(|n| filter.sample(&samples, n * down)).collect()
}

/// A windowed sinc in its `up` phases; the cutoff is a little below the lower of the two Nyquist frequencies.
struct Filter {
    up: usize,
    /// Taps on each side of the centre.
    half: usize,
    /// `2 · half` taps of each phase.
    taps: Vec<f32>,
}

impl Filter {
    fn new(up: usize, down: usize) -> Filter {
        let cutoff = CUTOFF * (up as f64 / down as f64).min(1.0);
        let half = (f64::from(ZEROS) / cutoff).ceil() as usize;
        let mut taps = Vec::with_capacity(up * half * 2);
        for phase in 0..up {
            let shift = phase as f64 / up as f64;
            let begin = taps.len();
            for tap in 0..2 * half {
                let at = tap as f64 - (half as f64 - 1.0) - shift;
                taps.push((cutoff * sinc(cutoff * at) * window(at / half as f64)) as f32);
            }
            // Normalised, so that a constant signal keeps its level.
            let phase = taps.get_mut(begin..).unwrap_or_default();
            let sum: f32 = phase.iter().sum();
            phase.iter_mut().for_each(|tap| *tap /= sum);
        }
        Filter { up, half, taps }
    }

    /// The sample at position `at / up` of the source.
    fn sample(&self, samples: &[i16], at: usize) -> i16 {
        let (middle, phase) = (at / self.up, at % self.up);
        let width = 2 * self.half;
        let taps = self.taps.get(phase * width..(phase + 1) * width).unwrap_or_default();
        // Silence before the beginning and after the end.
        let skipped = (self.half - 1).saturating_sub(middle);
        let begin = (middle + skipped + 1).saturating_sub(self.half);
        let sources = samples.get(begin..).unwrap_or_default();
        let sum: f32 =
            taps.iter().skip(skipped).zip(sources).map(|(tap, sample)| tap * f32::from(*sample)).sum();
        // A cast from a float saturates.
        sum.round() as i16
    }
}

fn sinc(x: f64) -> f64 {
    let x = std::f64::consts::PI * x;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// Blackman's window over -1 to 1.
fn window(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return 0.0;
    }
    let x = std::f64::consts::PI * x;
    0.42 + 0.5 * x.cos() + 0.08 * (2.0 * x).cos()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Relative to the lower Nyquist frequency.
const CUTOFF: f64 = 0.92;
/// Zero crossings of the sinc on each side: aliasing is more than 70 dB down.
const ZEROS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate_hz: u32, len: usize) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / f64::from(rate_hz);
        (0..len).map(|n| (10_000.0 * (step * n as f64).sin()).round() as i16).collect()
    }

    /// Energy of the difference relative to the wanted energy, in decibels.
    fn error_db(heard: &[i16], wanted: &[i16]) -> f64 {
        let power = |samples: &mut dyn Iterator<Item = f64>| samples.map(|s| s * s).sum::<f64>();
        let off = power(&mut heard.iter().zip(wanted).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        10.0 * (off / power(&mut wanted.iter().map(|s| f64::from(*s)))).log10()
    }

    #[test]
    fn a_tone_stays_the_tone_at_every_usual_rate() {
        for from_hz in [8_000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000, 8_001] {
            let from = tone(1_000.0, from_hz, from_hz as usize / 5);
            let heard = to_rate(from, from_hz, 16_000);
            let wanted = tone(1_000.0, 16_000, 3_200);
            assert!((3_199..=3_201).contains(&heard.len()), "{from_hz} Hz: {}", heard.len());
            // The filter needs its own length at both ends.
            let off = error_db(&heard[400..2_800], &wanted[400..2_800]);
            assert!(off < -60.0, "{from_hz} Hz: {off} dB");
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_does_not_fold_back() {
        let heard = to_rate(tone(9_500.0, 48_000, 48_000), 48_000, 16_000);
        let loudest = heard[400..15_600].iter().map(|s| s.unsigned_abs()).max().unwrap();
        assert!(loudest < 10, "{loudest} of 10,000");
    }

    #[test]
    fn the_shortest_and_the_loudest() {
        assert!(to_rate(Vec::new(), 8_000, 16_000).is_empty());
        assert_eq!(to_rate(vec![7], 48_000, 16_000).len(), 1);
        assert_eq!(to_rate(vec![1, 2, 3], 16_000, 16_000), [1, 2, 3]);
        let loud = to_rate([i16::MAX, i16::MIN].repeat(400), 8_000, 16_000);
        assert_eq!(loud.len(), 1_600);
    }
}
