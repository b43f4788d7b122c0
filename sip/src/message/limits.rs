//! The bounds of one SIP message. Every buffer and loop of the message layer stops at one of these.

/// Largest datagram that is read, in bytes: the largest that UDP can carry.
pub const DATAGRAM_LEN_MAX: usize = 65_535;

/// Largest datagram that a user agent takes from a peer, in bytes. No phone sends one of this size: what is longer comes
/// from an attacker, or belongs on a stream (RFC 3261 §18.1.1). Captures are read whole.
pub const PEER_DATAGRAM_LEN_MAX: usize = 16 * 1_024;

/// Largest message on a stream, head and body together, in bytes: with the chunk that follows it a connection's buffer
/// stays within 64 KiB.
pub const STREAM_MESSAGE_LEN_MAX: usize = 60 * 1_024;

/// Largest head (start line, headers and the empty line), in bytes.
pub const HEAD_LEN_MAX: usize = 32 * 1_024;

/// Most header lines of one message, folded continuations not counted.
pub const HEADER_LINES_MAX: usize = 256;

/// Longest value of one header line after unfolding, in bytes.
pub const HEADER_VALUE_LEN_MAX: usize = 8 * 1_024;

/// Most Via hops of one message, over all its Via lines: the recommended start of Max-Forwards (RFC 3261 §8.1.1.6).
pub const VIAS_MAX: usize = 70;

/// Most elements that are read of one list header: Contact, Route, Record-Route and the like.
pub const LIST_LEN_MAX: usize = 128;

/// Most parameters of one header value or URI.
pub const PARAMS_MAX: usize = 128;

/// CSeq numbers stay below this (RFC 3261 §8.1.1.5).
pub const CSEQ_LIMIT: u32 = 1 << 31;

/// Most CRLF pairs that are skipped in front of a start line (RFC 3261 §7.5).
pub const LEADING_CRLF_MAX: usize = 64;
