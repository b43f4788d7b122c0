//! Nodes with calls of one organisation, over a network that delays, loses and partitions. The limit holds while
//! nothing fails and after everything has healed, can be used in full, and a node on its own never takes more than its
//! share.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::ids::{NodeId, OrganisationId};
use uuid::Uuid;

use super::home::{Member, Members};
use super::message::{Question, Reply};
use super::slots::{AskId, Decision, Input, Needs, Output, Slots};
use crate::membership::RunId;

const NODES: usize = 3;
const STEP: Duration = Duration::from_millis(10);
/// How often the needs of a node's switch are read.
const TAKE_EVERY: u32 = 5;
const GIVES_UP: Duration = Duration::from_millis(250);
/// A node counts as down after this time without a heartbeat.
const GONE_AFTER: Duration = Duration::from_secs(3);

fn organisation() -> OrganisationId {
    OrganisationId(Uuid::from_u128(77))
}

#[expect(clippy::disallowed_methods, reason = "any instant begins the simulated time")]
fn any_instant() -> Instant {
    Instant::now()
}

fn node_id(at: usize) -> NodeId {
    NodeId(Uuid::from_u128(at as u128 + 1))
}

fn run_id(run: u128) -> RunId {
    RunId(Uuid::from_u128(run))
}

/// The calls of a node, as its switch has them.
#[derive(Default)]
struct Calls {
    slots: u32,
    up: u32,
    waiting: VecDeque<u64>,
    ticket: u64,
    /// The calls that were active at the last report to the machine; a call that ended since then may be replaced.
    informed: u32,
}

struct Node {
    machine: Slots,
    calls: Calls,
    run: u128,
    /// The time each node was last heard.
    heard: [Instant; NODES],
    /// The delay after which the node sees changes of the members.
    lag: Duration,
}

enum Message {
    Question(Instant, usize, usize, AskId, Question),
    Reply(Instant, usize, AskId, Reply),
}

struct World {
    rng: StdRng,
    now: Instant,
    limit: u32,
    nodes: Vec<Node>,
    is_cut: [bool; NODES],
    loses: f64,
    delay_ms_max: u64,
    wire: Vec<Message>,
    open: Vec<(Instant, usize, AskId)>,
    granted: u32,
    refused: u32,
    shared: u32,
    steps: u32,
    runs: u128,
    /// Whether nodes that are down count as alive.
    gone_may_live: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        let now = any_instant();
        let nodes = (0..NODES).map(|at| Node {
            machine: Slots::new(node_id(at), run_id(at as u128)),
            calls: Calls::default(),
            run: at as u128,
            heard: [now; NODES],
            lag: Duration::from_millis(at as u64 * 300),
        });
        World {
            limit: rng.random_range(1..=12),
            loses: [0.0, 0.05, 0.3][rng.random_range(0..3)],
            delay_ms_max: [1, 40, 400][rng.random_range(0..3)],
            nodes: nodes.collect(),
            rng,
            now,
            is_cut: [false; NODES],
            wire: Vec::new(),
            open: Vec::new(),
            granted: 0,
            refused: 0,
            shared: 0,
            steps: 0,
            runs: 100,
            gone_may_live: false,
        }
    }

    fn up(&self) -> u32 {
        self.nodes.iter().map(|node| node.calls.up).sum()
    }

    /// The members as a node sees them.
    fn members(&self, at: usize) -> Option<Members> {
        let node = &self.nodes[at];
        let is_up = |other: &usize| *other == at || node.heard[*other] + GONE_AFTER + node.lag > self.now;
        let up = (0..NODES)
            .filter(is_up)
            .map(|other| Member { node: node_id(other), run: RunId(Uuid::from_u128(self.nodes[other].run)) });
        let up: Vec<Member> = up.collect();
        let is_isolated = self.is_cut[at] && up.len() == 1;
        let gone = (0..NODES).filter(|other| self.gone_may_live && !is_up(other)).map(node_id);
        (!is_isolated).then(|| Members::new(up, NODES).with_absent(gone))
    }

    fn feed(&mut self, at: usize, input: Input) {
        let now = self.now;
        self.nodes[at].machine.handle_input(now, input);
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.nodes[at].machine.poll_output() {
            match output {
                Output::Ask(id, to, question) => {
                    self.open.push((self.now + GIVES_UP, at, id));
                    let to = (0..NODES).find(|other| node_id(*other) == to).unwrap();
                    let arrives = self.now + self.delay();
                    if !self.is_lost(at, to) {
                        self.wire.push(Message::Question(arrives, at, to, id, question));
                    }
                }
                Output::Decided(decision) => self.decided(at, decision),
            }
        }
    }

    fn decided(&mut self, at: usize, decision: Decision) {
        let share = self.limit.div_ceil(NODES as u32);
        let calls = &mut self.nodes[at].calls;
        calls.slots = decision.slots;
        while calls.waiting.front().is_some_and(|ticket| *ticket <= decision.ticket) {
            calls.waiting.pop_front();
            if calls.up < decision.slots {
                calls.up += 1;
                self.granted += 1;
                self.shared += u32::from(decision.by_share);
                assert!(
                    !decision.by_share || calls.up <= share.max(calls.informed),
                    "a node takes more than its share"
                );
            } else {
                self.refused += 1;
            }
        }
        assert!(calls.up <= self.limit, "a node alone exceeds the limit");
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(self.rng.random_range(0..=self.delay_ms_max))
    }

    fn is_lost(&mut self, from: usize, to: usize) -> bool {
        self.is_cut[from] || self.is_cut[to] || self.rng.random_bool(self.loses)
    }

    fn deliver(&mut self) {
        let arrives = |message: &Message| match message {
            Message::Question(at, ..) | Message::Reply(at, ..) => *at,
        };
        let now = self.now;
        let mut due: Vec<Message> = self.wire.extract_if(.., |message| arrives(message) <= now).collect();
        due.sort_by_key(arrives);
        for message in due {
            match message {
                Message::Question(_, from, to, id, question) => {
                    let reply = self.nodes[to].machine.answer(now, &question);
                    self.drain(to);
                    let arrives = self.now + self.delay();
                    if !self.is_lost(to, from) {
                        self.wire.push(Message::Reply(arrives, from, id, reply));
                    }
                }
                Message::Reply(_, at, id, reply) => {
                    let before = self.open.len();
                    self.open.retain(|(_, node, open)| (*node, *open) != (at, id));
                    if self.open.len() < before {
                        self.feed(at, Input::Answered(id, Some(reply)));
                    }
                }
            }
        }
        let given_up: Vec<_> = self.open.extract_if(.., |(until, ..)| *until <= now).collect();
        for (_, at, id) in given_up {
            self.feed(at, Input::Answered(id, None));
        }
    }

    fn step(&mut self, ends: f64, begins: f64) {
        (self.now, self.steps) = (self.now + STEP, self.steps + 1);
        for at in 0..NODES {
            for other in 0..NODES {
                if !self.is_cut[at] && !self.is_cut[other] {
                    self.nodes[at].heard[other] = self.now;
                }
            }
        }
        self.deliver();
        for at in 0..NODES {
            let members = self.members(at);
            self.feed(at, Input::Members(members));
            if self.nodes[at].machine.next_timeout().is_some_and(|due| due <= self.now) {
                self.feed(at, Input::Timeout);
            }
            let (begins, ends) = (self.rng.random_bool(begins), self.rng.random_bool(ends));
            let calls = &mut self.nodes[at].calls;
            if ends {
                calls.up = calls.up.saturating_sub(1);
            }
            if begins && calls.up + (calls.waiting.len() as u32) < self.limit {
                if calls.waiting.is_empty() && calls.up < calls.slots {
                    calls.up += 1;
                } else {
                    calls.ticket += 1;
                    calls.waiting.push_back(calls.ticket);
                }
            }
            if self.steps % TAKE_EVERY == at as u32 % TAKE_EVERY {
                self.take(at);
            }
        }
    }

    fn take(&mut self, at: usize) {
        let limit = self.limit;
        let calls = &mut self.nodes[at].calls;
        let waiting = calls.waiting.len() as u32;
        calls.informed = calls.up;
        calls.slots = calls.slots.min(calls.up + waiting);
        let needs =
            Needs { organisation: organisation(), limit, up: calls.up, waiting, ticket: calls.ticket };
        let needs = if calls.up + waiting > 0 { vec![needs] } else { Vec::new() };
        self.feed(at, Input::Needs(needs));
    }

    /// The process of a node dies with its calls, and a new process starts.
    fn restart(&mut self, at: usize) {
        self.runs += 1;
        let lag = self.nodes[at].lag;
        self.nodes[at] = Node {
            machine: Slots::new(node_id(at), run_id(self.runs)),
            calls: Calls::default(),
            run: self.runs,
            heard: [self.now; NODES],
            lag,
        };
        self.open.retain(|(_, node, _)| *node != at);
        self.wire.retain(|message| !matches!(message, Message::Reply(_, to, ..) if *to == at));
    }

    fn disturb(&mut self) {
        match self.rng.random_range(0..800) {
            0..=2 => {
                let at = self.rng.random_range(0..NODES);
                self.is_cut[at] = !self.is_cut[at];
            }
            3 => {
                let at = self.rng.random_range(0..NODES);
                self.restart(at);
            }
            _ => {}
        }
    }

    fn settle(&mut self) {
        (self.is_cut, self.loses) = ([false; NODES], 0.0);
        self.delay_ms_max = self.delay_ms_max.min(40);
        for _ in 0..600 {
            self.step(0.02, 0.0);
        }
    }
}

/// More calls are requested than the limit allows.
#[test]
fn while_nothing_fails_the_limit_is_kept_and_used() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        world.settle();
        let mut full = 0;
        for _ in 0..3_000 {
            world.step(0.02, 0.2);
            assert!(world.up() <= world.limit, "seed {seed}: {} of {}", world.up(), world.limit);
            full += u32::from(world.up() == world.limit);
        }
        assert_eq!(world.shared, 0, "seed {seed}");
        assert!(full > 300, "seed {seed}: the limit {} is reached in {full} of 3000 steps", world.limit);
        for _ in 0..200 {
            world.step(0.0, 0.2);
        }
        assert_eq!(world.up(), world.limit, "seed {seed}");
    }
}

/// Partitions, lost messages and restarts; then everything heals.
#[test]
fn after_a_disturbance_the_limit_is_that_of_all_nodes_again() {
    let (mut shared, mut refused) = (0, 0);
    for seed in 0..1_000 {
        let mut world = World::new(seed);
        for _ in 0..1_500 {
            world.disturb();
            world.step(0.02, 0.2);
        }
        shared += world.shared;
        // Calls that were granted by a share end on their own.
        world.settle();
        for _ in 0..400 {
            let before = world.up();
            world.step(0.01, 0.3);
            assert!(world.up() <= world.limit.max(before), "seed {seed}: {} of {}", world.up(), world.limit);
        }
        for _ in 0..300 {
            world.step(0.0, 0.3);
        }
        assert_eq!(world.up(), world.limit, "seed {seed}: no slot is lost");
        refused += world.refused;
    }
    assert!(shared > 1_000 && refused > 1_000, "{shared} by share, {refused} refused");
}

/// A node dies: its slots are free once it is down, and the limit is not counted twice at a new home.
#[test]
fn the_calls_of_a_dead_node_leave_the_count_and_its_limits_move() {
    for dead in 0..NODES {
        let mut world = World::new(0);
        (world.limit, world.loses, world.delay_ms_max) = (9, 0.0, 20);
        world.settle();
        for _ in 0..400 {
            world.step(0.0, 0.2);
        }
        assert_eq!(world.up(), 9);
        // The node stays cut off, and its calls end.
        world.is_cut[dead] = true;
        world.nodes[dead].calls = Calls::default();
        let held: u32 = world.up();
        for _ in 0..(GONE_AFTER.as_millis() / STEP.as_millis()) as u32 - 10 {
            world.step(0.0, 0.2);
            world.nodes[dead].calls = Calls::default();
        }
        assert!(world.up() <= held.max(9), "node {dead}");
        let others = |world: &World| -> u32 {
            (0..NODES).filter(|at| *at != dead).map(|at| world.nodes[at].calls.up).sum()
        };
        for _ in 0..400 {
            world.step(0.0, 0.2);
            world.nodes[dead].calls = Calls::default();
            assert!(others(&world) <= 9, "node {dead}: {}", others(&world));
        }
        assert_eq!(others(&world), 9, "node {dead}");
    }
}

/// Cuts off a node with calls while no call begins; then every node requests as many calls as possible. Returns by how
/// much the limit is exceeded, and the share of a node.
fn exceeded_by_a_cut(seed: u64, gone_may_live: bool) -> (u32, u32) {
    let mut world = World::new(seed);
    let cut = seed as usize % NODES;
    world.gone_may_live = gone_may_live;
    world.settle();
    for _ in 0..400 {
        world.step(0.02, 0.2);
    }
    // Decides the waiting callers first; without the home they would be decided by shares.
    for _ in 0..60 {
        world.step(0.0, 0.0);
    }
    let share = world.limit.div_ceil(NODES as u32);
    world.is_cut[cut] = true;
    for _ in 0..600 {
        world.step(0.0, 0.0);
    }
    let mut exceeded = 0;
    for _ in 0..1_000 {
        world.step(0.005, 0.2);
        exceeded = exceeded.max(world.up().saturating_sub(world.limit));
    }
    // The node is back: the excess calls end on their own.
    world.settle();
    for _ in 0..400 {
        let before = world.up();
        world.step(0.02, 0.3);
        assert!(world.up() <= world.limit.max(before), "seed {seed}: {} of {}", world.up(), world.limit);
    }
    for _ in 0..300 {
        world.step(0.0, 0.3);
    }
    assert_eq!(world.up(), world.limit, "seed {seed}: no slot is lost");
    (exceeded, share)
}

#[test]
fn the_calls_of_a_node_that_is_cut_off_stay_counted() {
    let (mut most, mut uncounted) = (0, 0);
    for seed in 0..300 {
        let (exceeded, share) = exceeded_by_a_cut(seed, true);
        assert!(exceeded <= share, "seed {seed}: by {exceeded}, the share is {share}");
        most = most.max(exceeded);
        if seed < 30 {
            let (exceeded, share) = exceeded_by_a_cut(seed, false);
            uncounted += u32::from(exceeded > share);
        }
    }
    assert!(most > 0, "a node that is cut off goes by its share");
    assert!(uncounted > 0, "they would exceed it by more if they were not counted");
}

/// The same while calls begin and end continuously: nodes that cannot reach the home use their shares until the next
/// home is ready; after that the excess does not grow.
#[test]
fn a_cut_under_load_exceeds_the_limit_by_shares_alone() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        let cut = seed as usize % NODES;
        world.gone_may_live = true;
        world.settle();
        for _ in 0..400 {
            world.step(0.02, 0.2);
        }
        let share = world.limit.div_ceil(NODES as u32);
        world.is_cut[cut] = true;
        let ready_after = 600;
        for step in 0..3_000 {
            let before = world.up();
            world.step(0.02, 0.2);
            let most =
                if step < ready_after { world.limit + share * NODES as u32 } else { world.limit + share };
            assert!(
                world.up() <= most.max(before),
                "seed {seed}, step {step}: {} of {}",
                world.up(),
                world.limit
            );
        }
        assert!(world.up() <= world.limit + share, "seed {seed}: {} of {}", world.up(), world.limit);
    }
}

#[test]
fn the_calls_of_a_node_that_is_cut_off_stay_counted_when_the_home_dies() {
    for cut in 0..NODES {
        let mut world = World::new(3);
        (world.limit, world.loses, world.delay_ms_max, world.gone_may_live) = (9, 0.0, 20, true);
        world.settle();
        // Only the node that will be cut off has calls.
        world.nodes[cut].calls = Calls::default();
        for _ in 0..600 {
            world.step(0.0, 0.2);
        }
        assert_eq!(world.up(), 9);
        let held = world.nodes[cut].calls.up;
        world.is_cut[cut] = true;
        for _ in 0..600 {
            world.step(0.0, 0.0);
        }
        // Each home has notified the others.
        let other = (cut + 1) % NODES;
        world.restart(other);
        for _ in 0..400 {
            world.step(0.0, 0.0);
        }
        for _ in 0..600 {
            world.step(0.0, 0.3);
        }
        let others: u32 = (0..NODES).filter(|at| *at != cut).map(|at| world.nodes[at].calls.up).sum();
        assert!(others + held <= 9, "node {cut}: {others} beside {held}");
    }
}
