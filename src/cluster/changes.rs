//! Notifies the other nodes of commits to the directory and to credentials, and wakes this node's followers when
//! another node has committed one. This is only an optimisation: every node polls, too.

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

/// The task, not started yet.
pub struct ChangeTask {
    member: MemberHandle,
    store: Store,
    node: NodeId,
    counters: Arc<ChangeCounters>,
}

/// The counters of changes.
#[derive(Debug, Default)]
pub struct ChangeCounters {
    sent: AtomicU64,
    received: AtomicU64,
    failed: AtomicU64,
}

impl ChangeTask {
    /// Notifies the other nodes of the commits of `node` to `store`.
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
        let mut unsent = BTreeSet::new();
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
                () = directory.news() => { unsent.insert(StoredChange::Directory); }
                () = credentials.news() => { unsent.insert(StoredChange::Credentials); }
                () = sleep_until(due), if !unsent.is_empty() => {
                    self.notify(std::mem::take(&mut unsent)).await;
                    due = Instant::now() + SENDS_EVERY;
                }
                Some(received) = OptionFuture::from(others.as_mut().map(ChangesOfOthers::next)) => match received {
                    Some(changes) => self.receive(&changes),
                    None => others = None,
                },
                () = tokio::time::sleep(OPEN_AGAIN), if others.is_none() => {}
            }
        }
    }

    async fn notify(&self, changes: BTreeSet<StoredChange>) {
        let sent = self.member.connection().send_changes(self.node, changes.into_iter().collect()).await;
        let counter = match &sent {
            Ok(()) => &self.counters.sent,
            Err(_) => &self.counters.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Err(reason) = sent {
            tracing::debug!(
                reason,
                "the other nodes were not notified of a change, and find it when they poll"
            );
        }
    }

    fn receive(&self, changes: &[StoredChange]) {
        self.counters.received.fetch_add(1, Ordering::Relaxed);
        for change in changes {
            match change {
                StoredChange::Credentials => self.store.event_bell().notify(Changed::Credentials),
                StoredChange::Directory => self.store.event_bell().notify(Changed::Directory),
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
            "Messages about changes of the directory and of credentials: sent to the other nodes, not sent, and received from them.",
        )
        .with([("result", "sent")], read(&self.sent))
        .with([("result", "failed")], read(&self.failed))
        .with([("result", "received")], read(&self.received))
    }
}

/// Changes within this time are sent in one message.
const SENDS_EVERY: Duration = Duration::from_millis(20);
/// The pause after a failure before listening is tried again.
const OPEN_AGAIN: Duration = Duration::from_secs(1);
