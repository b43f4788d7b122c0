//! A write transaction on the directory.

use crate::bell::Changed;
use crate::error::StoreError;
use crate::sql::{Transaction, sql};

/// The result of declaring a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It existed with other values.
    Changed,
    /// It did not exist.
    Created,
    /// It existed as declared.
    Unchanged,
}

/// A transaction that holds the write lock; without [`WriteTransaction::commit`] it is rolled back on drop.
#[derive(Debug)]
pub struct WriteTransaction {
    pub(super) transaction: Transaction,
    changed: bool,
    rates_changed: bool,
}

impl WriteTransaction {
    pub(super) fn new(transaction: Transaction) -> Self {
        Self { transaction, changed: false, rates_changed: false }
    }

    /// Commits; running engines detect the change by the directory's revision.
    ///
    /// # Errors
    /// When the database fails; nothing was changed then.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        if self.changed {
            sql("UPDATE directory_revision SET revision = revision + 1 WHERE id = 1")
                .execute(&mut *self.transaction)
                .await?;
        }
        if self.rates_changed {
            sql("UPDATE directory_revision SET revision = revision + 1 WHERE id = 2")
                .execute(&mut *self.transaction)
                .await?;
        }
        if self.changed || self.rates_changed {
            self.transaction.changes(Changed::Directory);
        }
        self.transaction.commit().await?;
        Ok(())
    }

    /// Like [`WriteTransaction::note`], for rates.
    pub(super) fn note_rates(&mut self, change: Change) -> Change {
        self.rates_changed |= change != Change::Unchanged;
        change
    }

    pub(super) fn note(&mut self, change: Change) -> Change {
        self.changed |= change != Change::Unchanged;
        change
    }
}
