//! Decides which packets are RTP although no SDP announced them: several in a row that continue each other.
//!
//! RTP has no magic number. It differs from other traffic in that packets with one SSRC have sequence numbers
//! and timestamps that advance as a sender's would (RFC 3550 §A.1 asks for the same). DNS, STUN, DTLS, QUIC,
//! TURN channels and text protocols fail at the version bits; RTCP and SRTCP at the payload type; IAX2, RTPS
//! and encrypted protocols at the continuation.

use sidetone_media::rtp::Packet;
use sidetone_media::time::Micros;

/// SSRCs of one flow that are on probation.
#[derive(Debug, Default)]
pub(super) struct Probation {
    candidates: Vec<Candidate>,
    /// The candidate that is replaced next.
    oldest: usize,
}

/// A packet that waits, to be processed once its stream is recognised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) at: Micros,
    pub(super) packet: Packet,
}

#[derive(Debug)]
struct Candidate {
    waiting: Vec<Waiting>,
    continued: u32,
}

impl Probation {
    /// Takes a packet; once its SSRC has been continued `needed` times, returns all its packets.
    pub(super) fn examine(&mut self, at: Micros, packet: Packet, needed: u32) -> Option<Vec<Waiting>> {
        let waiting = Waiting { at, packet };
        let found = self.candidates.iter_mut().position(|candidate| {
            candidate.waiting.first().is_some_and(|one| one.packet.ssrc == packet.ssrc)
        });
        let Some((place, candidate)) =
            found.and_then(|place| self.candidates.get_mut(place).map(|candidate| (place, candidate)))
        else {
            self.admit(waiting);
            return None;
        };
        match candidate.step(&packet) {
            Step::Breaks => {
                candidate.waiting.clear();
                candidate.continued = 0;
            }
            Step::Continues => candidate.continued += 1,
            Step::Repeats => {}
        }
        candidate.waiting.push(waiting);
        if candidate.continued >= needed {
            let candidate = self.candidates.swap_remove(place);
            self.oldest = 0;
            return Some(candidate.waiting);
        }
        if candidate.waiting.len() >= WAITING_MAX {
            candidate.waiting.drain(..WAITING_MAX - 1);
            candidate.continued = 0;
        }
        None
    }

    /// Returns the packets of an SSRC that signalling has announced meanwhile.
    pub(super) fn release(&mut self, ssrc: u32) -> Vec<Waiting> {
        let place = self
            .candidates
            .iter()
            .position(|candidate| candidate.waiting.first().is_some_and(|one| one.packet.ssrc == ssrc));
        self.oldest = 0;
        place.map(|place| self.candidates.swap_remove(place).waiting).unwrap_or_default()
    }

    fn admit(&mut self, waiting: Waiting) {
        let candidate = Candidate { waiting: vec![waiting], continued: 0 };
        if self.candidates.len() < CANDIDATES_MAX {
            self.candidates.push(candidate);
        } else if let Some(place) = self.candidates.get_mut(self.oldest) {
            *place = candidate;
            self.oldest = (self.oldest + 1) % CANDIDATES_MAX;
        }
    }
}

enum Step {
    Breaks,
    Continues,
    Repeats,
}

impl Candidate {
    /// The relation of `packet` to the packets before it.
    fn step(&self, packet: &Packet) -> Step {
        let Some(last) = self.waiting.last().map(|waiting| &waiting.packet) else { return Step::Breaks };
        let ahead = packet.sequence.wrapping_sub(last.sequence);
        let stamps = (packet.timestamp.wrapping_sub(last.timestamp) as i32).unsigned_abs();
        if stamps > STAMP_STEP_MAX {
            return Step::Breaks;
        }
        match ahead {
            0 => Step::Repeats,
            // A stream changes its type now and then (digits, comfort noise), other traffic with every
            // packet.
            1..=AHEAD_MAX if packet.payload_type != last.payload_type => Step::Repeats,
            1..=AHEAD_MAX => Step::Continues,
            _ if ahead >= 0_u16.wrapping_sub(BEHIND_MAX) => Step::Repeats,
            _ => Step::Breaks,
        }
    }
}

/// Whether a payload type is defined without signalling (RFC 3551 tables 4 and 5, RFC 5761 §4).
pub(super) const fn is_known_type(payload_type: u8) -> bool {
    matches!(payload_type, 0 | 3..=18 | 25 | 26 | 28 | 31..=34 | 96..=127)
}

/// Continuations required of a stream that signalling did not announce.
pub(super) const CONTINUED_UNANNOUNCED: u32 = 3;
/// Continuations required of a further SSRC where signalling announced RTP (RFC 3550 §A.1, MIN_SEQUENTIAL).
pub(super) const CONTINUED_ANNOUNCED: u32 = 1;

/// SSRCs on probation in one flow.
const CANDIDATES_MAX: usize = 4;
/// Packets kept of one SSRC on probation.
const WAITING_MAX: usize = 12;
/// How far the sequence number of a packet may be ahead of the last (RFC 3550 §A.1, MAX_DROPOUT).
const AHEAD_MAX: u16 = 3_000;
/// How far the sequence number may be below the last (RFC 3550 §A.1, MAX_MISORDER).
const BEHIND_MAX: u16 = 100;
/// Half a minute at 90 kHz: the longest silence between two packets.
const STAMP_STEP_MAX: u32 = 30 * 90_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ssrc: u32, sequence: u16, timestamp: u32) -> Packet {
        Packet { ssrc, sequence, timestamp, payload_len: 160, ..Packet::default() }
    }

    #[test]
    fn what_proves_a_stream() {
        let row = |numbers: &[(u16, u32)]| -> Vec<Packet> {
            numbers.iter().map(|(sequence, stamp)| packet(1, *sequence, *stamp)).collect()
        };
        let cases: [(&str, Vec<Packet>, Option<usize>); 7] = [
            ("four in a row", row(&[(1, 0), (2, 160), (3, 320), (4, 480)]), Some(4)),
            ("around the end", row(&[(65_534, 0), (65_535, 160), (0, 320), (1, 480)]), Some(4)),
            ("with losses", row(&[(1, 0), (4, 480), (9, 1_280), (10, 1_440)]), Some(4)),
            ("with copies", row(&[(1, 0), (1, 0), (2, 0), (2, 0), (3, 0), (4, 0)]), Some(6)),
            ("three in a row", row(&[(1, 0), (2, 160), (3, 320)]), None),
            ("numbers at random", row(&[(1, 0), (7_000, 160), (3, 320), (19_000, 480), (77, 640)]), None),
            ("stamps at random", row(&[(1, 0), (2, 900_000_000), (3, 77), (4, 4_000_000_000), (5, 9)]), None),
        ];
        for (name, packets, expected) in cases {
            let mut probation = Probation::default();
            let proved = packets
                .into_iter()
                .filter_map(|packet| probation.examine(Micros(0), packet, CONTINUED_UNANNOUNCED))
                .next();
            assert_eq!(proved.map(|waiting| waiting.len()), expected, "{name}");
        }
    }

    #[test]
    fn types_at_random_prove_nothing() {
        let mut probation = Probation::default();
        for n in 0..100_u16 {
            let packet = Packet { payload_type: 96 + (n % 32) as u8, ..packet(1, n, u32::from(n) * 160) };
            assert!(probation.examine(Micros(0), packet, CONTINUED_UNANNOUNCED).is_none());
        }
    }

    #[test]
    fn candidates_stay_bounded() {
        let mut probation = Probation::default();
        for n in 0..10_000_u32 {
            assert!(probation.examine(Micros(0), packet(n, n as u16, n), 3).is_none());
            assert!(probation.examine(Micros(0), packet(7, 7, 7), 3).is_none(), "only copies");
        }
        assert!(probation.candidates.len() <= CANDIDATES_MAX);
        assert!(probation.candidates.iter().all(|candidate| candidate.waiting.len() <= WAITING_MAX));
    }
}
