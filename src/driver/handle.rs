//! Handle of the running switch for the engine's other tasks: requests, queries with answers, and figures that can be
//! read at any time.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::ids::{ConferenceSessionId, LegId};
use sidetone_model::problem::Problem;
use sidetone_model::registration::KeptExtension;
use sidetone_switch::counters::Counters;
use sidetone_switch::machine::{Input, Settings, Switch};
use sidetone_switch::mixing::Recording;
use sidetone_switch::queries::{Answer, Query, Question, TakeChangedBindings};
use sidetone_switch::routing::Directory;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// A request of another task to the running switch.
#[derive(Debug)]
pub enum Request {
    /// New credit accounts or prices, passed on to the switch unchanged.
    Billing(Input),
    /// The stored directory changed.
    Directory(Arc<Directory>),
    /// The addresses of the other nodes of the cluster.
    Members(HashSet<IpAddr>),
    /// The name of a caller was looked up or recorded; whether it is available.
    NameKnown(LegId, bool),
    /// The recording of a conference session is closed.
    Recorded(ConferenceSessionId, Recording),
    /// The settings changed.
    Settings(Settings),
    /// Accept no new calls; stop once the last call has ended or this time has passed.
    Drain(Duration),
}

/// The handle by which other tasks reach the driver.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    questions: mpsc::Sender<WaitingQuery>,
    gauges: Arc<Gauges>,
}

/// Why a query has no answer. The switch has not executed it and never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too many queries are waiting.
    #[error("ask the switch: {QUESTIONS_MAX} questions are waiting already")]
    Busy,
    /// The switch has stopped.
    #[error("ask the switch: it has stopped")]
    Stopped,
    /// The switch did not execute the query in time.
    #[error("ask the switch: no answer within {} s", ANSWER_MAX.as_secs())]
    Timeout,
}

/// A query that waits for the switch.
#[derive(Debug)]
pub(super) struct WaitingQuery {
    query: Query,
    claim: Claim,
    reply: oneshot::Sender<Answer>,
}

/// Decides between the switch, which executes a query, and its client, which abandons it: the first one wins.
#[derive(Clone, Debug, Default)]
struct Claim(Arc<AtomicBool>);

/// The driver's end of a [`Handle`].
pub(super) struct Mailbox {
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) questions: mpsc::Receiver<WaitingQuery>,
}

/// Figures of a running switch that can be read at any time.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    pub(super) live_calls: AtomicUsize,
    pub(super) legs: AtomicUsize,
    pub(super) bindings: AtomicUsize,
    pub(super) client_transactions: AtomicUsize,
    pub(super) server_transactions: AtomicUsize,
    pub(super) ports: AtomicUsize,
    pub(super) rooms: AtomicUsize,
    pub(super) orders: AtomicUsize,
    pub(super) intake: AtomicUsize,
    pub(super) unwritten: AtomicUsize,
    /// Messages that the edge relayed, refused and dropped.
    pub(super) edge: [AtomicU64; 3],
    pub(super) counters: Counters,
    /// The answer that a switch leaves when it ends: the changes of registrations that no task has asked for.
    last_bindings: Mutex<Option<oneshot::Receiver<Answer>>>,
}

impl Handle {
    pub(super) fn new(gauges: Arc<Gauges>) -> (Self, Mailbox) {
        let (to_requests, requests) = mpsc::channel(REQUESTS_MAX);
        let (to_questions, questions) = mpsc::channel(QUESTIONS_MAX);
        let handle = Handle { requests: to_requests, questions: to_questions, gauges };
        (handle, Mailbox { requests, questions })
    }

    /// Sends a request to the switch; returns `false` when it has stopped.
    pub async fn send(&self, request: Request) -> bool {
        self.requests.send(request).await.is_ok()
    }

    /// Sends a query to the switch, which executes it between two datagrams, and waits for the answer.
    ///
    /// A query is executed once or not at all: on an error nothing was done and nothing will be, so the client may
    /// try again.
    ///
    /// *Bounds*: at most 1,024 queries wait, each for at most two seconds; the switch itself never waits.
    ///
    /// # Errors
    /// [`AskError`]; as a [`Problem`] it is 503 with `Retry-After`.
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, AskError> {
        self.ask_within(ANSWER_MAX, question).await
    }

    async fn ask_within<Q: Question>(&self, patience: Duration, question: Q) -> Result<Q::Answer, AskError> {
        let (reply, mut answer) = oneshot::channel();
        let claim = Claim::default();
        let waiting = WaitingQuery { query: question.query(), claim: claim.clone(), reply };
        self.questions.try_send(waiting).map_err(|error| match error {
            TrySendError::Closed(_) => AskError::Stopped,
            TrySendError::Full(_) => AskError::Busy,
        })?;
        let answer = match tokio::time::timeout(patience, &mut answer).await {
            Ok(answer) => answer,
            Err(_) if claim.take() => return Err(AskError::Timeout),
            // The switch is executing it at this moment: wait for the answer, because it takes effect.
            Err(_) => answer.await,
        };
        answer.ok().and_then(Q::answer).ok_or(AskError::Stopped)
    }

    /// Returns the number of live calls.
    pub fn live_calls(&self) -> usize {
        self.gauges.live_calls.load(Ordering::Relaxed)
    }

    /// Returns the number of live conference rooms.
    pub fn live_rooms(&self) -> usize {
        self.gauges.rooms.load(Ordering::Relaxed)
    }

    /// Returns the number of registered bindings.
    pub fn bindings(&self) -> usize {
        self.gauges.bindings.load(Ordering::Relaxed)
    }

    /// Returns the number of client and server transactions, including those kept only for retransmissions.
    pub fn transactions(&self) -> (usize, usize) {
        let read = |gauge: &AtomicUsize| gauge.load(Ordering::Relaxed);
        (read(&self.gauges.client_transactions), read(&self.gauges.server_transactions))
    }

    /// Returns the number of SIP legs.
    pub fn legs(&self) -> usize {
        self.gauges.legs.load(Ordering::Relaxed)
    }

    /// Returns the number of media ports that are open or closing.
    pub fn ports(&self) -> usize {
        self.gauges.ports.load(Ordering::Relaxed)
    }

    /// Returns the lengths of the queues, by name.
    pub fn queues(&self) -> [(&'static str, usize); 5] {
        [
            ("media_orders", self.gauges.orders.load(Ordering::Relaxed)),
            ("sip_intake", self.gauges.intake.load(Ordering::Relaxed)),
            ("switch_mailbox", waiting(&self.requests)),
            ("switch_questions", waiting(&self.questions)),
            ("unwritten_records", self.gauges.unwritten.load(Ordering::Relaxed)),
        ]
    }

    /// Returns how many messages the edge for other nodes relayed, refused and dropped.
    pub fn edge_messages(&self) -> [(&'static str, u64); 3] {
        let [relayed, refused, dropped] = &self.gauges.edge;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [("relayed", read(relayed)), ("refused", read(refused)), ("dropped", read(dropped))]
    }

    /// Returns the counters of the switch.
    pub fn counters(&self) -> &Counters {
        &self.gauges.counters
    }

    /// Takes the changes of registrations that a switch which has ended has left; before that there are none.
    pub fn last_bindings(&self) -> Vec<KeptExtension> {
        let answer = self.gauges.last_bindings.lock().take();
        let answer = answer.and_then(|mut answer| answer.try_recv().ok());
        answer.and_then(TakeChangedBindings::answer).unwrap_or_default()
    }

    /// Whether the switch is still running.
    pub fn is_running(&self) -> bool {
        !self.requests.is_closed()
    }
}

impl Gauges {
    /// The last query of a switch that ends. The handle keeps its answer: no task can query the switch after that.
    pub(super) fn last_query(&self) -> WaitingQuery {
        let (reply, answer) = oneshot::channel();
        *self.last_bindings.lock() = Some(answer);
        WaitingQuery { query: TakeChangedBindings(usize::MAX).query(), claim: Claim::default(), reply }
    }

    /// Stores the figures of the switch, the ports and commands of the relay, and the lengths of the driver's queues.
    pub(super) fn note(
        &self,
        switch: &Switch,
        (ports, orders): (usize, usize),
        (intake, unwritten): (usize, usize),
    ) {
        self.live_calls.store(switch.live_calls(), Ordering::Relaxed);
        self.bindings.store(switch.bindings(), Ordering::Relaxed);
        self.rooms.store(switch.live_rooms(), Ordering::Relaxed);
        let (clients, servers) = switch.transactions();
        self.client_transactions.store(clients, Ordering::Relaxed);
        self.server_transactions.store(servers, Ordering::Relaxed);
        self.legs.store(switch.legs(), Ordering::Relaxed);
        self.ports.store(ports, Ordering::Relaxed);
        self.orders.store(orders, Ordering::Relaxed);
        self.intake.store(intake, Ordering::Relaxed);
        self.unwritten.store(unwritten, Ordering::Relaxed);
    }
}

impl WaitingQuery {
    /// Returns the query and the channel for its answer; `None` if the client has abandoned it.
    pub(super) fn begin(self) -> Option<(Query, oneshot::Sender<Answer>)> {
        self.claim.take().then_some((self.query, self.reply))
    }
}

impl Claim {
    /// Takes the claim; returns whether it was free.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        tracing::warn!(%error, "a request was answered 503");
        Problem::Busy { retry_after_s: RETRY_AFTER_S }
    }
}

fn waiting<T>(queue: &mpsc::Sender<T>) -> usize {
    queue.max_capacity().saturating_sub(queue.capacity())
}

/// How long a caller waits for the switch.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Queries that may wait for the driver.
const QUESTIONS_MAX: usize = 1_024;
/// Requests that may wait for the driver.
const REQUESTS_MAX: usize = 1_024;
/// When a refused client may try again: a full queue is emptied within milliseconds.
const RETRY_AFTER_S: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use sidetone_model::ids::CallId;
    use sidetone_switch::queries::FindCall;
    use uuid::Uuid;

    const NOTHING: FindCall = FindCall(CallId(Uuid::nil()));

    #[tokio::test]
    async fn a_question_that_nobody_takes_is_given_up() {
        let (handle, mailbox) = Handle::new(Arc::default());
        assert_eq!(handle.ask_within(Duration::ZERO, NOTHING).await, Err(AskError::Timeout));
        let mut mailbox = mailbox;
        assert!(mailbox.questions.try_recv().unwrap().begin().is_none(), "it is not carried out later");
        drop(mailbox);
        assert_eq!(handle.ask(NOTHING).await, Err(AskError::Stopped));
    }

    #[tokio::test]
    async fn a_full_mailbox_refuses_at_once() {
        let (handle, _mailbox) = Handle::new(Arc::default());
        for _ in 0..QUESTIONS_MAX {
            let (reply, _answer) = oneshot::channel();
            let waiting = WaitingQuery { query: NOTHING.query(), claim: Claim::default(), reply };
            handle.questions.try_send(waiting).unwrap();
        }
        assert_eq!(handle.ask(NOTHING).await, Err(AskError::Busy));
        assert_eq!(Problem::from(AskError::Busy), Problem::Busy { retry_after_s: 1 });
    }
}
