//! Limits of connections.

use std::time::Duration;

use crate::admission::Rate;

/// The largest number of connections, and their time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpLimits {
    /// Connections in total.
    pub connections_max: usize,
    /// Connections from one address, or from one IPv6 /64, which belongs to one customer.
    pub per_source_max: usize,
    /// Time from the connection to the end of its handshakes (TLS, WebSocket).
    pub handshake_max: Duration,
    /// Time from the first byte of a message to its last.
    pub message_max: Duration,
    /// Time from the last message, or from the last keep-alive of a trusted peer, to the end of the
    /// connection, unless it is held for a call.
    pub idle_max: Duration,
    /// Longest life of a connection whose peer has not authenticated.
    pub stranger_max: Duration,
    /// How often a WebSocket is probed.
    pub ping_every: Duration,
    /// Time for the answer to a probe.
    pub pong_max: Duration,
    /// Messages per second read from a connection whose peer has not authenticated; the rest waits in its
    /// socket.
    pub stranger_rate: Rate,
    /// Longest time in which a peer may read nothing, and longest time of opening a connection to it.
    pub stall_max: Duration,
}

impl Default for TcpLimits {
    fn default() -> Self {
        TcpLimits {
            connections_max: 4_096,
            per_source_max: 64,
            handshake_max: Duration::from_secs(5),
            message_max: Duration::from_secs(10),
            idle_max: Duration::from_secs(120),
            stranger_max: Duration::from_secs(30),
            ping_every: Duration::from_secs(30),
            pong_max: Duration::from_secs(10),
            stranger_rate: Rate { per_second: 30, burst: 60 },
            stall_max: Duration::from_secs(10),
        }
    }
}

/// Messages of all connections that wait for the driver.
pub(super) const ARRIVALS_MAX: usize = 256;
/// Bytes of one read.
pub(super) const CHUNK_BYTES: usize = 4_096;
/// How long a closing connection may still send its queue, and how long its peer may still read.
pub(super) const LAST_WORDS_MAX: Duration = Duration::from_secs(1);
/// Bytes still read from a peer after a refusal: closing with unread bytes would discard the refusal (RFC
/// 9112 §9.6 describes the same for HTTP).
pub(super) const LINGER_BYTES_MAX: usize = 256 * 1_024;
/// How long a listener waits after the system failed to accept: first and longest pause.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(50);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Interval at which an unauthenticated peer that exceeds its rate is checked again.
pub(super) const PACE_PAUSE: Duration = Duration::from_millis(20);
/// Invalid messages after which a connection ends.
pub(super) const REJECTIONS_MAX: usize = 16;
/// Queue of one connection, in messages and in bytes.
pub(super) const UNSENT_MAX: usize = 512;
pub(super) const UNSENT_BYTES_MAX: usize = 256 * 1_024;
/// TCP keep-alives (RFC 1122 §4.2.3.6): after this silence, at this interval, and so many without an answer end the
/// connection.
pub(super) const PROBE_AFTER: Duration = Duration::from_secs(30);
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(10);
pub(super) const PROBES: u32 = 4;
