//! A connection while it is in use: it goes back to its pool, whatever becomes of what used it.
//!
//! A connection whose statement was broken off is of use again once the database has answered. Until then it counts
//! as used, and the organisation's share with it: a client that breaks requests off gets no more of the database than
//! one that waits. A connection that has no answer in [`RETURN_MAX`] is closed.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Database, Postgres, Sqlite};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::turns::Turn;

/// A connection of a pool, within a transaction or not.
#[derive(Debug)]
pub(super) struct Lent<DB: Kind> {
    /// Some until it is dropped.
    connection: Option<PoolConnection<DB>>,
    /// Whether a transaction was begun that is not committed.
    is_open: bool,
    turn: Option<Turn>,
}

/// A kind of database whose transactions end by the same words.
pub(super) trait Kind: Database {
    /// Runs a statement that has no parameters.
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

impl<DB: Kind> Lent<DB> {
    /// `connection`, used by the right of `turn`.
    pub(super) fn new(connection: PoolConnection<DB>, turn: Option<Turn>) -> Self {
        Self { connection: Some(connection), is_open: false, turn }
    }

    /// Begins a transaction; dropped without [`Lent::commit`] it changes nothing.
    pub(super) async fn begin(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        // Before the answer: what is broken off may have been begun.
        self.is_open = true;
        DB::run(self, statement).await
    }

    /// Makes what was written visible.
    pub(super) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        DB::run(self, "COMMIT").await?;
        self.is_open = false;
        Ok(())
    }
}

impl<DB: Kind> Deref for Lent<DB> {
    type Target = DB::Connection;

    #[expect(clippy::expect_used, reason = "the connection is taken by the drop alone")]
    fn deref(&self) -> &DB::Connection {
        self.connection.as_ref().expect("a connection in use is there")
    }
}

impl<DB: Kind> DerefMut for Lent<DB> {
    #[expect(clippy::expect_used, reason = "the connection is taken by the drop alone")]
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.connection.as_mut().expect("a connection in use is there")
    }
}

impl<DB: Kind> Drop for Lent<DB> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let (turn, is_open) = (self.turn.take(), self.is_open);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                give_back(connection, is_open).await;
                drop(turn);
            })),
            // The runtime is gone: a pool would ask it for a task.
            Err(_) => drop(connection.detach()),
        }
    }
}

/// Gives a connection back to its pool, or closes it when the database does not answer.
async fn give_back<DB: Kind>(mut connection: PoolConnection<DB>, is_open: bool) {
    if is_open && timeout(RETURN_MAX, DB::run(&mut connection, "ROLLBACK")).await.is_err() {
        drop(connection.detach());
        return;
    }
    // Dropped with its time, the future closes the connection.
    let _ = timeout(RETURN_MAX, connection.return_to_pool()).await;
}

/// How long the database may take until a connection is of use again.
const RETURN_MAX: Duration = Duration::from_secs(15);
