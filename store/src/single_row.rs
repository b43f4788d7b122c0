//! Single rows: read by a statement that finds at most one, or written by the last statement of a change.

use crate::sql::{Query, Row};
use crate::{Change, Store, StoreError, WriteTransaction};

impl Store {
    /// Returns the row that `query` finds, if any.
    pub(super) async fn one<T>(
        &self,
        query: Query,
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        query.fetch_optional(self.readers()).await?.map(|row| read(&row)).transpose()
    }
}

impl WriteTransaction {
    /// Like [`Store::one`], within this transaction.
    pub(super) async fn one<T>(
        &mut self,
        query: Query,
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        query.fetch_optional(&mut *self.transaction).await?.map(|row| read(&row)).transpose()
    }

    /// Runs the last statement of a directory change, and commits.
    pub(super) async fn finish(mut self, query: Query, change: Change) -> Result<(), StoreError> {
        query.execute(&mut *self.transaction).await?;
        self.note(change);
        self.commit().await
    }
}
