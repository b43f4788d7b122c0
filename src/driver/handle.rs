//! How the engine's other tasks reach the switch: requests that it obeys, questions that it answers, and what can be
//! read of it at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sidetone_model::ids::ConferenceSessionId;
use sidetone_model::problem::Problem;
use sidetone_switch::control::{Asked, Question};
use sidetone_switch::counters::Counters;
use sidetone_switch::machine::{Input, Settings};
use sidetone_switch::mixing::Recording;
use sidetone_switch::routing::Directory;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// What others ask of the running switch.
#[derive(Debug)]
pub enum Request {
    /// What organisations have to spend, or the prices: fed to the switch as they are.
    Billing(Input),
    /// The stored directory changed.
    Directory(Arc<Directory>),
    /// The recording of a conference's session is closed.
    Recorded(ConferenceSessionId, Recording),
    /// Other settings hold from now on.
    Settings(Settings),
    /// Take no new calls, and stop once the last has ended or the time is over.
    Drain(Duration),
}

/// How the engine's other tasks reach the driver.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    questions: mpsc::Sender<Asked>,
    gauges: Arc<Gauges>,
}

/// Why a question has no answer; it was not put to the switch and never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too many questions wait already.
    #[error("ask the switch: {QUESTIONS_MAX} questions wait already")]
    Busy,
    /// The switch has stopped.
    #[error("ask the switch: it has stopped")]
    Stopped,
    /// It did not get to it in time.
    #[error("ask the switch: it did not get to it within {} s", ANSWER_MAX.as_secs())]
    Timeout,
}

/// The driver's end of a [`Handle`].
pub(super) struct Mailbox {
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) questions: mpsc::Receiver<Asked>,
}

/// What can be read of a running switch at any time.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    pub(super) live_calls: AtomicUsize,
    pub(super) legs: AtomicUsize,
    pub(super) bindings: AtomicUsize,
    pub(super) client_transactions: AtomicUsize,
    pub(super) server_transactions: AtomicUsize,
    pub(super) ports: AtomicUsize,
    pub(super) orders: AtomicUsize,
    pub(super) intake: AtomicUsize,
    pub(super) unwritten: AtomicUsize,
    pub(super) counters: Counters,
}

impl Handle {
    pub(super) fn new(gauges: Arc<Gauges>) -> (Self, Mailbox) {
        let (to_requests, requests) = mpsc::channel(REQUESTS_MAX);
        let (to_questions, questions) = mpsc::channel(QUESTIONS_MAX);
        let handle = Handle { requests: to_requests, questions: to_questions, gauges };
        (handle, Mailbox { requests, questions })
    }

    /// Passes a request on; `false` when the switch has stopped.
    pub async fn send(&self, request: Request) -> bool {
        self.requests.send(request).await.is_ok()
    }

    /// Puts a question to the switch, between two datagrams, and waits for its answer.
    ///
    /// A question is put once or not at all: with an error nothing has happened and nothing will, so that the caller
    /// may be told to ask again.
    ///
    /// *Bounds*: 1,024 questions wait, each for two seconds at most; the switch itself never waits.
    ///
    /// # Errors
    /// [`AskError`]; as a [`Problem`] it is 503 with `Retry-After`.
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, AskError> {
        self.ask_within(ANSWER_MAX, question).await
    }

    async fn ask_within<Q: Question>(&self, patience: Duration, question: Q) -> Result<Q::Answer, AskError> {
        let (reply, mut answer) = oneshot::channel();
        let claimed = Arc::new(AtomicBool::new(false));
        let claim = {
            let claimed = Arc::clone(&claimed);
            move || !claimed.swap(true, Ordering::AcqRel)
        };
        let put = claim.clone();
        let asked = Asked::new(move |now, switch| {
            if put() {
                // Whoever asked may have gone away meanwhile.
                let _ = reply.send(question.put(now, switch));
            }
        });
        self.questions.try_send(asked).map_err(|error| match error {
            TrySendError::Closed(_) => AskError::Stopped,
            TrySendError::Full(_) => AskError::Busy,
        })?;
        match tokio::time::timeout(patience, &mut answer).await {
            Ok(answer) => answer.map_err(|_| AskError::Stopped),
            Err(_) if claim() => Err(AskError::Timeout),
            // It is being put at this moment: what is done is also told.
            Err(_) => answer.await.map_err(|_| AskError::Stopped),
        }
    }

    /// How many calls there are.
    pub fn live_calls(&self) -> usize {
        self.gauges.live_calls.load(Ordering::Relaxed)
    }

    /// How many bindings are registered.
    pub fn bindings(&self) -> usize {
        self.gauges.bindings.load(Ordering::Relaxed)
    }

    /// How many client and server transactions live, those included whose answer is kept for retransmissions.
    pub fn transactions(&self) -> (usize, usize) {
        let read = |gauge: &AtomicUsize| gauge.load(Ordering::Relaxed);
        (read(&self.gauges.client_transactions), read(&self.gauges.server_transactions))
    }

    /// How many legs there are, in SIP.
    pub fn legs(&self) -> usize {
        self.gauges.legs.load(Ordering::Relaxed)
    }

    /// How many media ports are open or close now.
    pub fn ports(&self) -> usize {
        self.gauges.ports.load(Ordering::Relaxed)
    }

    /// What waits, by the queue it waits in.
    pub fn queues(&self) -> [(&'static str, usize); 5] {
        [
            ("media_orders", self.gauges.orders.load(Ordering::Relaxed)),
            ("sip_intake", self.gauges.intake.load(Ordering::Relaxed)),
            ("switch_mailbox", waiting(&self.requests)),
            ("switch_questions", waiting(&self.questions)),
            ("unwritten_records", self.gauges.unwritten.load(Ordering::Relaxed)),
        ]
    }

    /// What the switch counts.
    pub fn counters(&self) -> &Counters {
        &self.gauges.counters
    }

    /// Whether the switch still runs.
    pub fn is_running(&self) -> bool {
        !self.requests.is_closed()
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

/// How long whoever asks waits for the switch.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Questions that wait for the driver.
const QUESTIONS_MAX: usize = 1_024;
/// Requests that wait for the driver.
const REQUESTS_MAX: usize = 1_024;
/// When whoever was refused may ask again: a full mailbox is worked off in milliseconds.
const RETRY_AFTER_S: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use sidetone_switch::machine::{Now, Switch};

    struct Nothing;

    impl Question for Nothing {
        type Answer = ();

        fn put(self, _now: Now, _switch: &mut Switch) {}
    }

    #[tokio::test]
    async fn a_question_that_nobody_takes_is_given_up() {
        let (handle, mailbox) = Handle::new(Arc::default());
        assert_eq!(handle.ask_within(Duration::ZERO, Nothing).await, Err(AskError::Timeout));
        drop(mailbox);
        assert_eq!(handle.ask(Nothing).await, Err(AskError::Stopped));
    }

    #[tokio::test]
    async fn a_full_mailbox_refuses_at_once() {
        let (handle, _mailbox) = Handle::new(Arc::default());
        for _ in 0..QUESTIONS_MAX {
            handle.questions.try_send(Asked::new(|_, _| {})).unwrap();
        }
        assert_eq!(handle.ask(Nothing).await, Err(AskError::Busy));
        assert_eq!(Problem::from(AskError::Busy), Problem::Busy { retry_after_s: 1 });
    }
}
