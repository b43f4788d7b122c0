//! G.722 at 64 kbit/s (ITU-T G.722, mode 1): 16 kHz audio as two sub-bands, six bits of the lower and two of the upper.
//!
//! A quadrature mirror filter splits the bands (§3.1), each band is coded as an adaptive difference
//! ([`g722_band`](super::g722_band)), and one byte carries two samples.

use crate::codec::CodecError;
use crate::codec::g722_band::{Lower, Upper, saturate};

/// Decodes bytes to samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Decoder {
    lower: Lower,
    upper: Upper,
    mirror: Mirror,
}

impl Decoder {
    /// Decodes two samples per byte into `pcm`.
    pub(super) fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) {
        for (code, pair) in payload.iter().zip(pcm.as_chunks_mut::<2>().0) {
            let low = self.lower.decode(code & 0x3f);
            let high = self.upper.decode(code >> 6);
            *pair = self.mirror.join(low, high);
        }
    }
}

/// Encodes samples to bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    lower: Lower,
    upper: Upper,
    mirror: Mirror,
}

impl Encoder {
    /// Encodes two samples per byte; returns the number of bytes.
    pub(super) fn encode(&mut self, pcm: &[i16], payload: &mut [u8]) -> Result<usize, CodecError> {
        let (pairs, rest) = pcm.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(CodecError::Duration);
        }
        let room = payload.get_mut(..pairs.len()).ok_or(CodecError::Buffer)?;
        for (code, pair) in room.iter_mut().zip(pairs) {
            let (low, high) = self.mirror.part(*pair);
            *code = self.upper.encode(high) << 6 | self.lower.encode(low);
        }
        Ok(pairs.len())
    }
}

/// The quadrature mirror filter and its last 24 samples (§3.1, §4.4).
#[derive(Clone, Debug, Default)]
struct Mirror {
    past: [[i32; 2]; 12],
}

impl Mirror {
    /// Splits two samples into one of the lower and one of the upper band.
    fn part(&mut self, [first, second]: [i16; 2]) -> (i32, i32) {
        let (odd, even) = self.sums([i32::from(first), i32::from(second)]);
        ((even + odd) >> 14, (even - odd) >> 14)
    }

    /// Combines one sample of each band into two samples.
    fn join(&mut self, low: i32, high: i32) -> [i16; 2] {
        let (odd, even) = self.sums([low + high, low - high]);
        [even >> 11, odd >> 11].map(|sample| saturate(sample) as i16)
    }

    fn sums(&mut self, newest: [i32; 2]) -> (i32, i32) {
        self.past.copy_within(1.., 0);
        if let Some(last) = self.past.last_mut() {
            *last = newest;
        }
        let forward = self.past.iter().zip(COEFFICIENTS).map(|(pair, factor)| pair[0] * factor).sum();
        let backward =
            self.past.iter().zip(COEFFICIENTS.iter().rev()).map(|(pair, factor)| pair[1] * factor).sum();
        (forward, backward)
    }
}

/// Half of the mirror filter's symmetric impulse response (table 11).
const COEFFICIENTS: [i32; 12] = [3, -11, 12, 32, -210, 951, 3_876, -805, 362, -156, 53, -11];

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / 16_000.0;
        (0..16_000).map(|n| (10_000.0 * (step * f64::from(n)).sin()) as i16).collect()
    }

    fn through(pcm: &[i16]) -> Vec<i16> {
        let mut payload = vec![0; pcm.len() / 2];
        assert_eq!(Encoder::default().encode(pcm, &mut payload), Ok(pcm.len() / 2));
        let mut heard = vec![0; pcm.len()];
        Decoder::default().decode(&payload, &mut heard);
        heard
    }

    /// Signal-to-noise ratio in dB; the filters of both sides together delay by 22 samples.
    fn snr_db(said: &[i16], heard: &[i16]) -> f64 {
        let pairs = said[1_600..].iter().zip(&heard[1_622..]);
        let (signal, noise) = pairs.fold((0.0, 0.0), |(signal, noise), (said, heard)| {
            (signal + f64::from(*said).powi(2), noise + (f64::from(*said) - f64::from(*heard)).powi(2))
        });
        10.0 * (signal / noise).log10()
    }

    #[test]
    fn a_tone_survives_in_either_band() {
        for (hz, wanted_db) in
            [(200.0, 35.0), (1_000.0, 35.0), (3_000.0, 30.0), (5_000.0, 10.0), (6_500.0, 10.0)]
        {
            let said = tone(hz);
            let snr_db = snr_db(&said, &through(&said));
            assert!(snr_db > wanted_db, "{hz} Hz: {snr_db:.1} dB");
        }
    }

    #[test]
    fn silence_stays_silent_and_any_byte_is_decoded() {
        assert!(through(&[0; 3_200]).iter().all(|sample| sample.abs() < 8));
        let mut decoder = Decoder::default();
        let mut pcm = [0; 512];
        let every: Vec<u8> = (0..=255).collect();
        for _ in 0..50 {
            decoder.decode(&every, &mut pcm);
            decoder.decode(&[0; 256], &mut pcm);
            decoder.decode(&[0xff; 256], &mut pcm);
        }
        let mut encoder = Encoder::default();
        for extreme in [i16::MIN, i16::MAX, 0, i16::MIN] {
            assert_eq!(encoder.encode(&[extreme; 512], &mut [0; 256]), Ok(256));
        }
        assert_eq!(encoder.encode(&[0; 3], &mut [0; 8]), Err(CodecError::Duration));
        assert_eq!(encoder.encode(&[0; 4], &mut [0; 1]), Err(CodecError::Buffer));
    }
}
