//! One writing transaction over the directory.

use crate::StoreError;
use crate::sql::{Transaction, sql};

/// What declaring a row did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was there with other values.
    Changed,
    /// It was not there.
    Created,
    /// It was there as declared.
    Unchanged,
}

/// A transaction that holds the one write lock; dropped without [`WriteTransaction::commit`] it
/// changes nothing.
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

    /// Makes everything visible at once; engines that run notice by the directory's revision.
    ///
    /// # Errors
    /// When the database refuses; nothing has changed then.
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
        self.transaction.commit().await?;
        Ok(())
    }

    /// As [`WriteTransaction::note`], for what calls cost.
    pub(super) fn note_rates(&mut self, change: Change) -> Change {
        self.rates_changed |= change != Change::Unchanged;
        change
    }

    pub(super) fn note(&mut self, change: Change) -> Change {
        self.changed |= change != Change::Unchanged;
        change
    }
}
