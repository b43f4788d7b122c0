//! Many nodes and one simulated NATS that delays, loses, repeats and reorders; partitions and deaths are chosen by
//! seed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::time::{Now, Timestamp};
use uuid::Uuid;

use super::*;

/// A node and its connection to NATS.
struct Node {
    machine: Membership,
    id: NodeId,
    runs: u32,
    is_alive: bool,
    /// Whether messages pass between it and NATS.
    is_connected: bool,
    /// For each other member, whether this node has reported it as up.
    believes: BTreeMap<NodeId, bool>,
}

/// A message that arrives at a node.
struct Flying {
    at_ms: u64,
    to: usize,
    heartbeat: Heartbeat,
}

struct World {
    seed: u64,
    rng: StdRng,
    began: Instant,
    now_ms: u64,
    loss: f64,
    nodes: Vec<Node>,
    stored: BTreeMap<NodeId, Heartbeat>,
    flying: Vec<Flying>,
}

impl World {
    #[expect(
        clippy::disallowed_methods,
        reason = "one reading of the clock, as the origin of simulated time"
    )]
    fn new(seed: u64, nodes: usize, loss: f64) -> Self {
        let mut world = World {
            seed,
            rng: StdRng::seed_from_u64(seed),
            began: Instant::now(),
            now_ms: 0,
            loss,
            nodes: Vec::new(),
            stored: BTreeMap::new(),
            flying: Vec::new(),
        };
        for index in 0..nodes {
            let id = NodeId(Uuid::from_u128(1 + index as u128));
            let machine = world.machine(id, 0);
            world.nodes.push(Node {
                machine,
                id,
                runs: 0,
                is_alive: true,
                is_connected: true,
                believes: BTreeMap::new(),
            });
        }
        world
    }

    fn now(&self) -> Now {
        Now {
            instant: self.began + Duration::from_millis(self.now_ms),
            wall: Timestamp::from_micros(i64::try_from(self.now_ms).unwrap() * 1_000),
        }
    }

    fn machine(&self, node: NodeId, run: u32) -> Membership {
        let identity = Identity {
            node,
            name: format!("node-{:03}", node.0.as_u128()),
            run: RunId(Uuid::from_u128(node.0.as_u128() * 1_000 + u128::from(run))),
            started_at: self.now().wall,
            version: "0.1.0".to_owned(),
            sip: Vec::new(),
            edge: None,
            http: String::new(),
        };
        Membership::new(identity, self.now().instant)
    }

    /// A delay of at most half a second; messages may overtake each other.
    fn delay_ms(&mut self) -> u64 {
        self.rng.random_range(1..=500)
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        let now_ms = self.now_ms;
        let mut arrived = Vec::new();
        self.flying.retain_mut(|message| {
            let is_due = message.at_ms <= now_ms;
            if is_due {
                arrived.push((message.to, message.heartbeat.clone()));
            }
            !is_due
        });
        for (to, heartbeat) in arrived {
            if self.nodes[to].is_alive && self.nodes[to].is_connected {
                self.feed(to, Input::Heard(heartbeat));
            }
        }
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.is_alive && node.machine.next_timeout().is_some_and(|at| at <= self.now().instant) {
                self.feed(index, Input::Timeout);
            }
        }
    }

    fn feed(&mut self, index: usize, input: Input) {
        let now = self.now();
        self.nodes[index].machine.handle_input(now, input);
        while let Some(output) = self.nodes[index].machine.poll_output() {
            self.carry_out(index, output);
        }
    }

    fn carry_out(&mut self, index: usize, output: Output) {
        let seed = self.seed;
        match output {
            Output::Publish(heartbeat) => self.publish(index, &heartbeat),
            Output::Reopen => self.repeat_stored(index),
            Output::Joined(peer) => {
                let before = self.nodes[index].believes.insert(peer, true);
                assert_ne!(before, Some(true), "seed {seed}: joined twice");
            }
            Output::Lost(peer) => {
                let node = &mut self.nodes[index];
                node.believes.insert(peer, false);
                assert!(node.is_connected, "seed {seed}: a node that is cut off judges another one");
            }
            Output::Double(_) => panic!("seed {seed}: no two processes have one name"),
            Output::Isolated(_) | Output::Left(_) | Output::Linked => {}
        }
    }

    /// NATS stores a heartbeat and sends it to every reader, unless it is lost in transit.
    fn publish(&mut self, index: usize, heartbeat: &Heartbeat) {
        if !self.nodes[index].is_connected || self.rng.random_bool(self.loss) {
            return;
        }
        self.stored.insert(self.nodes[index].id, heartbeat.clone());
        for to in 0..self.nodes.len() {
            let copies = if self.rng.random_bool(0.05) { 2 } else { 1 };
            for _ in 0..copies {
                if !self.rng.random_bool(self.loss) {
                    let at_ms = self.now_ms + self.delay_ms();
                    self.flying.push(Flying { at_ms, to, heartbeat: heartbeat.clone() });
                }
            }
        }
    }

    /// A reopened reader gets the last values first.
    fn repeat_stored(&mut self, to: usize) {
        if self.nodes[to].is_connected {
            let values: Vec<Heartbeat> = self.stored.values().cloned().collect();
            for heartbeat in values {
                let at_ms = self.now_ms + self.delay_ms();
                self.flying.push(Flying { at_ms, to, heartbeat });
            }
        }
    }

    fn run_ms(&mut self, length_ms: u64) {
        let end_ms = self.now_ms + length_ms;
        while self.now_ms < end_ms {
            self.step();
        }
    }

    fn set_connected(&mut self, index: usize, is_connected: bool) {
        self.nodes[index].is_connected = is_connected;
    }

    fn kill(&mut self, index: usize) {
        self.nodes[index].is_alive = false;
    }

    fn start(&mut self, index: usize) {
        let (id, run) = (self.nodes[index].id, self.nodes[index].runs + 1);
        let machine = self.machine(id, run);
        let node = &mut self.nodes[index];
        (node.machine, node.runs, node.is_alive) = (machine, run, true);
        node.believes.clear();
        self.repeat_stored(index);
    }

    /// How the living, connected nodes see member `of`.
    fn seen(&self, of: usize) -> Vec<NodeState> {
        let id = self.nodes[of].id;
        let readers = self.nodes.iter().filter(|node| node.is_alive && node.is_connected && node.id != id);
        readers
            .map(|node| {
                let view = node.machine.view(self.now());
                let member = view.members.iter().find(|member| member.last.identity.node == id);
                member.map_or(NodeState::Unknown, |member| member.state)
            })
            .collect()
    }

    /// Every connected node sees exactly the nodes that are up.
    fn check_settled(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let expected = if node.is_alive && node.is_connected { NodeState::Up } else { NodeState::Gone };
            let seen = self.seen(index);
            assert!(seen.iter().all(|state| *state == expected), "seed {}: {index}: {seen:?}", self.seed);
            if node.is_alive {
                let is_linked = node.machine.view(self.now()).is_linked;
                assert_eq!(is_linked, node.is_connected, "seed {}: {index}", self.seed);
            }
        }
    }
}

#[test]
fn a_thousand_partitions_and_deaths_are_seen_by_all_and_heal() {
    for seed in 0..1_000 {
        let mut world = World::new(seed, 3, 0.0);
        world.run_ms(3_000);
        world.check_settled();
        let victim = world.rng.random_range(0..3_usize);
        let dies = world.rng.random_bool(0.5);
        if dies {
            world.kill(victim)
        } else {
            world.set_connected(victim, false)
        }
        // Three seconds of silence after the last message, which took up to half a second, and the next own heartbeat.
        let length_ms = world.rng.random_range(5_200..15_000_u64);
        world.run_ms(length_ms);
        world.check_settled();
        if dies {
            world.start(victim)
        } else {
            world.set_connected(victim, true)
        }
        world.run_ms(6_000);
        world.check_settled();
    }
}

#[test]
fn delays_and_reordering_alone_lose_no_member() {
    for seed in 0..50 {
        let mut world = World::new(seed, 4, 0.0);
        world.run_ms(2_500);
        for _ in 0..600 {
            world.step();
            world.check_settled();
        }
    }
}

#[test]
fn with_a_fifth_of_all_messages_lost_the_view_comes_back() {
    for seed in 0..50 {
        let mut world = World::new(seed, 5, 0.2);
        world.run_ms(60_000);
        world.loss = 0.0;
        world.run_ms(7_000);
        world.check_settled();
    }
}

#[test]
fn a_hundred_nodes_see_each_other_with_one_message_a_second_each() {
    let mut world = World::new(1, 100, 0.0);
    world.run_ms(5_000);
    world.check_settled();
    let bytes = world.stored.values().map(|heartbeat| heartbeat.write().len()).max().unwrap();
    assert!(bytes < 600, "a heartbeat has {bytes} bytes");
}

const STEP_MS: u64 = 50;
