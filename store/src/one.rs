//! One row: read by a statement that finds at most one, or written by the last statement of a change.

use crate::sql::{Query, Row};
use crate::{Change, Store, StoreError, WriteTransaction};

impl Store {
    /// What `query` finds, when it finds something.
    pub(super) async fn one<T>(
        &self,
        query: Query,
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        query.fetch_optional(self.readers()).await?.map(|row| read(&row)).transpose()
    }
}

impl WriteTransaction {
    /// As [`Store::one`], as of this transaction.
    pub(super) async fn one<T>(
        &mut self,
        query: Query,
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        query.fetch_optional(&mut *self.transaction).await?.map(|row| read(&row)).transpose()
    }

    /// Runs the statement that a change of the directory ends with, and makes it all visible.
    pub(super) async fn finish(mut self, query: Query, change: Change) -> Result<(), StoreError> {
        query.execute(&mut *self.transaction).await?;
        self.note(change);
        self.commit().await
    }
}
