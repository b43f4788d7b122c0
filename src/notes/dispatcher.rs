//! Passes stored notes to the switch, in the order in which they were stored.

use sidetone_model::note::rules::{PhoneAnswer, outcome};
use sidetone_model::note::{Change, Dispatch, Phones};
use tokio::sync::mpsc;

use crate::notes::Orders;

/// Takes stored notes; clones pass them to the same task.
#[derive(Clone, Debug)]
pub struct Dispatcher(mpsc::Sender<Dispatch>);

/// The queue of a dispatcher.
#[derive(Debug)]
pub struct DispatchQueue {
    queue: mpsc::Receiver<Dispatch>,
    /// Taken from the queue and not passed on yet; it survives a panic of the task.
    in_hand: Vec<Dispatch>,
}

/// Returns a dispatcher, and its queue for [`DispatchQueue::run`].
pub fn dispatcher() -> (Dispatcher, DispatchQueue) {
    let (dispatcher, queue) = mpsc::channel(QUEUE_LEN_MAX);
    (Dispatcher(dispatcher), DispatchQueue { queue, in_hand: Vec::new() })
}

impl Dispatcher {
    /// Takes a note for sending.
    ///
    /// # Errors
    /// When the queue is full: the changes to store, which report that the note was sent to no phone.
    pub(super) fn take(&self, dispatch: Dispatch) -> Result<(), Vec<Change>> {
        self.0.try_send(dispatch).map_err(|refused| unsent(&refused.into_inner(), PhoneAnswer::Overload))
    }
}

impl DispatchQueue {
    /// Passes notes on until every sender is dropped. For notes that the switch does not accept, it reports that they
    /// were sent to no phone. It may be run again after a panic: notes in progress at that time may have been sent,
    /// and are not sent twice.
    pub async fn run(&mut self, phones: &dyn Phones, orders: &Orders) {
        let interrupted = std::mem::take(&mut self.in_hand);
        for change in interrupted.iter().flat_map(|dispatch| unsent(dispatch, PhoneAnswer::NotTaken)) {
            orders.answered(change).await;
        }
        while self.queue.recv_many(&mut self.in_hand, BATCH_LEN_MAX).await > 0 {
            let batch = self.in_hand.clone();
            if let Err(problem) = phones.send(batch.clone()).await {
                tracing::warn!(error = %problem, notes = batch.len(), "the switch accepts no notes now");
                for change in batch.iter().flat_map(|dispatch| unsent(dispatch, PhoneAnswer::NotTaken)) {
                    orders.answered(change).await;
                }
            }
            self.in_hand.clear();
        }
    }
}

/// The changes that report that a note was sent to no phone, and why.
fn unsent(dispatch: &Dispatch, why: PhoneAnswer) -> Vec<Change> {
    let change = |place| Change::Answered { note: dispatch.note, place, outcome: outcome(why) };
    (0..dispatch.to.len()).map(change).collect()
}

/// Notes that wait for the switch.
const QUEUE_LEN_MAX: usize = 8_192;
/// Notes passed on in one step: the number that the switch sends between two datagrams.
const BATCH_LEN_MAX: usize = 64;
