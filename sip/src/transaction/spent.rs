//! Client transactions after their final response: retransmissions are absorbed (RFC 3261 §17.1.2.2, timer K), and
//! further 2xx of an INVITE are passed to the user (RFC 6026 §8.4, timer M).
//!
//! Nothing is sent any more, so the request is not kept.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use crate::transaction::key::{ClientKey, ClientWire};

/// The spent transactions of a layer.
///
/// *Bounds*: [`SPENT_MAX`]; beyond that the oldest of its kind is removed, and a repeated response to it counts as
/// stray.
#[derive(Debug, Default)]
pub(super) struct Spent {
    by_wire: HashMap<ClientWire, Kind>,
    /// INVITEs and other requests; all of one kind have the same lifetime, so the oldest is first.
    invites: VecDeque<(Instant, ClientWire)>,
    others: VecDeque<(Instant, ClientWire)>,
}

/// A spent transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An INVITE that was accepted.
    Invite(ClientKey),
    /// Any other request.
    Other,
}

impl Spent {
    /// Stores a transaction until this time.
    pub(super) fn keep(&mut self, until: Instant, wire: ClientWire, kind: Kind) {
        if self.by_wire.len() >= SPENT_MAX {
            let oldest = match self.queue(kind).pop_front() {
                Some(oldest) => Some(oldest),
                None => self.others.pop_front().or_else(|| self.invites.pop_front()),
            };
            if let Some((_, wire)) = oldest {
                self.by_wire.remove(&wire);
            }
        }
        self.queue(kind).push_back((until, wire));
        self.by_wire.insert(wire, kind);
    }

    /// The transaction of a response.
    pub(super) fn get(&self, wire: ClientWire) -> Option<Kind> {
        self.by_wire.get(&wire).copied()
    }

    /// Removes transactions whose time has ended.
    pub(super) fn expire(&mut self, now: Instant) {
        for queue in [&mut self.invites, &mut self.others] {
            while let Some((_, wire)) = queue.pop_front_if(|(until, _)| *until <= now) {
                self.by_wire.remove(&wire);
            }
        }
    }

    /// The time at which the next transaction is removed.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [self.invites.front(), self.others.front()].into_iter().flatten().map(|(until, _)| *until).min()
    }

    /// Number of transactions.
    pub(super) fn len(&self) -> usize {
        self.by_wire.len()
    }

    fn queue(&mut self, kind: Kind) -> &mut VecDeque<(Instant, ClientWire)> {
        match kind {
            Kind::Invite(_) => &mut self.invites,
            Kind::Other => &mut self.others,
        }
    }
}

/// Spent transactions: those of 3,000 calls a second, an INVITE for 32 s and a BYE for 5 s each.
const SPENT_MAX: usize = 131_072;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::message::Method;
    use crate::transaction::ladder::start;

    #[test]
    fn each_stays_for_its_time_and_there_are_never_more_than_the_bound() {
        let zero = start();
        let at = |seconds| zero + Duration::from_secs(seconds);
        let wire = |number| ClientWire::new(number, 7, &Method::Invite);
        let mut spent = Spent::default();
        spent.keep(at(32), wire(1), Kind::Invite(ClientKey(1)));
        spent.keep(at(5), wire(2), Kind::Other);
        assert_eq!(
            (spent.get(wire(1)), spent.next_timeout()),
            (Some(Kind::Invite(ClientKey(1))), Some(at(5)))
        );
        spent.expire(at(5));
        assert_eq!((spent.get(wire(2)), spent.next_timeout(), spent.len()), (None, Some(at(32)), 1));
        for number in 0..SPENT_MAX as u64 + 10 {
            spent.keep(at(40), wire(100 + number), Kind::Other);
        }
        assert_eq!(
            (spent.len(), spent.get(wire(100)), spent.get(wire(200))),
            (SPENT_MAX, None, Some(Kind::Other))
        );
        spent.expire(at(60));
        assert_eq!((spent.len(), spent.next_timeout()), (0, None));
    }
}
