//! Measures the level of payloads without decoding them, so that only talking parties cost a decoding.

use crate::codec::Codec;
use crate::codec::g722_band::Scale;

/// Measures one stream's payloads, decoded or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// The scale to which G.722's lower band adapts its quantiser; it follows from the codes.
    scale: Scale,
}

impl Meter {
    /// An estimate of the mean square of the payload's samples; `None` when it needs decoding.
    ///
    /// For G.711 and L16 some of the samples are measured. For G.722 the quantiser's scale gives the level of
    /// the prediction error: speech is estimated within about 10 dB, and silence as silence.
    pub fn power(&mut self, codec: Codec, payload: &[u8]) -> Option<u64> {
        match codec {
            Codec::G722 => Some(self.scale.power(payload)),
            _ => codec.power(payload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level::{dbov, power};
    use crate::codec::Encoder;

    /// A voice of harmonics with some noise, in packets of 20 ms.
    fn voice(rate: u32, peak: f64) -> Vec<i16> {
        let mut noise = 1_u32;
        let sample = |n: u32| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = std::f64::consts::TAU * f64::from(n) / f64::from(rate);
            let harmonics: f64 = (1..20).map(|k| (at * 130.0 * f64::from(k)).sin() / f64::from(k)).sum();
            (peak * (0.5 * harmonics + f64::from(noise >> 16) / 65_536.0 / 10.0)) as i16
        };
        (0..rate).map(sample).collect()
    }

    #[test]
    fn payloads_are_as_loud_as_what_they_carry() {
        let l16 = Codec::L16 { rate_hz: 48_000, channels: 2 };
        for (codec, within_db) in [(Codec::Pcmu, 3.0), (Codec::Pcma, 3.0), (l16, 3.0), (Codec::G722, 12.0)] {
            for peak in [16_000.0, 3_000.0, 500.0, 60.0] {
                let pcm = voice(codec.sample_rate_hz(), peak);
                let wanted_db = dbov(power(&pcm)).unwrap();
                let mut encoder = Encoder::new(codec).unwrap();
                let mut meter = Meter::default();
                for (n, frame) in pcm.chunks_exact(codec.sample_rate_hz() as usize / 50).enumerate() {
                    let mut payload = [0; 4_000];
                    let size = encoder.encode(frame, &mut payload).unwrap();
                    let level_db = dbov(meter.power(codec, &payload[..size]).unwrap()).unwrap();
                    let off = (level_db - wanted_db).abs();
                    assert!(n < 5 || off < within_db, "{codec:?} {wanted_db:.1} in {n}: {level_db:.1}");
                }
            }
        }
    }

    #[test]
    fn silence_is_silent() {
        for codec in [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::L16 { rate_hz: 8_000, channels: 1 }] {
            let mut encoder = Encoder::new(codec).unwrap();
            let mut meter = Meter::default();
            let frame = vec![0; codec.sample_rate_hz() as usize / 50];
            for _ in 0..10 {
                let mut payload = [0; 4_000];
                let size = encoder.encode(&frame, &mut payload).unwrap();
                let power = meter.power(codec, &payload[..size]).unwrap();
                assert!(dbov(power).is_none_or(|level| level < -65.0), "{codec:?}: {power}");
            }
        }
        assert_eq!(Meter::default().power(Codec::Opus, &[0x78]), Some(0));
        assert_eq!(Meter::default().power(Codec::Opus, &[0x78; 40]), None);
    }
}
