//! Nodes and a store whose entries expire: under partitions, losses, delays and restarts no room ever has two owners.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::ids::{NodeId, OrganisationId, RoomId};
use uuid::Uuid;

use super::machine::{Input, LEASE, OperationId, Outcome, Output, RoomLeases};
use super::{Owner, RoomKey};
use crate::membership::RunId;

const NODES: usize = 3;
const STEP: Duration = Duration::from_millis(20);
/// A client of the store gives up after this time.
const GIVES_UP: Duration = Duration::from_secs(2);

fn key() -> RoomKey {
    let id = Uuid::from_u128(9);
    RoomKey { organisation: OrganisationId(id), room: RoomId(id) }
}

#[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
fn any_instant() -> Instant {
    Instant::now()
}

fn id(at: usize) -> Uuid {
    Uuid::from_u128(at as u128 + 1)
}

/// The only entry, the time it was written, and the last revision.
#[derive(Default)]
struct Store {
    entry: Option<(u64, Vec<u8>, Instant)>,
    last: u64,
}

/// A message in transit to or from the store, and its arrival time.
enum Message {
    Operation(Instant, usize, Operation),
    Result(Instant, usize, OperationId, Outcome),
    Change(Instant, usize, u64, Vec<u8>),
}

enum Operation {
    Write(OperationId, Vec<u8>, u64),
    Read(OperationId),
}

struct World {
    rng: StdRng,
    now: Instant,
    store: Store,
    nodes: Vec<RoomLeases>,
    wants: [bool; NODES],
    /// Nodes that are cut off from the store.
    is_cut: [bool; NODES],
    loses: f64,
    delay_ms_max: u64,
    wire: Vec<Message>,
    /// Operations without a result, and the time at which each is given up.
    open: Vec<(Instant, usize, OperationId)>,
    fences: Vec<u64>,
    owned: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        World {
            loses: [0.0, 0.05, 0.3][rng.random_range(0..3)],
            delay_ms_max: [1, 60, 700][rng.random_range(0..3)],
            rng,
            now: any_instant(),
            store: Store::default(),
            nodes: (0..NODES).map(|at| RoomLeases::new(NodeId(id(at)), RunId(id(at)))).collect(),
            wants: [false; NODES],
            is_cut: [false; NODES],
            wire: Vec::new(),
            open: Vec::new(),
            fences: Vec::new(),
            owned: 0,
        }
    }

    fn feed(&mut self, at: usize, input: Input) {
        self.nodes[at].handle_input(self.now, input);
        while let Some(output) = self.nodes[at].poll_output() {
            match output {
                Output::Write(_, id, value, expected) => {
                    self.send(at, id, Operation::Write(id, value, expected))
                }
                Output::Read(_, id) => self.send(at, id, Operation::Read(id)),
                Output::Owner(_, Owner::Here { fence }) => {
                    self.owned += 1;
                    self.fences.push(fence);
                }
                Output::Owner(..) => {}
            }
        }
        self.check();
    }

    /// The invariant: at most one owner, whatever the other nodes believe.
    fn check(&self) {
        let owners: Vec<usize> =
            (0..NODES).filter(|at| matches!(self.nodes[*at].owner(key()), Owner::Here { .. })).collect();
        assert!(owners.len() <= 1, "two owners: {owners:?}");
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(self.rng.random_range(0..=self.delay_ms_max))
    }

    fn send(&mut self, at: usize, id: OperationId, operation: Operation) {
        self.open.push((self.now + GIVES_UP, at, id));
        let arrives = self.now + self.delay();
        if !self.is_cut[at] && !self.rng.random_bool(self.loses) {
            self.wire.push(Message::Operation(arrives, at, operation));
        }
    }

    fn expire(&mut self) {
        let is_over = |(_, _, written): &(u64, Vec<u8>, Instant)| *written + LEASE <= self.now;
        if self.store.entry.as_ref().is_some_and(is_over) {
            self.store.entry = None;
        }
    }

    fn operate(&mut self, at: usize, operation: Operation) {
        self.expire();
        let revision = self.store.entry.as_ref().map_or(0, |(revision, ..)| *revision);
        let (id, outcome) = match operation {
            Operation::Write(id, _, expected) if expected != revision => (id, Outcome::Conflict),
            Operation::Write(id, value, _) => {
                self.store.last += 1;
                let revision = self.store.last;
                self.store.entry = Some((revision, value.clone(), self.now));
                for reader in 0..NODES {
                    let arrives = self.now + self.delay();
                    if !self.is_cut[reader] {
                        self.wire.push(Message::Change(arrives, reader, revision, value.clone()));
                    }
                }
                (id, Outcome::Written(revision))
            }
            Operation::Read(id) => match &self.store.entry {
                Some((revision, value, _)) => (id, Outcome::Found(*revision, value.clone())),
                None => (id, Outcome::Absent),
            },
        };
        let arrives = self.now + self.delay();
        if !self.is_cut[at] && !self.rng.random_bool(self.loses) {
            self.wire.push(Message::Result(arrives, at, id, outcome));
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let arrives = |message: &Message| match message {
            Message::Operation(at, ..) | Message::Result(at, ..) | Message::Change(at, ..) => *at,
        };
        let now = self.now;
        let mut due: Vec<Message> = self.wire.extract_if(.., |message| arrives(message) <= now).collect();
        due.sort_by_key(arrives);
        for message in due {
            match message {
                Message::Operation(_, at, operation) => self.operate(at, operation),
                Message::Result(_, at, id, outcome) => {
                    self.open.retain(|(_, node, open)| (*node, *open) != (at, id));
                    self.feed(at, Input::Done(key(), id, outcome));
                }
                Message::Change(_, at, revision, value) => self.feed(at, Input::Seen(key(), revision, value)),
            }
        }
        let given_up: Vec<_> = self.open.extract_if(.., |(until, ..)| *until <= now).collect();
        for (_, at, id) in given_up {
            self.feed(at, Input::Done(key(), id, Outcome::Failed));
        }
        for at in 0..NODES {
            if self.wants[at] && self.rng.random_bool(0.1) {
                self.feed(at, Input::Wanted(key()));
            }
            if self.nodes[at].next_timeout().is_some_and(|due| due <= self.now) {
                self.feed(at, Input::Timeout);
            }
        }
    }

    /// The store restarts with an empty memory: messages in transit are lost, and every node reconnects.
    fn restart(&mut self) {
        self.store = Store::default();
        self.wire.clear();
        self.open.clear();
        (0..NODES).for_each(|at| self.feed(at, Input::Reopened));
    }

    fn disturb(&mut self) {
        match self.rng.random_range(0..200) {
            0..=2 => {
                let at = self.rng.random_range(0..NODES);
                self.is_cut[at] = !self.is_cut[at];
            }
            3..=6 => {
                let at = self.rng.random_range(0..NODES);
                self.wants[at] = !self.wants[at];
                if !self.wants[at] {
                    self.feed(at, Input::Closed(key()));
                }
            }
            7 if self.rng.random_bool(0.2) => self.restart(),
            8..=10 => {
                let (from, to) = (self.rng.random_range(0..NODES), self.rng.random_range(0..NODES));
                if from != to {
                    self.feed(from, Input::HandOver(key(), NodeId(id(to)), RunId(id(to))));
                }
            }
            _ => {}
        }
    }

    fn heal(&mut self) {
        self.is_cut = [false; NODES];
        self.loses = 0.0;
        self.wants = [true; NODES];
        for _ in 0..Duration::from_secs(15).as_millis() / STEP.as_millis() {
            self.step();
        }
    }
}

#[test]
fn no_room_has_two_owners_and_one_has_it_when_all_is_well() {
    let mut owned = 0;
    for seed in 0..1_000 {
        let mut world = World::new(seed);
        for _ in 0..1_500 {
            world.disturb();
            world.step();
        }
        world.heal();
        let owners: Vec<Owner> = world.nodes.iter().map(|node| node.owner(key())).collect();
        let here = owners.iter().filter(|owner| matches!(owner, Owner::Here { .. })).count();
        let there = owners.iter().filter(|owner| matches!(owner, Owner::There { .. })).count();
        assert_eq!((here, there), (1, NODES - 1), "seed {seed}: {owners:?}");
        owned += world.owned;
    }
    assert!(owned > 2_000, "rooms changed hands {owned} times only");
}

#[test]
fn the_owner_keeps_the_room_while_the_store_forgets_and_delays() {
    let mut world = World::new(0);
    (world.loses, world.delay_ms_max) = (0.0, 60);
    world.wants[0] = true;
    for second in 0..60 {
        for _ in 0..50 {
            world.step();
        }
        if second % 10 == 9 {
            world.wants[1] = true;
            world.restart();
        }
    }
    assert_eq!(world.owned, 1, "{:?}", world.fences);
    assert!(matches!(world.nodes[0].owner(key()), Owner::Here { .. }));
}

#[test]
fn a_room_is_handed_over_at_once_and_the_next_owner_has_one_fence() {
    let mut world = World::new(0);
    (world.loses, world.delay_ms_max) = (0.0, 20);
    world.wants = [true, false, true];
    let steps = |world: &mut World, count: usize| (0..count).for_each(|_| world.step());
    steps(&mut world, 100);
    let owner = (0..NODES).find(|at| matches!(world.nodes[*at].owner(key()), Owner::Here { .. })).unwrap();
    let other = 2 - owner;
    world.feed(owner, Input::HandOver(key(), NodeId(id(1)), RunId(id(1))));
    assert_eq!(world.nodes[owner].owner(key()), Owner::Unowned, "before the write is taken");
    let began = world.now;
    let (mut fences, mut owned) = (Vec::new(), None);
    while world.now < began + Duration::from_secs(2) {
        world.step();
        if let Owner::There { node, fence } = world.nodes[other].owner(key())
            && node == NodeId(id(1))
        {
            fences.push(fence);
        }
        if matches!(world.nodes[1].owner(key()), Owner::Here { .. }) {
            owned.get_or_insert(world.now - began);
        }
    }
    assert!(owned.is_some_and(|took| took < Duration::from_millis(300)), "{owned:?}");
    fences.dedup();
    assert_eq!(fences.len(), 1, "a node that follows the room follows it once");
    assert_eq!(world.nodes[1].owner(key()), Owner::Here { fence: fences[0] });
    assert_eq!(world.owned, 2);
}

#[test]
fn a_room_that_is_handed_over_to_a_dead_node_is_owned_again_within_the_lease() {
    let mut world = World::new(0);
    (world.loses, world.delay_ms_max) = (0.0, 20);
    world.wants[0] = true;
    (0..50).for_each(|_| world.step());
    world.is_cut[1] = true;
    world.feed(0, Input::HandOver(key(), NodeId(id(1)), RunId(id(1))));
    let began = world.now;
    world.step();
    while !matches!(world.nodes[0].owner(key()), Owner::Here { .. }) {
        world.step();
        assert!(world.now < began + Duration::from_secs(5), "never owned again");
    }
    assert!(world.now - began > Duration::from_secs(2), "the other one might have it");
}

#[test]
fn another_node_has_the_room_within_the_lease_and_at_once_when_it_is_left() {
    let mut world = World::new(0);
    (world.loses, world.delay_ms_max) = (0.0, 20);
    let until_owned = |world: &mut World, at: usize| {
        let began = world.now;
        while !matches!(world.nodes[at].owner(key()), Owner::Here { .. }) {
            world.step();
            assert!(world.now < began + Duration::from_secs(20), "never owned");
        }
        world.now - began
    };
    world.wants[0] = true;
    until_owned(&mut world, 0);
    world.wants[1] = true;
    for _ in 0..100 {
        world.step();
    }
    // The room is closed in order.
    world.wants[0] = false;
    world.feed(0, Input::Closed(key()));
    let took = until_owned(&mut world, 1);
    assert!(took < Duration::from_secs(1), "{took:?}");
    // The owner dies.
    (world.is_cut[1], world.wants[1], world.wants[2]) = (true, false, true);
    let took = until_owned(&mut world, 2);
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
    let mut sorted = world.fences.clone();
    sorted.sort_unstable();
    assert_eq!(world.fences, sorted, "the fence grows");
}
