//! Why a payload could not be decoded, or PCM not encoded.

/// What a codec could not do; the stream goes on with the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The buffer is too small for what the payload holds, or for what the PCM becomes.
    #[error("the buffer has no room for the whole packet")]
    Buffer,
    /// The payload is not what its codec writes.
    #[error("the payload is damaged")]
    Damaged,
    /// The PCM is not a packet duration that the codec knows.
    #[error("the codec has no packet of this duration")]
    Duration,
}
