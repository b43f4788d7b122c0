//! The audio codecs of a call: payload bytes to PCM and back, and properties of a payload that need no
//! decoding.
//!
//! PCMU and PCMA (ITU-T G.711), G.722 at 64 kbit/s, Opus (RFC 6716, RFC 7587) and L16 (RFC 3551 §4.5.11). PCM
//! here is mono, 16 bits, at [`Codec::sample_rate_hz`]. [`crate::audio::resample`] converts to other rates,
//! and [`crate::playout`] decides which packet is decoded when.

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
