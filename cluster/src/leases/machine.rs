//! The leases as one node sees them, as a machine.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::NodeId;

use crate::leases::entry::{Entry, Owner, RoomKey};
use crate::membership::RunId;

/// Events.
#[derive(Clone, Debug)]
pub enum Input {
    /// A caller at this node waits for the room, or it is live here; repeated while that is so.
    Wanted(RoomKey),
    /// The room is not live here any more.
    Closed(RoomKey),
    /// Hand a room that this node owns over to this run of another one.
    HandOver(RoomKey, NodeId, RunId),
    /// An entry was written, with this revision; an empty value says that its owner has left.
    Seen(RoomKey, u64, Vec<u8>),
    /// The result of an operation.
    Done(RoomKey, OperationId, Outcome),
    /// The connection to the store is new. What was under way has no result, and the store may have lost its memory.
    Reopened,
    /// The time of [`RoomLeases::next_timeout`] has come.
    Timeout,
}

/// Identifies an operation: a late result of an earlier one is of no consequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(u64);

/// The result of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A read found no entry.
    Absent,
    /// A write was refused, because the entry has another revision.
    Conflict,
    /// There is none.
    Failed,
    /// A read found an entry with this revision.
    Found(u64, Vec<u8>),
    /// A write has this revision.
    Written(u64),
}

/// Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write an entry if the stored one has this revision; 0: if there is none.
    Write(RoomKey, OperationId, Vec<u8>, u64),
    /// Read an entry.
    Read(RoomKey, OperationId),
    /// Who owns a room has changed. A node that owned it and does not any more must end it at once.
    Owner(RoomKey, Owner),
}

/// The leases as one node sees them.
#[derive(Debug)]
pub struct RoomLeases {
    node: NodeId,
    run: RunId,
    rooms: BTreeMap<RoomKey, State>,
    /// No room is claimed before: owners whose entries the store has lost write them again until then.
    claims_from: Option<Instant>,
    last_operation: u64,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct State {
    lease: Lease,
    /// Until when the last [`Input::Wanted`] counts.
    wanted_until: Option<Instant>,
    /// The operation that is under way, and when it was sent.
    under_way: Option<(OperationId, Instant)>,
    /// The revision of an entry whose owner has left, by which the room is claimed; 0 if there is none.
    vacant: u64,
    /// The latest revision that is known: what is delivered late counts for nothing.
    latest: u64,
    /// Whether the last owner is gone without leaving the room.
    is_lost: bool,
    /// Whether the operation that is under way claims the room.
    claims: bool,
    /// Whether the lease is renewed before its time.
    renews_now: bool,
    /// The node that the room is handed over to when the operation that is under way has its result.
    gives: Option<(NodeId, RunId)>,
    /// Until when the room is not claimed, because this node has handed it over.
    given_until: Option<Instant>,
    /// The fence of the owner that this node becomes, because the one before has handed the room over.
    granted: Option<u64>,
    /// When a failed operation is tried again.
    again: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Lease {
    Free,
    Here { fence: u64, revision: u64, sent: Instant, until: Instant },
    There { node: NodeId, fence: u64, heard: Instant },
}

impl State {
    fn owner(&self) -> Owner {
        match self.lease {
            Lease::Free if self.is_lost => Owner::Lost,
            Lease::Free => Owner::Unowned,
            Lease::Here { fence, .. } => Owner::Here { fence },
            Lease::There { node, fence, .. } => Owner::There { node, fence },
        }
    }
}

impl RoomLeases {
    /// No room is known; `run` is this run of the node.
    pub fn new(node: NodeId, run: RunId) -> Self {
        RoomLeases {
            node,
            run,
            rooms: BTreeMap::new(),
            claims_from: None,
            last_operation: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Handles an event; drain [`RoomLeases::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        self.claims_from = self.claims_from.filter(|from| *from > now);
        match input {
            Input::Wanted(key) => {
                self.expire(now, key);
                self.state(key).wanted_until = Some(now + WANTED_FOR);
                self.work(now, key);
            }
            Input::Closed(key) => {
                self.expire(now, key);
                if let Some(state) = self.rooms.get_mut(&key) {
                    state.wanted_until = None;
                    self.work(now, key);
                }
            }
            Input::HandOver(key, node, run) => {
                self.expire(now, key);
                if let Some(state) = self.rooms.get_mut(&key) {
                    state.gives = Some((node, run)).filter(|_| matches!(state.lease, Lease::Here { .. }));
                    self.work(now, key);
                }
            }
            Input::Seen(key, revision, value) => {
                self.expire(now, key);
                self.seen(now, key, revision, &value);
                self.work(now, key);
            }
            Input::Done(key, id, outcome) => {
                self.expire(now, key);
                self.done(now, key, id, outcome);
                self.work(now, key);
            }
            Input::Reopened => {
                self.claims_from = Some(now + LEASE);
                // A store that has lost its memory counts from the beginning.
                for state in self.rooms.values_mut() {
                    (state.under_way, state.latest, state.granted) = (None, 0, None);
                }
                self.all(now);
            }
            Input::Timeout => self.all(now),
        }
    }

    /// Does what every room needs now.
    fn all(&mut self, now: Instant) {
        let keys: Vec<RoomKey> = self.rooms.keys().copied().collect();
        for key in keys {
            self.expire(now, key);
            self.work(now, key);
        }
        self.rooms.retain(|_, state| {
            state.wanted_until = state.wanted_until.filter(|until| *until > now);
            state.again = state.again.filter(|at| *at > now);
            state.given_until = state.given_until.filter(|until| *until > now);
            !matches!(state.lease, Lease::Free) || state.wanted_until.is_some() || state.under_way.is_some()
        });
    }

    /// The next action.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let of = |state: &State| {
            let is_idle = state.under_way.is_none();
            let lease = match state.lease {
                Lease::Here { sent, until, .. } => {
                    let renew = state.again.unwrap_or(sent).max(sent + RENEW_AFTER);
                    Some(if is_idle { until.min(renew) } else { until })
                }
                Lease::There { heard, .. } => Some(heard + LEASE),
                Lease::Free => state.again.max(self.claims_from).max(state.given_until).filter(|_| is_idle),
            };
            lease.into_iter().chain(state.wanted_until).min()
        };
        self.rooms.values().filter_map(of).min()
    }

    /// Who owns a room.
    pub fn owner(&self, key: RoomKey) -> Owner {
        self.rooms.get(&key).map_or(Owner::Unowned, State::owner)
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The rooms that this node owns.
    pub fn owned_rooms(&self) -> impl Iterator<Item = RoomKey> {
        let owned = self.rooms.iter().filter(|(_, state)| matches!(state.lease, Lease::Here { .. }));
        owned.map(|(key, _)| *key)
    }

    /// Number of rooms that this node owns.
    pub fn owned(&self) -> usize {
        self.rooms.values().filter(|state| matches!(state.lease, Lease::Here { .. })).count()
    }

    fn state(&mut self, key: RoomKey) -> &mut State {
        self.rooms.entry(key).or_insert(State {
            lease: Lease::Free,
            wanted_until: None,
            under_way: None,
            vacant: 0,
            latest: 0,
            is_lost: false,
            claims: false,
            renews_now: false,
            gives: None,
            given_until: None,
            granted: None,
            again: None,
        })
    }

    fn set(&mut self, key: RoomKey, lease: Lease) {
        self.change(key, lease, false);
    }

    fn change(&mut self, key: RoomKey, lease: Lease, is_lost: bool) {
        let state = self.state(key);
        let before = state.owner();
        (state.lease, state.is_lost) = (lease, is_lost);
        let after = state.owner();
        if before != after {
            self.outputs.push_back(Output::Owner(key, after));
        }
    }

    /// Gives up a lease that has run out, and forgets an owner that has not renewed.
    fn expire(&mut self, now: Instant, key: RoomKey) {
        let is_over = match self.rooms.get(&key).map(|state| state.lease) {
            Some(Lease::Here { until, .. }) => until <= now,
            Some(Lease::There { heard, .. }) => heard + LEASE <= now,
            Some(Lease::Free) | None => false,
        };
        if is_over {
            self.change(key, Lease::Free, true);
        }
    }

    fn done(&mut self, now: Instant, key: RoomKey, id: OperationId, outcome: Outcome) {
        let Some(state) = self.rooms.get_mut(&key) else { return };
        let Some((_, sent)) = state.under_way.take_if(|(under_way, _)| *under_way == id) else { return };
        state.again = None;
        match outcome {
            Outcome::Absent => self.absent(key),
            Outcome::Conflict => {
                let id = self.begin(now, key);
                self.outputs.push_back(Output::Read(key, id));
            }
            Outcome::Failed => state.again = Some(now + AGAIN_AFTER),
            Outcome::Found(revision, value) => self.seen(now, key, revision, &value),
            Outcome::Written(revision) => self.written(now, key, sent, revision),
        }
    }

    fn seen(&mut self, now: Instant, key: RoomKey, revision: u64, value: &[u8]) {
        let (node, run) = (self.node, self.run);
        let state = self.state(key);
        let (lease, is_busy) = (state.lease, state.under_way.is_some());
        if revision < state.latest {
            return;
        }
        state.latest = revision;
        if value.is_empty() {
            if !matches!(lease, Lease::Here { .. }) {
                state.vacant = revision;
                self.set(key, Lease::Free);
            }
            return;
        }
        // One that cannot be read is that of a later version, and is left to run out.
        let Some(entry) = Entry::read(value) else { return };
        let fence = entry.fence.unwrap_or(revision);
        let is_own = entry.node == node && entry.run == run;
        if !is_own {
            state.granted = None;
        }
        if is_own && entry.granted && !matches!(lease, Lease::Here { .. }) {
            state.granted = Some(fence);
            // This node owns the room when its own write is taken.
            (state.vacant, state.again) = (revision, None);
            state.wanted_until = state.wanted_until.max(Some(now + WANTED_FOR));
            return self.set(key, Lease::Free);
        }
        match lease {
            // A write of ours whose result is not known yet; the lease is not longer for it.
            Lease::Here { sent, until, fence: own, revision: last } if is_own => {
                let revision = last.max(revision);
                self.set(key, Lease::Here { fence: own, revision, sent, until });
            }
            Lease::Here { revision: last, .. } if revision < last => {}
            // The result of a claim follows.
            Lease::Free if is_own && is_busy => {}
            // An entry of our own that we do not hold is left to run out.
            _ => self.set(key, Lease::There { node: entry.node, fence, heard: now }),
        }
    }

    fn absent(&mut self, key: RoomKey) {
        let state = self.state(key);
        state.vacant = 0;
        match &mut state.lease {
            // The store has lost it; it is written again while it is valid.
            Lease::Here { revision, .. } => {
                *revision = 0;
                state.renews_now = true;
            }
            Lease::There { .. } => self.set(key, Lease::Free),
            Lease::Free => {}
        }
    }

    fn written(&mut self, now: Instant, key: RoomKey, sent: Instant, revision: u64) {
        let until = sent + LEASE - MARGIN;
        let state = self.state(key);
        if revision < state.latest {
            // What was seen meanwhile is later.
            return;
        }
        state.latest = revision;
        let fence = match state.lease {
            Lease::Here { fence, .. } => fence,
            Lease::There { .. } | Lease::Free if state.claims => state.granted.take().unwrap_or(revision),
            // The lease has run out since.
            Lease::There { .. } | Lease::Free => return,
        };
        if until > now {
            self.set(key, Lease::Here { fence, revision, sent, until });
        }
    }

    /// Does what a room needs now.
    fn work(&mut self, now: Instant, key: RoomKey) {
        let Some(state) = self.rooms.get_mut(&key) else { return };
        let is_wanted = state.wanted_until.is_some_and(|until| until > now);
        if state.under_way.is_some() || state.again.is_some_and(|at| at > now) {
            return;
        }
        let gives = state.gives.take();
        if let (Lease::Here { revision, .. }, Some((node, run))) = (state.lease, gives) {
            return self.give(now, key, revision, (node, run));
        }
        let renews_now = state.renews_now || state.again.is_some();
        let (lease, vacant) = (state.lease, state.vacant);
        let is_given = state.given_until.is_some_and(|until| until > now);
        let may_claim = self.claims_from.is_none_or(|from| from <= now) && !is_given;
        let granted = state.granted;
        let (value, expected) = match lease {
            Lease::Here { revision, .. } if !is_wanted => (Vec::new(), revision),
            Lease::Here { sent, fence, revision, .. } if renews_now || sent + RENEW_AFTER <= now => {
                (self.entry(Some(fence)), revision)
            }
            Lease::Free if is_wanted && may_claim => (self.entry(granted), vacant),
            Lease::Here { .. } | Lease::There { .. } | Lease::Free => return,
        };
        let (is_leaving, is_claim) =
            (value.is_empty(), matches!(self.owner(key), Owner::Lost | Owner::Unowned));
        let id = self.begin(now, key);
        self.outputs.push_back(Output::Write(key, id, value, expected));
        let state = self.state(key);
        (state.claims, state.renews_now, state.again) = (is_claim, false, None);
        if is_leaving {
            // Its result is of no consequence.
            state.under_way = None;
            self.set(key, Lease::Free);
        }
    }

    /// Writes the entry by which another node owns the room. This one owns it no longer, whatever becomes of the write.
    fn give(&mut self, now: Instant, key: RoomKey, revision: u64, (node, run): (NodeId, RunId)) {
        let id = self.begin(now, key);
        let entry = Entry { v: Entry::FORMAT, node, run, fence: None, granted: true };
        self.outputs.push_back(Output::Write(key, id, entry.write(), revision));
        let state = self.state(key);
        (state.under_way, state.again, state.given_until) = (None, None, Some(now + GIVEN_FOR));
        self.set(key, Lease::Free);
    }

    fn entry(&self, fence: Option<u64>) -> Vec<u8> {
        Entry { v: Entry::FORMAT, node: self.node, run: self.run, fence, granted: false }.write()
    }

    fn begin(&mut self, now: Instant, key: RoomKey) -> OperationId {
        self.last_operation += 1;
        let id = OperationId(self.last_operation);
        let state = self.state(key);
        (state.under_way, state.claims) = (Some((id, now)), false);
        id
    }
}

/// How long an entry is kept by the store after it was written.
pub const LEASE: Duration = Duration::from_secs(3);
/// How long before that the owner ends the room.
const MARGIN: Duration = Duration::from_millis(300);
const RENEW_AFTER: Duration = Duration::from_millis(700);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How long a node does not claim a room that it has handed over: it sees the entry of the next owner before.
const GIVEN_FOR: Duration = Duration::from_secs(1);
/// How long an [`Input::Wanted`] counts without being repeated.
const WANTED_FOR: Duration = Duration::from_secs(2);
