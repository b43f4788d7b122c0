//! What was let in and waits to be read: messages of live calls before all others, within bounds.
//!
//! The sockets are emptied again and again while the switch works, so that what is dropped never stands in front of what
//! is not in the system's buffers.

use std::collections::VecDeque;

use bytes::Bytes;
use sidetone_sip::flow::Flow;

use crate::switch::admitting::Rank;

/// Datagrams that wait.
///
/// *Bounds*: [`URGENT_MAX`] and [`ORDINARY_MAX`] datagrams, [`BYTES_MAX`] bytes of each rank.
#[derive(Default)]
pub(super) struct Intake {
    urgent: Line,
    ordinary: Line,
    /// How many urgent ones have gone in a row while an ordinary one waited.
    row: usize,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<(Flow, Bytes)>,
    bytes: usize,
}

impl Intake {
    /// Puts a datagram behind the others of its rank; false when there is no room.
    pub(super) fn push(&mut self, rank: Rank, flow: Flow, bytes: Bytes) -> bool {
        match rank {
            Rank::Urgent => self.urgent.push(URGENT_MAX, flow, bytes),
            Rank::Ordinary => self.ordinary.push(ORDINARY_MAX, flow, bytes),
        }
    }

    /// The datagram whose turn it is: an urgent one, but one of the others after [`ROW_MAX`].
    pub(super) fn pop(&mut self) -> Option<(Flow, Bytes)> {
        if self.row >= ROW_MAX || self.urgent.waiting.is_empty() {
            self.row = 0;
            return self.ordinary.pop().or_else(|| self.urgent.pop());
        }
        self.row += usize::from(!self.ordinary.waiting.is_empty());
        self.urgent.pop()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.urgent.waiting.len() + self.ordinary.waiting.len()
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

/// Messages of live calls that wait: one for each of 2,000 calls twice.
const URGENT_MAX: usize = 4_096;
/// Others that wait: what the switch reads in a fifth of a second.
const ORDINARY_MAX: usize = 1_024;
/// What they may hold, of each rank.
const BYTES_MAX: usize = 8 << 20;
/// Urgent ones in a row while others wait.
const ROW_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use sidetone_sip::flow::ListenerId;

    use super::*;

    fn put(intake: &mut Intake, rank: Rank, text: &'static str) -> bool {
        let flow = Flow::udp(ListenerId(0), "192.0.2.1:5060".parse().unwrap());
        intake.push(rank, flow, Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn what_is_urgent_goes_first_and_starves_nobody() {
        let mut intake = Intake::default();
        for _ in 0..3 {
            put(&mut intake, Rank::Ordinary, "o");
        }
        for _ in 0..20 {
            put(&mut intake, Rank::Urgent, "u");
        }
        let order: Vec<u8> = std::iter::from_fn(|| intake.pop()).map(|(_, bytes)| bytes[0]).collect();
        assert_eq!(String::from_utf8(order).unwrap(), "uuuuuuuuouuuuuuuuouuuuo");
        assert_eq!(intake.len(), 0);
    }

    #[test]
    fn a_full_line_leaves_the_other_its_room() {
        let mut intake = Intake::default();
        let taken = (0..5_000).filter(|_| put(&mut intake, Rank::Ordinary, "o")).count();
        assert_eq!((taken, intake.len()), (ORDINARY_MAX, ORDINARY_MAX));
        assert!(put(&mut intake, Rank::Urgent, "u"));
        let mut intake = Intake::default();
        let flow = Flow::udp(ListenerId(0), "192.0.2.1:5060".parse().unwrap());
        let long = Bytes::from(vec![0; 65_000]);
        let taken = (0..1_000).filter(|_| intake.push(Rank::Ordinary, flow, long.clone())).count();
        assert_eq!(taken, BYTES_MAX / 65_000);
        assert_eq!(std::iter::from_fn(|| intake.pop()).count(), taken);
        assert_eq!((intake.ordinary.bytes, intake.urgent.bytes), (0, 0));
    }
}
