//! Copies of a leg's RTCP for an export: packets accepted from the party, and packets sent to it.
//!
//! Packets of SRTCP are copied after they were authenticated and decrypted, or before they are protected.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::clock::Sample;
use crate::time::Micros;

/// An RTCP packet of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtcpPacket<'p> {
    /// When it was received or sent, in microseconds since the Unix epoch.
    pub wall_us: i64,
    /// The sender: the address of the party as seen here, or our local one.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
    /// The datagram without SRTCP: a compound packet (RFC 3550 §6.1), or a reduced-size one (RFC 5506).
    pub bytes: &'p [u8],
}

/// Receives the RTCP of a leg. Called from the thread that carries the leg's packets: it must not block.
pub trait RtcpSink: Send + Sync + fmt::Debug {
    /// Copies a packet, or counts it when there is no room.
    fn take(&self, packet: &RtcpPacket<'_>);

    /// Counts a packet that is not passed on, because the leg has sent too many.
    fn leave_out(&self);
}

/// The source and the destination of a packet.
type Path = (SocketAddr, SocketAddr);

/// The sink of a leg's RTCP, and how many packets the leg may still pass to it.
#[derive(Debug)]
pub(super) struct RtcpTap {
    sink: Arc<dyn RtcpSink>,
    /// The wall time at the zero of the relay's clock.
    zero_us: i64,
    received: Allowance,
    sent: Allowance,
}

impl RtcpTap {
    /// Copies the RTCP of a leg to `sink` from now on.
    pub(super) fn new(sink: Arc<dyn RtcpSink>, sample: Sample) -> RtcpTap {
        let (received, sent) = (Allowance::new(sample.now), Allowance::new(sample.now));
        RtcpTap { sink, zero_us: zero_us(sample), received, sent }
    }

    /// Copies a packet accepted from the party.
    pub(super) fn received(&mut self, sample: Sample, at: Micros, path: Path, bytes: &[u8]) {
        // The wall clock may have been set since the last packet.
        self.zero_us = zero_us(sample);
        let is_within = self.received.spend(at);
        self.pass_on(is_within, at, path, bytes);
    }

    /// Copies a packet that is sent to the party, before it is protected.
    pub(super) fn sent(&mut self, now: Micros, path: Path, bytes: &[u8]) {
        let is_within = self.sent.spend(now);
        self.pass_on(is_within, now, path, bytes);
    }

    fn pass_on(&self, is_within: bool, at: Micros, (source, destination): Path, bytes: &[u8]) {
        if !is_within {
            return self.sink.leave_out();
        }
        let wall_us = self.zero_us.saturating_add(at.0);
        self.sink.take(&RtcpPacket { wall_us, source, destination, bytes });
    }
}

/// Limits the packets of one direction that may be passed on: a token bucket, so that a flood of RTCP from one party
/// takes no room from others.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    left: i64,
    /// The time up to which `left` was refilled.
    filled: Micros,
}

impl Allowance {
    fn new(now: Micros) -> Allowance {
        Allowance { left: BURST_MAX, filled: now }
    }

    /// Takes one packet from the allowance; `false` when none is left.
    fn spend(&mut self, now: Micros) -> bool {
        let new = now.since(self.filled).max(0) / REFILL_US;
        if self.left.saturating_add(new) >= BURST_MAX {
            *self = Allowance::new(now);
        } else {
            self.left += new;
            self.filled = self.filled + new * REFILL_US;
        }
        let is_within = self.left > 0;
        self.left -= i64::from(is_within);
        is_within
    }
}

fn zero_us(sample: Sample) -> i64 {
    sample.wall_us.saturating_sub(sample.now.0)
}

/// The largest burst of one direction; a party that follows RFC 3550 §6.2 sends one packet in five seconds.
const BURST_MAX: i64 = 20;
/// One more packet after this time: ten a second, enough for feedback (RFC 4585).
const REFILL_US: i64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_passes_twenty_packets_and_then_ten_a_second() {
        let mut allowance = Allowance::new(Micros(0));
        let mut passed = |from_us: i64, packets: i64, every_us: i64| {
            (0..packets).filter(|n| allowance.spend(Micros(from_us + n * every_us))).count()
        };
        assert_eq!(passed(0, 1_000, 0), 20);
        // Ten seconds of a thousand packets each.
        assert_eq!(passed(1_000, 10_000, 1_000), 100);
        // After a pause the burst is allowed again, and no more than that.
        assert_eq!(passed(60_000_000, 1_000, 0), 20);
        // One every five seconds, as RFC 3550 has it, is never refused.
        assert_eq!(passed(120_000_000, 1_000, 5_000_000), 1_000);
    }
}
