//! The limit of outbound calls in a cluster: before the first trunk is called, an outbound call waits until the nodes
//! have decided that it fits into the limit of its organisation.
//!
//! A call that fits into an earlier decision continues immediately. Emergency calls never wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::{CallId, OrganisationId};

use crate::call_table::CallTable;
use crate::outbound_limit::{OutboundDecision, OutboundNeeds};
use crate::routing::{Directory, is_short};

/// The outbound calls of organisations with a limit.
///
/// *Bounds*: the number of live calls.
#[derive(Debug, Default)]
pub(super) struct OutboundSlots {
    organisations: BTreeMap<OrganisationId, Slots>,
    ticket: u64,
}

#[derive(Debug, Default)]
struct Slots {
    /// The number of calls that may be up.
    slots: usize,
    up: BTreeSet<CallId>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    call: CallId,
    until: Instant,
}

/// The decision about a call that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    GoesOn(CallId),
    Refused(CallId),
}

impl OutboundSlots {
    /// Whether the hunt of a call must wait for a decision.
    pub(super) fn waits(
        &mut self,
        now: Instant,
        id: CallId,
        calls: &CallTable,
        directory: &Directory,
    ) -> bool {
        let Some(hunt) = calls.get(id).and_then(|live| live.hunt.as_ref()) else { return false };
        let organisation = hunt.organisation;
        if limit_of(directory, organisation).is_none() {
            return false;
        }
        let own = self.organisations.entry(organisation).or_default();
        if own.up.contains(&id) {
            return false;
        }
        if own.waiting.iter().any(|waiting| waiting.call == id) {
            return true;
        }
        let is_free = own.waiting.is_empty() && own.up.len() < own.slots;
        if is_free || is_short(&hunt.number) {
            own.up.insert(id);
            return false;
        }
        self.ticket += 1;
        own.waiting.push_back(Waiting { ticket: self.ticket, call: id, until: now + WAITS_FOR });
        true
    }

    /// Forgets a call that is over.
    pub(super) fn over(&mut self, organisation: OrganisationId, call: CallId) {
        if let Some(own) = self.organisations.get_mut(&organisation) {
            own.up.remove(&call);
            own.waiting.retain(|waiting| waiting.call != call);
        }
    }

    /// Returns the needs of every organisation. This also gives back the slots of calls that have ended since.
    pub(super) fn take(&mut self, directory: &Directory) -> Vec<OutboundNeeds> {
        self.organisations.retain(|_, own| !own.up.is_empty() || !own.waiting.is_empty());
        let needs = self.organisations.iter_mut().filter_map(|(organisation, own)| {
            own.slots = own.slots.min(own.up.len() + own.waiting.len());
            Some(OutboundNeeds {
                organisation: *organisation,
                limit: limit_of(directory, *organisation)?,
                up: count(own.up.len()),
                waiting: count(own.waiting.len()),
                ticket: own.waiting.back().map_or(self.ticket, |waiting| waiting.ticket),
            })
        });
        needs.collect()
    }

    /// Applies a decision; returns the waiting calls that it concerns.
    pub(super) fn decide(&mut self, decision: OutboundDecision) -> Vec<Outcome> {
        let Some(own) = self.organisations.get_mut(&decision.organisation) else { return Vec::new() };
        own.slots = usize::try_from(decision.slots).unwrap_or(usize::MAX);
        let mut outcomes = Vec::new();
        while let Some(waiting) = own.waiting.pop_front_if(|waiting| waiting.ticket <= decision.ticket) {
            if own.up.len() < own.slots {
                own.up.insert(waiting.call);
                outcomes.push(Outcome::GoesOn(waiting.call));
            } else {
                outcomes.push(Outcome::Refused(waiting.call));
            }
        }
        outcomes
    }

    /// Returns when the wait of the next call times out.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let first = self.organisations.values().filter_map(|own| own.waiting.front());
        first.map(|waiting| waiting.until).min()
    }

    /// Removes and returns calls without a decision in time.
    pub(super) fn timeout(&mut self, now: Instant) -> Vec<CallId> {
        let mut late = Vec::new();
        for own in self.organisations.values_mut() {
            while let Some(waiting) = own.waiting.pop_front_if(|waiting| waiting.until <= now) {
                late.push(waiting.call);
            }
        }
        late
    }
}

fn limit_of(directory: &Directory, organisation: OrganisationId) -> Option<u32> {
    directory.organisation(organisation)?.max_outbound_calls
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// How long a call waits: far longer than the nodes need, because they always decide.
const WAITS_FOR: Duration = Duration::from_secs(2);
