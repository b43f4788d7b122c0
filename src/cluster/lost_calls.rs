//! Records the calls of nodes that died: each answered call gets its `CRASH` record from another node, exactly once.
//!
//! The records are in the entries in NATS. If two nodes store at the same time, or a node and the journal of the dead
//! one, the primary key of the call log decides: the first record is kept. A node that is only cut off from NATS is
//! not dead: it increments its heartbeat counter in the database, and its calls are not recorded by others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_cluster::nats::{CallBucket, MemberHandle, StoredCall};
use sidetone_cluster::orphans::{Orphan, OrphanConfig, Orphans};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::Family;
use sidetone_model::ports::CdrSink as _;
use sidetone_store::{Orphaned, Store};
use sidetone_switch::rating::{Tariffs, settle};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::call_copies::CallEntry;
use crate::cdr::journal::end_by_crash;

/// The task, not started yet.
pub struct LostCalls {
    member: MemberHandle,
    store: Store,
    node: NodeId,
    after: Duration,
    orphans: Orphans,
    counters: Arc<LostCallCounters>,
}

/// The counters of recorded calls.
#[derive(Debug, Default)]
pub struct LostCallCounters {
    /// Calls of other nodes that this one recorded.
    pub recorded: AtomicU64,
    /// Attempts that failed, and are repeated.
    pub failed: AtomicU64,
}

/// The result for the calls of a run.
enum Outcome {
    /// The node is alive: it increments its heartbeat counter.
    Alive,
    /// The calls are recorded: the number of entries, and how many of them are new in the call log.
    Recorded(usize, usize),
}

impl LostCalls {
    /// Records the calls of nodes that have been silent for `after`.
    pub fn new(
        member: MemberHandle,
        store: Store,
        node: NodeId,
        after: Duration,
    ) -> (Self, Arc<LostCallCounters>) {
        let counters = Arc::new(LostCallCounters::default());
        let orphans = Orphans::new(OrphanConfig { after, rank_step: after / RANKS });
        let task = LostCalls { member, store, node, after, orphans, counters: Arc::clone(&counters) };
        (task, counters)
    }

    /// Runs until `stop` turns true.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_beat: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = look.tick() => {}
            }
            if last_beat.is_none_or(|last| last.elapsed() >= self.beat_every()) {
                last_beat = Some(Instant::now());
                // Without a database there is no sign of life in it; a node that lost both NATS and the database
                // counts as dead.
                let _ = timeout(STATEMENT_MAX, self.store.beat(self.node)).await;
            }
            let orphans = self.orphans.observe(self.member.now().instant, &self.member.view());
            for orphan in orphans {
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => return,
                    () = self.take(&orphan) => {}
                }
            }
        }
    }

    /// Three heartbeats within the time in which a sign of life is awaited. A node that is cut off from NATS counts
    /// faster, so that its calls stay counted at the others ([`sidetone_cluster::signs`]).
    fn beat_every(&self) -> Duration {
        let every = self.witness_time() / 3;
        if self.member.view().is_linked { every } else { every.min(CUT_OFF_BEAT) }
    }

    fn witness_time(&self) -> Duration {
        self.after / WITNESS_PARTS
    }

    async fn take(&mut self, orphan: &Orphan) {
        match self.record(orphan).await {
            Ok(Outcome::Recorded(0, _)) => {}
            Ok(Outcome::Recorded(entries, new)) => {
                if !self.is_restarted(orphan) {
                    // Its calls are charged. If the database does not answer, its reserve expires.
                    let _ = timeout(STATEMENT_MAX, self.store.release_credit(orphan.node)).await;
                    // Its rooms have ended. If the database does not answer, they are closed like those of any silent
                    // node.
                    let _ = timeout(STORE_MAX, self.store.close_sessions(Orphaned::Of(orphan.node))).await;
                }
                self.counters.recorded.fetch_add(new as u64, Ordering::Relaxed);
                tracing::warn!(
                    node.id = %orphan.node,
                    calls = entries,
                    new,
                    "the answered calls of a node that is gone were recorded; the others were in the call log already"
                );
            }
            Ok(Outcome::Alive) => {
                tracing::warn!(
                    node.id = %orphan.node,
                    "a node is cut off from NATS and lives: it counts in the database, and its calls are left alone"
                );
                self.orphans.postpone(self.member.now().instant, orphan);
            }
            Err(reason) => {
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    node.id = %orphan.node,
                    reason,
                    "the calls of a node that is gone cannot be recorded yet, trying again"
                );
                self.orphans.postpone(self.member.now().instant, orphan);
            }
        }
    }

    async fn record(&self, orphan: &Orphan) -> Result<Outcome, String> {
        let bucket = CallBucket::open(self.member.connection()).await?;
        let entries = bucket.of_node(orphan.node).await?;
        let mut found: Vec<(StoredCall, Cdr)> = Vec::new();
        for entry in entries {
            // An entry of a later version, or of another run, which is not this orphan.
            let Some((head, cdr)) = CallEntry::read(&entry.value) else { continue };
            if head.run == orphan.run {
                found.push((entry, cdr));
            }
        }
        if found.is_empty() {
            return Ok(Outcome::Recorded(0, 0));
        }
        if self.is_restarted(orphan) {
            // Its journal has stored its calls by now; missing ones are stored here.
        } else if self.counts(orphan.node).await? {
            return Ok(Outcome::Alive);
        }
        let rates = self.store.rates().await.map_err(|error| error.to_string())?;
        let tariffs = Tariffs::new(rates);
        let ended: Vec<Cdr> = found.iter().map(|(_, cdr)| ended(cdr.clone(), orphan, &tariffs)).collect();
        let mut new = 0;
        for group in ended.chunks(GROUP_LEN) {
            let stored = timeout(STORE_MAX, self.store.store(group)).await;
            new += stored
                .map_err(|_| "the database does not answer".to_owned())?
                .map_err(|e| e.to_string())?
                .new;
        }
        for (entry, _) in &found {
            // Another node may have been faster; a remaining entry is found to be recorded the next time.
            let _ = bucket.remove(entry.revision).await;
        }
        Ok(Outcome::Recorded(found.len(), new))
    }

    /// Whether the node is running again.
    fn is_restarted(&self, orphan: &Orphan) -> bool {
        let view = self.member.view();
        view.members.iter().any(|member| {
            let identity = &member.last.identity;
            identity.node == orphan.node && identity.run != orphan.run
        })
    }

    /// Whether a node increments its heartbeat counter in the database.
    async fn counts(&self, node: NodeId) -> Result<bool, String> {
        let read = async || {
            let beat = timeout(STATEMENT_MAX, self.store.beat_of(node)).await;
            beat.map_err(|_| "the database does not answer".to_owned())?.map_err(|error| error.to_string())
        };
        let before = read().await?;
        tokio::time::sleep(self.witness_time()).await;
        Ok(read().await? != before)
    }
}

/// The record of a call of a dead node: a call that had ended keeps its end.
fn ended(cdr: Cdr, orphan: &Orphan, tariffs: &Tariffs) -> Cdr {
    if cdr.ended_at.is_some() {
        return cdr;
    }
    let answered_at = cdr.answered_at.unwrap_or(cdr.started_at);
    let mut cdr = end_by_crash(cdr, orphan.alive_at.since(answered_at));
    settle(&mut cdr, tariffs.fx());
    cdr
}

impl LostCallCounters {
    /// The metric.
    pub fn family(&self) -> Family {
        Family::counter(
            "sidetone_cluster_lost_calls_total",
            "Calls of nodes that died, by what this node did: recorded, or failed attempts.",
        )
        .with([("result", "recorded")], self.recorded.load(Ordering::Relaxed))
        .with([("result", "failed")], self.failed.load(Ordering::Relaxed))
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often a node that is cut off increments its heartbeat counter.
const CUT_OFF_BEAT: Duration = Duration::from_secs(1);
/// A node of the next rank acts later by this fraction of the time: 3 s for a minute.
const RANKS: u32 = 20;
/// A sign of life is awaited for this fraction of the time: 15 s for a minute.
const WITNESS_PARTS: u32 = 4;
/// How long a statement may take.
const STATEMENT_MAX: Duration = Duration::from_secs(5);
/// How long storing a group may take.
const STORE_MAX: Duration = Duration::from_secs(30);
/// Records in one transaction.
const GROUP_LEN: usize = 500;
