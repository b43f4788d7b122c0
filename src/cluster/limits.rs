//! Limits that the nodes enforce together: this node queries the homes of its limits, and answers for the limits
//! whose home it is. `sidetone_cluster::limits` decides; this task transports its messages and provides the time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use sidetone_cluster::limits::{
    AskId, Input, Member, Members, Needs, Output, Question, RateWindows, Reply, Slots, Take, home_of,
};
use sidetone_cluster::membership::{RunId, View};
use sidetone_cluster::nats::{Answering, Connection, MemberHandle, Topic};
use sidetone_cluster::signs::SignsOfLife;
use sidetone_model::access::Who;
use sidetone_model::cluster::{NodeState, RateTake, RateTaken};
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::Family;
use sidetone_store::Store;
use sidetone_switch::outbound_limit::{OutboundDecision, OutboundNeeds};
use sidetone_switch::queries::{DecideOutbound, TakeOutboundNeeds};
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use super::bucket_work::stopped;
use super::trunk_homes::TrunkHomeNotices;
use crate::driver::Handle;

/// The state of the limits at this node.
pub struct SharedLimits {
    member: MemberHandle,
    node: NodeId,
    slots: Mutex<Slots>,
    windows: Mutex<RateWindows>,
    /// Homes that have not answered, and when they are queried again.
    silent: Mutex<HashMap<NodeId, Instant>>,
    /// Notified when a request of another node has led to a decision here.
    decided: Notify,
    counters: LimitCounters,
}

/// The counters of the limits.
#[derive(Debug, Default)]
struct LimitCounters {
    answered: AtomicU64,
    unanswered: AtomicU64,
    by_home: AtomicU64,
    by_share: AtomicU64,
}

/// The task, not started yet. It also notifies the switch of changed members: they decide which node registers with a
/// trunk.
pub struct LimitTask {
    shared: Arc<SharedLimits>,
    store: Store,
    switch: Handle,
    /// The view that the state machine has.
    view: Option<Arc<View>>,
    /// Which nodes that are down may still live, so that their calls stay counted.
    signs: SignsOfLife,
    /// Decisions that the switch has not received yet.
    decisions: Vec<OutboundDecision>,
    homes: TrunkHomeNotices,
}

/// The heartbeat counters of nodes; `None` for one that was not read.
type Beats = Vec<(NodeId, Option<i64>)>;
type UnderWay = FuturesUnordered<BoxFuture<'static, (AskId, Option<Reply>)>>;

impl SharedLimits {
    fn new(member: MemberHandle, (node, run): (NodeId, RunId)) -> Self {
        SharedLimits {
            member,
            node,
            slots: Mutex::new(Slots::new(node, run)),
            windows: Mutex::default(),
            silent: Mutex::default(),
            decided: Notify::new(),
            counters: LimitCounters::default(),
        }
    }

    /// Counts requests at the home of a key or a user.
    pub(super) async fn count(&self, take: RateTake) -> RateTaken {
        let view = self.member.view();
        let now = self.member.now().instant;
        let who = match take.who {
            Who::Key(key) => key.0,
            Who::User(user) => user.0,
        };
        let share = RateTaken::Share(take.limit.div_ceil(known(&view)));
        let Some(members) = members_of(&view, self.node) else { return self.by_share(share) };
        let Some(home) = home_of(&members, who) else { return self.by_share(share) };
        let RateTake { kind, limit, cost, used, ends_in_us, .. } = take;
        let take = Take { node: self.node, who, what: kind, limit, cost, used, ends_in_us };
        let taken = if home == self.node {
            self.windows.lock().take(now, &take)
        } else if self.silent.lock().get(&home).is_some_and(|until| *until > now) {
            None
        } else {
            match self.ask(home, &Question::Rate(take), RATE_MAX).await {
                Some(Reply::Rate(taken)) => Some(taken),
                Some(_) => None,
                None => {
                    let mut silent = self.silent.lock();
                    silent.retain(|_, until| *until > now);
                    silent.insert(home, now + SILENT_FOR);
                    None
                }
            }
        };
        let Some(taken) = taken else { return self.by_share(share) };
        self.counters.by_home.fetch_add(1, Ordering::Relaxed);
        RateTaken::Counted {
            allowed: taken.allowed,
            remaining: taken.remaining,
            ends_in_us: taken.ends_in_us,
        }
    }

    fn by_share(&self, share: RateTaken) -> RateTaken {
        self.counters.by_share.fetch_add(1, Ordering::Relaxed);
        share
    }

    /// Queries another node; `None` without an answer in time.
    async fn ask(&self, node: NodeId, question: &Question, deadline: Duration) -> Option<Reply> {
        let reply = ask(self.member.connection(), node, question, deadline).await;
        let counter = match reply {
            Some(_) => &self.counters.answered,
            None => &self.counters.unanswered,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        reply
    }

    /// Answers a request of another node.
    fn answer(&self, question: &[u8]) -> Reply {
        let now = self.member.now().instant;
        match serde_json::from_slice(question) {
            Ok(Question::Rate(take)) => {
                self.windows.lock().take(now, &take).map_or(Reply::Unready, Reply::Rate)
            }
            Ok(question) => {
                let reply = self.slots.lock().answer(now, &question);
                self.decided.notify_one();
                reply
            }
            // A later version may send requests that this one does not support.
            Err(_) => Reply::Unready,
        }
    }

    /// The metrics.
    pub(super) fn families(&self) -> [Family; 2] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            Family::counter(
                "sidetone_cluster_limit_questions_total",
                "Questions about limits to other nodes, by whether they were answered in time.",
            )
            .with([("result", "answered")], read(&self.counters.answered))
            .with([("result", "unanswered")], read(&self.counters.unanswered)),
            Family::counter(
                "sidetone_cluster_limit_decisions_total",
                "Requests and outbound calls that a limit of all nodes was applied to: by the node that counts, or by the \
                 share of this node, because that node was not reached.",
            )
            .with([("by", "home")], read(&self.counters.by_home))
            .with([("by", "share")], read(&self.counters.by_share)),
        ]
    }
}

impl LimitTask {
    /// Enforces the limits of outbound calls of this switch, for a run of a node.
    pub fn new(
        member: MemberHandle,
        (store, switch): (Store, Handle),
        this: (NodeId, RunId),
    ) -> (Self, Arc<SharedLimits>) {
        let shared = Arc::new(SharedLimits::new(member, this));
        let signs = SignsOfLife::default();
        let decisions = Vec::new();
        let homes = TrunkHomeNotices::new(this.0, switch.clone(), shared.member.now().instant);
        (
            LimitTask { shared: Arc::clone(&shared), store, switch, view: None, signs, decisions, homes },
            shared,
        )
    }

    /// Runs until `stop` turns true.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        // Requests of an earlier run of the task can no longer be answered; the state machine sends them again with a
        // new view.
        let mut under_way = UnderWay::new();
        let mut reading: Option<BoxFuture<'static, Beats>> = None;
        self.view = None;
        self.feed(Input::Members(None));
        let mut tick = interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shared = Arc::clone(&self.shared);
        loop {
            let due = shared.slots.lock().next_timeout();
            let due = due.unwrap_or_else(|| shared.member.now().instant + Duration::from_secs(1));
            if reading.is_none() {
                let nodes = self.signs.take_due(shared.member.now().instant);
                reading = (!nodes.is_empty()).then(|| read_beats(self.store.clone(), nodes).boxed());
            }
            tokio::select! {
                () = stopped(&mut stop) => return,
                Some(beats) = OptionFuture::from(reading.as_mut()) => {
                    reading = None;
                    self.take_beats(&beats);
                }
                Some((id, reply)) = under_way.next() => self.feed(Input::Answered(id, reply)),
                () = sleep_until(due.into()) => self.feed(Input::Timeout),
                _ = tick.tick() => self.tick().await,
                () = shared.decided.notified() => {}
            }
            self.carry_out(&mut under_way).await;
        }
    }

    async fn tick(&mut self) {
        let view = self.shared.member.view();
        self.homes.look(self.shared.member.now().instant, &view).await;
        if self.view.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &view)) {
            self.signs.observe(&view);
            self.view = Some(view);
            self.take_members();
        }
        // If the switch is busy, it is queried at the next tick.
        let Ok(needs) = self.switch.ask(TakeOutboundNeeds).await else { return };
        self.feed(Input::Needs(needs.into_iter().map(needs_of).collect()));
    }

    fn take_beats(&mut self, beats: &Beats) {
        let before = self.signs.may_live();
        self.signs.read(self.shared.member.now().instant, beats);
        if self.signs.may_live() != before {
            self.take_members();
        }
    }

    /// Processes a change of the members, or of which absent nodes may live.
    fn take_members(&self) {
        let members = self.view.as_ref().and_then(|view| members_of(view, self.shared.node));
        let members = members.map(|members| members.with_absent(self.signs.may_live()));
        self.feed(Input::Members(members));
    }

    fn feed(&self, input: Input) {
        let now = self.shared.member.now().instant;
        self.shared.slots.lock().handle_input(now, input);
    }

    async fn carry_out(&mut self, under_way: &mut UnderWay) {
        let counters = &self.shared.counters;
        while let Some(output) = { self.shared.slots.lock().poll_output() } {
            match output {
                Output::Ask(id, node, question) => {
                    let shared = Arc::clone(&self.shared);
                    let asked = async move { (id, shared.ask(node, &question, ASK_MAX).await) };
                    under_way.push(asked.boxed());
                }
                Output::Decided(decision) => {
                    let counter = if decision.by_share { &counters.by_share } else { &counters.by_home };
                    counter.fetch_add(1, Ordering::Relaxed);
                    let (organisation, slots) = (decision.organisation, decision.slots);
                    self.decisions.push(OutboundDecision { organisation, slots, ticket: decision.ticket });
                }
            }
        }
        // If the switch is busy, it is notified in the next iteration.
        if !self.decisions.is_empty() && self.switch.ask(DecideOutbound(self.decisions.clone())).await.is_ok()
        {
            self.decisions.clear();
        }
    }
}

/// Answers the requests of other nodes about limits.
pub fn answering_limits(shared: Arc<SharedLimits>) -> Answering {
    Arc::new(move |question: Bytes| {
        let reply = shared.answer(&question);
        // Replies consist of numbers, which JSON can always represent.
        let reply = serde_json::to_vec(&reply).unwrap_or_default();
        async move { reply }.boxed()
    })
}

/// Reads the heartbeat counters of nodes that are down.
async fn read_beats(store: Store, nodes: Vec<NodeId>) -> Beats {
    let mut beats = Vec::new();
    for node in nodes {
        let beat = timeout(BEAT_MAX, store.beat_of(node)).await;
        beats.push((node, beat.ok().and_then(Result::ok)));
    }
    beats
}

async fn ask(
    connection: &Connection,
    node: NodeId,
    question: &Question,
    deadline: Duration,
) -> Option<Reply> {
    // Requests consist of numbers and ids, which JSON can always represent.
    let question = serde_json::to_vec(question).unwrap_or_default();
    match connection.ask_about(Topic::Limits, node, question, deadline).await {
        Ok(reply) => serde_json::from_slice(&reply).ok(),
        Err(reason) => {
            tracing::debug!(node.id = %node, reason, "a node has not answered a question about a limit");
            None
        }
    }
}

/// The members that are up in a node's view; `None` while it is cut off.
fn members_of(view: &View, node: NodeId) -> Option<Members> {
    let up = view.members.iter().filter(|member| member.is_this || member.state == NodeState::Up);
    let up = up.map(|member| &member.last.identity);
    let up: Vec<Member> = up.map(|identity| Member { node: identity.node, run: identity.run }).collect();
    let has_this = up.iter().any(|member| member.node == node);
    let known = usize::try_from(known(view)).unwrap_or(usize::MAX);
    (view.is_linked && has_this).then(|| Members::new(up, known))
}

/// The number of nodes that share a limit: nodes that are down count for as long as they are listed, because they may
/// only be cut off.
fn known(view: &View) -> u32 {
    let known = view.members.iter().filter(|member| member.state != NodeState::Left).count();
    u32::try_from(known).unwrap_or(u32::MAX).max(1)
}

fn needs_of(needs: OutboundNeeds) -> Needs {
    let OutboundNeeds { organisation, limit, up, waiting, ticket } = needs;
    Needs { organisation, limit, up, waiting, ticket }
}

/// How long a request about an outbound call may take: the caller waits for it.
const ASK_MAX: Duration = Duration::from_millis(250);
/// How long a request about an API request may take.
const RATE_MAX: Duration = Duration::from_millis(100);
/// How long a home that has not answered is not queried about requests.
const SILENT_FOR: Duration = Duration::from_secs(1);
/// How long reading the heartbeat counter of a node may take.
const BEAT_MAX: Duration = Duration::from_secs(2);
/// How often the switch is queried: an outbound call waits half of it on average.
const TICK_EVERY: Duration = Duration::from_millis(20);
