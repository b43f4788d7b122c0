//! Shares the bindings of phones with the other nodes: the bindings of this node's switch are written to NATS, and
//! those of the other nodes are passed to the switch, without the phones of nodes that are down.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::OptionFuture;
use sidetone_cluster::bindings::{BindingKey, Input, Output, SharedBindings, SharedContact};
use sidetone_cluster::nats::{BindingBucket, MemberHandle};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::Family;
use sidetone_model::time::Timestamp;
use sidetone_sip::edge::Edge;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_switch::queries::{ReplaceElsewhere, TakeNodeBindings};
use sidetone_switch::shared_binding::{BindingsElsewhere, NodeBindings, RemoteBinding, SharedBinding};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::bucket_work::{BucketWork, stopped};
use crate::driver::{Handle, Request};
use crate::tls::NodeNames;

/// The task, not started yet.
pub struct BindingTask {
    member: MemberHandle,
    switch: Handle,
    node: NodeId,
    edge: Edge,
    /// This node's listener for the other nodes, and its address.
    listener: ListenerId,
    address: SocketAddr,
    machine: SharedBindings,
    /// Decisions that the switch has not received yet.
    changed: BTreeMap<BindingKey, Change>,
    /// Extensions that the directory of the switch does not have yet.
    unknown: BTreeSet<BindingKey>,
    /// The nodes whose phones are called, and the SIP address of each.
    nodes: BTreeMap<NodeId, SocketAddr>,
    members: HashSet<IpAddr>,
    /// The names of the other nodes, which TLS with them uses.
    names: Option<NodeNames>,
    counters: Arc<BindingCounters>,
}

/// The change of an extension.
#[derive(Clone, Debug, Default)]
struct Change {
    displaced: Vec<String>,
    is_node_lost: bool,
}

/// The counters of shared bindings.
#[derive(Debug, Default)]
pub struct BindingCounters {
    /// Entries written.
    pub written: AtomicU64,
    /// Writes that conflicted with an earlier write of another node.
    pub conflicts: AtomicU64,
    /// Writes and reads without a result, which are repeated.
    pub failed: AtomicU64,
    /// Extensions with a phone at any node.
    pub extensions: AtomicU64,
    /// Contacts of this node whose phones registered at another one.
    pub displaced: AtomicU64,
}

type Work = BucketWork<BindingBucket, Input>;

impl BindingTask {
    /// Shares the bindings of `switch`, the switch of `node`; `edge` signs the tokens of its phones.
    pub fn new(
        member: MemberHandle,
        switch: Handle,
        node: NodeId,
        (edge, listener, address): (Edge, ListenerId, SocketAddr),
        names: Option<NodeNames>,
    ) -> (Self, Arc<BindingCounters>) {
        let counters = Arc::new(BindingCounters::default());
        let task = BindingTask {
            member,
            switch,
            node,
            edge,
            listener,
            address,
            machine: SharedBindings::new(node),
            changed: BTreeMap::new(),
            unknown: BTreeSet::new(),
            nodes: BTreeMap::new(),
            members: HashSet::new(),
            names,
            counters: Arc::clone(&counters),
        };
        (task, counters)
    }

    /// Runs until `stop` turns true. The entries of this node remain: the others ignore them once they see it leave.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        tracing::info!(address = %self.address, "SIP of the other nodes is taken");
        // Work that an earlier run of the task left unfinished is repeated.
        let mut work = Work::default();
        let mut tick = interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0_u32;
        loop {
            tokio::select! {
                () = stopped(&mut stop) => return,
                Some(opened) = OptionFuture::from(work.opening.as_mut()) => {
                    work.opened(opened);
                    self.feed(&mut work, Input::Reopened);
                }
                Some(change) = OptionFuture::from(work.bucket.as_mut().map(BindingBucket::next)) => match change {
                    Ok(Some(input)) => self.feed(&mut work, input),
                    Ok(None) => {}
                    Err(reason) => {
                        tracing::debug!(reason, "the bindings of other nodes are read again");
                        work.bucket = None;
                    }
                },
                Some(result) = work.operations.next() => self.note(&mut work, result),
                _ = tick.tick() => {
                    ticks = ticks.wrapping_add(1);
                    self.tick(&mut work, ticks).await;
                }
            }
            if self.changed.len() >= AT_ONCE {
                self.tell_switch().await;
            }
        }
    }

    async fn tick(&mut self, work: &mut Work, ticks: u32) {
        self.follow_members().await;
        work.open(&self.member, |connection| async move { BindingBucket::open(&connection).await });
        while let Ok(taken) = self.switch.ask(TakeNodeBindings(AT_ONCE)).await {
            let is_all = taken.len() < AT_ONCE;
            for extension in taken {
                let input = self.own(extension);
                self.feed(work, input);
            }
            if is_all {
                break;
            }
        }
        if ticks.is_multiple_of(RETRY_TICKS) {
            self.feed(work, Input::Retry);
            for key in std::mem::take(&mut self.unknown) {
                self.changed.entry(key).or_default();
            }
        }
        if ticks.is_multiple_of(SWEEP_TICKS) {
            self.machine.sweep(self.now());
        }
        self.tell_switch().await;
        if self.changed.is_empty() {
            self.counters.extensions.store(self.machine.known() as u64, Ordering::Relaxed);
        }
    }

    fn now(&self) -> Timestamp {
        self.member.now().wall
    }

    /// Passes an input to the state machine and executes its outputs.
    fn feed(&mut self, work: &mut Work, input: Input) {
        self.machine.handle_input(self.now(), input);
        while let Some(output) = self.machine.poll_output() {
            let store = work.bucket.as_ref().map(BindingBucket::store);
            match (output, store) {
                (Output::Changed(key, displaced), _) => {
                    self.counters.displaced.fetch_add(displaced.len() as u64, Ordering::Relaxed);
                    self.changed.entry(key).or_default().displaced.extend(displaced);
                }
                (Output::Write(key, value, revision), Some(store)) => {
                    work.operations.push(async move { store.write(key, value, revision).await }.boxed());
                }
                (Output::Read(key), Some(store)) => {
                    work.operations.push(async move { store.read(key).await }.boxed());
                }
                // Everything is reconciled when the bucket is open.
                (Output::Write(key, ..) | Output::Read(key), None) => {
                    self.machine.handle_input(self.now(), Input::Failed(key));
                }
            }
        }
    }

    /// Takes the result of an operation.
    fn note(&mut self, work: &mut Work, result: Input) {
        let counter = match &result {
            Input::Written(..) => Some(&self.counters.written),
            Input::Conflict(_) => Some(&self.counters.conflicts),
            Input::Failed(_) => Some(&self.counters.failed),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        work.note(matches!(result, Input::Failed(_)));
        self.feed(work, result);
    }

    /// The contacts of an extension at this node's switch, in the form for the other nodes.
    fn own(&self, extension: NodeBindings) -> Input {
        let key = BindingKey { organisation: extension.organisation, extension: extension.extension };
        let contacts = extension.bindings.into_iter().map(|binding| SharedContact {
            node: self.node,
            token: self.edge.token(&binding.device_flow),
            source: binding.device_flow.remote,
            transport: binding.device_flow.protocol.as_str().to_owned(),
            contact: binding.contact,
            path: binding.path,
            q: binding.q_permille,
            instance: binding.instance,
            reg_id: binding.reg_id,
            user_agent: binding.user_agent,
            registered_at: binding.registered_at,
            expires_at: binding.expires_at,
        });
        Input::Own(key, contacts.collect(), extension.bindings_max)
    }

    /// Follows which nodes are up: the phones of a node that is down are no longer called.
    async fn follow_members(&mut self) {
        let view = self.member.view();
        let others = view.members.iter().filter(|member| !member.is_this);
        let addressed = others
            .filter_map(|member| Some((member.last.identity.node, member.state, member.last.identity.edge?)));
        let addressed: Vec<_> = addressed.collect();
        // Phones of a node in unknown state are called: this node is cut off from NATS, and the other one may be up.
        let is_called = |state| matches!(state, NodeState::Up | NodeState::Unknown);
        let called = addressed.iter().filter(|(_, state, _)| is_called(*state));
        let nodes: BTreeMap<_, _> = called.map(|(node, _, address)| (*node, *address)).collect();
        if nodes != self.nodes {
            let all: BTreeSet<NodeId> = nodes.keys().chain(self.nodes.keys()).copied().collect();
            for node in all.into_iter().filter(|node| nodes.get(node) != self.nodes.get(node)) {
                let is_node_lost = !nodes.contains_key(&node);
                for key in self.machine.at_node(node) {
                    self.changed.entry(key).or_default().is_node_lost |= is_node_lost;
                }
            }
            self.nodes = nodes;
        }
        if let Some(names) = &self.names {
            let named = view.members.iter().filter(|member| !member.is_this);
            let named = named.filter_map(|member| {
                let identity = &member.last.identity;
                Some((identity.edge?, identity.name.clone()))
            });
            names.replace(named.collect());
        }
        // A node that is down may be back before its heartbeat arrives.
        let members: HashSet<_> = addressed.iter().map(|(_, _, address)| address.ip()).collect();
        if members != self.members && self.switch.send(Request::Members(members.clone())).await {
            self.members = members;
        }
    }

    /// Passes the changes to the switch.
    async fn tell_switch(&mut self) {
        while !self.changed.is_empty() {
            let keys: Vec<BindingKey> = self.changed.keys().take(AT_ONCE).copied().collect();
            let batch: Vec<BindingsElsewhere> = keys.iter().map(|key| self.elsewhere(*key)).collect();
            // If the switch is busy, it is notified at the next tick.
            let Ok(unknown) = self.switch.ask(ReplaceElsewhere(batch)).await else { return };
            for key in keys {
                self.changed.remove(&key);
                if unknown.contains(&key.extension) {
                    self.unknown.insert(key);
                }
            }
        }
    }

    fn elsewhere(&self, key: BindingKey) -> BindingsElsewhere {
        let change = self.changed.get(&key).cloned().unwrap_or_default();
        let contacts = self.machine.elsewhere(self.now(), key).filter_map(|contact| self.remote(contact));
        BindingsElsewhere {
            extension: key.extension,
            bindings: contacts.collect(),
            displaced: change.displaced,
            is_node_lost: change.is_node_lost,
        }
    }

    /// A phone of another node; `None` if the node is down, or the contact cannot be parsed.
    fn remote(&self, contact: &SharedContact) -> Option<RemoteBinding> {
        let address = self.nodes.get(&contact.node)?;
        let protocol = PROTOCOLS.into_iter().find(|protocol| protocol.as_str() == contact.transport)?;
        Some(RemoteBinding {
            way: Flow::udp(self.listener, *address),
            route: format!("<sip:{}@{address};lr>", contact.token),
            binding: SharedBinding {
                contact: contact.contact.clone(),
                device_flow: Flow { listener: ListenerId(0), remote: contact.source, protocol },
                path: contact.path.clone(),
                q_permille: contact.q,
                instance: contact.instance.clone(),
                reg_id: contact.reg_id,
                user_agent: contact.user_agent.clone(),
                registered_at: contact.registered_at,
                expires_at: contact.expires_at,
            },
        })
    }
}

impl BindingCounters {
    /// The metrics.
    pub fn families(&self) -> [Family; 2] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            Family::gauge(
                "sidetone_cluster_binding_entries",
                "Extensions with a registered phone at some node of the cluster, as the switch of this node knows them; those \
                 whose registrations have ended leave within half a minute.",
            )
            .is(read(&self.extensions)),
            Family::counter(
                "sidetone_cluster_binding_writes_total",
                "Entries of registered phones, by result; displaced: phones of this node that registered at another one.",
            )
            .with([("result", "written")], read(&self.written))
            .with([("result", "conflict")], read(&self.conflicts))
            .with([("result", "repeated")], read(&self.failed))
            .with([("result", "displaced")], read(&self.displaced)),
        ]
    }
}

const PROTOCOLS: [Protocol; 5] = [Protocol::Udp, Protocol::Tcp, Protocol::Tls, Protocol::Ws, Protocol::Wss];
/// How often the switch is queried and notified.
const TICK_EVERY: Duration = Duration::from_millis(50);
/// Failures are repeated once a second.
const RETRY_TICKS: u32 = 20;
/// Entries without phones are forgotten twice a minute.
const SWEEP_TICKS: u32 = 600;
/// Extensions in one request to the switch: each is a short piece of work for the task that handles SIP.
const AT_ONCE: usize = 200;
