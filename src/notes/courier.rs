//! Passes stored notes to the switch, in the order in which they were stored.

use sidetone_model::note::rules::{PhoneAnswer, outcome};
use sidetone_model::note::{Change, Dispatch, Phones};
use tokio::sync::mpsc;

use crate::notes::Orders;

/// Takes stored notes; clones pass them to the same task.
#[derive(Clone, Debug)]
pub struct Courier(mpsc::Sender<Dispatch>);

/// The queue of a courier.
#[derive(Debug)]
pub struct Errands {
    errands: mpsc::Receiver<Dispatch>,
    /// Taken from the queue and not passed on yet; it survives a panic of the task.
    in_hand: Vec<Dispatch>,
}

/// Returns a courier, and its queue for [`Errands::run`].
pub fn courier() -> (Courier, Errands) {
    let (courier, errands) = mpsc::channel(ERRANDS_MAX);
    (Courier(courier), Errands { errands, in_hand: Vec::new() })
}

impl Courier {
    /// Takes a note for sending.
    ///
    /// # Errors
    /// When the queue is full: the changes to store, which state that no phone was sent it.
    pub(super) fn take(&self, dispatch: Dispatch) -> Result<(), Vec<Change>> {
        self.0.try_send(dispatch).map_err(|refused| unsent(&refused.into_inner(), PhoneAnswer::Overload))
    }
}

impl Errands {
    /// Passes notes on until every sender is dropped; reports for those that the switch does not take that no
    /// phone was sent them. It may be run again after a panic: notes in hand at that time may have been sent,
    /// and are not sent twice.
    pub async fn run(&mut self, phones: &dyn Phones, orders: &Orders) {
        let interrupted = std::mem::take(&mut self.in_hand);
        for change in interrupted.iter().flat_map(|dispatch| unsent(dispatch, PhoneAnswer::NotTaken)) {
            orders.answered(change).await;
        }
        while self.errands.recv_many(&mut self.in_hand, BATCH_LEN_MAX).await > 0 {
            let batch = self.in_hand.clone();
            if let Err(problem) = phones.send(batch.clone()).await {
                tracing::warn!(error = %problem, notes = batch.len(), "the switch does not take notes now");
                for change in batch.iter().flat_map(|dispatch| unsent(dispatch, PhoneAnswer::NotTaken)) {
                    orders.answered(change).await;
                }
            }
            self.in_hand.clear();
        }
    }
}

/// The changes that state that no phone was sent a note, and why.
fn unsent(dispatch: &Dispatch, why: PhoneAnswer) -> Vec<Change> {
    let change = |place| Change::Answered { note: dispatch.note, place, outcome: outcome(why) };
    (0..dispatch.to.len()).map(change).collect()
}

/// Notes that wait for the switch.
const ERRANDS_MAX: usize = 8_192;
/// Notes passed on at once: what the switch sends between two datagrams.
const BATCH_LEN_MAX: usize = 64;
