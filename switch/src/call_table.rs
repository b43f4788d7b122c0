//! The table of live calls, with their legs, ports and timers.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use sidetone_model::ids::{CallId, LegId, OrganisationId, TrunkId};
use sidetone_sip::registrar::BindingId;
use sidetone_sip::ua::LegKey;

use crate::hunt::Hunt;
use crate::io::{Input, Output, Party, PortId};
use crate::live::{Caller, LiveCall};
use crate::port_shares::PortShares;
use crate::routing::Directory;

/// The live calls, found by id, leg or port.
pub(super) struct CallTable {
    /// Boxed: the table has space for twice as many, and moves them when it grows.
    calls: HashMap<CallId, Box<LiveCall>>,
    legs: HashMap<LegKey, (CallId, Party)>,
    /// The legs of registered phones.
    bound: BTreeSet<(BindingId, LegKey)>,
    ports: HashMap<PortId, (CallId, OrganisationId)>,
    /// The ports by organisation, and those of unanswered calls.
    shares: PortShares,
    /// Numbers of live outbound calls.
    outbound: HashMap<OrganisationId, usize>,
    timers: BTreeSet<(Instant, CallId)>,
    /// New legs for [`poll_watched`](Self::poll_watched); `None` until [`watch`](Self::watch).
    watched: Option<VecDeque<(CallId, OrganisationId, LegKey)>>,
}

impl CallTable {
    /// An empty table of a node with this number of port pairs.
    pub(super) fn new(media_ports: usize) -> Self {
        CallTable {
            calls: HashMap::new(),
            legs: HashMap::new(),
            bound: BTreeSet::new(),
            ports: HashMap::new(),
            shares: PortShares::new(media_ports),
            outbound: HashMap::new(),
            timers: BTreeSet::new(),
            watched: None,
        }
    }

    /// Adds a call and the caller's leg.
    pub(super) fn insert(&mut self, id: CallId, live: LiveCall) {
        if let Some(caller) = &live.caller {
            self.legs.insert(caller.key, (id, Party::Caller));
            let organisation = live.call.facts().organisation;
            self.watched.iter_mut().for_each(|watched| watched.push_back((id, organisation, caller.key)));
            self.bound.extend(caller.binding.map(|binding| (binding, caller.key)));
        }
        if let Some(hunt) = &live.hunt {
            *self.outbound.entry(hunt.organisation).or_default() += 1;
        }
        self.calls.insert(id, Box::new(live));
    }

    /// Notes new legs from now on; the owner drains them after every input, so that their number is bounded.
    pub(super) fn watch(&mut self) {
        self.watched.get_or_insert_default();
    }

    /// Returns the next new leg, with its call and the organisation of the call.
    pub(super) fn poll_watched(&mut self) -> Option<(CallId, OrganisationId, LegKey)> {
        self.watched.as_mut()?.pop_front()
    }

    /// Gives a live call a hunt, which it did not have before.
    pub(super) fn begin_hunt(&mut self, id: CallId, hunt: Hunt) {
        let Some(live) = self.calls.get_mut(&id) else { return };
        let organisation = hunt.organisation;
        if live.hunt.replace(hunt).is_none() {
            *self.outbound.entry(organisation).or_default() += 1;
        }
    }

    /// Feeds an input to a call; returns whether the call is live.
    pub(super) fn feed(&mut self, now: Instant, id: CallId, input: Input) -> bool {
        let live = self.calls.get_mut(&id);
        live.map(|live| live.call.handle_input(now, input)).is_some()
    }

    /// Returns the next output of a call.
    pub(super) fn poll_output(&mut self, id: CallId) -> Option<Output> {
        self.calls.get_mut(&id)?.call.poll_output()
    }

    /// Sets the timer of a call after its outputs were drained. Removes and returns the call when it is over.
    pub(super) fn schedule(&mut self, id: CallId) -> Option<Box<LiveCall>> {
        let live = self.calls.get_mut(&id)?;
        let due = live.next_timeout();
        if let Some(before) = std::mem::replace(&mut live.due, due) {
            self.timers.remove(&(before, id));
        }
        if let Some(due) = due {
            self.timers.insert((due, id));
        }
        if live.unanswered_ports > 0
            && !live.call.is_unanswered()
            && let Some(caller) = live.calling_extension()
        {
            self.shares.stop_waiting(caller, std::mem::take(&mut live.unanswered_ports));
        }
        if !live.call.is_over() {
            return None;
        }
        let over = self.calls.remove(&id)?;
        for (binding, leg) in over.bound_legs() {
            self.bound.remove(&(binding, leg));
        }
        if let Some(organisation) = over.hunt.as_ref().map(|hunt| hunt.organisation)
            && let Some(up) = self.outbound.get_mut(&organisation)
        {
            *up -= 1;
            if *up == 0 {
                self.outbound.remove(&organisation);
            }
        }
        Some(over)
    }

    /// Removes and returns a call whose timer is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<CallId> {
        let (due, id) = self.timers.first().copied().filter(|(due, _)| *due <= now)?;
        self.timers.remove(&(due, id));
        Some(id)
    }

    /// Adds the leg of a called party.
    pub(super) fn add_leg(&mut self, id: CallId, fork: usize, leg: LegKey) {
        self.legs.insert(leg, (id, Party::Callee(fork)));
        let Some(live) = self.calls.get_mut(&id) else { return };
        let organisation = live.call.facts().organisation;
        self.watched.iter_mut().for_each(|watched| watched.push_back((id, organisation, leg)));
        if let Some(callee) = live.callees.get_mut(fork) {
            callee.leg = Some(leg);
            self.bound.extend(callee.binding.map(|binding| (binding, leg)));
        }
    }

    /// Makes the leg of a fork the caller's and forgets the other forks; the user agent ends those that were
    /// cancelled.
    pub(super) fn promote(&mut self, id: CallId, place: usize) {
        let Some(live) = self.calls.get_mut(&id) else { return };
        for (at, callee) in std::mem::take(&mut live.callees).into_iter().enumerate() {
            let Some(key) = callee.leg else { continue };
            if at == place {
                self.legs.insert(key, (id, Party::Caller));
                live.caller =
                    Some(Caller { invite: None, key, identity: callee.identity, binding: callee.binding });
            } else {
                self.legs.remove(&key);
                if let Some(binding) = callee.binding {
                    self.bound.remove(&(binding, key));
                }
            }
        }
    }

    /// Forgets a leg that is over.
    pub(super) fn remove_leg(&mut self, leg: LegKey) -> Option<(CallId, Party)> {
        let (id, party) = self.legs.remove(&leg)?;
        if let Some(binding) = self.calls.get(&id).and_then(|live| live.binding_of(party)) {
            self.bound.remove(&(binding, leg));
        }
        Some((id, party))
    }

    /// Returns the legs of a registered phone.
    pub(super) fn legs_of(&self, binding: BindingId) -> Vec<LegKey> {
        let legs = self.bound.range((binding, LegKey::MIN)..=(binding, LegKey::MAX));
        legs.map(|(_, leg)| *leg).collect()
    }

    /// Adds an opened port of a call.
    pub(super) fn add_port(&mut self, port: PortId, id: CallId) {
        let Some(live) = self.calls.get_mut(&id) else { return };
        let organisation = live.call.facts().organisation;
        if self.ports.insert(port, (id, organisation)).is_none() {
            self.shares.take(organisation);
        }
        if let Some(caller) = live.calling_extension().filter(|_| live.call.is_unanswered()) {
            live.unanswered_ports += 1;
            self.shares.wait(caller);
        }
    }

    /// Forgets a port that was closed; returns its call.
    pub(super) fn remove_port(&mut self, port: PortId) -> Option<CallId> {
        let (id, organisation) = self.ports.remove(&port)?;
        self.shares.give_back(organisation);
        Some(id)
    }

    /// Returns the shares of the node's media ports.
    pub(super) fn shares(&self) -> &PortShares {
        &self.shares
    }

    pub(super) fn get_mut(&mut self, id: CallId) -> Option<&mut LiveCall> {
        self.calls.get_mut(&id).map(Box::as_mut)
    }

    pub(super) fn get(&self, id: CallId) -> Option<&LiveCall> {
        self.calls.get(&id).map(Box::as_ref)
    }

    /// Returns every call.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LiveCall> {
        self.calls.values().map(Box::as_ref)
    }

    /// Returns the ids of all calls.
    pub(super) fn ids(&self) -> Vec<CallId> {
        self.calls.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns when the next timer of a call is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Returns the call and the party of a leg of the user agent.
    pub(super) fn party_of(&self, leg: LegKey) -> Option<(CallId, Party)> {
        self.legs.get(&leg).copied()
    }

    /// Returns the leg of a party, once it was invited.
    pub(super) fn key_of(&self, id: CallId, party: Party) -> Option<LegKey> {
        self.calls.get(&id)?.key_of(party)
    }

    /// Returns the public id of a party's leg.
    pub(super) fn leg_id(&self, id: CallId, party: Party) -> Option<LegId> {
        self.calls.get(&id)?.identity_of(party).map(|identity| identity.id)
    }

    /// Returns the call and the public id of a leg of the user agent; `None` once the leg is over.
    pub(super) fn identity_of(&self, leg: LegKey) -> Option<(CallId, LegId)> {
        let (id, party) = self.party_of(leg)?;
        Some((id, self.leg_id(id, party)?))
    }

    /// Returns the call of a port.
    pub(super) fn call_at(&self, port: PortId) -> Option<CallId> {
        self.ports.get(&port).map(|(call, _)| *call)
    }

    /// Returns the public id of the leg of a port.
    pub(super) fn leg_at(&self, port: PortId) -> Option<LegId> {
        let id = self.call_at(port)?;
        self.leg_id(id, self.calls.get(&id)?.call.parties().party_at(port)?)
    }

    /// Returns the address from which the SIP of a leg's party arrives; its media port has the same family.
    pub(super) fn signalling_of(&self, leg: LegKey) -> Option<IpAddr> {
        let (id, party) = self.party_of(leg)?;
        self.get(id)?.call.parties().leg(party)?.signalling
    }

    /// Returns the trunk of a leg, and the address that its INVITE was sent to.
    pub(super) fn trunk_of(&self, leg: LegKey) -> Option<(TrunkId, SocketAddr)> {
        let (id, Party::Callee(fork)) = self.party_of(leg)? else { return None };
        self.calls.get(&id)?.hunt.as_ref()?.trunk_of(fork)
    }

    /// Whether an organisation has reached its limit of concurrent outbound calls.
    pub(super) fn is_at_outbound_limit(&self, directory: &Directory, organisation: OrganisationId) -> bool {
        let limit = directory.organisation(organisation).and_then(|known| known.max_outbound_calls);
        let up = self.outbound.get(&organisation).copied().unwrap_or_default();
        limit.is_some_and(|limit| up >= usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Whether no leg, port or outbound call is left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.has_no_legs() && self.has_no_ports() && self.has_no_outbound()
    }

    #[cfg(test)]
    fn has_no_ports(&self) -> bool {
        self.ports.is_empty() && self.shares.is_empty()
    }

    #[cfg(test)]
    pub(super) fn has_no_legs(&self) -> bool {
        self.legs.is_empty() && self.bound.is_empty()
    }

    #[cfg(test)]
    pub(super) fn has_no_outbound(&self) -> bool {
        self.outbound.is_empty()
    }
}
