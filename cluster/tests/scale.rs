//! The cost of a hundred nodes and a million phones: the machines of the crate in simulated time, with every message
//! counted.
//!
//! `cargo test --release --workspace --test scale -- --ignored --nocapture` prints the figures of docs/scale.md.
#![allow(
    clippy::disallowed_methods,
    reason = "a real clock begins the simulated time, and measures the processor"
)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sidetone_cluster::bindings::{self, BindingKey, SharedBindings, SharedContact};
use sidetone_cluster::copies::{Copies, Operation};
use sidetone_cluster::leases::{self, Outcome, Owner, RoomKey, RoomLeases};
use sidetone_cluster::membership::{self, Figures, Heartbeat, Identity, Membership, RunId};
use sidetone_model::ids::{CallId, ExtensionId, NodeId, OrganisationId, RoomId};
use sidetone_model::time::{Now, Timestamp};
use uuid::Uuid;

const NODES: usize = 100;
const PHONES: usize = 1_000_000;
const ROOMS: usize = 1_000;
/// Answered calls of a node.
const CALLS: u64 = 1_000;

fn node(at: usize) -> NodeId {
    NodeId(Uuid::from_u128(at as u128 + 1))
}

/// Messages and bytes at NATS: from the nodes to NATS, and from NATS to the nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    sent: u64,
    delivered: u64,
    bytes: u64,
}

impl Traffic {
    /// A write and its answer; every one of `readers` receives the written entry.
    fn write(&mut self, bytes: usize, readers: usize) {
        self.sent += 1;
        self.delivered += 1 + readers as u64;
        self.bytes += bytes as u64 * (1 + readers as u64);
    }

    fn print(&self, what: &str, seconds: f64) {
        eprintln!(
            "{what}: {:.0} messages/s to NATS, {:.0} from it, {:.2} MB/s of entries",
            self.sent as f64 / seconds,
            self.delivered as f64 / seconds,
            self.bytes as f64 / seconds / 1e6
        );
    }
}

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1_024
}

/// A hundred members for a minute, one of which dies: the time until the last other member has noticed.
fn members() -> Duration {
    let began = Instant::now();
    let at = |ms: u64| Now {
        instant: began + Duration::from_millis(ms),
        wall: Timestamp::from_micros(i64::try_from(ms).unwrap() * 1_000),
    };
    let mut machines: Vec<Membership> = (0..NODES)
        .map(|index| {
            let identity = Identity {
                node: node(index),
                name: format!("node-{index:03}"),
                run: RunId(Uuid::from_u128(index as u128 + 1)),
                started_at: at(0).wall,
                version: "0.1.0".to_owned(),
                sip: vec!["udp://192.0.2.10:5060".to_owned(), "tcp://192.0.2.10:5060".to_owned()],
                edge: Some("192.0.2.10:5070".parse().unwrap()),
                http: "http://192.0.2.10:8080".to_owned(),
            };
            Membership::new(identity, began)
        })
        .collect();
    let (mut traffic, mut lost_at) = (Traffic::default(), BTreeMap::new());
    let (seconds, dead) = (60, 0);
    for ms in (0..seconds * 1_000 + 10_000).step_by(50) {
        let mut beats: Vec<Heartbeat> = Vec::new();
        for (index, machine) in machines.iter_mut().enumerate() {
            if index == dead && ms >= seconds * 1_000 {
                continue;
            }
            let figures = Figures { calls: 300, rooms: 10, registrations: 10_000, ..Figures::default() };
            machine.handle_input(at(ms), membership::Input::Figures(figures));
            if machine.next_timeout().is_some_and(|due| due <= at(ms).instant) {
                machine.handle_input(at(ms), membership::Input::Timeout);
            }
            while let Some(output) = machine.poll_output() {
                match output {
                    membership::Output::Publish(beat) => beats.push(beat),
                    membership::Output::Lost(peer) if peer == node(dead) => {
                        lost_at.insert(index, ms);
                    }
                    _ => {}
                }
            }
        }
        for beat in beats {
            if ms < seconds * 1_000 {
                traffic.write(beat.write().len(), NODES);
            }
            for (index, machine) in machines.iter_mut().enumerate() {
                if index != dead || ms < seconds * 1_000 {
                    machine.handle_input(at(ms), membership::Input::Heard(beat.clone()));
                }
            }
        }
    }
    traffic.print("heartbeats", seconds as f64);
    assert_eq!(traffic.sent, NODES as u64 * seconds, "a heartbeat a second of each node");
    assert_eq!(lost_at.len(), NODES - 1, "all others have noticed");
    Duration::from_millis(lost_at.values().max().unwrap() - seconds * 1_000)
}

fn contact(phone: usize, moment: i64) -> SharedContact {
    SharedContact {
        node: node(phone % NODES),
        contact: format!("sip:{phone}@192.0.2.{}:5060;transport=udp", phone % 250),
        token: "edge~AQAAAACcQMAAAglk6gTgp0T4IEmsUA".to_owned(),
        source: "192.0.2.1:5060".parse().unwrap(),
        transport: "UDP".to_owned(),
        path: Vec::new(),
        q: 1_000,
        instance: Some(format!("<urn:uuid:{}>", Uuid::from_u128(phone as u128))),
        reg_id: None,
        user_agent: Some("Yealink SIP-T46U 108.86.0.45".to_owned()),
        registered_at: Timestamp::from_micros(moment * 1_000_000),
        expires_at: Timestamp::from_micros((moment + 3_600) * 1_000_000),
    }
}

fn key(phone: usize) -> BindingKey {
    let organisation = OrganisationId(Uuid::from_u128(phone as u128 / 100 + 1));
    BindingKey { organisation, extension: ExtensionId(Uuid::from_u128(phone as u128 + 1)) }
}

/// The entry that the node of a phone writes when the phone registers.
fn written(phone: usize, moment: i64) -> Vec<u8> {
    let mut machine = SharedBindings::new(node(phone % NODES));
    let now = Timestamp::from_micros(moment * 1_000_000);
    machine.handle_input(now, bindings::Input::Own(key(phone), vec![contact(phone, moment)], 10));
    let mut writes = Vec::new();
    while let Some(output) = machine.poll_output() {
        if let bindings::Output::Write(_, value, _) = output {
            writes.push(value);
        }
    }
    assert_eq!(writes.len(), 1, "a registration is one write");
    writes.remove(0)
}

/// A million phones, as one of the nodes reads them; every other node reads the same number.
fn phones() {
    let (reader, before) = (NODES + 1, resident());
    let mut machine = SharedBindings::new(node(reader));
    let (mut bytes, mut reading) = (0, Duration::ZERO);
    for phone in 0..PHONES {
        let value = written(phone, 0);
        bytes += value.len();
        let began = Instant::now();
        machine.handle_input(
            Timestamp::from_micros(0),
            bindings::Input::Seen(key(phone), phone as u64 + 1, value),
        );
        while machine.poll_output().is_some() {}
        reading += began.elapsed();
    }
    let memory = resident() - before;
    eprintln!(
        "{PHONES} phones: {:.0} MB in the memory of NATS without its own, {:.0} bytes an entry; {:.0} MB in each node, {:.0} bytes \
         a phone; reading one takes {:.1} us",
        bytes as f64 / 1e6,
        bytes as f64 / PHONES as f64,
        memory as f64 / 1e6,
        memory as f64 / PHONES as f64,
        reading.as_secs_f64() * 1e6 / PHONES as f64
    );
    for refresh in [3_600, 600, 60] {
        let mut traffic = Traffic::default();
        for phone in 0..PHONES / refresh {
            traffic.write(written(phone, 1_800).len(), NODES);
        }
        traffic.print(&format!("{PHONES} phones that register every {refresh} s"), 1.0);
    }
    let seen = machine.elsewhere(Timestamp::from_micros(0), key(PHONES - 1)).count();
    assert_eq!(seen, 1, "the last phone is known");
}

fn room(at: usize) -> RoomKey {
    let id = Uuid::from_u128(at as u128 + 1);
    RoomKey { organisation: OrganisationId(id), room: RoomId(id) }
}

/// A thousand rooms, ten at each node, for ten seconds.
fn rooms() {
    let (began, seconds) = (Instant::now(), 10);
    let mut machines: Vec<RoomLeases> =
        (0..NODES).map(|at| RoomLeases::new(node(at), RunId(Uuid::from_u128(at as u128 + 1)))).collect();
    let mut store: BTreeMap<RoomKey, (u64, Vec<u8>)> = BTreeMap::new();
    let (mut traffic, mut revision, mut settled) = (Traffic::default(), 0, Traffic::default());
    for ms in (0..(seconds + 5) * 1_000_u64).step_by(100) {
        let now = began + Duration::from_millis(ms);
        for at in 0..ROOMS {
            machines[at % NODES].handle_input(now, leases::Input::Wanted(room(at)));
        }
        if ms == 5_000 {
            settled = std::mem::take(&mut traffic);
        }
        // Messages delivered in one turn may cause more operations.
        for at in 0..NODES {
            if machines[at].next_timeout().is_some_and(|due| due <= now) {
                machines[at].handle_input(now, leases::Input::Timeout);
            }
            while let Some(output) = machines[at].poll_output() {
                let (key, id, outcome) = match output {
                    leases::Output::Write(key, id, value, expected) => {
                        let stored = store.get(&key).map_or(0, |(revision, _)| *revision);
                        assert_eq!(stored, expected, "no other node writes this room");
                        revision += 1;
                        traffic.write(value.len(), NODES);
                        store.insert(key, (revision, value.clone()));
                        for reader in &mut machines {
                            reader.handle_input(now, leases::Input::Seen(key, revision, value.clone()));
                        }
                        (key, id, Outcome::Written(revision))
                    }
                    leases::Output::Read(key, id) => {
                        let found = store.get(&key).cloned();
                        (
                            key,
                            id,
                            found
                                .map_or(Outcome::Absent, |(revision, value)| Outcome::Found(revision, value)),
                        )
                    }
                    leases::Output::Owner(..) => continue,
                };
                machines[at].handle_input(now, leases::Input::Done(key, id, outcome));
            }
        }
    }
    for at in 0..ROOMS {
        assert!(
            matches!(machines[at % NODES].owner(room(at)), Owner::Here { .. }),
            "room {at} has its owner"
        );
    }
    assert!(settled.sent >= ROOMS as u64, "every room was claimed");
    traffic.print(&format!("{ROOMS} rooms"), seconds as f64);
}

/// The operations of answered calls.
fn calls() {
    let (mut copies, mut traffic) = (Copies::default(), Traffic::default());
    let content = Bytes::from(vec![b'x'; 1_500]);
    for call in 0..CALLS {
        let id = CallId(Uuid::from_u128(u128::from(call) + 1));
        let mut revision = 0;
        let mut work = |copies: &mut Copies<Bytes>| {
            while let Some(operation) = copies.poll_operation() {
                revision += 1;
                match operation {
                    Operation::Put(call, content) => {
                        traffic.write(content.len(), 0);
                        copies.done(call, Some(revision));
                    }
                    Operation::Remove(call, _) => {
                        traffic.write(0, 0);
                        copies.done(call, None);
                    }
                }
            }
        };
        copies.answered(id, content.clone());
        work(&mut copies);
        // The record is stored within a tick after the end of the call.
        copies.ended(id, content.clone());
        copies.tick();
        work(&mut copies);
        copies.stored(id);
        copies.tick();
        work(&mut copies);
    }
    assert!(copies.is_empty(), "all entries are removed");
    let messages = (traffic.sent + traffic.delivered) as f64 / CALLS as f64;
    eprintln!(
        "an answered call: {messages:.1} messages, {:.0} bytes of entries",
        traffic.bytes as f64 / CALLS as f64
    );
    assert!(messages <= 4.0, "{messages} messages for a call");
}

#[test]
#[ignore = "long: a million phones, a minute or two in a release build"]
fn long_a_hundred_nodes_and_a_million_phones() {
    let noticed = members();
    eprintln!("a dead node is noticed by the last of {NODES} nodes after {:.1} s", noticed.as_secs_f64());
    assert!(noticed <= Duration::from_secs(5), "{noticed:?}");
    calls();
    rooms();
    phones();
}
