//! Why a packet was not protected, or not accepted.

/// The reason; completes "failed to ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrtpError {
    /// The datagram is too short, or its header does not fit into it.
    #[error("read the header of an SRTP packet")]
    Malformed,
    /// The packet is a repetition, or older than the replay window (RFC 3711 §3.3.2).
    #[error("accept an SRTP packet twice")]
    Replayed,
    /// The buffer has no room for the tag, or the keys may protect no further packet.
    #[error("add a tag to an RTP packet")]
    Room,
    /// More streams than the bound were seen under one key.
    #[error("follow another SRTP stream")]
    Streams,
    /// The tag is wrong: the packet was forged, damaged, or protected with another key.
    #[error("authenticate an SRTP packet")]
    Tag,
}
