//! Lengthens or shortens voice a little without changing its pitch: adds or removes one period, with a blend
//! where the signal is most similar to itself.

use std::ops::RangeInclusive;

use crate::audio::conceal::{mix, most_alike_ahead};

/// Removes one period from the first `filled` samples and returns its length in samples. At least `keep`
/// samples remain.
pub(super) fn shorten(pcm: &mut [i16], filled: usize, keep: usize, rate_hz: u32) -> usize {
    let Some(voice) = pcm.get_mut(..filled) else { return 0 };
    let longest = filled.saturating_sub(keep).min(filled / 2);
    let Some(period) = period(voice, longest, rate_hz) else { return 0 };
    // The first period is blended into the second; the samples after the second follow.
    for n in 0..period {
        let (Some(first), Some(second)) = (voice.get(n).copied(), voice.get(n + period).copied()) else {
            return 0;
        };
        voice.get_mut(n).into_iter().for_each(|sample| *sample = mix(first, second, n, period));
    }
    voice.copy_within(2 * period.., period);
    period
}

/// Adds one period to the first `filled` samples, if `pcm` has space for it; returns its length in samples.
pub(super) fn lengthen(pcm: &mut [i16], filled: usize, rate_hz: u32) -> usize {
    let longest = (filled / 2).min(pcm.len().saturating_sub(filled));
    let Some(period) = pcm.get(..filled).and_then(|voice| period(voice, longest, rate_hz)) else { return 0 };
    // After the first period comes the second, blended back into the first.
    pcm.copy_within(period..filled, 2 * period);
    for n in 0..period {
        let (Some(first), Some(second)) = (pcm.get(n).copied(), pcm.get(n + 2 * period).copied()) else {
            return 0;
        };
        pcm.get_mut(n + period).into_iter().for_each(|sample| *sample = mix(second, first, n, period));
    }
    period
}

/// The period at the start of `voice`; `None` when it is neither periodic nor quiet, because a blend would be
/// audible.
fn period(voice: &[i16], longest: usize, rate_hz: u32) -> Option<usize> {
    let ms = rate_hz as usize / 1_000;
    let lags: RangeInclusive<usize> = SHORTEST_MS * ms..=longest.min(LONGEST_MS * ms);
    if lags.is_empty() {
        return None;
    }
    let (lag, likeness, power) = most_alike_ahead(voice, LONGEST_MS * ms, lags);
    (likeness >= LIKENESS || power <= QUIET).then_some(lag)
}

/// Range of periods in milliseconds: voices, and lengths that blend well in other audio.
const SHORTEST_MS: usize = 3;
const LONGEST_MS: usize = 12;
/// Smallest similarity of two periods, at most 1.
const LIKENESS: f32 = 0.6;
/// The mean square below which a blend is inaudible: about -47 dBov.
const QUIET: f32 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate: u32, samples: usize) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / f64::from(rate);
        (0..samples).map(|n| (8_000.0 * (step * n as f64).sin()) as i16).collect()
    }

    /// The largest step between two samples; an audible seam would be larger.
    fn step(pcm: &[i16]) -> u16 {
        pcm.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap_or(0)
    }

    #[test]
    fn a_voice_becomes_longer_and_shorter_without_a_seam() {
        for rate in [8_000_u32, 16_000, 48_000] {
            for hz in [110.0, 200.0, 290.0] {
                let samples = rate as usize * 40 / 1_000;
                let mut pcm = tone(hz, rate, samples);
                let smooth = step(&pcm);
                pcm.resize(samples * 2, 0);
                let more = lengthen(&mut pcm, samples, rate);
                assert!(more >= rate as usize * 3 / 1_000, "{hz} at {rate}");
                assert!(step(&pcm[..samples + more]) <= smooth + smooth / 2, "{hz} at {rate}");
                let less = shorten(&mut pcm, samples + more, samples / 2, rate);
                assert!(less > 0);
                assert!(step(&pcm[..samples + more - less]) <= smooth + smooth / 2, "{hz} at {rate}");
            }
        }
    }

    #[test]
    fn what_is_too_short_or_too_wild_stays() {
        let mut noise = 1_u32;
        let mut wild: Vec<i16> = (0..320)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 16) as u16 as i16
            })
            .collect();
        assert_eq!(shorten(&mut wild, 320, 160, 8_000), 0);
        assert_eq!(lengthen(&mut wild.clone(), 320, 8_000), 0);
        let mut quiet = vec![0; 320];
        assert_eq!(shorten(&mut quiet, 320, 319, 8_000), 0);
        assert_eq!(shorten(&mut quiet, 20, 0, 8_000), 0);
        assert_eq!(shorten(&mut quiet, 999, 0, 8_000), 0);
        assert_eq!(lengthen(&mut quiet, 320, 8_000), 0);
        assert_eq!(lengthen(&mut quiet, 300, 8_000), 0);
        assert!(shorten(&mut quiet, 320, 160, 8_000) > 0);
    }
}
