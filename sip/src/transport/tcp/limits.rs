//! What connections may take of us.

use std::time::Duration;

use crate::admission::Rate;

/// How many connections there may be, and how long they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpLimits {
    /// Connections in all.
    pub connections_max: usize,
    /// Connections that come from one address; of IPv6 from one /64, which is what one customer has.
    pub per_source_max: usize,
    /// From the first byte of a message to its last.
    pub message_max: Duration,
    /// From the last message, or from the last keep-alive of a peer that is trusted, to the end of the connection.
    pub idle_max: Duration,
    /// For how long a connection may stay whose peer has not proved who it is.
    pub stranger_max: Duration,
    /// How many messages are read of a connection whose peer has not proved who it is; the rest waits in its socket.
    pub stranger_rate: Rate,
    /// For how long a peer may take nothing of what is sent to it, and for how long it may let us knock.
    pub stall_max: Duration,
}

impl Default for TcpLimits {
    fn default() -> Self {
        TcpLimits {
            connections_max: 4_096,
            per_source_max: 64,
            message_max: Duration::from_secs(10),
            idle_max: Duration::from_secs(120),
            stranger_max: Duration::from_secs(30),
            stranger_rate: Rate { per_second: 30, burst: 60 },
            stall_max: Duration::from_secs(10),
        }
    }
}

/// What waits to be read by the driver, over all connections, in messages.
pub(super) const ARRIVALS_MAX: usize = 256;
/// What is read at once, in bytes.
pub(super) const CHUNK_BYTES: usize = 4_096;
/// For how long a connection that ends may say its last words, and its peer hear them.
pub(super) const LAST_WORDS_MAX: Duration = Duration::from_secs(1);
/// What is still read of a peer that was told why its connection ends, in bytes: to close on unread bytes would take
/// the answer away from it (RFC 9112 §9.6 has the same for HTTP).
pub(super) const LINGER_BYTES_MAX: usize = 256 * 1_024;
/// How long a listener waits after the system had no connection for it: at first, and at most.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(50);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a stranger that is ahead of its rate is looked at again.
pub(super) const PACE_PAUSE: Duration = Duration::from_millis(20);
/// Messages that break a rule, after so many of which a connection ends.
pub(super) const REJECTIONS_MAX: usize = 16;
/// What waits to be sent by one connection, in messages and in bytes.
pub(super) const UNSENT_MAX: usize = 512;
pub(super) const UNSENT_BYTES_MAX: usize = 256 * 1_024;
