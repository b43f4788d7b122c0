//! The owners of rooms: this node claims the rooms that are live here or that its callers want, and notifies its
//! switch of the owner of each. `sidetone_cluster::leases` decides; this task transports its messages and provides
//! the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::OptionFuture;
use sidetone_cluster::leases::{Input, Outcome, Output, Owner, RoomKey, RoomLeases};
use sidetone_cluster::membership::RunId;
use sidetone_cluster::nats::{MemberHandle, RoomBucket};
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::Family;
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_switch::queries::{ReplaceRoomOwners, TakeWantedRooms};
use sidetone_switch::room_owner::RoomOwner;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::bucket_work::{BucketWork, stopped};
use super::room_offers::{Granted, RoomOffers};
use crate::driver::Handle;

/// The task, not started yet.
pub struct RoomTask {
    member: MemberHandle,
    switch: Handle,
    /// This node's listener for the other nodes.
    listener: ListenerId,
    machine: RoomLeases,
    /// Decisions that the switch has not received yet.
    changed: BTreeMap<RoomKey, Owner>,
    counters: Arc<RoomCounters>,
    /// Whether this node drains, and whether it keeps its rooms then.
    draining: (Arc<AtomicBool>, Arc<AtomicBool>),
}

/// The counters of the owners of rooms.
#[derive(Debug, Default)]
pub struct RoomCounters {
    /// Rooms that this node has become the owner of.
    pub claimed: AtomicU64,
    /// Rooms that this node owned and had to end, because it could not renew its lease in time.
    pub lost: AtomicU64,
    /// Rooms that this node owns now.
    pub owned: AtomicU64,
    /// Rooms that this node has handed over to another one.
    pub handed_over: AtomicU64,
}

type Work = BucketWork<RoomBucket, Input>;

impl RoomTask {
    /// Claims rooms for a run of `node`, whose switch this is.
    pub fn new(
        member: MemberHandle,
        switch: Handle,
        (node, run): (NodeId, RunId),
        listener: ListenerId,
        draining: (Arc<AtomicBool>, Arc<AtomicBool>),
    ) -> (Self, Arc<RoomCounters>) {
        let counters = Arc::new(RoomCounters::default());
        let machine = RoomLeases::new(node, run);
        let changed = BTreeMap::new();
        let task = RoomTask {
            member,
            switch,
            listener,
            machine,
            changed,
            counters: Arc::clone(&counters),
            draining,
        };
        (task, counters)
    }

    /// Runs until `stop` turns true. The leases expire by themselves, or are released when the rooms close.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        // Work that an earlier run of the task left unfinished is repeated.
        let mut work = Work::default();
        let mut offers = RoomOffers::default();
        let mut tick = interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = self.member.now().instant;
            let due = self.machine.next_timeout().unwrap_or(now + TICK_EVERY);
            tokio::select! {
                () = stopped(&mut stop) => return,
                Some(opened) = OptionFuture::from(work.opening.as_mut()) => {
                    work.opened(opened);
                    self.feed(&mut work, Input::Reopened);
                }
                Some(change) = OptionFuture::from(work.bucket.as_mut().map(RoomBucket::next)) => match change {
                    Ok(Some(input)) => self.feed(&mut work, input),
                    Ok(None) => {}
                    Err(reason) => {
                        tracing::debug!(reason, "the owners of rooms are read again");
                        work.bucket = None;
                    }
                },
                Some(result) = work.operations.next() => {
                    work.note(matches!(result, Input::Done(_, _, Outcome::Failed)));
                    self.feed(&mut work, result);
                }
                Some(offered) = offers.next() => {
                    if let Some(Granted { room, node, run }) = offers.answered(offered) {
                        self.counters.handed_over.fetch_add(1, Ordering::Relaxed);
                        self.feed(&mut work, Input::HandOver(room, node, run));
                    }
                }
                () = sleep_until(due.into()) => self.feed(&mut work, Input::Timeout),
                _ = tick.tick() => {
                    self.tick(&mut work).await;
                    if self.gives_rooms() {
                        offers.offer(self.machine.owned_rooms(), &self.member, &self.switch);
                    }
                }
            }
            self.tell_switch().await;
        }
    }

    fn gives_rooms(&self) -> bool {
        let (draining, keeps) = &self.draining;
        draining.load(Ordering::Relaxed) && !keeps.load(Ordering::Relaxed)
    }

    async fn tick(&mut self, work: &mut Work) {
        work.open(&self.member, |connection| async move { RoomBucket::open(&connection).await });
        // If the switch is busy, it is queried at the next tick.
        let Ok(wanted) = self.switch.ask(TakeWantedRooms).await else { return };
        for (organisation, room) in wanted.0 {
            self.feed(work, Input::Wanted(RoomKey { organisation, room }));
        }
    }

    /// Passes an input to the state machine and executes its outputs.
    fn feed(&mut self, work: &mut Work, input: Input) {
        let now = self.member.now().instant;
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.machine.handle_input(now, input);
            while let Some(output) = self.machine.poll_output() {
                let store = work.bucket.as_ref().map(RoomBucket::store);
                match (output, store) {
                    (Output::Owner(key, owner), _) => {
                        if matches!(owner, Owner::Here { .. }) {
                            self.counters.claimed.fetch_add(1, Ordering::Relaxed);
                        }
                        self.changed.insert(key, owner);
                    }
                    (Output::Write(key, id, value, revision), Some(store)) => {
                        let write = async move { store.write(key, id, value, revision).await };
                        work.operations.push(write.boxed());
                    }
                    (Output::Read(key, id), Some(store)) => {
                        work.operations.push(async move { store.read(key, id).await }.boxed());
                    }
                    (Output::Write(key, id, ..) | Output::Read(key, id), None) => {
                        inputs.push(Input::Done(key, id, Outcome::Failed));
                    }
                }
            }
        }
    }

    /// Passes the new owners to the switch.
    async fn tell_switch(&mut self) {
        if self.changed.is_empty() {
            return;
        }
        let changes = self.changed.iter().map(|(key, owner)| (key.room, self.owner(*owner))).collect();
        // If the switch is busy, it is notified in the next iteration.
        if let Ok(lost) = self.switch.ask(ReplaceRoomOwners(changes)).await {
            self.changed.clear();
            self.counters.lost.fetch_add(lost as u64, Ordering::Relaxed);
            self.counters.owned.store(self.machine.owned() as u64, Ordering::Relaxed);
        }
    }

    fn owner(&self, owner: Owner) -> RoomOwner {
        match owner {
            Owner::Here { fence } => RoomOwner::Here(fence),
            Owner::Lost => RoomOwner::Lost,
            Owner::Unowned => RoomOwner::Unowned,
            // An earlier entry of this node, which expires.
            Owner::There { node, .. } if node == self.machine.node() => RoomOwner::Unowned,
            Owner::There { node, fence } => {
                let view = self.member.view();
                let member = view.members.iter().find(|member| member.last.identity.node == node);
                match member.and_then(|member| member.last.identity.edge) {
                    Some(address) => {
                        RoomOwner::There { fence, way: Flow::udp(self.listener, address), address }
                    }
                    // A node without a listener for others: its lease expires, or its heartbeat arrives.
                    None => RoomOwner::Unowned,
                }
            }
        }
    }
}

impl RoomCounters {
    /// The metrics.
    pub fn families(&self) -> [Family; 2] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            Family::gauge("sidetone_cluster_owned_rooms", "Rooms that live at this node, or are about to.")
                .is(read(&self.owned)),
            Family::counter(
                "sidetone_cluster_room_leases_total",
                "Leases of rooms: claimed, handed over to another node by a drain, and lost, because NATS did not take them \
                 in time: the room was ended.",
            )
            .with([("result", "claimed")], read(&self.claimed))
            .with([("result", "handed_over")], read(&self.handed_over))
            .with([("result", "lost")], read(&self.lost)),
        ]
    }
}

/// How often the switch is queried.
const TICK_EVERY: Duration = Duration::from_millis(50);
