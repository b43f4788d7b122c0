//! Requests after their final response: the data for answering retransmissions (RFC 3261 §17.2.2, "Completed", timer
//! J), and for absorbing retransmissions of an INVITE whose 2xx is acknowledged (RFC 6026 §8.7, timer L).
//!
//! Only the bytes of the response, its route and two hashes are needed; for an INVITE, no bytes. All entries have the
//! same lifetime, so the oldest is first and no entry needs a timer of its own.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;

use crate::flow::Flow;
use crate::transaction::key::WireId;

/// The finished transactions of a layer.
///
/// *Bounds*: [`FINISHED_MAX`] responses and [`FINISHED_BYTES_MAX`] bytes; beyond these the oldest is removed,
/// and a retransmission of its request is treated as a new one.
#[derive(Debug, Default)]
pub(super) struct Finished {
    answers: VecDeque<Answer>,
    /// The number of removed responses, which is the number of the first remaining one.
    gone: u64,
    by_wire: HashMap<WireId, u64>,
    by_merge: HashMap<WireId, u64>,
    bytes: usize,
}

/// A final response that may be needed again.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) wire: WireId,
    pub(super) merged: Option<WireId>,
    pub(super) route: Flow,
    /// The response; empty for an INVITE, whose retransmissions are absorbed.
    pub(super) bytes: Bytes,
    /// When timer J or L fires.
    pub(super) until: Instant,
    /// The To tag of an INVITE, for the response to its CANCEL.
    pub(super) invite: Option<u64>,
}

impl Finished {
    /// Stores a response. It stays until all earlier ones are removed, even if its own time ends before.
    pub(super) fn keep(&mut self, mut answer: Answer) {
        let latest = self.answers.back().map_or(answer.until, |last| last.until);
        answer.until = answer.until.max(latest);
        while self.answers.len() >= FINISHED_MAX
            || (self.bytes.saturating_add(answer.bytes.len()) > FINISHED_BYTES_MAX
                && !self.answers.is_empty())
        {
            self.forget_oldest();
        }
        let number = self.gone.wrapping_add(self.answers.len() as u64);
        self.by_wire.insert(answer.wire, number);
        if let Some(merged) = answer.merged {
            self.by_merge.insert(merged, number);
        }
        self.bytes += answer.bytes.len();
        self.answers.push_back(answer);
    }

    /// The response to a retransmitted request; empty when it is absorbed.
    pub(super) fn answer(&self, wire: WireId) -> Option<(Flow, Bytes)> {
        let answer = self.get(wire)?;
        Some((answer.route, answer.bytes.clone()))
    }

    /// The route and the To tag of an INVITE that was accepted and acknowledged.
    pub(super) fn invite(&self, wire: WireId) -> Option<(Flow, u64)> {
        let answer = self.get(wire)?;
        Some((answer.route, answer.invite?))
    }

    fn get(&self, wire: WireId) -> Option<&Answer> {
        let place = self.by_wire.get(&wire)?.checked_sub(self.gone)?;
        self.answers.get(usize::try_from(place).ok()?)
    }

    /// Whether such a request was answered recently.
    pub(super) fn contains(&self, wire: WireId) -> bool {
        self.by_wire.contains_key(&wire)
    }

    /// Whether such a request arrived by another path (§8.2.2.2).
    pub(super) fn is_merged(&self, merged: WireId) -> bool {
        self.by_merge.contains_key(&merged)
    }

    /// Removes responses whose time has ended.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.answers.front().is_some_and(|answer| answer.until <= now) {
            self.forget_oldest();
        }
    }

    /// The time at which the next response is removed.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.answers.front().map(|answer| answer.until)
    }

    /// Number of stored responses.
    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    fn forget_oldest(&mut self) {
        let Some(answer) = self.answers.pop_front() else { return };
        let number = self.gone;
        self.gone = self.gone.wrapping_add(1);
        self.bytes = self.bytes.saturating_sub(answer.bytes.len());
        // A later response with the same key stays.
        if self.by_wire.get(&answer.wire) == Some(&number) {
            self.by_wire.remove(&answer.wire);
        }
        if let Some(merged) = answer.merged
            && self.by_merge.get(&merged) == Some(&number)
        {
            self.by_merge.remove(&merged);
        }
    }
}

/// Stored responses: 4,000 per second for the 32 s of timer J.
pub(super) const FINISHED_MAX: usize = 131_072;
/// Their total size in bytes.
pub(super) const FINISHED_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flow::ListenerId;
    use crate::transaction::ladder::start;

    fn answer(number: u128, until: Instant, len: usize) -> Answer {
        let route = Flow::udp(ListenerId(0), "192.0.2.1:5060".parse().unwrap());
        let (wire, merged) = (WireId(number), Some(WireId(number + (1 << 100))));
        Answer { wire, merged, route, bytes: vec![b'x'; len].into(), until, invite: None }
    }

    #[test]
    fn an_answer_is_there_until_its_time_is_over() {
        let zero = start();
        let at = |s| zero + Duration::from_secs(s);
        let mut finished = Finished::default();
        for number in 0..3 {
            finished.keep(answer(number, at(32 + u64::try_from(number).unwrap()), 7));
        }
        assert_eq!((finished.next_timeout(), finished.len()), (Some(at(32)), 3));
        finished.expire(at(33));
        assert_eq!((finished.answer(WireId(1)), finished.len()), (None, 1));
        assert_eq!(finished.answer(WireId(2)).unwrap().1.len(), 7);
        assert!(finished.is_merged(WireId(2 + (1 << 100))) && !finished.is_merged(WireId(1 << 100)));
        finished.expire(at(40));
        assert_eq!((finished.next_timeout(), finished.bytes), (None, 0));
        assert!(finished.by_wire.is_empty() && finished.by_merge.is_empty());
    }

    /// Besides the bytes of the response: its entry in the queue, and one in each of the two tables.
    #[test]
    fn a_finished_request_costs_little_more_than_its_answer() {
        let of_tables = 2 * (size_of::<(WireId, u64)>() + 1) * 8 / 7;
        let bytes = size_of::<Answer>() + of_tables;
        assert!(bytes <= 256, "{bytes} bytes");
    }

    #[test]
    fn there_are_so_many_answers_and_so_many_bytes() {
        let zero = start();
        let mut finished = Finished::default();
        for number in 0..FINISHED_MAX + 10 {
            finished.keep(answer(number as u128, zero, 1));
        }
        assert_eq!(
            (finished.len(), finished.by_wire.len(), finished.by_merge.len()),
            (FINISHED_MAX, FINISHED_MAX, FINISHED_MAX)
        );
        assert!(!finished.contains(WireId(9)) && finished.contains(WireId(10)));
        let mut finished = Finished::default();
        for number in 0..10 {
            finished.keep(answer(number, zero, FINISHED_BYTES_MAX / 4));
        }
        assert_eq!((finished.len(), finished.bytes), (4, FINISHED_BYTES_MAX));
    }
}
