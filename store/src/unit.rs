//! A unit of work: what several functions of the store write for one request becomes visible at once.
//!
//! Within [`within`] a commit keeps the transaction open, the next transaction continues it, and reads see
//! what was written. The starter of the unit commits it together with its own row, or drops it. The functions
//! that write do not depend on it.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::sql::{Connection, Transaction};

tokio::task_local! {
    static UNIT: Arc<Mutex<Unit>>;
}

/// What a unit of work has written so far.
#[derive(Debug, Default)]
pub(super) struct Unit {
    transaction: Option<Transaction>,
    written: bool,
}

/// Runs `work` as a unit, and returns what it wrote. Dropping the unit, or the future, rolls everything back.
pub(super) async fn within<T>(work: impl Future<Output = T>) -> (T, Unit) {
    let unit = Arc::new(Mutex::new(Unit::default()));
    let result = UNIT.scope(Arc::clone(&unit), work).await;
    let unit = std::mem::take(&mut *unit.lock());
    (result, unit)
}

/// Whether there is a unit of work.
pub(super) fn is_within() -> bool {
    UNIT.try_with(|_| ()).is_ok()
}

/// Takes the unit's transaction to continue it; a commit returns it to the unit.
pub(super) fn resume() -> Option<Transaction> {
    UNIT.try_with(|unit| unit.lock().transaction.take()).ok().flatten()
}

/// Keeps a transaction open for the unit; outside of a unit it is returned.
pub(super) fn keep(transaction: Transaction) -> Option<Transaction> {
    let mut transaction = Some(transaction);
    let _ = UNIT.try_with(|unit| {
        let mut unit = unit.lock();
        unit.transaction = transaction.take();
        unit.written = true;
    });
    transaction
}

/// The unit's transaction for one statement; returned to the unit when dropped.
#[derive(Debug)]
pub(super) struct Held(Option<Transaction>);

impl Held {
    /// Takes the transaction, if there is a unit and it has written something.
    pub(super) fn take() -> Option<Held> {
        resume().map(|transaction| Held(Some(transaction)))
    }

    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.0.as_deref_mut()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(transaction) = self.0.take() {
            // Outside of a unit there was no transaction to take.
            let _ = keep(transaction);
        }
    }
}

impl Unit {
    /// Returns the transaction with everything that was written, if any.
    ///
    /// # Errors
    /// [`Undone`] when a part of it was rolled back, and therefore all of it.
    pub(super) fn into_transaction(self) -> Result<Option<Transaction>, Undone> {
        match self.transaction {
            None if self.written => Err(Undone),
            transaction => Ok(transaction),
        }
    }
}

/// A transaction of the unit was begun and dropped after another had been committed.
#[derive(Debug, thiserror::Error)]
#[error("a later part of the work was rolled back, and with it all that came before")]
pub(super) struct Undone;
