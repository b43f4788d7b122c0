//! The formats that a playout reads.

use crate::codec::Codec;

/// The formats that SDP allows the party to send, and the rate of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayoutFormats {
    /// The payload types of its audio.
    pub audio: Vec<(u8, Codec)>,
    /// The payload types of its comfort noise (RFC 3389).
    pub noise: Vec<u8>,
    /// The rate of every frame in Hz; `None` gives each frame at the rate of its codec.
    pub rate_hz: Option<u32>,
}
