//! The codecs, how SDP names them, and their rates.

use crate::codec::g711::{PCMA_TO_PCM, PCMU_TO_PCM, look_up};
use crate::codec::{CodecError, l16, opus};
use crate::time::ClockRate;

/// A codec that this engine decodes and encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// G.711 µ-law.
    Pcmu,
    /// G.711 A-law.
    Pcma,
    /// G.722 at 64 kbit/s: 16 kHz audio on an RTP clock of 8,000 (RFC 3551 §4.5.2).
    G722,
    /// PCM in network byte order.
    L16 {
        /// Rate of the audio and of the RTP clock: 8,000, 16,000 or 48,000 Hz.
        rate_hz: u32,
        /// Channels in a payload, one or two: averaged when decoding, all filled with the same samples when
        /// encoding.
        channels: u8,
    },
    /// Opus; encoded as mono, decoded from mono or stereo.
    Opus,
}

impl Codec {
    /// The codec of an `a=rtpmap`; names compare without case (RFC 8866 §6.6). `None` when the codec is not
    /// supported.
    pub fn find(name: &str, clock: ClockRate, channels: u8) -> Option<Codec> {
        let is = |ours: &str| name.eq_ignore_ascii_case(ours);
        match (clock.hz(), channels) {
            (8_000, 1) if is("PCMU") => Some(Codec::Pcmu),
            (8_000, 1) if is("PCMA") => Some(Codec::Pcma),
            (8_000, 1) if is("G722") => Some(Codec::G722),
            (rate_hz @ (8_000 | 16_000 | 48_000), 1 | 2) if is("L16") => {
                Some(Codec::L16 { rate_hz, channels })
            }
            // RFC 7587 §4.1 requires two channels; a party that omits them means the same.
            (48_000, 1 | 2) if is("opus") => Some(Codec::Opus),
            _ => None,
        }
    }

    /// The rate of the PCM that it decodes to and encodes from, in Hz.
    pub fn sample_rate_hz(self) -> u32 {
        match self {
            Codec::Pcmu | Codec::Pcma => 8_000,
            Codec::G722 => 16_000,
            Codec::L16 { rate_hz, .. } => rate_hz,
            Codec::Opus => 48_000,
        }
    }

    /// The clock of its RTP timestamps.
    pub fn rtp_clock(self) -> ClockRate {
        match self {
            Codec::Pcmu | Codec::Pcma | Codec::G722 => ClockRate::HZ_8000,
            Codec::L16 { rate_hz, .. } => ClockRate::new(rate_hz).unwrap_or(ClockRate::HZ_8000),
            Codec::Opus => ClockRate::HZ_48000,
        }
    }

    /// Its registered encoding name.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Pcmu => "PCMU",
            Codec::Pcma => "PCMA",
            Codec::G722 => "G722",
            Codec::L16 { .. } => "L16",
            Codec::Opus => "opus",
        }
    }

    /// How many samples a payload contains, computed without decoding it.
    ///
    /// # Errors
    /// When the payload is not valid for this codec.
    pub fn samples(self, payload: &[u8]) -> Result<usize, CodecError> {
        let samples = match self {
            Codec::Pcmu | Codec::Pcma => payload.len(),
            Codec::G722 => 2 * payload.len(),
            Codec::L16 { channels, .. } => {
                let width = 2 * usize::from(channels.max(1));
                if !payload.len().is_multiple_of(width) {
                    return Err(CodecError::Damaged);
                }
                payload.len() / width
            }
            Codec::Opus => opus::samples(payload)?,
        };
        if samples == 0 { Err(CodecError::Damaged) } else { Ok(samples) }
    }

    /// An estimate of the mean square of a payload's samples, from some of them and without decoding; `None`
    /// when it needs decoding.
    pub fn power(self, payload: &[u8]) -> Option<u64> {
        match self {
            Codec::Pcmu => Some(mean_square(sampled(payload).map(|byte| look_up(&PCMU_TO_PCM, *byte)))),
            Codec::Pcma => Some(mean_square(sampled(payload).map(|byte| look_up(&PCMA_TO_PCM, *byte)))),
            Codec::L16 { rate_hz, channels } => {
                let width = 2 * usize::from(channels.max(1));
                let every = (rate_hz / 8_000).max(1) as usize;
                Some(mean_square(payload.chunks_exact(width).step_by(every).map(l16::mono)))
            }
            Codec::Opus if opus::is_silence(payload) => Some(0),
            Codec::G722 | Codec::Opus => None,
        }
    }
}

/// Every third sample. With every fourth, a tone of 1 kHz could look like silence, because its period is a
/// multiple of the interval.
fn sampled(payload: &[u8]) -> impl Iterator<Item = &u8> {
    payload.iter().step_by(3)
}

fn mean_square(samples: impl Iterator<Item = i16>) -> u64 {
    let (sum, count) = samples.fold((0_u64, 0_u64), |(sum, count), sample| {
        (sum + u64::from(sample.unsigned_abs()).pow(2), count + 1)
    });
    sum / count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level::dbov;
    use crate::codec::Encoder;

    #[test]
    fn no_tone_in_step_with_the_samples_is_taken_for_silence() {
        let codecs = [
            Codec::Pcmu,
            Codec::Pcma,
            Codec::L16 { rate_hz: 8_000, channels: 1 },
            Codec::L16 { rate_hz: 48_000, channels: 1 },
        ];
        for codec in codecs {
            for hz in [400.0, 500.0, 800.0, 1_000.0, 2_000.0] {
                let rate = codec.sample_rate_hz();
                let step = std::f64::consts::TAU * hz / f64::from(rate);
                let pcm: Vec<i16> =
                    (0..rate / 50).map(|n| (3_276.7 * (step * f64::from(n)).sin()) as i16).collect();
                let mut payload = [0; 2_000];
                let len = Encoder::new(codec).unwrap().encode(&pcm, &mut payload).unwrap();
                let level_db = dbov(codec.power(&payload[..len]).unwrap()).unwrap();
                assert!((level_db + 23.0).abs() < 3.1, "{codec:?} at {hz} Hz: {level_db:.1}");
            }
        }
    }
}
