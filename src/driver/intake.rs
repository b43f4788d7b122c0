//! Admitted datagrams that wait to be read: messages of live calls first, within bounds.
//!
//! The sockets are drained repeatedly while the switch works. So datagrams that will be dropped do not fill
//! the system's socket buffers.

use std::collections::VecDeque;

use bytes::Bytes;
use sidetone_sip::admission::Grant;
use sidetone_sip::flow::Flow;
use sidetone_switch::admitting::Rank;

/// The waiting datagrams, one FIFO queue per rank.
///
/// *Bounds*: per rank [`URGENT_MAX`] or [`NEW_MAX`] datagrams, and [`BYTES_MAX`] bytes.
#[derive(Default)]
pub(super) struct Intake {
    /// The queues; the highest rank comes first.
    lines: [Line; 4],
    turn: usize,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<(Flow, Bytes)>,
    bytes: usize,
}

impl Intake {
    /// Appends a datagram to the queue of its rank; returns `false` when that is full.
    pub(super) fn push(&mut self, rank: Rank, flow: Flow, bytes: Bytes) -> bool {
        let (line, len_max) = match rank {
            Rank::Urgent => (0, URGENT_MAX),
            Rank::New(Grant::Known) => (1, NEW_MAX),
            Rank::New(Grant::Stranger) => (2, NEW_MAX),
            Rank::New(Grant::Spare) => (3, NEW_MAX),
        };
        self.lines.get_mut(line).is_some_and(|line| line.push(len_max, flow, bytes))
    }

    /// Takes the next datagram: usually of the highest rank, and at intervals of another rank, so that no rank
    /// starves.
    pub(super) fn pop(&mut self) -> Option<(Flow, Bytes)> {
        self.turn = self.turn.wrapping_add(1);
        let first = match self.turn % 16 {
            0 => 3,
            8 => 2,
            4 | 12 => 1,
            _ => 0,
        };
        let of_turn = self.lines.get_mut(first).and_then(Line::pop);
        of_turn.or_else(|| self.lines.iter_mut().find_map(Line::pop))
    }

    /// Returns the number of waiting datagrams.
    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(|line| line.waiting.len()).sum()
    }
}

impl Line {
    fn push(&mut self, len_max: usize, flow: Flow, bytes: Bytes) -> bool {
        let has_room = self.waiting.len() < len_max && self.bytes.saturating_add(bytes.len()) <= BYTES_MAX;
        if has_room {
            self.bytes += bytes.len();
            self.waiting.push_back((flow, bytes));
        }
        has_room
    }

    fn pop(&mut self) -> Option<(Flow, Bytes)> {
        let (flow, bytes) = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes.len());
        Some((flow, bytes))
    }
}

/// Waiting messages of live calls: two for each of 2,000 calls.
const URGENT_MAX: usize = 4_096;
/// Waiting messages of each other rank: the switch reads this many in a fifth of a second.
const NEW_MAX: usize = 1_024;
/// Bytes that may wait in each rank.
const BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use sidetone_sip::flow::ListenerId;

    use super::*;

    const RANKS: [(Rank, &str); 4] = [
        (Rank::Urgent, "u"),
        (Rank::New(Grant::Known), "k"),
        (Rank::New(Grant::Stranger), "o"),
        (Rank::New(Grant::Spare), "s"),
    ];

    fn put(intake: &mut Intake, rank: Rank, bytes: Bytes) -> bool {
        intake.push(rank, Flow::udp(ListenerId(0), "192.0.2.1:5060".parse().unwrap()), bytes)
    }

    #[test]
    fn what_is_urgent_goes_first_and_starves_nobody() {
        let mut intake = Intake::default();
        for (rank, text) in RANKS.into_iter().rev() {
            for _ in 0..20 {
                assert!(put(&mut intake, rank, Bytes::from_static(text.as_bytes())));
            }
        }
        let order: Vec<u8> = std::iter::from_fn(|| intake.pop()).map(|(_, bytes)| bytes[0]).collect();
        let order = String::from_utf8(order).unwrap();
        assert_eq!(&order[..32], "uuukuuuouuukuuusuuukuuuouukkkkks");
        assert!(order.ends_with("ssss"), "{order}");
        assert_eq!((order.len(), intake.len()), (80, 0));
    }

    #[test]
    fn a_full_line_leaves_the_others_their_room() {
        let mut intake = Intake::default();
        let mut waiting = 0;
        for (rank, text) in RANKS.into_iter().rev() {
            let text = Bytes::from_static(text.as_bytes());
            let taken = (0..5_000).filter(|_| put(&mut intake, rank, text.clone())).count();
            assert_eq!(taken, if rank == Rank::Urgent { URGENT_MAX } else { NEW_MAX });
            waiting += taken;
        }
        assert_eq!(intake.len(), waiting);
        let mut intake = Intake::default();
        let long = Bytes::from(vec![0; 65_000]);
        let taken = (0..1_000).filter(|_| put(&mut intake, Rank::Urgent, long.clone())).count();
        assert_eq!(taken, BYTES_MAX / 65_000);
        assert_eq!(std::iter::from_fn(|| intake.pop()).count(), taken);
        assert!(intake.lines.iter().all(|line| line.bytes == 0));
    }
}
