//! Credit that several nodes use: this node reserves in the database the amount that its calls need, so that no
//! organisation can spend its credit once at every node. The ledger of the switch (`sidetone_switch::rating`)
//! computes the amount.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

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

/// The task, not started yet.
pub struct CreditTask {
    member: MemberHandle,
    store: Store,
    switch: Handle,
    node: NodeId,
    /// How long the reserve of a silent node counts: as long as the longest call.
    longest: Duration,
    /// Whether the reserves of an earlier run of the node were released.
    is_released: bool,
    asked: HashMap<OrganisationId, Asked>,
    counters: Arc<CreditCounters>,
}

/// The last request for an organisation.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    is_under_way: bool,
    has_failed: bool,
}

/// Requests to the database in progress: a slow one does not delay other organisations.
type UnderWay = FuturesUnordered<BoxFuture<'static, CreditReserved>>;

/// The counters of reserves.
#[derive(Debug, Default)]
pub struct CreditCounters {
    reserved: AtomicU64,
    short: AtomicU64,
    failed: AtomicU64,
}

impl CreditTask {
    /// Reserves credit for the calls of this switch; no call lasts longer than `longest`.
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

    /// Runs until `stop` turns true. The remaining reserves are released when the node starts again.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        // Requests of an earlier run of the task can no longer be answered.
        self.asked.clear();
        let mut under_way = UnderWay::new();
        let mut tick = interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => break,
                Some(reserved) = under_way.next() => self.reserved(reserved).await,
                _ = tick.tick() => self.look(&mut under_way).await,
            }
        }
        // The last calls may not be stored in the database yet; storing them takes their charge out of the reserve.
    }

    async fn look(&mut self, under_way: &mut UnderWay) {
        if !self.is_released {
            let released = timeout(STATEMENT_MAX, self.store.release_credit(self.node)).await;
            self.is_released = matches!(released, Ok(Ok(())));
        }
        // If the switch is busy, it is queried at the next tick.
        let Ok(needs) = self.switch.ask(CreditNeeds).await else { return };
        let now = self.member.now().instant;
        self.asked.retain(|organisation, asked| {
            asked.is_under_way || needs.iter().any(|need| need.organisation == *organisation)
        });
        // The rest is due at the next tick too.
        let room = UNDER_WAY_MAX.saturating_sub(under_way.len());
        let due: Vec<CreditNeed> =
            needs.into_iter().filter(|need| self.is_due(now, need)).take(room).collect();
        for need in due {
            let asked = Asked { at: now, is_under_way: true, has_failed: false };
            self.asked.insert(need.organisation, asked);
            under_way.push(self.reserve(&need));
        }
    }

    async fn reserved(&mut self, reserved: CreditReserved) {
        if let Some(asked) = self.asked.get_mut(&reserved.organisation) {
            (asked.is_under_way, asked.has_failed) = (false, reserved.reserved.is_none());
        }
        // If the switch is busy, its waiting calls remain, and it is queried for them again.
        let _ = self.switch.ask(ReserveCredit(vec![reserved])).await;
    }

    /// Whether to query the database for an organisation now.
    fn is_due(&self, now: Instant, need: &CreditNeed) -> bool {
        let Some(asked) = self.asked.get(&need.organisation) else { return true };
        let Asked { at, is_under_way, has_failed } = *asked;
        let since = now.saturating_duration_since(at);
        if is_under_way {
            return false;
        }
        if need.is_urgent || need.reserved < need.low {
            // There was no more credit, or no answer: it is tried again, but not at every tick.
            return since >= AGAIN_AFTER || !(need.is_all || has_failed);
        }
        since >= REFRESH_EVERY || (need.has_surplus && since >= RETURN_AFTER)
    }

    fn reserve(&self, need: &CreditNeed) -> BoxFuture<'static, CreditReserved> {
        let (organisation, node, longest) = (need.organisation, self.node, self.longest);
        let (store, counters) = (self.store.clone(), Arc::clone(&self.counters));
        // A fifth more, so that new calls rarely wait. Never less than the current reserve: the ledger itself returns
        // the part that it does not need.
        let want = need.need.scaled().saturating_add(need.need.scaled() / 5);
        let want = Amount::from_scaled(want).max(need.reserved);
        let wall = self.member.now().wall;
        async move {
            let reserved = store.reserve_credit((organisation, node), want, longest, wall);
            let (counter, reserved, is_all) = match timeout(STATEMENT_MAX, reserved).await {
                Ok(Ok(Some(reserved))) => {
                    let is_all = reserved.amount < want;
                    let counter = if is_all { &counters.short } else { &counters.reserved };
                    (counter, Some((reserved.amount, reserved.used)), is_all)
                }
                // The organisation was deleted, or the database does not answer: live calls use the existing reserve.
                Ok(Ok(None)) => (&counters.failed, None, true),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "no credit could be reserved");
                    (&counters.failed, None, true)
                }
                Err(_) => (&counters.failed, None, true),
            };
            counter.fetch_add(1, Ordering::Relaxed);
            CreditReserved { organisation, reserved, is_all }
        }
        .boxed()
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

/// How often the switch is queried: a call that waits for credit waits half of it on average.
const TICK_EVERY: Duration = Duration::from_millis(50);
/// How long the database may take: callers wait for it.
const STATEMENT_MAX: Duration = Duration::from_secs(1);
/// When more credit is requested again after there was no more.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// When unneeded credit is released.
const RETURN_AFTER: Duration = Duration::from_secs(5);
/// How often an unchanged reserve is renewed.
const REFRESH_EVERY: Duration = Duration::from_secs(60);
/// Simultaneous requests to the database; the pool of its connections limits how many run in parallel.
const UNDER_WAY_MAX: usize = 64;
const LONGEST_MARGIN: Duration = Duration::from_secs(300);
