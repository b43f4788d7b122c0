//! Errors of encoding and decoding.

/// An error of a codec; the stream continues with the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The buffer is too small for the result.
    #[error("the buffer has no room for the whole packet")]
    Buffer,
    /// The payload is not valid for its codec.
    #[error("the payload is damaged")]
    Damaged,
    /// The codec has no packet of this duration.
    #[error("the codec has no packet of this duration")]
    Duration,
}
