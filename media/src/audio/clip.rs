//! Audio in memory that is played many times: prompts, announcements, hold music.

use std::sync::Arc;
use std::time::Duration;

use super::convert;
use super::wav::{Wav, WavError};

/// Mono audio at [`Clip::RATE_HZ`]; clones share the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    samples: Arc<[i16]>,
}

impl Clip {
    /// Sample rate of every clip, in Hz.
    pub const RATE_HZ: u32 = 16_000;
    /// The longest clip; a longer file is refused.
    pub const SECONDS_MAX: u32 = 120;

    /// A clip of these samples at [`Clip::RATE_HZ`].
    pub fn new(samples: impl Into<Arc<[i16]>>) -> Clip {
        Clip { samples: samples.into() }
    }

    /// A clip of silence; not longer than [`Clip::SECONDS_MAX`].
    pub fn silence(length: Duration) -> Clip {
        let millis = length.as_millis().min(u128::from(Self::SECONDS_MAX) * 1_000);
        let samples = usize::try_from(millis * u128::from(Self::RATE_HZ) / 1_000).unwrap_or(0);
        Clip::new(vec![0; samples])
    }

    /// Reads a WAV file: PCM of 8, 16, 24 or 32 bits, 32-bit floating point, µ-law or A-law, one or two
    /// channels, 8 to 48 kHz. Two channels are averaged, and the rate is converted to [`Clip::RATE_HZ`].
    ///
    /// # Errors
    /// When the file has another format, contains no audio, or is longer than [`Clip::SECONDS_MAX`].
    pub fn from_wav(file: &[u8]) -> Result<Clip, WavError> {
        let wav = Wav::parse(file)?;
        if wav.frames() > u64::from(Self::SECONDS_MAX) * u64::from(wav.rate_hz()) {
            return Err(WavError::TooLong { seconds_max: Self::SECONDS_MAX });
        }
        let samples = convert::to_rate(wav.mono(), wav.rate_hz(), Self::RATE_HZ);
        Ok(Clip::new(samples))
    }

    /// The samples.
    pub fn samples(&self) -> &[i16] {
        &self.samples
    }

    /// Its duration in milliseconds.
    pub fn duration_ms(&self) -> u64 {
        self.samples.len() as u64 * 1_000 / u64::from(Self::RATE_HZ)
    }
}
