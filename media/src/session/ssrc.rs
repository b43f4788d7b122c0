//! Tracks the SSRC that the party currently sends with (RFC 3550 §8).

use crate::rtp::{Packet, PayloadKind};
use crate::stats::Stream;
use crate::time::Micros;

/// The confirmed SSRC, and a candidate for the next one.
///
/// Another SSRC is confirmed with its second consecutive packet within a second, or with its first after
/// signalling; a single stray packet changes nothing, and neither does a stream that is no audio, such as error correction.
#[derive(Clone, Debug, Default)]
pub(crate) struct SsrcGate {
    current: Option<u32>,
    others: Box<Others>,
}

#[derive(Clone, Debug, Default)]
struct Others {
    /// State of the confirmed SSRC.
    source: Option<Source>,
    candidate: Option<Candidate>,
    changes: u64,
    strays: u64,
}

/// The confirmed SSRC, and the totals before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) ssrc: u32,
    pub(crate) begun_at: Micros,
    /// Arrival of the last packet of the previous SSRC.
    pub(crate) last_before: Option<Micros>,
    pub(crate) received_before: u64,
    pub(crate) expected_before: u64,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    at: Micros,
    packet: Packet,
    kind: PayloadKind,
}

impl SsrcGate {
    /// Folds `packet` into `stream` when it has the confirmed SSRC or confirms another.
    #[inline]
    pub(crate) fn fold(&mut self, stream: &mut Stream, now: Micros, packet: &Packet, kind: PayloadKind) {
        if self.current == Some(packet.ssrc) {
            stream.push(now, packet, kind);
        } else {
            self.fold_other(stream, now, packet, kind);
        }
    }

    /// Counts the sequence number of a packet that is refused for its payload, when it has the confirmed
    /// SSRC.
    #[cold]
    pub(crate) fn pass_over(&self, stream: &mut Stream, now: Micros, packet: &Packet) {
        if self.current != Some(packet.ssrc) {
            return;
        }
        if packet.payload_len == 0 {
            stream.push_empty(now, packet);
        } else {
            stream.push_refused(now, packet);
        }
    }

    /// The confirmed SSRC.
    pub(crate) fn current(&self) -> Option<u32> {
        self.current
    }

    /// State of the confirmed SSRC.
    pub(crate) fn source(&self) -> Option<Source> {
        self.others.source
    }

    /// Number of confirmed changes.
    pub(crate) fn changes(&self) -> u64 {
        self.others.changes
    }

    /// Packets of an SSRC that was not confirmed.
    pub(crate) fn strays(&self) -> u64 {
        self.others.strays
    }

    #[cold]
    fn fold_other(&mut self, stream: &mut Stream, now: Micros, packet: &Packet, kind: PayloadKind) {
        let others = &mut self.others;
        if kind == PayloadKind::Other && self.current.is_some() {
            others.strays += 1;
            return;
        }
        let confirmed = others.candidate.filter(|candidate| {
            candidate.packet.ssrc == packet.ssrc
                && candidate.packet.sequence.wrapping_add(1) == packet.sequence
                && now.since(candidate.at) < CONFIRM_US
        });
        if self.current.is_none() || stream.is_restarting() || confirmed.is_some() {
            if self.current.is_some() {
                others.changes += 1;
                stream.begin_source();
            }
            self.current = Some(packet.ssrc);
            others.candidate = None;
            others.source = Some(Source {
                ssrc: packet.ssrc,
                begun_at: confirmed.map_or(now, |first| first.at),
                last_before: stream.last(),
                received_before: stream.received(),
                expected_before: stream.expected(),
            });
            if let Some(first) = confirmed {
                others.strays = others.strays.saturating_sub(1);
                stream.push(first.at, &first.packet, first.kind);
            }
            stream.push(now, packet, kind);
        } else {
            others.strays += 1;
            others.candidate = Some(Candidate { at: now, packet: *packet, kind });
        }
    }
}

/// The second packet of a new SSRC must arrive within this time.
const CONFIRM_US: i64 = 1_000_000;
