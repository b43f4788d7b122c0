//! State machine of the room leases as one node sees them.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sidetone_model::ids::NodeId;

use crate::leases::entry::{Entry, Owner, RoomKey};
use crate::membership::RunId;

/// Events.
#[derive(Clone, Debug)]
pub enum Input {
    /// A caller at this node waits for the room, or the room is live here; repeated while that holds.
    Wanted(RoomKey),
    /// The room is no longer live here.
    Closed(RoomKey),
    /// Hand a room that this node owns over to this run of another node.
    HandOver(RoomKey, NodeId, RunId),
    /// An entry was written, with this revision; an empty value is a release by its owner.
    Seen(RoomKey, u64, Vec<u8>),
    /// The result of an operation.
    Done(RoomKey, OperationId, Outcome),
    /// The connection to the store was re-established. Operations in progress have no result, and the store may have
    /// lost its memory.
    Reopened,
    /// The time of [`RoomLeases::next_timeout`] has been reached.
    Timeout,
}

/// Identifies an operation, so that a late result of an earlier one is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(u64);

/// The result of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A read found no entry.
    Absent,
    /// A write was refused, because the entry has another revision.
    Conflict,
    /// The operation has no result.
    Failed,
    /// A read found an entry with this revision.
    Found(u64, Vec<u8>),
    /// A write succeeded with this revision.
    Written(u64),
}

/// Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write an entry if the stored one has this revision; 0: if no entry is stored.
    Write(RoomKey, OperationId, Vec<u8>, u64),
    /// Read an entry.
    Read(RoomKey, OperationId),
    /// The owner of a room has changed. A node that no longer owns it must end the room immediately.
    Owner(RoomKey, Owner),
}

/// The leases as one node sees them.
#[derive(Debug)]
pub struct RoomLeases {
    node: NodeId,
    run: RunId,
    rooms: BTreeMap<RoomKey, State>,
    /// Rooms are claimed from this time on. Until then, owners whose entries the store lost write them again.
    claims_from: Option<Instant>,
    last_operation: u64,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct State {
    lease: Lease,
    /// The time until which the last [`Input::Wanted`] counts.
    wanted_until: Option<Instant>,
    /// The operation in progress, and when it was sent.
    under_way: Option<(OperationId, Instant)>,
    /// The revision of the released entry, which a claim replaces; 0 without an entry.
    vacant: u64,
    /// The latest known revision; older ones are ignored.
    latest: u64,
    /// Whether the lease of the last owner ran out without a release.
    is_lost: bool,
    /// Whether the operation in progress claims the room.
    claims: bool,
    /// Whether to renew the lease before its time.
    renews_now: bool,
    /// The node to hand the room over to once the operation in progress has its result.
    gives: Option<(NodeId, RunId)>,
    /// The time until which this node does not claim the room, because it handed the room over.
    given_until: Option<Instant>,
    /// The fence to use when this node takes over a room that was handed to it.
    granted: Option<u64>,
    /// The time of the retry after a failed operation.
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
    /// Without rooms; `run` is this run of the node.
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
                // A store that lost its memory restarts its revisions.
                for state in self.rooms.values_mut() {
                    (state.under_way, state.latest, state.granted) = (None, 0, None);
                }
                self.all(now);
            }
            Input::Timeout => self.all(now),
        }
    }

    /// Performs the pending actions of every room.
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

    /// The owner of a room.
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

    /// Gives up a lease of this node that has run out, and forgets another owner that has not renewed.
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
        // An entry that cannot be read is of a later version and is left to expire.
        let Some(entry) = Entry::read(value) else { return };
        let fence = entry.fence.unwrap_or(revision);
        let is_own = entry.node == node && entry.run == run;
        if !is_own {
            state.granted = None;
        }
        if is_own && entry.granted && !matches!(lease, Lease::Here { .. }) {
            state.granted = Some(fence);
            // This node owns the room once its own write succeeds.
            (state.vacant, state.again) = (revision, None);
            state.wanted_until = state.wanted_until.max(Some(now + WANTED_FOR));
            return self.set(key, Lease::Free);
        }
        match lease {
            // A write of this node whose result is still pending; it does not extend the lease.
            Lease::Here { sent, until, fence: own, revision: last } if is_own => {
                let revision = last.max(revision);
                self.set(key, Lease::Here { fence: own, revision, sent, until });
            }
            Lease::Here { revision: last, .. } if revision < last => {}
            // The result of a claim follows.
            Lease::Free if is_own && is_busy => {}
            // An entry of this run without a lease here is left to expire.
            _ => self.set(key, Lease::There { node: entry.node, fence, heard: now }),
        }
    }

    fn absent(&mut self, key: RoomKey) {
        let state = self.state(key);
        state.vacant = 0;
        match &mut state.lease {
            // The store has lost the entry; it is written again while the lease is valid.
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
            // A later revision was seen in the meantime.
            return;
        }
        state.latest = revision;
        let fence = match state.lease {
            Lease::Here { fence, .. } => fence,
            Lease::There { .. } | Lease::Free if state.claims => state.granted.take().unwrap_or(revision),
            // The lease has run out in the meantime.
            Lease::There { .. } | Lease::Free => return,
        };
        if until > now {
            self.set(key, Lease::Here { fence, revision, sent, until });
        }
    }

    /// Performs the pending action of a room.
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
            // Its result is ignored.
            state.under_way = None;
            self.set(key, Lease::Free);
        }
    }

    /// Writes the entry that makes another node the owner. This node gives up ownership whether or not the write
    /// succeeds.
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

/// How long the store keeps an entry after it was written.
pub const LEASE: Duration = Duration::from_secs(3);
/// The owner ends the room this long before [`LEASE`] is over.
const MARGIN: Duration = Duration::from_millis(300);
const RENEW_AFTER: Duration = Duration::from_millis(700);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How long a node does not claim a room that it handed over; the entry of the next owner arrives within this time.
const GIVEN_FOR: Duration = Duration::from_secs(1);
/// How long an [`Input::Wanted`] counts unless it is repeated.
const WANTED_FOR: Duration = Duration::from_secs(2);
