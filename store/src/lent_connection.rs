//! A connection while it is in use: it always returns to its pool, even if its user is cancelled.
//!
//! A connection whose statement was cancelled can be used again once the database has answered. Until then it counts
//! as used, for the organisation's share too: a client that cancels requests gets no larger share of the database
//! than one that waits. A connection without an answer within [`RETURN_MAX`] is closed.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Database, Postgres, Sqlite};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::connection_shares::Share;

/// A connection of a pool, within a transaction or not.
#[derive(Debug)]
pub(super) struct LentConnection<DB: Kind> {
    /// `Some` until it is dropped.
    connection: Option<PoolConnection<DB>>,
    /// Whether a transaction was begun and not committed.
    is_open: bool,
    share: Option<Share>,
}

/// A kind of database; all kinds end transactions with the same statements.
pub(super) trait Kind: Database {
    /// Runs a statement without parameters.
    fn run<'c>(
        connection: &'c mut Self::Connection,
        statement: &'static str,
    ) -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + 'c>>;
}

impl Kind for Postgres {
    fn run<'c>(
        connection: &'c mut Self::Connection,
        statement: &'static str,
    ) -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + 'c>> {
        Box::pin(async move { sqlx::raw_sql(statement).execute(connection).await.map(drop) })
    }
}

impl Kind for Sqlite {
    fn run<'c>(
        connection: &'c mut Self::Connection,
        statement: &'static str,
    ) -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + 'c>> {
        Box::pin(async move { sqlx::raw_sql(statement).execute(connection).await.map(drop) })
    }
}

impl<DB: Kind> LentConnection<DB> {
    /// Wraps `connection`, used under the share of `share`.
    pub(super) fn new(connection: PoolConnection<DB>, share: Option<Share>) -> Self {
        Self { connection: Some(connection), is_open: false, share }
    }

    /// Begins a transaction; without [`LentConnection::commit`] it is rolled back on drop.
    pub(super) async fn begin(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        // Set before the answer: a cancelled BEGIN may have been executed.
        self.is_open = true;
        DB::run(self, statement).await
    }

    /// Commits the transaction, which makes its changes visible.
    pub(super) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        DB::run(self, "COMMIT").await?;
        self.is_open = false;
        Ok(())
    }
}

impl<DB: Kind> Deref for LentConnection<DB> {
    type Target = DB::Connection;

    #[expect(clippy::expect_used, reason = "the connection is taken by the drop alone")]
    fn deref(&self) -> &DB::Connection {
        self.connection.as_ref().expect("a connection in use is there")
    }
}

impl<DB: Kind> DerefMut for LentConnection<DB> {
    #[expect(clippy::expect_used, reason = "the connection is taken by the drop alone")]
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.connection.as_mut().expect("a connection in use is there")
    }
}

impl<DB: Kind> Drop for LentConnection<DB> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let (share, is_open) = (self.share.take(), self.is_open);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                give_back(connection, is_open).await;
                drop(share);
            })),
            // The runtime has ended: a pool would try to start a task on it.
            Err(_) => drop(connection.detach()),
        }
    }
}

/// Returns a connection to its pool, or closes it if the database does not answer.
async fn give_back<DB: Kind>(mut connection: PoolConnection<DB>, is_open: bool) {
    if is_open && timeout(RETURN_MAX, DB::run(&mut connection, "ROLLBACK")).await.is_err() {
        drop(connection.detach());
        return;
    }
    // On timeout the future is dropped, which closes the connection.
    let _ = timeout(RETURN_MAX, connection.return_to_pool()).await;
}

/// How long the database may take before the connection can be used again.
const RETURN_MAX: Duration = Duration::from_secs(15);
