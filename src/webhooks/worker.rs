//! The driver of webhooks: reads the outbox and the queues, sends, and stores the results.
//!
//! One task runs in iterations (turns): it stores the results of attempts, queues new events, has the scheduler
//! distribute the free places among the webhooks with due deliveries, leases their deliveries and starts a separate
//! task to send each. An endpoint that hangs holds only its own places; a turn never waits for one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use sidetone_model::ids::{NodeId, WebhookId};
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::Attempt;
use sidetone_store::{Changes, ClaimedDelivery, Listener, SettledAttempt, Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::clock::Clock;
use crate::webhooks::counters::WebhookCounters;
use crate::webhooks::post::{Carried, Carrier, outgoing};
use crate::webhooks::schedule::{self, Round};
use crate::webhooks::scheduler::{PER_WEBHOOK_MAX, PLACES, Scheduler};

/// Delivers events to webhooks, as one node.
pub struct Worker {
    store: Store,
    node: NodeId,
    carrier: Arc<dyn Carrier>,
    clock: Clock,
    rng: StdRng,
    counters: Arc<WebhookCounters>,
    wake: Arc<Notify>,
    scheduler: Scheduler,
    posts: JoinSet<Posted>,
    /// The time of the last turn.
    seen: Option<Timestamp>,
    /// The delivery of each sending task.
    running: HashMap<Id, ClaimedDelivery>,
    /// Attempts that have ended and are not stored yet; never more than there are places.
    ended: Vec<SettledAttempt>,
    /// Whether the last turn found no delivery that waits, is sent or becomes due.
    is_idle: bool,
    changes: Changes,
}

/// A sending task that ended.
struct Posted {
    carried: Carried,
    began_at: Timestamp,
    ended_at: Timestamp,
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// Whether the next turn should follow immediately, because something changed.
    pub moved: bool,
    /// When the next delivery becomes due, among those that are not due now.
    pub next_at: Option<Timestamp>,
}

impl Worker {
    /// Returns a worker of `node` that sends with `carrier`. `wake` starts a turn immediately.
    pub fn new(
        store: Store,
        node: NodeId,
        carrier: Arc<dyn Carrier>,
        clock: Clock,
        rng: StdRng,
        wake: Arc<Notify>,
    ) -> Self {
        let changes = store.changes();
        Self {
            store,
            node,
            carrier,
            clock,
            rng,
            counters: Arc::default(),
            wake,
            scheduler: Scheduler::new(PLACES),
            posts: JoinSet::new(),
            seen: None,
            running: HashMap::new(),
            ended: Vec::new(),
            is_idle: false,
            changes,
        }
    }

    /// Returns its counters.
    pub fn counters(&self) -> Arc<WebhookCounters> {
        Arc::clone(&self.counters)
    }

    /// Runs until it is stopped; running attempts may then take up to [`STOP_MAX`].
    ///
    /// It may be run again after a panic. It then starts as after a restart of the node: interrupted attempts are
    /// repeated under the same id.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        self.posts = JoinSet::new();
        self.running.clear();
        self.ended.clear();
        self.scheduler = Scheduler::new(PLACES);
        let mut bell = self.store.event_bell().listen();
        let mut freed = false;
        // When everything is checked again; until then only new events are checked.
        let mut look_at = Instant::now();
        loop {
            let looked = if Instant::now() < look_at {
                self.look_at_events().await
            } else {
                self.look(&mut freed).await
            };
            let now = Instant::now();
            match looked {
                Ok(Turn { moved: true, .. }) => look_at = now + TURN_PAUSE,
                Ok(Turn { next_at: Some(next_at), .. }) => {
                    let until = u64::try_from(next_at.since((self.clock)())).unwrap_or_default();
                    look_at = now + LOOK_EVERY.min(Duration::from_micros(until).max(TURN_PAUSE));
                }
                Ok(_) if now >= look_at => look_at = now + LOOK_EVERY,
                Ok(_) => {}
                // Finished attempts are kept, waiting ones stay queued; the next turn tries again.
                Err(error) => {
                    tracing::warn!(%error, "webhooks cannot be served now");
                    look_at = now + ERROR_PAUSE;
                }
            }
            let wake = Arc::clone(&self.wake);
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                () = news(&mut bell) => {}
                () = wake.notified() => look_at = Instant::now(),
                Some(ended) = self.posts.join_next_with_id() => {
                    self.take(ended);
                    look_at = Instant::now();
                }
                () = sleep_until(look_at) => {}
            }
        }
        self.close().await;
    }

    /// One turn, after freeing leases that an earlier run of this node left.
    async fn look(&mut self, freed: &mut bool) -> Result<Turn, StoreError> {
        if !*freed {
            self.store.free_webhook_leases(self.node, (self.clock)()).await?;
            *freed = true;
        }
        if self.is_idle && !self.changes.may_have_come() {
            return Ok(Turn::default());
        }
        self.is_idle = false;
        let turn = self.turn().await?;
        // No delivery waits, is sent or becomes due: until something is stored, the next check would find the same.
        self.is_idle = !turn.moved && turn.next_at.is_none() && self.busy() == 0 && self.ended.is_empty();
        Ok(turn)
    }

    /// Queues new events; if no webhook subscribes to any of them, nothing else is done.
    async fn look_at_events(&mut self) -> Result<Turn, StoreError> {
        Ok(Turn { moved: self.hand_out().await?, next_at: None })
    }

    /// Stores results, queues new events, and starts to send due deliveries; waits for no endpoint.
    ///
    /// # Errors
    /// When the database fails; finished attempts are kept for the next turn.
    pub async fn turn(&mut self) -> Result<Turn, StoreError> {
        self.mind_the_clock().await?;
        let mut moved = self.settle().await?;
        moved |= self.hand_out().await?;
        moved |= self.begin().await?;
        let next_at = self.store.next_webhook_due((self.clock)()).await?;
        Ok(Turn { moved, next_at })
    }

    /// Queues new events, a bounded number; returns whether any delivery was queued or there are more events.
    async fn hand_out(&self) -> Result<bool, StoreError> {
        let mut moved = false;
        for _ in 0..HAND_OUTS_PER_TURN {
            let handed = self.store.hand_out_events((self.clock)()).await?;
            self.counters.queued.fetch_add(handed.queued, Ordering::Relaxed);
            moved |= handed.queued > 0 || !handed.is_last;
            if handed.is_last {
                break;
            }
        }
        Ok(moved)
    }

    /// After the wall clock was set back: shortens waits to the longest pause of the schedule. A clock that was set
    /// forward makes deliveries due early; the places limit how many start at the same time.
    async fn mind_the_clock(&mut self) -> Result<(), StoreError> {
        let now = (self.clock)();
        if self.seen.is_some_and(|seen| seen.since(now) >= SET_BACK_US) {
            self.store.shorten_webhook_waits(now, schedule::pause_max).await?;
            tracing::warn!("the wall clock was set back: deliveries to webhooks keep their pauses");
        }
        self.seen = Some(now);
        Ok(())
    }

    /// Waits until every running attempt has ended. Nothing is stored before the next turn.
    pub async fn finish_posts(&mut self) {
        while let Some(ended) = self.posts.join_next_with_id().await {
            self.take(ended);
        }
    }

    /// Attempts that run or wait to be stored.
    pub fn busy(&self) -> usize {
        self.scheduler.total()
    }

    async fn settle(&mut self) -> Result<bool, StoreError> {
        while let Some(ended) = self.posts.try_join_next_with_id() {
            self.take(ended);
        }
        if self.ended.is_empty() {
            return Ok(false);
        }
        let settlement = self.store.settle_deliveries(&self.ended, (self.clock)()).await?;
        let add = |counter: &AtomicU64, more: u64| counter.fetch_add(more, Ordering::Relaxed);
        add(&self.counters.delivered, settlement.delivered);
        add(&self.counters.failed, settlement.failed);
        add(&self.counters.attempts_failed, settlement.failures);
        for webhook in settlement.switched_off {
            add(&self.counters.switched_off, 1);
            tracing::warn!(webhook.id = %webhook, "a webhook failed for three days and was switched off");
        }
        for settled in self.ended.drain(..) {
            self.scheduler.ended(settled.delivery.webhook, 1);
        }
        Ok(true)
    }

    /// Leases the deliveries that may be sent now and starts to send them.
    async fn begin(&mut self) -> Result<bool, StoreError> {
        let now = (self.clock)();
        let due = self.store.due_webhooks(now, DUE_WEBHOOKS_MAX).await?;
        let granted: BTreeMap<WebhookId, usize> =
            self.scheduler.grant(&due).into_iter().map(|grant| (grant.owner, grant.places)).collect();
        if granted.is_empty() {
            return Ok(false);
        }
        let grants: Vec<(WebhookId, usize)> = granted.clone().into_iter().collect();
        let claimed = match self.store.claim_deliveries(self.node, &grants, PER_WEBHOOK_MAX, now).await {
            Ok(claimed) => claimed,
            Err(error) => {
                granted.into_iter().for_each(|(webhook, places)| self.scheduler.ended(webhook, places));
                return Err(error);
            }
        };
        let mut unused = granted;
        for delivery in &claimed {
            if let Some(places) = unused.get_mut(&delivery.webhook) {
                *places = places.saturating_sub(1);
            }
        }
        unused.into_iter().for_each(|(webhook, places)| self.scheduler.ended(webhook, places));
        let moved = !claimed.is_empty();
        claimed.into_iter().for_each(|delivery| self.post(delivery));
        Ok(moved)
    }

    fn post(&mut self, delivery: ClaimedDelivery) {
        let (carrier, clock) = (Arc::clone(&self.carrier), Arc::clone(&self.clock));
        let began_at = clock();
        let request = outgoing(&delivery, began_at);
        let task = self.posts.spawn(async move {
            let carried = carrier.carry(request).await;
            Posted { carried, began_at, ended_at: clock() }
        });
        self.running.insert(task.id(), delivery);
        self.counters.running.store(self.posts.len() as u64, Ordering::Relaxed);
    }

    /// Records a sending task that ended; a panic counts as a failure.
    fn take(&mut self, ended: Result<(Id, Posted), JoinError>) {
        self.counters.running.store(self.posts.len() as u64, Ordering::Relaxed);
        let now = (self.clock)();
        let (id, posted) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                if error.is_panic() {
                    self.counters.panics.fetch_add(1, Ordering::Relaxed);
                }
                let carried =
                    Carried { error: Some("the attempt broke off".to_owned()), ..Carried::default() };
                (error.id(), Posted { carried, began_at: now, ended_at: now })
            }
        };
        let Some(delivery) = self.running.remove(&id) else { return };
        let error = posted.carried.failure();
        let round =
            Round { began_at: delivery.round_at, attempts: delivery.round_attempts.saturating_add(1) };
        let retry_at = error
            .as_ref()
            .and_then(|_| schedule::next(round, posted.ended_at, posted.carried.retry_after, &mut self.rng));
        let duration_ms = posted.ended_at.since(posted.began_at) / 1000;
        let attempt = Attempt {
            at: posted.began_at,
            status_code: posted.carried.status,
            duration_ms: u32::try_from(duration_ms).unwrap_or_default(),
            error,
            answer: posted.carried.shown_answer(),
        };
        self.ended.push(SettledAttempt { delivery, attempt, retry_at });
    }

    /// Lets sending tasks end for a short time; the next run repeats unfinished ones.
    async fn close(&mut self) {
        let _ = timeout(STOP_MAX, self.finish_posts()).await;
        let stored = timeout(STOP_MAX, self.settle()).await;
        if !matches!(stored, Ok(Ok(_))) {
            tracing::warn!("the last results of webhooks could not be stored; these events are sent again");
        }
        self.posts.abort_all();
    }
}

/// Waits for events, and a moment longer for others that follow.
async fn news(bell: &mut Listener) {
    bell.news().await;
    sleep(TURN_PAUSE).await;
}

/// How long sending tasks may take at the end.
pub const STOP_MAX: Duration = Duration::from_secs(3);
/// How often the queues are read: events that other nodes queue do not ring this bell.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The clock was set back if it shows this much less than at the last turn.
const SET_BACK_US: i64 = 2_000_000;
/// Pause between two turns of a busy worker: results in between are stored together.
const TURN_PAUSE: Duration = Duration::from_millis(10);
/// The pause after a database error.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// More than there are places: so webhooks that fill their places never hide one that has free places.
const DUE_WEBHOOKS_MAX: i64 = 512;
/// Batches of the log that are queued before deliveries are sent.
const HAND_OUTS_PER_TURN: usize = 4;
