//! The writer: changes of notes that arrive together are stored in one transaction, with one sync for many.

use std::sync::Arc;

use sidetone_model::note::{Change, NoteLog, Written};
use sidetone_model::problem::Problem;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::dead_letters::DeadLetters;
use crate::notes::orders::{Order, Orders};
use crate::notes::{Dispatcher, NoteCounters};
use crate::storing::{Fault, RETRY_AFTER};

/// The task that stores notes.
pub struct NoteWriter {
    orders: mpsc::Receiver<Order>,
    /// Taken from the queue and not stored yet; it survives a panic of the task.
    in_hand: Vec<Order>,
    /// The number of orders to store one by one, because the database refused one of them.
    singly: usize,
    /// Set after a database error: no attempt is made before this time.
    pause_until: Option<Instant>,
    log: Arc<dyn NoteLog>,
    dispatcher: Dispatcher,
    counters: Arc<NoteCounters>,
    letters: DeadLetters,
}

impl NoteWriter {
    /// Returns a writer into `log`, and the sender of its orders.
    pub fn new(
        log: Arc<dyn NoteLog>,
        dispatcher: Dispatcher,
        counters: Arc<NoteCounters>,
    ) -> (Orders, NoteWriter) {
        let (sender, orders) = Orders::channel();
        let letters = DeadLetters::default();
        let writer = NoteWriter {
            orders,
            in_hand: Vec::new(),
            singly: 0,
            pause_until: None,
            log,
            dispatcher,
            counters,
            letters,
        };
        (sender, writer)
    }

    /// Returns the writer with `letters` for notes that the database refuses permanently.
    #[must_use]
    pub fn with_letters(mut self, letters: DeadLetters) -> Self {
        self.letters = letters;
        self
    }

    /// Runs until it is stopped and has stored the waiting orders. It may be run again after a panic.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) {
        loop {
            if let Some(until) = self.pause_until {
                tokio::time::sleep_until(until).await;
                self.pause_until = None;
            }
            let room = BATCH_LEN_MAX.saturating_sub(self.in_hand.len());
            if self.in_hand.is_empty() {
                tokio::select! {
                    taken = self.orders.recv_many(&mut self.in_hand, room) => if taken == 0 { return },
                    _ = stop.wait_for(|stop| *stop), if !self.orders.is_closed() => {
                        self.orders.close();
                        continue;
                    }
                }
            } else {
                let orders = &mut self.orders;
                self.in_hand.extend(std::iter::from_fn(|| orders.try_recv().ok()).take(room));
            }
            let now = Instant::now();
            // Dropping an order notifies its caller.
            self.in_hand.retain(|order| {
                let is_wanted = order.expires.is_none_or(|expires| now < expires);
                if !is_wanted && order.reply.is_none() {
                    tracing::warn!("notes of a room are not sent: the database took too long");
                }
                is_wanted
            });
            self.write().await;
        }
    }

    /// Stores the taken orders, or only the first one after one of them was refused; the rest remains for the next
    /// call.
    async fn write(&mut self) {
        if self.in_hand.is_empty() {
            return;
        }
        let count = if self.singly > 0 { 1 } else { self.in_hand.len() };
        let changes: Vec<Change> =
            self.in_hand.iter().take(count).map(|order| order.change.clone()).collect();
        let stored = self.log.write_changes(&changes).await;
        let rest = self.in_hand.split_off(count);
        let batch = std::mem::take(&mut self.in_hand);
        self.singly = self.singly.saturating_sub(1);
        self.in_hand = match stored {
            Ok(written) => {
                let settled = batch.into_iter().zip(written);
                settled.flat_map(|(order, written)| self.settle(order, written)).collect()
            }
            // One of them may be refused permanently: each is stored separately.
            Err(problem) if count > 1 && Fault::of(&problem) != Fault::Passing => {
                self.singly = count;
                batch
            }
            Err(problem) => self.unstored(batch, &problem),
        };
        self.in_hand.extend(rest);
    }

    /// Returns the orders of a failed batch that must still be stored.
    fn unstored(&mut self, batch: Vec<Order>, problem: &Problem) -> Vec<Order> {
        tracing::error!(error = %problem, "notes cannot be stored");
        let refused = Fault::of(problem) == Fault::Refused;
        let is_lost = |order: &Order| {
            refused && order.reply.is_none() && self.letters.bury_text("note", &order.change, problem)
        };
        let left = batch.into_iter().filter(|order| !is_lost(order));
        let kept: Vec<Order> = left.filter_map(|order| keep(order, problem)).collect();
        if !kept.is_empty() {
            self.pause_until = Some(Instant::now() + RETRY_AFTER);
        }
        kept
    }

    /// Sends a stored note, and notifies the caller; returns the changes that result from this.
    fn settle(&self, order: Order, written: Written) -> Vec<Order> {
        match &order.change {
            Change::Acked(_) => self.counters.acked(written == Written::Done),
            Change::Answered { outcome, .. } => self.counters.answered(outcome.status),
            Change::Sent(note) => self.counters.accepted(note.channel),
        }
        let unsent = order.dispatch.map_or(Ok(()), |dispatch| self.dispatcher.take(dispatch));
        if let Some(reply) = order.reply {
            // The caller may have disconnected: the note is stored and sent anyway.
            let _ = reply.send(Ok(written));
        }
        let unsent = unsent.err().unwrap_or_default().into_iter();
        unsent.map(|change| Order { change, reply: None, dispatch: None, expires: None }).collect()
    }
}

/// Notifies the caller that the order is not stored; an order without a caller is returned, to be tried again.
fn keep(order: Order, problem: &Problem) -> Option<Order> {
    match order.reply {
        Some(reply) => {
            let _ = reply.send(Err(problem.clone()));
            None
        }
        None => Some(order),
    }
}

/// Changes in one transaction.
const BATCH_LEN_MAX: usize = 256;
