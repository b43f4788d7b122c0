//! Converts the sample rate of live PCM between 8, 16 and 48 kHz.
//!
//! A linear-phase low-pass of 24 taps per sample of the lower rate (Kaiser window, β 5.65: -60 dB), as a
//! polyphase filter. It is flat within 0.1 dB up to 0.42 of the lower rate, which is 3.4 kHz at 8 kHz, and
//! delays by 12 samples of the lower rate. Whole recordings are converted with another filter when they are
//! loaded.

/// Changes the rate of one stream.
///
/// *Bounds*: no allocation after [`Resampler::new`].
#[derive(Debug)]
pub struct Resampler {
    /// Samples of the input per filter step; 1 when the rate increases.
    down: usize,
    /// The taps of each phase in reverse order; one phase when the rate decreases.
    phases: Box<[f32]>,
    /// Earlier samples that the filter needs, followed by the block to process.
    window: Box<[f32]>,
    /// Position of the next output in the next block, when the rate decreases.
    skip: usize,
}

impl Resampler {
    /// A resampler from `from_hz` to `to_hz`; `None` when one rate is not a multiple of the other, up to six times.
    pub fn new(from_hz: u32, to_hz: u32) -> Option<Resampler> {
        let (low, high) = (from_hz.min(to_hz), from_hz.max(to_hz));
        if low == 0 || !high.is_multiple_of(low) || high / low > FACTOR_MAX {
            return None;
        }
        let factor = (high / low) as usize;
        let (up, down) = if to_hz > from_hz { (factor, 1) } else { (1, factor) };
        let phases = if factor == 1 { Box::default() } else { phases(up, down) };
        let window = if factor == 1 { 0 } else { TAPS * down - 1 + BLOCK };
        Some(Resampler { down, phases, window: vec![0.0; window].into_boxed_slice(), skip: 0 })
    }

    /// Resamples `input` into `output`; returns the number of samples written, at most the length of
    /// `output`.
    ///
    /// When the rate increases, the number is exact; when it decreases, it varies by one if `input` is not a
    /// multiple of the factor.
    pub fn process(&mut self, input: &[i16], output: &mut [i16]) -> usize {
        if self.phases.is_empty() {
            let count = input.len().min(output.len());
            output.iter_mut().zip(input).for_each(|(to, from)| *to = *from);
            return count;
        }
        let mut free = output.iter_mut();
        let mut written = 0;
        for block in input.chunks(BLOCK) {
            let past = TAPS * self.down - 1;
            if let Some(room) = self.window.get_mut(past..) {
                room.iter_mut().zip(block).for_each(|(to, from)| *to = f32::from(*from));
            }
            written += self.run(block.len(), &mut free);
            self.window.copy_within(block.len()..block.len() + past, 0);
        }
        written
    }

    /// Clears the history: the next sample follows silence.
    pub fn reset(&mut self) {
        self.window.fill(0.0);
        self.skip = 0;
    }

    fn run<'a>(&mut self, samples: usize, output: &mut impl Iterator<Item = &'a mut i16>) -> usize {
        let width = TAPS * self.down;
        let mut written = 0;
        let mut at = self.skip;
        while at < samples {
            let past = self.window.get(at..at + width).unwrap_or_default();
            for taps in self.phases.chunks_exact(width) {
                let Some(sample) = output.next() else { break };
                *sample = dot(taps, past).round_ties_even() as i16;
                written += 1;
            }
            at += self.down;
        }
        self.skip = at - samples;
        written
    }
}

/// The filter of `up · down`, by phase; a constant signal keeps its level in each phase.
fn phases(up: usize, down: usize) -> Box<[f32]> {
    let factor = up * down;
    let len = TAPS * factor;
    let middle = (len - 1) as f64 / 2.0;
    let tap = |n: usize| {
        let at = n as f64 - middle;
        sinc(at / factor as f64) * bessel(BETA * (1.0 - (at / (middle + 0.5)).powi(2)).sqrt())
    };
    let mut phases = Vec::with_capacity(len);
    for phase in 0..up {
        let taps: Vec<f64> = (0..len / up).rev().map(|n| tap(n * up + phase)).collect();
        let sum: f64 = taps.iter().sum();
        phases.extend(taps.iter().map(|tap| (tap / sum) as f32));
    }
    phases.into_boxed_slice()
}

fn sinc(x: f64) -> f64 {
    let x = std::f64::consts::PI * x;
    if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
}

/// The modified Bessel function of the first kind and order zero, for the Kaiser window.
fn bessel(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..24 {
        term *= (x / 2.0 / f64::from(k)).powi(2);
        sum += term;
    }
    sum
}

/// Eight sums in parallel, the width of a vector addition.
#[inline]
fn dot(taps: &[f32], past: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    for (taps, past) in taps.as_chunks::<8>().0.iter().zip(past.as_chunks::<8>().0) {
        for ((sum, tap), sample) in sums.iter_mut().zip(taps).zip(past) {
            *sum += tap * sample;
        }
    }
    sums.iter().sum()
}

/// Taps for each sample of the lower rate; a multiple of eight.
const TAPS: usize = 24;
/// 8 kHz to 48 kHz.
const FACTOR_MAX: u32 = 6;
/// Samples filtered at a time: 20 ms at 48 kHz.
const BLOCK: usize = 960;
/// The shape of the Kaiser window.
const BETA: f64 = 5.65;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level::{dbov, power};

    fn tone(hz: f64, rate: u32) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / f64::from(rate);
        (0..rate).map(|n| (16_000.0 * (step * f64::from(n)).sin()) as i16).collect()
    }

    fn resampled(pcm: &[i16], from: u32, to: u32, pieces: usize) -> Vec<i16> {
        let mut resampler = Resampler::new(from, to).unwrap();
        let mut out = Vec::new();
        for piece in pcm.chunks(pieces) {
            let mut room = vec![0; piece.len() * to as usize / from as usize + 2];
            let count = resampler.process(piece, &mut room);
            out.extend_from_slice(&room[..count]);
        }
        out
    }

    #[test]
    fn the_passband_is_flat_and_nothing_is_folded_into_it() {
        for (from, to) in [
            (8_000, 16_000),
            (8_000, 48_000),
            (16_000, 48_000),
            (16_000, 8_000),
            (48_000, 8_000),
            (48_000, 16_000),
        ] {
            let low = f64::from(from.min(to));
            for hz in [50.0, 300.0, 1_000.0, 0.3 * low, 0.425 * low] {
                let out = resampled(&tone(hz, from), from, to, 960);
                let off = dbov(power(&out[800..])).unwrap() - dbov(power(&tone(hz, from))).unwrap();
                assert!(off.abs() < 0.1, "{from} to {to}, {hz} Hz: {off:.3} dB");
            }
        }
        for (from, to) in [(16_000, 8_000), (48_000, 8_000), (48_000, 16_000)] {
            let out = resampled(&tone(0.6 * f64::from(to), from), from, to, 960);
            let left = dbov(power(&out[800..])).unwrap_or(-99.0) - dbov(power(&tone(1_000.0, from))).unwrap();
            assert!(left < -55.0, "{from} to {to}: {left:.1} dB");
        }
    }

    #[test]
    fn the_pieces_do_not_matter() {
        for (from, to) in [(8_000, 48_000), (48_000, 8_000), (16_000, 8_000), (8_000, 8_000)] {
            let pcm = tone(440.0, from);
            let whole = resampled(&pcm, from, to, pcm.len());
            assert_eq!(whole.len(), to as usize);
            for pieces in [1, 7, 160, 961] {
                assert!(resampled(&pcm, from, to, pieces) == whole, "{from} to {to} by {pieces}");
            }
        }
    }

    #[test]
    fn only_known_ratios_are_made_and_no_output_is_overrun() {
        assert!(Resampler::new(0, 8_000).is_none());
        assert!(Resampler::new(44_100, 48_000).is_none());
        assert!(Resampler::new(8_000, 96_000).is_none());
        let mut resampler = Resampler::new(8_000, 48_000).unwrap();
        assert_eq!(resampler.process(&[1; 10], &mut [0; 7]), 7);
        // The loudest square wave overshoots and must stay within 16 bits.
        let square: Vec<i16> = (0..800).map(|n| if n / 8 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        assert_eq!(resampler.process(&square, &mut [0; 4_800]), 4_800);
        resampler.reset();
        let mut out = [1; 12];
        resampler.process(&[0; 2], &mut out);
        assert_eq!(out, [0; 12]);
    }
}
