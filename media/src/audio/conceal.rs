//! Conceals lost PCM: repeats the last pitch period and fades it out (after ITU-T G.711 Appendix I).
//!
//! Unlike the appendix, this code adds no delay. Instead, the end of a cycle is blended into its beginning,
//! and the first samples after the loss are blended with the continued repetition.

use std::ops::RangeInclusive;

/// The most recent PCM of one stream, and the state of the current loss.
#[derive(Debug)]
pub(crate) struct Concealer {
    /// Samples per sample at 8 kHz, the rate of the pitch search.
    scale: usize,
    /// The last [`HISTORY`] · `scale` samples; lost ones as concealed.
    history: Box<[i16]>,
    /// One pitch period whose end continues in its beginning without a step; the first `period` samples.
    cycle: Box<[i16]>,
    period: usize,
    /// Position of the next sample in the cycle.
    phase: usize,
    /// Samples concealed since the last received one.
    lost: usize,
}

impl Concealer {
    /// A concealer of PCM at `rate_hz`, a multiple of 8,000.
    pub(crate) fn new(rate_hz: u32) -> Self {
        let scale = (rate_hz / 8_000).max(1) as usize;
        Concealer {
            scale,
            history: vec![0; HISTORY * scale].into_boxed_slice(),
            cycle: vec![0; PERIOD_MAX * scale].into_boxed_slice(),
            period: 1,
            phase: 0,
            lost: 0,
        }
    }

    /// Adds received PCM, and blends its beginning with the concealment before it.
    pub(crate) fn heard(&mut self, pcm: &mut [i16]) {
        if self.lost > 0 {
            let blend = (BLEND * self.scale).min(pcm.len());
            for (n, sample) in pcm.iter_mut().take(blend).enumerate() {
                let fading = self.next();
                *sample = mix(fading, *sample, n, blend);
            }
            self.lost = 0;
        }
        self.remember(pcm);
    }

    /// Fills `pcm` with the repetition.
    pub(crate) fn lost(&mut self, pcm: &mut [i16]) {
        if self.lost == 0 {
            self.begin();
        }
        for sample in pcm.iter_mut() {
            *sample = self.next();
        }
        self.remember(pcm);
    }

    /// Finds the pitch of the latest received samples, and copies one period.
    fn begin(&mut self) {
        self.period = self.pitch();
        self.phase = 0;
        let (period, blend) = (self.period, self.period / 4);
        let end = self.history.len();
        let Some(last) = self.history.get(end - period..) else { return };
        let Some(cycle) = self.cycle.get_mut(..period) else { return };
        cycle.copy_from_slice(last);
        // The samples before the period lead into it: the end of the cycle is blended into them.
        let Some(before) = self.history.get(end - period - blend..end - period) else { return };
        for (n, (sample, lead)) in cycle.iter_mut().skip(period - blend).zip(before).enumerate() {
            *sample = mix(*sample, *lead, n, blend);
        }
    }

    /// The lag in samples at which the history is most similar to its end.
    fn pitch(&self) -> usize {
        let mut low = [0.0; HISTORY];
        for (sample, group) in low.iter_mut().zip(self.history.chunks_exact(self.scale)) {
            *sample = group.iter().map(|sample| f32::from(*sample)).sum();
        }
        let coarse = most_alike(&low, WINDOW, PERIOD_MIN..=PERIOD_MAX);
        if self.scale == 1 {
            return coarse;
        }
        // A second search around the coarse lag, at the full rate.
        let (lag, scale) = (coarse * self.scale, self.scale);
        most_alike(&self.history, WINDOW * scale, lag - scale + 1..=(lag + scale - 1).min(PERIOD_MAX * scale))
    }

    fn next(&mut self) -> i16 {
        let sample = self.cycle.get(self.phase).copied().unwrap_or_default();
        self.phase = (self.phase + 1) % self.period;
        let (full, silent) = (FADE_FROM * self.scale, FADE_TO * self.scale);
        let left = silent.saturating_sub(self.lost).min(silent - full);
        self.lost = self.lost.saturating_add(1);
        (i64::from(sample) * left as i64 / (silent - full) as i64) as i16
    }

    fn remember(&mut self, pcm: &[i16]) {
        let size = self.history.len();
        match pcm.len().checked_sub(size) {
            Some(over) => self.history.copy_from_slice(pcm.get(over..).unwrap_or_default()),
            None => {
                self.history.copy_within(pcm.len().., 0);
                let begin = size - pcm.len();
                if let Some(room) = self.history.get_mut(begin..) {
                    room.copy_from_slice(pcm);
                }
            }
        }
    }
}

/// The lag at which the last `window` samples are most similar to those before them; the shortest among
/// equals.
fn most_alike<T: Copy + Into<f32>>(history: &[T], window: usize, lags: RangeInclusive<usize>) -> usize {
    let begin = history.len().saturating_sub(window);
    let last = history.get(begin..).unwrap_or_default();
    let mut best = (*lags.start(), 0.0);
    for lag in lags {
        let past = begin.checked_sub(lag).and_then(|begin| history.get(begin..)).unwrap_or_default();
        let (product, energy) =
            last.iter().zip(past).fold((0.0_f32, 1.0_f32), |(product, energy), (now, then)| {
                let (now, then): (f32, f32) = ((*now).into(), (*then).into());
                (product + now * then, energy + then * then)
            });
        let likeness = product / energy.sqrt();
        if likeness > best.1 {
            best = (lag, likeness);
        }
    }
    best.0
}

/// The lag at which the beginning of `pcm` is most similar to the samples that follow it; also the similarity (one at
/// most) and the mean square.
pub(crate) fn most_alike_ahead(pcm: &[i16], window: usize, lags: RangeInclusive<usize>) -> (usize, f32, f32) {
    let window = window.min(pcm.len().saturating_sub(*lags.end()));
    let first = pcm.get(..window).unwrap_or_default();
    let energy: f32 = first.iter().map(|sample| f32::from(*sample).powi(2)).sum();
    let mut best = (*lags.start(), -1.0);
    for lag in lags {
        let second = pcm.get(lag..).unwrap_or_default();
        let (product, other) =
            first.iter().zip(second).fold((0.0_f32, 1.0_f32), |(product, other), (a, b)| {
                let (a, b) = (f32::from(*a), f32::from(*b));
                (product + a * b, other + b * b)
            });
        let likeness = product / ((energy + 1.0) * other).sqrt();
        if likeness > best.1 {
            best = (lag, likeness);
        }
    }
    (best.0, best.1, energy / window.max(1) as f32)
}

/// Linear interpolation from `from` to `to`: step `n` of `of`.
pub(crate) fn mix(from: i16, to: i16, n: usize, of: usize) -> i16 {
    let (n, of) = (n as i32 + 1, of as i32 + 1);
    ((i32::from(from) * (of - n) + i32::from(to) * n) / of) as i16
}

/// Pitch periods in samples at 8 kHz: 400 Hz to 66 Hz, and the window in which they are compared.
const PERIOD_MIN: usize = 20;
const PERIOD_MAX: usize = 120;
const WINDOW: usize = 160;
/// The history holds a window and the longest lag.
const HISTORY: usize = PERIOD_MAX + WINDOW;
/// Duration of the blend with received samples: 4 ms.
const BLEND: usize = 32;
/// The repetition fades from 10 ms to 60 ms.
const FADE_FROM: usize = 80;
const FADE_TO: usize = 480;

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate: u32, from: usize, samples: usize) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / f64::from(rate);
        (from..from + samples).map(|n| (8_000.0 * (step * n as f64).sin()) as i16).collect()
    }

    #[test]
    fn a_periodic_sound_goes_on_and_fades_within_60_ms() {
        for rate in [8_000_u32, 16_000, 48_000] {
            for hz in [100.0, 160.0, 333.0] {
                let ms = rate as usize / 1_000;
                let mut concealer = Concealer::new(rate);
                concealer.heard(&mut tone(hz, rate, 0, 60 * ms));
                let mut pcm = vec![0; 10 * ms];
                concealer.lost(&mut pcm);
                let wanted = tone(hz, rate, 60 * ms, 10 * ms);
                let noise: f64 = pcm.iter().zip(&wanted).map(|(a, b)| f64::from(*a - *b).powi(2)).sum();
                let signal: f64 = wanted.iter().map(|sample| f64::from(*sample).powi(2)).sum();
                let snr_db = 10.0 * (signal / noise).log10();
                assert!(snr_db > 12.0, "{hz} Hz at {rate}: {snr_db:.1} dB");
                let mut rest = vec![1; 70 * ms];
                concealer.lost(&mut rest);
                assert!(rest[51 * ms..].iter().all(|sample| *sample == 0));
            }
        }
    }

    #[test]
    fn nothing_steps_where_a_loss_begins_and_ends() {
        let mut concealer = Concealer::new(8_000);
        let mut heard = tone(150.0, 8_000, 0, 480);
        for n in 3..30 {
            let mut pcm = tone(150.0, 8_000, n * 160, 160);
            if n % 7 == 0 {
                concealer.lost(&mut pcm)
            } else {
                concealer.heard(&mut pcm)
            }
            heard.extend(pcm);
        }
        let step = heard.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap();
        // A 150 Hz sine with peak 8,000 changes by at most 942 per sample.
        assert!(step < 2_400, "{step}");
    }

    #[test]
    fn silence_and_short_frames_are_no_danger() {
        let mut concealer = Concealer::new(16_000);
        let mut pcm = [1; 7];
        concealer.lost(&mut pcm);
        assert_eq!(pcm, [0; 7]);
        concealer.heard(&mut [i16::MIN; 3]);
        concealer.lost(&mut [0; 2_000]);
        concealer.heard(&mut []);
        concealer.heard(&mut vec![i16::MAX; 9_000]);
        concealer.lost(&mut pcm);
    }
}
