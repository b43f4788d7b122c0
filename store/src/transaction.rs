//! Transactions, and units of work: the writes of several store functions for one request become visible together.
//!
//! Within [`within`], a commit keeps the transaction open, the next transaction continues it, and reads see the
//! changes. The code that started the unit commits it together with its own row, or drops it. The functions that
//! write are independent of this.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::event::StreamedEvent;

use crate::bell::{Bell, Changed};
use crate::connection::Connection;

/// A transaction; without [`Transaction::commit`] it is rolled back on drop.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: Connection,
    bell: Bell,
    writes: bool,
    /// The number of events that become visible with it.
    events: u64,
    /// Those of them that have positions.
    placed: Vec<StreamedEvent>,
    /// The kinds of followed data that it changes.
    changes: BTreeSet<Changed>,
    committed: Hooks,
}

/// Functions to call after a commit.
#[derive(Default)]
struct Hooks(Vec<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooks({})", self.0.len())
    }
}

impl Transaction {
    /// The transaction that was begun on `connection` to write or to read; a commit of events rings `bell`.
    pub(super) fn new(connection: Connection, bell: Bell, writes: bool) -> Self {
        Transaction {
            connection,
            bell,
            writes,
            events: 0,
            placed: Vec::new(),
            changes: BTreeSet::new(),
            committed: Hooks::default(),
        }
    }

    /// Commits; within a unit of work this happens when the unit is committed.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        let Some(transaction) = keep(self) else { return Ok(()) };
        let Transaction { mut connection, bell, writes, events, placed, changes, committed } = transaction;
        let vitals = connection.vitals().clone();
        let commit = async {
            match &mut connection {
                Connection::Postgres(lent, _) => lent.commit().await,
                Connection::Sqlite(lent, _) => lent.commit().await,
            }
        };
        Box::pin(vitals.answered(commit)).await?;
        if writes {
            bell.wrote();
        }
        // The connection is still held: on SQLite no other transaction is committed in between.
        bell.ring(events, placed);
        changes.into_iter().for_each(|what| bell.changed(what));
        for hook in committed.0 {
            hook();
        }
        Ok(())
    }

    /// Calls `hook` after the commit.
    pub(super) fn when_committed(&mut self, hook: Box<dyn FnOnce() + Send>) {
        self.committed.0.push(hook);
    }

    /// Makes the commit wake the listeners that follow this kind of data.
    pub(super) fn changes(&mut self, what: Changed) {
        self.changes.insert(what);
    }

    /// Counts written events: the commit wakes their readers, and passes on `placed`, the events that have positions.
    pub(super) fn wrote_events(&mut self, count: usize, placed: Vec<StreamedEvent>) {
        self.events += count as u64;
        self.placed.extend(placed);
    }

    /// Whether no other transaction can write before this one ends.
    pub(super) fn writes_alone(&self) -> bool {
        matches!(self.connection, Connection::Sqlite(..))
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

tokio::task_local! {
    static UNIT: Arc<Mutex<Unit>>;
}

/// The changes that a unit of work has made so far.
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

/// Whether the caller is within a unit of work.
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
            // Outside of a unit, there was no transaction to take.
            let _ = keep(transaction);
        }
    }
}

impl Unit {
    /// Returns the transaction with all changes, if there are any.
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
