//! The limits of one SIP message; every buffer and loop of the message layer has one of them.

/// Largest datagram that is read, in bytes: the UDP maximum.
pub const DATAGRAM_LEN_MAX: usize = 65_535;

/// Largest datagram that a user agent accepts from a peer, in bytes. No phone sends one of this size: a
/// longer one is an attack, or belongs on a stream (RFC 3261 §18.1.1). Captures are read without this limit.
pub const PEER_DATAGRAM_LEN_MAX: usize = 16 * 1_024;

/// Largest message on a stream, head and body together, in bytes: with the next chunk, a connection's buffer
/// stays within 64 KiB.
pub const STREAM_MESSAGE_LEN_MAX: usize = 60 * 1_024;

/// Largest head (start line, headers and the empty line), in bytes.
pub const HEAD_LEN_MAX: usize = 32 * 1_024;

/// Most header lines of one message, folded continuations not counted.
pub const HEADER_LINES_MAX: usize = 256;

/// Longest value of one header line after unfolding, in bytes.
pub const HEADER_VALUE_LEN_MAX: usize = 8 * 1_024;

/// Most Via hops of one message, over all its Via lines: the recommended initial Max-Forwards (RFC 3261
/// §8.1.1.6).
pub const VIAS_MAX: usize = 70;

/// Most elements read from one list header: Contact, Route, Record-Route and similar.
pub const LIST_LEN_MAX: usize = 128;

/// Most parameters of one header value or URI.
pub const PARAMS_MAX: usize = 128;

/// CSeq numbers stay below this (RFC 3261 §8.1.1.5).
pub const CSEQ_LIMIT: u32 = 1 << 31;

/// Most CRLF pairs skipped before a start line (RFC 3261 §7.5).
pub const LEADING_CRLF_MAX: usize = 64;
