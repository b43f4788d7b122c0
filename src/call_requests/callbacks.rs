//! Sends the callbacks of requested calls: signed, in order, and with the retries of webhooks.
//!
//! One task stores the results of attempts, has the scheduler distribute the free places among the organisations with
//! due callbacks, leases their callbacks, and starts a separate task to send each. A host that does not respond holds
//! only places of its own organisation, each until the time limit of an attempt.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::StdRng;
use sidetone_model::ids::{NodeId, OrganisationId};
use sidetone_model::time::Timestamp;
use sidetone_store::{Changes, ClaimedCallback, SettledCallback, Store, StoreError};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::call_requests::counters::CallbackCounters;
use crate::clock::Clock;
use crate::webhooks::post::{Carried, Carrier, Message};
use crate::webhooks::schedule::{self, Round};
use crate::webhooks::scheduler::{PER_WEBHOOK_MAX, PLACES, Scheduler};

/// Sends callbacks, as one node.
pub struct CallbackSender {
    store: Store,
    node: NodeId,
    carrier: Arc<dyn Carrier>,
    clock: Clock,
    rng: StdRng,
    counters: Arc<CallbackCounters>,
    scheduler: Scheduler<OrganisationId>,
    posts: JoinSet<Posted>,
    /// The callback of each sending task.
    running: HashMap<Id, ClaimedCallback>,
    /// Attempts that have ended and are not stored yet; never more than there are places.
    ended: Vec<SettledCallback>,
    /// Whether the last iteration found no callback that waits, is sent or becomes due.
    is_idle: bool,
    changes: Changes,
}

/// A sending task that ended.
struct Posted {
    carried: Carried,
    ended_at: Timestamp,
}

impl CallbackSender {
    /// Returns a sender of `node` that sends with `carrier`.
    pub fn new(store: Store, node: NodeId, carrier: Arc<dyn Carrier>, clock: Clock, rng: StdRng) -> Self {
        let changes = store.changes();
        Self {
            store,
            node,
            carrier,
            clock,
            rng,
            counters: Arc::default(),
            scheduler: Scheduler::new(PLACES),
            posts: JoinSet::new(),
            running: HashMap::new(),
            ended: Vec::new(),
            is_idle: false,
            changes,
        }
    }

    /// Updates `counters`.
    #[must_use]
    pub fn counted_by(self, counters: Arc<CallbackCounters>) -> Self {
        Self { counters, ..self }
    }

    /// Runs until it is stopped; running attempts may then take up to `STOP_MAX`.
    ///
    /// It may be run again after a panic. It then starts as after a restart of the node: interrupted attempts are
    /// repeated under the same id.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        self.posts = JoinSet::new();
        self.running.clear();
        self.count_running();
        self.ended.clear();
        self.scheduler = Scheduler::new(PLACES);
        let mut freed = false;
        loop {
            let pause = match self.look(&mut freed).await {
                Ok(pause) => pause,
                // Finished attempts are kept and waiting ones stay queued; the next iteration tries again.
                Err(error) => {
                    tracing::warn!(%error, "callbacks cannot be served now");
                    ERROR_PAUSE
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(ended) = self.posts.join_next_with_id() => self.take(ended),
                () = sleep(pause) => {}
            }
        }
        let _ = timeout(STOP_MAX, self.finish()).await;
        self.posts.abort_all();
    }

    /// One iteration, after freeing leases that an earlier run of this node left; returns the pause that follows.
    async fn look(&mut self, freed: &mut bool) -> Result<Duration, StoreError> {
        let now = (self.clock)();
        if !*freed {
            self.store.free_callback_leases(self.node, now).await?;
            *freed = true;
        }
        let has_news = self.changes.may_have_come();
        if self.is_idle && !has_news {
            return Ok(LOOK_EVERY);
        }
        self.is_idle = false;
        self.settle().await?;
        let moved = self.begin().await?;
        let now = (self.clock)();
        let next_at = self.store.next_callback_due(now).await?;
        self.is_idle = !moved && next_at.is_none() && self.scheduler.total() == 0;
        let until = next_at.map(|next_at| u64::try_from(next_at.since(now)).unwrap_or_default());
        let until = until.map_or(LOOK_EVERY, Duration::from_micros);
        Ok(if moved { TURN_PAUSE } else { until.clamp(TURN_PAUSE, LOOK_EVERY) })
    }

    /// Leases the callbacks that may be sent now and starts to send them; returns whether there were any.
    async fn begin(&mut self) -> Result<bool, StoreError> {
        let now = (self.clock)();
        let due = self.store.due_callbacks(now, DUE_MAX).await?;
        let granted: BTreeMap<OrganisationId, usize> =
            self.scheduler.grant(&due).into_iter().map(|grant| (grant.owner, grant.places)).collect();
        if granted.is_empty() {
            return Ok(false);
        }
        let claimed = self.store.claim_callbacks(self.node, &granted, PER_WEBHOOK_MAX, now).await;
        let mut unused = granted;
        for callback in claimed.iter().flatten() {
            if let Some(places) = unused.get_mut(&callback.organisation) {
                *places = places.saturating_sub(1);
            }
        }
        unused.into_iter().for_each(|(organisation, places)| self.scheduler.ended(organisation, places));
        let claimed = claimed?;
        let moved = !claimed.is_empty();
        claimed.into_iter().for_each(|callback| self.post(callback));
        Ok(moved)
    }

    fn post(&mut self, callback: ClaimedCallback) {
        let (carrier, clock) = (Arc::clone(&self.carrier), Arc::clone(&self.clock));
        let secrets: Vec<_> = callback.secret.clone().into_iter().collect();
        let message = Message {
            id: callback.id.to_string(),
            kind: &callback.kind,
            delivery: callback.id,
            url: &callback.url,
            secrets: &secrets,
            body: &callback.body,
        };
        let request = (!secrets.is_empty()).then(|| message.signed(clock()));
        let task = self.posts.spawn(async move {
            let carried = match request {
                Some(request) => carrier.carry(request).await,
                None => failed("the organisation has no callback_secret"),
            };
            Posted { carried, ended_at: clock() }
        });
        self.running.insert(task.id(), callback);
        self.count_running();
    }

    /// Records a sending task that ended; a panic counts as a failure.
    fn take(&mut self, ended: Result<(Id, Posted), JoinError>) {
        let (id, posted) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                if error.is_panic() {
                    self.counters.panics.fetch_add(1, Ordering::Relaxed);
                }
                let carried = failed("the attempt broke off");
                (error.id(), Posted { carried, ended_at: (self.clock)() })
            }
        };
        let Some(callback) = self.running.remove(&id) else { return };
        self.count_running();
        let error = posted.carried.failure();
        let round = Round { began_at: callback.round_at, attempts: callback.attempts.saturating_add(1) };
        let retry_at = error
            .as_ref()
            .and_then(|_| schedule::next(round, posted.ended_at, posted.carried.retry_after, &mut self.rng));
        if let (Some(error), None) = (&error, retry_at) {
            tracing::warn!(call_request.id = %callback.request, %error, "a callback did not arrive; it is not tried again");
        }
        self.ended.push(SettledCallback { callback, error, retry_at });
    }

    /// Stores the attempts that have ended.
    async fn settle(&mut self) -> Result<(), StoreError> {
        while let Some(ended) = self.posts.try_join_next_with_id() {
            self.take(ended);
        }
        while let Some(settled) = self.ended.last() {
            // Another node may have it, if its lease has expired.
            let is_ours = self.store.settle_callback(settled, (self.clock)()).await?;
            if is_ours {
                self.counters.note(settled.error.is_some(), settled.retry_at.is_some());
            }
            self.scheduler.ended(settled.callback.organisation, 1);
            self.ended.pop();
        }
        Ok(())
    }

    fn count_running(&self) {
        self.counters.running.store(self.running.len() as u64, Ordering::Relaxed);
    }

    /// Waits until every running attempt has ended, and stores the results.
    async fn finish(&mut self) {
        while let Some(ended) = self.posts.join_next_with_id().await {
            self.take(ended);
        }
        if let Err(error) = self.settle().await {
            tracing::warn!(%error, "the last results of callbacks could not be stored; they are sent again");
        }
    }
}

fn failed(error: &str) -> Carried {
    Carried { error: Some(error.to_owned()), ..Carried::default() }
}

/// How long sending tasks may take at the end.
const STOP_MAX: Duration = Duration::from_secs(3);
/// How often the queue is read.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Pause between two iterations of a busy sender.
const TURN_PAUSE: Duration = Duration::from_millis(10);
/// The pause after a database error.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// More than there are places: so organisations that fill their places never hide one that has free places.
const DUE_MAX: i64 = 512;
