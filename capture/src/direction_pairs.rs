//! Pairs the two directions of a call that no signalling announced.
//!
//! Two streams mirror each other when one has the source and destination of the other swapped, both exist at
//! the same time, and both carry the same kind of media: a payload type that they share, or static types for
//! audio. If one side changes its SSRC, several streams have the same mirror; the mirror of that one is the
//! stream that it overlaps with for the longest time.

use std::collections::HashMap;
use std::net::SocketAddr;

use sidetone_media::time::Micros;

/// The properties of an unannounced stream that are compared; signalling already pairs all others.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// Its first and its last packet.
    pub(super) span: (Micros, Micros),
    /// In ascending order.
    pub(super) payload_types: Vec<u8>,
}

/// Returns the mirror of each stream, as an index into `sides`.
pub(super) fn mirrors(sides: &[Side]) -> Vec<Option<usize>> {
    let mut by_ends: HashMap<(SocketAddr, SocketAddr), Vec<usize>> = HashMap::new();
    for (place, side) in sides.iter().enumerate() {
        let list = by_ends.entry((side.source, side.destination)).or_default();
        if list.len() < CANDIDATES_MAX {
            list.push(place);
        }
    }
    sides
        .iter()
        .map(|side| {
            let candidates = by_ends.get(&(side.destination, side.source))?.iter();
            // Among equals, the one that began first.
            let best = candidates
                .filter_map(|place| Some((side.likeness(sides.get(*place)?)?, *place)))
                .reduce(|best, other| if other.0 > best.0 { other } else { best });
            best.map(|(_, place)| place)
        })
        .collect()
}

impl Side {
    /// How well another stream fits as the opposite direction: whether they share a payload type, and for how
    /// long they overlap.
    fn likeness(&self, other: &Side) -> Option<(bool, i64)> {
        let begin = self.span.0.max(other.span.0);
        let end = self.span.1.min(other.span.1);
        let overlap_us = end.since(begin);
        let shares = self.payload_types.iter().any(|number| other.payload_types.contains(number));
        let both_audio = |side: &Side| side.payload_types.first().is_some_and(|number| *number <= AUDIO_MAX);
        (overlap_us > 0 && (shares || (both_audio(self) && both_audio(other))))
            .then_some((shares, overlap_us))
    }
}

/// The last static payload type for audio (RFC 3551 table 4).
const AUDIO_MAX: u8 = 23;
/// Streams with one source and destination that are compared.
const CANDIDATES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn side(from_a: bool, span: (i64, i64), types: &[u8]) -> Side {
        let (a, b) = ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
        let (source, destination) = if from_a { (a, b) } else { (b, a) };
        let span = (Micros(span.0), Micros(span.1));
        Side { source, destination, span, payload_types: types.to_vec() }
    }

    /// A name, the streams, and the expected mirror of each.
    type Case = (&'static str, Vec<Side>, &'static [Option<usize>]);

    #[test]
    fn directions_find_each_other() {
        let elsewhere = Side { destination: "192.0.2.9:1".parse().unwrap(), ..side(false, (0, 9), &[0]) };
        let cases: [Case; 10] = [
            ("two ways", vec![side(true, (0, 9), &[0]), side(false, (1, 8), &[0])], &[Some(1), Some(0)]),
            (
                "another law",
                vec![side(true, (0, 9), &[0]), side(false, (0, 9), &[8, 101])],
                &[Some(1), Some(0)],
            ),
            ("one way", vec![side(true, (0, 9), &[0]), side(true, (0, 9), &[0])], &[None, None]),
            ("one after the other", vec![side(true, (0, 4), &[0]), side(false, (5, 9), &[0])], &[None, None]),
            ("to somebody else", vec![side(true, (0, 9), &[0]), elsewhere], &[None, None]),
            ("audio and video", vec![side(true, (0, 9), &[0]), side(false, (0, 9), &[96])], &[None, None]),
            (
                "audio and video on the same ports",
                vec![
                    side(true, (0, 9), &[111]),
                    side(true, (0, 9), &[96, 97]),
                    side(false, (0, 9), &[96]),
                    side(false, (0, 4), &[111]),
                ],
                &[Some(3), Some(2), Some(1), Some(0)],
            ),
            (
                "another SSRC later",
                vec![side(true, (0, 4), &[0]), side(false, (0, 20), &[0]), side(true, (4, 20), &[0])],
                &[Some(1), Some(2), Some(1)],
            ),
            (
                "equal candidates",
                vec![side(true, (0, 9), &[0]), side(false, (0, 9), &[0]), side(false, (0, 9), &[0])],
                &[Some(1), Some(0), Some(0)],
            ),
            (
                "two calls on the same ports",
                vec![
                    side(true, (0, 9), &[0]),
                    side(false, (0, 9), &[0]),
                    side(false, (20, 29), &[0]),
                    side(true, (20, 29), &[0]),
                ],
                &[Some(1), Some(0), Some(3), Some(2)],
            ),
        ];
        for (name, sides, expected) in cases {
            assert_eq!(mirrors(&sides), expected, "{name}");
        }
    }
}
