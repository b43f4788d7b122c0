//! The task that requests call-info URLs: bounded in time, number and size, and independent of the calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use sidetone_model::call_info::{CallInfoTarget, CallInfoTargets};
use sidetone_model::ids::OrganisationId;
use sidetone_model::note::Note;
use sidetone_model::problem::Problem;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use crate::call_info::answer::{ANSWER_BYTES_MAX, judge};
use crate::call_info::payload::{AnsweredCall, signature};
use crate::call_info::sink::NoteSink;
use crate::clock::Clock;
use crate::outbound_http::{Budget, Client};
use crate::supervise::{Running, Supervisor, Task};

/// Accepts answered calls; clones share the task.
#[derive(Clone)]
pub struct CallInfo {
    queue: mpsc::Sender<Waiting>,
    counts: Arc<Counts>,
}

/// The results of requests since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// The URL returned a note.
    pub notes: AtomicU64,
    /// The URL returned that there is nothing to show.
    pub nothing: AtomicU64,
    /// The URL did not respond, or returned no valid note.
    pub failed: AtomicU64,
    /// Too many calls were waiting, or the database could not return the URL.
    pub dropped: AtomicU64,
}

/// A call whose organisation has not been notified yet.
struct Waiting {
    call: AnsweredCall,
    until: Instant,
}

struct Asking {
    client: Client,
    targets: Arc<dyn CallInfoTargets>,
    sink: Arc<dyn NoteSink>,
    clock: Clock,
    counts: Arc<Counts>,
    /// Running requests, by organisation.
    under_way: Mutex<HashMap<OrganisationId, usize>>,
    /// Recent results from the database: many calls at the same time read it once, however long it takes.
    known: Mutex<HashMap<OrganisationId, Arc<tokio::sync::Mutex<Option<Known>>>>>,
}

/// The URL of an organisation, or that it has none, and when the database returned it.
struct Known {
    at: Instant,
    target: Result<Option<CallInfoTarget>, Unreadable>,
}

/// The database did not return a URL. The log has the reason.
#[derive(Clone, Copy, Debug)]
struct Unreadable;

impl Known {
    /// Whether the result is valid for a query that began at `asked`; a failure is valid only for queries that waited
    /// for it.
    fn answers(&self, asked: Instant) -> bool {
        let good_for = if self.target.is_ok() { KNOWN_FOR } else { Duration::ZERO };
        asked <= self.at + good_for
    }
}

impl CallInfo {
    /// Starts the task, which ends with the last clone of the handle. Must run within a tokio runtime.
    pub fn start(
        client: Client,
        targets: Arc<dyn CallInfoTargets>,
        sink: Arc<dyn NoteSink>,
        clock: Clock,
        supervisor: &Supervisor,
    ) -> (Self, Running) {
        let (queue, waiting) = mpsc::channel(QUEUE_LEN_MAX);
        let counts = Arc::new(Counts::default());
        let (under_way, known) = (Mutex::default(), Mutex::default());
        let asking = Asking { client, targets, sink, clock, counts: Arc::clone(&counts), under_way, known };
        let waits = Waits { asking: Arc::new(asking), queue: waiting, supervisor: supervisor.clone() };
        let task = supervisor.keep(Task::CallInfo, waits, |waits| Box::pin(waits.run()));
        (Self { queue, counts }, task)
    }

    /// Notifies the organisation's URL, if it has one, that a call was answered. Returns immediately; the request is
    /// abandoned five seconds after this call.
    pub fn answered(&self, call: AnsweredCall) {
        let until = Instant::now() + ANSWER_TIME_MAX;
        if self.queue.try_send(Waiting { call, until }).is_err() {
            let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            // Only the first one is logged; the counter continues.
            if dropped == 0 {
                tracing::warn!("too many answered calls for requests to their call-info URLs");
            }
        }
    }

    /// Returns the counters.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }
}

/// The waiting calls, and the state of the task.
struct Waits {
    asking: Arc<Asking>,
    queue: mpsc::Receiver<Waiting>,
    supervisor: Supervisor,
}

impl Waits {
    /// Sends requests until the last handle is dropped. After a panic the running requests are abandoned.
    async fn run(&mut self) {
        let mut tasks = JoinSet::new();
        while let Some(waiting) = self.queue.recv().await {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= TASKS_MAX {
                // Each task takes at most the time limit of a request.
                tasks.join_next().await;
            }
            let (asking, supervisor) = (Arc::clone(&self.asking), self.supervisor.clone());
            tasks.spawn(async move { supervisor.attempt(Task::CallInfo, asking.one(waiting)).await });
        }
        while tasks.join_next().await.is_some() {}
    }
}

impl Asking {
    async fn one(&self, Waiting { call, until }: Waiting) {
        let found = timeout_at(until, self.target(call.organisation_id)).await;
        let target = match found {
            Ok(Ok(Some(target))) => target,
            Ok(Ok(None)) => return,
            Ok(Err(_)) | Err(_) => {
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        let answered = match self.enter(call.organisation_id) {
            Ok(_place) => self.ask(&call, &target, until).await,
            Err(reason) => Err(reason),
        };
        self.hand_over(&call, answered).await;
    }

    /// The URL of an organisation, at most [`KNOWN_FOR`] old. Calls that query it while it is read share the result.
    async fn target(&self, organisation: OrganisationId) -> Result<Option<CallInfoTarget>, Unreadable> {
        let asked = Instant::now();
        let slot = self.slot(organisation);
        let mut known = slot.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.answers(asked)) {
            return known.target.clone();
        }
        let read = timeout(READ_TIME_MAX, self.targets.target(organisation)).await;
        let silent = || Problem::Internal("the database does not answer".to_owned());
        let target = read.unwrap_or_else(|_| Err(silent())).map_err(|problem| {
            tracing::warn!(%organisation, %problem, "the call-info URL of an organisation cannot be read");
            Unreadable
        });
        *known = Some(Known { at: Instant::now(), target: target.clone() });
        target
    }

    fn slot(&self, organisation: OrganisationId) -> Arc<tokio::sync::Mutex<Option<Known>>> {
        let mut all = self.known.lock();
        if all.len() >= KNOWN_LEN_MAX && !all.contains_key(&organisation) {
            all.clear();
        }
        Arc::clone(all.entry(organisation).or_default())
    }

    async fn ask(
        &self,
        call: &AnsweredCall,
        target: &CallInfoTarget,
        until: Instant,
    ) -> Result<Option<Note>, String> {
        let body = call.payload();
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json".to_owned()),
            ("x-service-signature", signature(&target.secret, &body)),
            ("x-service-timestamp", (self.clock)().as_micros().div_euclid(1_000_000).to_string()),
            ("x-service-delivery", Uuid::new_v4().to_string()),
        ];
        let total = until.saturating_duration_since(Instant::now());
        let budget = Budget { total, answer_bytes: ANSWER_BYTES_MAX };
        judge(self.client.post(&target.url, &headers, Bytes::from(body), budget).await, ANSWER_TIME_MAX)
    }

    async fn hand_over(&self, call: &AnsweredCall, answered: Result<Option<Note>, String>) {
        let (count, kept) = match answered {
            Ok(None) => {
                self.counts.nothing.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Ok(Some(note)) => (&self.counts.notes, self.sink.note(call, note).await),
            Err(reason) => {
                // The reason may contain the organisation's own text, which is not for the log.
                tracing::debug!(call.id = %call.call_uuid, "a call-info URL has no note to show");
                (&self.counts.failed, self.sink.failed(call, reason).await)
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Err(problem) = kept {
            tracing::warn!(call.id = %call.call_uuid, %problem, "the answer of a call-info URL cannot be stored");
        }
    }

    /// Takes a place among the requests of an organisation, and among all requests; released when dropped.
    fn enter(&self, organisation: OrganisationId) -> Result<Place<'_>, String> {
        let mut under_way = self.under_way.lock();
        let all: usize = under_way.values().sum();
        let own = under_way.get(&organisation).copied().unwrap_or_default();
        if own >= ORGANISATION_REQUESTS_MAX {
            return Err(format!("{own} requests to the URL are under way already: it answers too slowly"));
        }
        if all >= REQUESTS_MAX {
            return Err("the service asks as many URLs already as it can at once".to_owned());
        }
        under_way.insert(organisation, own + 1);
        Ok(Place { under_way: &self.under_way, organisation })
    }
}

struct Place<'a> {
    under_way: &'a Mutex<HashMap<OrganisationId, usize>>,
    organisation: OrganisationId,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock();
        if let Some(own) = under_way.get_mut(&self.organisation) {
            *own -= 1;
            if *own == 0 {
                under_way.remove(&self.organisation);
            }
        }
    }
}

/// From the answered call to the last byte of the response.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the database may take to return a URL: less than [`ANSWER_TIME_MAX`], so that a missing result is logged.
const READ_TIME_MAX: Duration = Duration::from_secs(4);
/// How long a result of the database is reused: a changed URL takes effect after this time.
const KNOWN_FOR: Duration = Duration::from_millis(100);
/// Organisations whose result is kept.
const KNOWN_LEN_MAX: usize = 1_024;
/// Answered calls that wait for the task.
const QUEUE_LEN_MAX: usize = 10_000;
/// Calls that are looked up and requested at the same time.
const TASKS_MAX: usize = 2_048;
/// Simultaneous requests to one organisation's URL: a slow one affects only its owner.
const ORGANISATION_REQUESTS_MAX: usize = 64;
/// Simultaneous requests.
const REQUESTS_MAX: usize = 1_024;
