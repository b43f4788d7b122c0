//! The audio codecs of a call: from payload bytes to PCM and back, and what is known of a payload undecoded.
//!
//! PCMU and PCMA (ITU-T G.711), G.722 at 64 kbit/s, Opus (RFC 6716, RFC 7587) and L16 (RFC 3551 §4.5.11). PCM is
//! mono here, in 16 bit, at [`Codec::sample_rate_hz`]; other rates are [`crate::audio::resample`]'s work, and which
//! packet is decoded when is [`crate::playout`]'s.

mod decoder;
mod encoder;
mod error;
pub mod g711;
mod g722;
mod g722_band;
mod kind;
mod l16;
mod meter;
mod opus;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::CodecError;
pub use kind::Codec;
pub use meter::Meter;
