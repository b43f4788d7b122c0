//! Orders to the writer: changes of notes to store, and the callers that wait for the result.

use std::time::Duration;

use sidetone_model::note::{Change, Dispatch, NewNote, Tap, Written};
use sidetone_model::problem::Problem;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Sends orders to the writer; clones send to the same one.
#[derive(Clone, Debug)]
pub struct Orders(mpsc::Sender<Order>);

#[derive(Debug)]
pub(super) struct Order {
    pub(super) change: Change,
    /// The caller that waits for the result.
    pub(super) reply: Option<oneshot::Sender<Result<Written, Problem>>>,
    /// Sent after it is stored.
    pub(super) dispatch: Option<Dispatch>,
    /// The order is dropped at this time.
    pub(super) expires: Option<Instant>,
}

impl Orders {
    /// Returns a sender, and the queue that the writer reads.
    pub(super) fn channel() -> (Orders, mpsc::Receiver<Order>) {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        (Orders(sender), orders)
    }

    /// Stores a note, and sends it after that.
    ///
    /// # Errors
    /// When the database fails or the node is overloaded; it is not sent then.
    pub async fn store(&self, note: NewNote, dispatch: Option<Dispatch>) -> Result<(), Problem> {
        let (reply, stored) = oneshot::channel();
        let change = Change::Sent(Box::new(note));
        self.order(Order { change, reply: Some(reply), dispatch, expires: None })?;
        stored.await.map_err(|_| stopped())?.map(drop)
    }

    /// Stores an acknowledgement; returns the result. It is stored soon or not at all, because a phone waits for the
    /// response.
    ///
    /// # Errors
    /// When it is not stored.
    pub async fn tap(&self, tap: Tap) -> Result<Written, Problem> {
        let (reply, stored) = oneshot::channel();
        let expires = Some(Instant::now() + TAP_PATIENCE);
        self.order(Order { change: Change::Acked(tap), reply: Some(reply), dispatch: None, expires })?;
        stored.await.map_err(|_| stopped())?
    }

    /// Stores the result of sending a note; no caller waits for it. Waits while the queue is full.
    pub async fn answered(&self, change: Change) {
        // The writer has ended only when the engine stops.
        let _ = self.0.send(Order { change, reply: None, dispatch: None, expires: None }).await;
    }

    /// Stores a note of the service itself, and sends it after that: soon or not at all, because it reports an event
    /// that has just happened. Never blocks; `false` if the queue is full.
    pub fn announce(&self, note: NewNote, dispatch: Dispatch) -> bool {
        let change = Change::Sent(Box::new(note));
        let expires = Some(Instant::now() + CONFERENCE_PATIENCE);
        self.order(Order { change, reply: None, dispatch: Some(dispatch), expires }).is_ok()
    }

    fn order(&self, order: Order) -> Result<(), Problem> {
        self.0.try_send(order).map_err(|_| Problem::Busy { retry_after_s: BUSY_S })
    }
}

fn stopped() -> Problem {
    Problem::Busy { retry_after_s: BUSY_S }
}

/// Largest number of orders that wait to be stored.
const ORDERS_MAX: usize = 8_192;
const BUSY_S: u64 = 1;
/// How long a room's note may wait for the database: after that it is out of date.
const CONFERENCE_PATIENCE: Duration = Duration::from_secs(5);
/// How long an acknowledgement may wait: its sender retransmits it for 32 s (RFC 3261 §17.1.2.2), and a
/// retransmission costs the store nothing. A disk may be busy for longer than the 500 ms until the first
/// retransmission.
const TAP_PATIENCE: Duration = Duration::from_secs(5);
