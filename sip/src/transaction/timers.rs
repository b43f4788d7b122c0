//! The timers of RFC 3261 table 4 with the additions of RFC 6026 (L, M), and their common doubling rule.
//!
//! Nothing here runs: the machines store deadlines and get the time as input.

use std::fmt;
use std::time::{Duration, Instant};

/// The base values of every timer (RFC 3261 table 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Estimate of the round-trip time.
    pub t1: Duration,
    /// Longest retransmission interval of non-INVITE requests and INVITE responses.
    pub t2: Duration,
    /// Longest time a message may stay in the network.
    pub t4: Duration,
}

/// The timers with their RFC letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// INVITE retransmission by the client, UDP only.
    A,
    /// INVITE transaction timeout.
    B,
    /// How long a client absorbs retransmitted failures of an INVITE.
    D,
    /// Non-INVITE retransmission by the client, UDP only.
    E,
    /// Non-INVITE transaction timeout.
    F,
    /// Retransmission of a failure response to an INVITE, UDP only.
    G,
    /// How long a server waits for the ACK of a failure.
    H,
    /// How long a server absorbs retransmitted ACKs.
    I,
    /// How long a server absorbs retransmitted non-INVITE requests.
    J,
    /// How long a client absorbs retransmitted non-INVITE responses.
    K,
    /// How long a server absorbs retransmitted INVITEs after a 2xx (RFC 6026).
    L,
    /// How long a client accepts further 2xx of an INVITE (RFC 6026).
    M,
    /// The 200 ms of §17.2.1, or the longer wait of RFC 4320 §4.1, until a server sends 100 by itself.
    Trying,
    /// The 64·T1 of §9.1 after which a cancelled INVITE ends, whatever the peer does.
    Cancelled,
}

/// A retransmission that doubles its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) next: Instant,
    interval: Duration,
}

impl Timers {
    /// 64·T1: how long a request may stay without a response (timers B, F, H, J, L, M).
    pub fn give_up(&self) -> Duration {
        self.t1.saturating_mul(64)
    }

    /// How long the server of a non-INVITE request waits before it sends 100 (RFC 4320 §4.1): the time in
    /// which a client's timer E grows to T2, 3.5 s with the default values.
    pub fn silence(&self) -> Duration {
        let mut silence = Duration::ZERO;
        let mut interval = self.t1.max(Duration::from_millis(1));
        while interval < self.t2 {
            silence = silence.saturating_add(interval);
            interval = interval.saturating_mul(2);
        }
        silence
    }

    /// `wait` for an unreliable transport and zero for a reliable one, as timers D, I, J and K are defined.
    pub(crate) fn unless_reliable(reliable: bool, wait: Duration) -> Duration {
        if reliable { Duration::ZERO } else { wait }
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self { t1: T1, t2: T2, t4: T4 }
    }
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Backoff {
    /// The first retransmission is due `interval` after `now`.
    pub(crate) fn start(now: Instant, interval: Duration) -> Self {
        Self { next: now + interval, interval }
    }

    /// Doubles the interval up to `interval_max`; counted from `now`, so that a late driver never causes a burst.
    pub(crate) fn advance(&mut self, now: Instant, interval_max: Duration) {
        self.interval = self.interval.saturating_mul(2).min(interval_max);
        self.next = now + self.interval;
    }

    /// Continues with a fixed interval.
    pub(crate) fn hold(&mut self, interval: Duration) {
        self.interval = interval;
    }
}

/// Default round-trip estimate.
pub const T1: Duration = Duration::from_millis(500);
/// Default longest retransmission interval.
pub const T2: Duration = Duration::from_secs(4);
/// Default longest life of a message in the network.
pub const T4: Duration = Duration::from_secs(5);
/// An INVITE that the user has not answered after this time is answered 100 (§17.2.1).
pub const TRYING_AFTER: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_the_time_timer_e_needs_to_reach_t2() {
        let ms = Duration::from_millis;
        for (name, timers, expected) in [
            ("defaults: 500 + 1000 + 2000", Timers::default(), ms(3_500)),
            ("T1 above T2", Timers { t1: ms(5_000), ..Timers::default() }, ms(0)),
            ("zero T1 does not loop", Timers { t1: ms(0), t2: ms(4), ..Timers::default() }, ms(3)),
        ] {
            assert_eq!(timers.silence(), expected, "{name}");
        }
    }
}
