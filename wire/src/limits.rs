//! Sizes of batches and buffers.

/// The most datagrams that one call receives or sends.
pub const BATCH: usize = 32;

/// The longest datagram that is received completely; an Ethernet frame carries 1,472 bytes of UDP.
pub const DATAGRAM_BYTES_MAX: usize = 2_048;
