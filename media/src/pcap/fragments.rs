//! Reassembles the fragments of IP packets (RFC 791 §3.2, RFC 8200 §4.5), in any order and within bounds.
//!
//! Where two fragments overlap, the first copy is kept; when the copies differ, the packet is dropped as RFC
//! 5722 requires, because it is unknown which one the receiver used. Bytes that the snap length cut off stay
//! zero, and the packet counts as known up to the first of them.

use std::collections::{HashMap, VecDeque};

use super::content::{FragmentKey as Key, Layer, Piece};
use super::ip::transport;
use crate::time::Micros;

/// Packets that wait for fragments.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: HashMap<Key, Waiting>,
    /// Waiting packets by age; completed ones stay in the queue.
    order: VecDeque<(u64, Key)>,
    begun: u64,
    bytes: usize,
    /// Fragments of packets that were dropped.
    given_up: u64,
    /// Whether a fragment other than a first one has arrived.
    later: bool,
    /// Whether only first fragments are captured, because a filter for ports drops the others.
    heads_alone: bool,
}

/// The result of adding a fragment.
#[derive(Debug)]
pub(super) enum Added {
    /// The other fragments are not captured, so this one stands for the packet.
    Alone,
    /// It waits, or was refused.
    Waits,
    /// It completed its packet.
    Whole(Whole),
}

/// The payload of a reassembled packet.
#[derive(Debug)]
pub(super) struct Whole {
    key: Key,
    bytes: Vec<u8>,
    /// Every byte before this offset was captured.
    known: usize,
}

impl Whole {
    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn layer(&self) -> Layer<'_> {
        let kept = self.bytes.get(..self.known).unwrap_or(&self.bytes);
        transport(self.key.protocol, self.key.ends, kept, self.bytes.len())
    }
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    begun: Micros,
    bytes: Vec<u8>,
    /// The ranges that have arrived, in order and not adjacent.
    spans: Vec<(usize, usize)>,
    known: usize,
    /// The length of the complete payload, once the last fragment has arrived.
    total: Option<usize>,
    fragments: u64,
}

impl Fragments {
    /// Adds a fragment captured at `at`.
    pub(super) fn add(&mut self, at: Micros, piece: &Piece<'_>) -> Added {
        if piece.offset != 0 {
            self.later = true;
            self.heads_alone = false;
        }
        self.expire(at);
        if self.heads_alone {
            return Added::Alone;
        }
        let key = piece.key();
        let end = piece.offset + piece.len;
        let is_sound = end <= PACKET_LEN_MAX && (!piece.more || piece.len.is_multiple_of(8)) && piece.len > 0;
        if !is_sound {
            self.given_up += 1;
            return Added::Waits;
        }
        let number = self.begun;
        let waiting = self.waiting.entry(key).or_insert_with(|| Waiting::new(number, at));
        if waiting.number == number {
            self.begun += 1;
            self.order.push_back((number, key));
        }
        let before = waiting.bytes.len();
        let state = waiting.add(piece);
        self.bytes += waiting.bytes.len() - before;
        match state {
            State::Conflict => self.give_up(&key),
            State::Whole => {
                if let Some(waiting) = self.waiting.remove(&key) {
                    self.bytes -= waiting.bytes.len();
                    let known = waiting.known.min(waiting.bytes.len());
                    let Waiting { bytes, .. } = waiting;
                    return Added::Whole(Whole { key, bytes, known });
                }
            }
            State::Waits => {}
        }
        while self.waiting.len() > WAITING_MAX || self.bytes > BYTES_MAX || self.order.len() > ORDER_MAX {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.waiting.get(&key).is_some_and(|waiting| waiting.number == number) {
                self.give_up(&key);
            }
        }
        Added::Waits
    }

    /// Fragments that could not be reassembled so far, including those that still wait.
    pub(super) fn left(&self) -> u64 {
        self.given_up + self.waiting.values().map(|waiting| waiting.fragments).sum::<u64>()
    }

    fn expire(&mut self, at: Micros) {
        let age_max_us = if self.later { AGE_MAX_US } else { HEAD_AGE_MAX_US };
        // Each iteration removes one packet from the queue.
        while let Some((number, key)) = self.order.front().copied() {
            match self.waiting.get(&key).filter(|waiting| waiting.number == number) {
                Some(waiting) if at.since(waiting.begun) <= age_max_us => break,
                Some(_) => {
                    self.heads_alone |= !self.later;
                    self.give_up(&key);
                }
                None => {}
            }
            self.order.pop_front();
        }
    }

    fn give_up(&mut self, key: &Key) {
        if let Some(waiting) = self.waiting.remove(key) {
            self.bytes -= waiting.bytes.len();
            self.given_up += waiting.fragments;
        }
    }
}

enum State {
    Conflict,
    Waits,
    Whole,
}

impl Waiting {
    fn new(number: u64, begun: Micros) -> Self {
        Waiting {
            number,
            begun,
            bytes: Vec::new(),
            spans: Vec::new(),
            known: usize::MAX,
            total: None,
            fragments: 0,
        }
    }

    fn add(&mut self, piece: &Piece<'_>) -> State {
        let (begin, end) = (piece.offset, piece.offset + piece.len);
        self.fragments += 1;
        let beyond = self.total.is_some_and(|total| end > total || (!piece.more && end != total));
        if beyond || (!piece.more && self.bytes.len() > end) {
            return State::Conflict;
        }
        if !piece.more {
            self.total = Some(end);
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let kept_end = begin + piece.payload.len().min(piece.len);
        if !self.write(begin, kept_end, piece.payload) {
            return State::Conflict;
        }
        if kept_end < end {
            self.known = self.known.min(kept_end);
        }
        self.cover(begin, end);
        if self.spans.len() > SPANS_MAX {
            return State::Conflict;
        }
        if self.total.is_some_and(|total| self.spans.as_slice() == [(0, total)]) {
            State::Whole
        } else {
            State::Waits
        }
    }

    /// Copies the new bytes of `payload`; returns whether the other bytes equal the earlier copy.
    fn write(&mut self, begin: usize, end: usize, payload: &[u8]) -> bool {
        for (from, to) in &self.spans {
            let (from, to) = ((*from).max(begin), (*to).min(end).min(self.known));
            if from < to && self.bytes.get(from..to) != payload.get(from - begin..to - begin) {
                return false;
            }
        }
        let mut place = begin;
        for (from, to) in self.spans.iter().copied().chain([(end, end)]) {
            let gap_end = from.min(end);
            if place < gap_end
                && let (Some(target), Some(bytes)) =
                    (self.bytes.get_mut(place..gap_end), payload.get(place - begin..gap_end - begin))
            {
                target.copy_from_slice(bytes);
            }
            place = place.max(to);
        }
        true
    }

    fn cover(&mut self, begin: usize, end: usize) {
        let mut merged = (begin, end);
        self.spans.retain(|(from, to)| {
            let apart = *to < merged.0 || *from > merged.1;
            if !apart {
                merged = (merged.0.min(*from), merged.1.max(*to));
            }
            apart
        });
        let place = self.spans.partition_point(|span| span.0 < merged.0);
        self.spans.insert(place, merged);
    }
}

/// Packets that wait at the same time; the oldest one is dropped for a new one.
const WAITING_MAX: usize = 1_024;
/// Total bytes of waiting packets.
const BYTES_MAX: usize = 8 << 20;
/// Entries in the queue of packets, including completed ones.
const ORDER_MAX: usize = 4 * WAITING_MAX;
/// Separate ranges of one packet.
const SPANS_MAX: usize = 64;
/// The largest payload of an IP packet.
const PACKET_LEN_MAX: usize = 65_535;
/// How long fragments wait for the others, in microseconds; hosts wait 30 to 120 s (RFC 1122 §3.3.2).
const AGE_MAX_US: i64 = 30_000_000;
/// How long the first initial fragment of a capture waits until the capture counts as having no other fragments, in
/// microseconds.
const HEAD_AGE_MAX_US: i64 = 1_000_000;

#[cfg(test)]
#[path = "fragments_tests.rs"]
mod tests;
