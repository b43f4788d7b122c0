//! Nodes that share bindings over a store that loses, delays and refuses operations: invariants once everything is
//! delivered again.

use std::collections::{BTreeMap, VecDeque};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::ids::{ExtensionId, NodeId, OrganisationId};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use super::{BindingKey, Input, Output, SharedBindings, SharedContact};

const NODES: usize = 3;
const DEVICES: usize = 3;

fn node(at: usize) -> NodeId {
    NodeId(Uuid::from_u128(at as u128 + 1))
}

fn key() -> BindingKey {
    let id = Uuid::from_u128(9);
    BindingKey { organisation: OrganisationId(id), extension: ExtensionId(id) }
}

/// The contact of a device. Some devices have an instance; the others are identified by address only.
fn contact(at: usize, device: usize, moment: i64) -> SharedContact {
    let instance = (device > 0).then(|| format!("<urn:uuid:{device}>"));
    SharedContact {
        node: node(at),
        contact: match device {
            0 => "sip:1001@192.0.2.1".to_owned(),
            _ => format!("sip:1001@192.0.2.{device}:{}", 5060 + moment % 3),
        },
        token: format!("edge~{at}.{moment}"),
        source: "192.0.2.1:5060".parse().unwrap(),
        transport: "UDP".to_owned(),
        path: Vec::new(),
        q: 1_000,
        instance,
        reg_id: None,
        user_agent: None,
        registered_at: Timestamp::from_micros(moment * 1_000),
        expires_at: Timestamp::from_micros(1_000_000_000),
    }
}

#[derive(Default)]
struct Store {
    entry: Option<(u64, Vec<u8>)>,
    last: u64,
}

struct World {
    rng: StdRng,
    store: Store,
    nodes: Vec<SharedBindings>,
    /// The contacts that the registrar of each node holds.
    own: Vec<Vec<SharedContact>>,
    /// Changes that the reader of each node has not delivered yet.
    unread: Vec<VecDeque<(u64, Vec<u8>)>>,
    /// Operations in transit to the store, and their results in transit back.
    to_store: Vec<VecDeque<Output>>,
    results: Vec<VecDeque<Input>>,
    moment: i64,
    /// The node where each device registered last.
    last: BTreeMap<usize, usize>,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            rng: StdRng::seed_from_u64(seed),
            store: Store::default(),
            nodes: (0..NODES).map(|at| SharedBindings::new(node(at))).collect(),
            own: vec![Vec::new(); NODES],
            unread: vec![VecDeque::new(); NODES],
            to_store: (0..NODES).map(|_| VecDeque::new()).collect(),
            results: (0..NODES).map(|_| VecDeque::new()).collect(),
            moment: 0,
            last: BTreeMap::new(),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.moment * 1_000)
    }

    fn feed(&mut self, at: usize, input: Input) {
        let now = self.now();
        self.nodes[at].handle_input(now, input);
        while let Some(output) = self.nodes[at].poll_output() {
            match output {
                Output::Changed(_, displaced) => {
                    self.own[at].retain(|own| !displaced.contains(&own.contact));
                }
                work => self.to_store[at].push_back(work),
            }
        }
    }

    fn register(&mut self, at: usize, device: usize) {
        self.moment += 1;
        let new = contact(at, device, self.moment);
        self.own[at].retain(|own| {
            own.contact != new.contact && (new.instance.is_none() || own.instance != new.instance)
        });
        self.own[at].push(new);
        self.last.insert(device, at);
        self.feed(at, Input::Own(key(), self.own[at].clone(), 10));
    }

    /// The store executes the next operation of a node; the result may be lost.
    fn operate(&mut self, at: usize, loses: bool) {
        let Some(work) = self.to_store[at].pop_front() else { return };
        if loses && self.rng.random_bool(0.5) {
            return self.results[at].push_back(Input::Failed(key()));
        }
        let revision = self.store.entry.as_ref().map_or(0, |(revision, _)| *revision);
        let result = match work {
            Output::Write(key, _, expected) if expected != revision => Input::Conflict(key),
            Output::Write(key, value, _) => {
                self.store.last += 1;
                self.store.entry = Some((self.store.last, value.clone()));
                self.unread.iter_mut().for_each(|unread| unread.push_back((self.store.last, value.clone())));
                Input::Written(key, self.store.last)
            }
            Output::Read(key) => match &self.store.entry {
                Some((revision, value)) => Input::Seen(key, *revision, value.clone()),
                None => Input::Absent(key),
            },
            Output::Changed(..) => return,
        };
        let result = if loses && self.rng.random_bool(0.5) { Input::Failed(key()) } else { result };
        self.results[at].push_back(result);
    }

    fn deliver(&mut self, at: usize) {
        if let Some((revision, value)) = self.unread[at].pop_front() {
            self.feed(at, Input::Seen(key(), revision, value));
        }
    }

    fn answer(&mut self, at: usize) {
        if let Some(result) = self.results[at].pop_front() {
            self.feed(at, result);
        }
    }

    /// The reader of a node restarts: undelivered changes are replaced by the last value of each key.
    fn reopen(&mut self, at: usize) {
        self.unread[at].clear();
        self.feed(at, Input::Reopened);
        if let Some((revision, value)) = self.store.entry.clone() {
            self.feed(at, Input::Seen(key(), revision, value));
        }
        self.feed(at, Input::Replayed);
    }

    fn random_step(&mut self) {
        let at = self.rng.random_range(0..NODES);
        match self.rng.random_range(0..20) {
            0..=2 => {
                let device = self.rng.random_range(0..DEVICES);
                self.register(at, device);
            }
            3 => self.reopen(at),
            4 => self.feed(at, Input::Retry),
            5..=9 => self.deliver(at),
            10..=14 => self.answer(at),
            15 => self.operate(at, true),
            _ => self.operate(at, false),
        }
    }

    fn settle(&mut self) {
        for _ in 0..200 {
            for at in 0..NODES {
                self.operate(at, false);
                self.answer(at);
                self.deliver(at);
                self.feed(at, Input::Retry);
            }
        }
        for at in 0..NODES {
            assert!(self.to_store[at].is_empty() && self.results[at].is_empty(), "the nodes come to rest");
        }
    }

    fn check(&self) {
        let stored: Vec<SharedContact> = match &self.store.entry {
            Some((_, value)) => {
                let entry: serde_json::Value = serde_json::from_slice(value).unwrap();
                serde_json::from_value(entry["contacts"].clone()).unwrap()
            }
            None => Vec::new(),
        };
        for (at, own) in self.own.iter().enumerate() {
            let mut written: Vec<_> = stored.iter().filter(|c| c.node == node(at)).cloned().collect();
            let mut own = own.clone();
            written.sort_by(|a, b| a.contact.cmp(&b.contact));
            own.sort_by(|a, b| a.contact.cmp(&b.contact));
            assert_eq!(written, own, "what node {at} has is stored");
            let mut seen: Vec<_> = self.nodes[at].elsewhere(self.now(), key()).cloned().collect();
            let mut others: Vec<_> = stored.iter().filter(|c| c.node != node(at)).cloned().collect();
            seen.sort_by(|a, b| a.contact.cmp(&b.contact));
            others.sort_by(|a, b| a.contact.cmp(&b.contact));
            assert_eq!(seen, others, "what node {at} sees is stored");
        }
        for (a, one) in stored.iter().enumerate() {
            let twins = stored.iter().skip(a + 1).filter(|other| {
                one.contact == other.contact || (one.instance.is_some() && one.instance == other.instance)
            });
            assert_eq!(twins.count(), 0, "a device has one contact: {stored:#?}");
        }
    }
}

#[test]
fn nodes_agree_when_all_is_delivered() {
    for seed in 0..2_000 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.random_step();
        }
        world.settle();
        world.check();
    }
}

#[test]
fn a_device_is_at_the_node_where_it_registered_last() {
    for seed in 0..500 {
        let mut world = World::new(seed);
        for _ in 0..10 {
            let (at, device) = (world.rng.random_range(0..NODES), world.rng.random_range(0..DEVICES));
            world.register(at, device);
            world.settle();
        }
        world.check();
        for (device, at) in &world.last {
            let there = world.own[*at].iter().any(|own| match device {
                0 => own.instance.is_none(),
                device => own.instance.as_deref() == Some(&format!("<urn:uuid:{device}>")),
            });
            assert!(there, "device {device} registered at node {at} last");
        }
    }
}

#[test]
fn what_the_store_lost_is_written_again() {
    let mut world = World::new(1);
    world.register(0, 0);
    world.register(1, 1);
    world.settle();
    world.store = Store { entry: None, last: 0 };
    for at in 0..NODES {
        world.reopen(at);
    }
    world.settle();
    world.check();
    assert!(world.store.entry.is_some());
}

#[test]
fn contacts_beyond_the_limit_of_the_extension_are_displaced() {
    let mut world = World::new(1);
    for at in 0..NODES {
        world.moment += 1;
        let own = vec![contact(at, at, world.moment)];
        world.own[at] = own.clone();
        world.feed(at, Input::Own(key(), own, 2));
        world.settle();
    }
    world.check();
    assert_eq!(world.own.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 1], "the oldest one went");
}

#[test]
fn unreadable_entries_are_left_alone() {
    let mut world = World::new(1);
    world.register(0, 0);
    world.settle();
    for wrong in [&b"{}"[..], b"{\"v\":2,\"contacts\":[]}", b"x"] {
        world.feed(1, Input::Seen(key(), 99, wrong.to_vec()));
        assert_eq!(world.nodes[1].elsewhere(world.now(), key()).count(), 1);
    }
    assert_eq!(BindingKey::parse(&key().to_string()), Some(key()));
    for wrong in ["", "a.b", "x"] {
        assert_eq!(BindingKey::parse(wrong), None);
    }
}

/// Entries have whole milliseconds; the clock has microseconds.
#[test]
fn an_entry_is_written_once_whatever_the_clock_shows() {
    let now = Timestamp::from_micros(2_000_001);
    let registered = SharedContact {
        registered_at: Timestamp::from_micros(1_234_567),
        expires_at: Timestamp::from_micros(900_000_001),
        ..contact(0, 0, 1)
    };
    let mut machine = SharedBindings::new(node(0));
    machine.handle_input(now, Input::Own(key(), vec![registered.clone()], 10));
    let Some(Output::Write(_, value, 0)) = machine.poll_output() else { panic!("nothing is written") };
    machine.handle_input(now, Input::Seen(key(), 7, value));
    machine.handle_input(now, Input::Written(key(), 7));
    machine.handle_input(now, Input::Own(key(), vec![registered], 10));
    while let Some(output) = machine.poll_output() {
        assert!(!matches!(output, Output::Write(..)), "{output:?}");
    }
}
