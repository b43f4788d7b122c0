//! Decodes the payloads of one stream to PCM, and conceals lost ones.

use crate::audio::conceal::Concealer;
use crate::codec::g711::{PCMA_TO_PCM, PCMU_TO_PCM, look_up};
use crate::codec::{Codec, CodecError, g722, l16, opus};

/// Decodes the packets of one stream, in order.
///
/// *Bounds*: no allocation after [`Decoder::new`].
#[derive(Debug)]
pub struct Decoder {
    codec: Codec,
    state: State,
}

impl Decoder {
    /// A decoder before its first packet.
    ///
    /// # Errors
    /// When the codec refuses its own parameters.
    pub fn new(codec: Codec) -> Result<Decoder, CodecError> {
        let concealer = || Concealer::new(codec.sample_rate_hz());
        let state = match codec {
            Codec::Pcmu => State::G711(&PCMU_TO_PCM, concealer()),
            Codec::Pcma => State::G711(&PCMA_TO_PCM, concealer()),
            Codec::G722 => State::G722(Box::default(), concealer()),
            Codec::L16 { channels, .. } => State::L16(channels, concealer()),
            Codec::Opus => State::Opus(opus::Decoder::new()?),
        };
        Ok(Decoder { codec, state })
    }

    /// The codec of its payloads.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Decodes one payload into `pcm`, mono at [`Codec::sample_rate_hz`]; returns the number of samples
    /// written.
    ///
    /// # Errors
    /// When the payload is damaged or longer than `pcm`; the decoder is then unchanged, and the caller
    /// conceals.
    pub fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> Result<usize, CodecError> {
        let samples = self.codec.samples(payload)?;
        let room = pcm.get_mut(..samples).ok_or(CodecError::Buffer)?;
        let concealer = match &mut self.state {
            State::G711(table, concealer) => {
                for (sample, byte) in room.iter_mut().zip(payload) {
                    *sample = look_up(table, *byte);
                }
                concealer
            }
            State::G722(decoder, concealer) => {
                decoder.decode(payload, room);
                concealer
            }
            State::L16(channels, concealer) => {
                l16::decode(*channels, payload, room)?;
                concealer
            }
            State::Opus(decoder) => {
                decoder.decode(payload, room)?;
                return Ok(samples);
            }
        };
        concealer.heard(room);
        Ok(samples)
    }

    /// Fills `pcm` with concealment for a lost part; fades to silence, or to comfort noise.
    pub fn conceal(&mut self, pcm: &mut [i16]) {
        match &mut self.state {
            State::Opus(decoder) => decoder.conceal(pcm),
            State::G711(_, concealer) | State::G722(_, concealer) | State::L16(_, concealer) => {
                concealer.lost(pcm)
            }
        }
    }

    /// Fills `pcm` with the lost packet before `next`, from the copy in `next` if the codec has one.
    pub fn recover(&mut self, next: &[u8], pcm: &mut [i16]) {
        match &mut self.state {
            State::Opus(decoder) => decoder.recover(next, pcm),
            _ => self.conceal(pcm),
        }
    }
}

#[derive(Debug)]
enum State {
    G711(&'static [i16; 256], Concealer),
    G722(Box<g722::Decoder>, Concealer),
    /// Channels of a payload.
    L16(u8, Concealer),
    Opus(opus::Decoder),
}
