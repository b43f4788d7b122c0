//! What this node commits to the directory and to credentials is told to the other nodes, and what they commit wakes those who
//! follow it here. Nothing depends on it: everyone looks by itself, too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::OptionFuture;
use sidetone_cluster::nats::{ChangesOfOthers, MemberHandle, StoredChange};
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::Family;
use sidetone_store::{Changed, Store};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::bucket_work::stopped;

/// The task, before it runs.
pub struct ChangeTask {
    member: MemberHandle,
    store: Store,
    node: NodeId,
    counters: Arc<ChangeCounters>,
}

/// The counters of changes.
#[derive(Debug, Default)]
pub struct ChangeCounters {
    told: AtomicU64,
    heard: AtomicU64,
    failed: AtomicU64,
}

impl ChangeTask {
    /// Tells the nodes of a cluster what `node` commits to `store`.
    pub fn new(member: MemberHandle, store: Store, node: NodeId) -> (Self, Arc<ChangeCounters>) {
        let counters = Arc::new(ChangeCounters::default());
        (ChangeTask { member, store, node, counters: Arc::clone(&counters) }, counters)
    }

    /// Runs until `stop` turns true.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        let bell = self.store.event_bell().clone();
        let mut directory = bell.follow_own(Changed::Directory);
        let mut credentials = bell.follow_own(Changed::Credentials);
        let mut others: Option<ChangesOfOthers> = None;
        let mut untold = BTreeSet::new();
        let mut due = Instant::now();
        loop {
            if others.is_none() {
                tokio::select! {
                    () = stopped(&mut stop) => return,
                    opened = self.member.connection().changes_of_others(self.node) => others = opened.ok(),
                }
            }
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = directory.news() => { untold.insert(StoredChange::Directory); }
                () = credentials.news() => { untold.insert(StoredChange::Credentials); }
                () = sleep_until(due), if !untold.is_empty() => {
                    self.tell(std::mem::take(&mut untold)).await;
                    due = Instant::now() + TELLS_EVERY;
                }
                Some(heard) = OptionFuture::from(others.as_mut().map(ChangesOfOthers::next)) => match heard {
                    Some(changes) => self.hear(&changes),
                    None => others = None,
                },
                () = tokio::time::sleep(OPEN_AGAIN), if others.is_none() => {}
            }
        }
    }

    async fn tell(&self, changes: BTreeSet<StoredChange>) {
        let told = self.member.connection().tell_changes(self.node, changes.into_iter().collect()).await;
        let counter = match &told {
            Ok(()) => &self.counters.told,
            Err(_) => &self.counters.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Err(reason) = told {
            tracing::debug!(reason, "the other nodes were not told of a change, and find it by looking");
        }
    }

    fn hear(&self, changes: &[StoredChange]) {
        self.counters.heard.fetch_add(1, Ordering::Relaxed);
        for change in changes {
            match change {
                StoredChange::Credentials => self.store.event_bell().tell(Changed::Credentials),
                StoredChange::Directory => self.store.event_bell().tell(Changed::Directory),
                StoredChange::Unknown => {}
            }
        }
    }
}

impl ChangeCounters {
    /// The metric.
    pub fn family(&self) -> Family {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Family::counter(
            "sidetone_cluster_changes_total",
            "Messages about changes of the directory and of credentials: told to the other nodes, not sent, and heard of them.",
        )
        .with([("result", "told")], read(&self.told))
        .with([("result", "failed")], read(&self.failed))
        .with([("result", "heard")], read(&self.heard))
    }
}

/// Changes within this time are told in one message.
const TELLS_EVERY: Duration = Duration::from_millis(20);
/// How long after a failure it is tried again to listen.
const OPEN_AGAIN: Duration = Duration::from_secs(1);
