//! Encodes PCM to the payloads of one stream.

use crate::codec::g711::{pcm_to_pcma, pcm_to_pcmu};
use crate::codec::{Codec, CodecError, g722, l16, opus};

/// Encodes the packets of one stream, in order.
///
/// *Bounds*: no allocation after [`Encoder::new`].
#[derive(Debug)]
pub struct Encoder {
    codec: Codec,
    state: State,
}

impl Encoder {
    /// An encoder before its first packet.
    ///
    /// # Errors
    /// When the codec refuses its own parameters.
    pub fn new(codec: Codec) -> Result<Encoder, CodecError> {
        let state = match codec {
            Codec::Pcmu => State::Pcmu,
            Codec::Pcma => State::Pcma,
            Codec::G722 => State::G722(Box::default()),
            Codec::L16 { channels, .. } => State::L16(channels),
            Codec::Opus => State::Opus(opus::Encoder::new()?),
        };
        Ok(Encoder { codec, state })
    }

    /// An encoder that continues like this one: a party that decoded this encoder's packets can receive the packets of
    /// the new one from now on. `past` is the PCM encoded last. Only Opus needs it, because its state cannot be copied:
    /// the new encoder encodes `past` again, so that the audio continues without a break.
    ///
    /// # Errors
    /// When the codec refuses its own parameters.
    pub fn branch(&self, past: &[i16]) -> Result<Encoder, CodecError> {
        let state = match &self.state {
            State::Pcmu => State::Pcmu,
            State::Pcma => State::Pcma,
            State::G722(encoder) => State::G722(encoder.clone()),
            State::L16(channels) => State::L16(*channels),
            State::Opus(_) => {
                let mut encoder = opus::Encoder::new()?;
                if !past.is_empty() {
                    encoder.encode(past, &mut [0; PRIMED_BYTES])?;
                }
                State::Opus(encoder)
            }
        };
        Ok(Encoder { codec: self.codec, state })
    }

    /// The codec of its payloads.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Encodes one packet of mono PCM at [`Codec::sample_rate_hz`] into `payload`; returns the number of
    /// bytes written.
    ///
    /// # Errors
    /// When `payload` is too small, or the codec has no packet with this number of samples.
    pub fn encode(&mut self, pcm: &[i16], payload: &mut [u8]) -> Result<usize, CodecError> {
        match &mut self.state {
            State::Pcmu => bytes(pcm, payload, pcm_to_pcmu),
            State::Pcma => bytes(pcm, payload, pcm_to_pcma),
            State::G722(encoder) => encoder.encode(pcm, payload),
            State::L16(channels) => l16::encode(*channels, pcm, payload),
            State::Opus(encoder) => encoder.encode(pcm, payload),
        }
    }
}

#[derive(Debug)]
enum State {
    Pcmu,
    Pcma,
    G722(Box<g722::Encoder>),
    /// Channels of a payload.
    L16(u8),
    Opus(opus::Encoder),
}

/// Space for a packet that is not sent.
const PRIMED_BYTES: usize = 1_500;

fn bytes(pcm: &[i16], payload: &mut [u8], code: impl Fn(i16) -> u8) -> Result<usize, CodecError> {
    let room = payload.get_mut(..pcm.len()).ok_or(CodecError::Buffer)?;
    for (byte, sample) in room.iter_mut().zip(pcm) {
        *byte = code(*sample);
    }
    Ok(pcm.len())
}
