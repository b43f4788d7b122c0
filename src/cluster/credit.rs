//! Credit that several nodes use: this node reserves in the database what its calls need, so that no organisation spends its
//! credit once at every node. The ledger of the switch (`sidetone_switch::rating`) says what is needed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sidetone_cluster::nats::MemberHandle;
use sidetone_model::ids::{NodeId, OrganisationId};
use sidetone_model::metrics::Family;
use sidetone_model::money::Amount;
use sidetone_store::Store;
use sidetone_switch::queries::{CreditNeeds, ReserveCredit};
use sidetone_switch::rating::{CreditNeed, CreditReserved};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::bucket_work::stopped;
use crate::driver::Handle;

/// The task, before it runs.
pub struct CreditTask {
    member: MemberHandle,
    store: Store,
    switch: Handle,
    node: NodeId,
    /// How long the reserve of a silent node counts: as long as the longest call.
    longest: Duration,
    /// Whether what an earlier run of the node had reserved is given back.
    is_released: bool,
    asked: HashMap<OrganisationId, Asked>,
    counters: Arc<CreditCounters>,
}

/// The last request for an organisation.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    has_failed: bool,
}

/// The counters of reserves.
#[derive(Debug, Default)]
pub struct CreditCounters {
    reserved: AtomicU64,
    short: AtomicU64,
    failed: AtomicU64,
}

impl CreditTask {
    /// Reserves credit for the calls of this switch, none of which lasts longer than `longest`.
    pub fn new(
        member: MemberHandle,
        (store, switch, node): (Store, Handle, NodeId),
        longest: Duration,
    ) -> (Self, Arc<CreditCounters>) {
        let counters = Arc::new(CreditCounters::default());
        let task = CreditTask {
            member,
            store,
            switch,
            node,
            longest: longest + LONGEST_MARGIN,
            is_released: false,
            asked: HashMap::new(),
            counters: Arc::clone(&counters),
        };
        (task, counters)
    }

    /// Runs until `stop` turns true. What is reserved then is given back when the node starts again.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        let mut tick = interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => break,
                _ = tick.tick() => self.look().await,
            }
        }
        // The last calls may still be on their way into the database, and take their charge out of it.
    }

    async fn look(&mut self) {
        if !self.is_released {
            let released = timeout(STATEMENT_MAX, self.store.release_credit(self.node)).await;
            self.is_released = matches!(released, Ok(Ok(())));
        }
        // A switch that is busy is asked at the next tick.
        let Ok(needs) = self.switch.ask(CreditNeeds).await else { return };
        let now = self.member.now().instant;
        self.asked.retain(|organisation, _| needs.iter().any(|need| need.organisation == *organisation));
        let due: Vec<CreditNeed> = needs.into_iter().filter(|need| self.is_due(now, need)).collect();
        let mut reserved = Vec::with_capacity(due.len());
        for need in due {
            let result = self.reserve(&need).await;
            let has_failed = result.reserved.is_none();
            self.asked.insert(need.organisation, Asked { at: now, has_failed });
            reserved.push(result);
        }
        if !reserved.is_empty() {
            // A switch that is busy asks again.
            let _ = self.switch.ask(ReserveCredit(reserved)).await;
        }
    }

    /// Whether to ask the database for an organisation now.
    fn is_due(&self, now: Instant, need: &CreditNeed) -> bool {
        let since = self.asked.get(&need.organisation).map(|asked| now.saturating_duration_since(asked.at));
        let has_failed = self.asked.get(&need.organisation).is_some_and(|asked| asked.has_failed);
        let Some(since) = since else { return true };
        if need.is_urgent || need.reserved < need.low {
            // There was no more, or no answer: it is tried again, but not at every tick.
            return since >= AGAIN_AFTER || !(need.is_all || has_failed);
        }
        since >= REFRESH_EVERY || (need.has_surplus && since >= RETURN_AFTER)
    }

    async fn reserve(&self, need: &CreditNeed) -> CreditReserved {
        let organisation = need.organisation;
        // A fifth more, so that new calls rarely wait. Never less than the ledger uses: it gives up what it does not need.
        let want = need.need.scaled().saturating_add(need.need.scaled() / 5);
        let want = Amount::from_scaled(want).max(need.reserved);
        let wall = self.member.now().wall;
        let reserved = self.store.reserve_credit((organisation, self.node), want, self.longest, wall);
        let (counter, reserved, is_all) = match timeout(STATEMENT_MAX, reserved).await {
            Ok(Ok(Some(reserved))) => {
                let is_all = reserved.amount < want;
                let counter = if is_all { &self.counters.short } else { &self.counters.reserved };
                (counter, Some((reserved.amount, reserved.used)), is_all)
            }
            // The organisation is gone, or the database does not answer: live calls use what is reserved.
            Ok(Ok(None)) => (&self.counters.failed, None, true),
            Ok(Err(error)) => {
                tracing::debug!(%error, "no credit could be reserved");
                (&self.counters.failed, None, true)
            }
            Err(_) => (&self.counters.failed, None, true),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        CreditReserved { organisation, reserved, is_all }
    }
}

impl CreditCounters {
    /// The metric.
    pub(super) fn family(&self) -> Family {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Family::counter(
            "sidetone_cluster_credit_reserves_total",
            "Requests to reserve credit for this node: granted, short (less than asked for), or failed.",
        )
        .with([("result", "granted")], read(&self.reserved))
        .with([("result", "short")], read(&self.short))
        .with([("result", "failed")], read(&self.failed))
    }
}

/// How often the switch is asked: a call that waits for credit waits half of it on average.
const TICK_EVERY: Duration = Duration::from_millis(50);
/// How long the database may take: callers wait for it.
const STATEMENT_MAX: Duration = Duration::from_secs(1);
/// When more is asked for after there was no more.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// When what is not needed is given back.
const RETURN_AFTER: Duration = Duration::from_secs(5);
/// How often a reserve is renewed that has not changed.
const REFRESH_EVERY: Duration = Duration::from_secs(60);
const LONGEST_MARGIN: Duration = Duration::from_secs(300);
