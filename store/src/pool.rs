//! The connections of one purpose, and where a statement runs.

use std::time::Duration;

use crate::bell::Bell;
use crate::connection::{Connection, Connections};
use crate::connection_shares::{self, Shares};
use crate::database_health::Vitals;
use crate::lent_connection::LentConnection;
use crate::transaction::{self, Held, Transaction};

/// The connections of one purpose: reads for organisations, reads for the engine, writes.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    connections: Connections,
    vitals: Vitals,
    /// The shares of the organisations; `None` for a pool that does no work for organisations.
    shares: Option<Shares>,
    /// Rung by commits of events.
    bell: Bell,
}

/// Where a statement runs: on any connection of a pool, or within a transaction.
#[derive(Debug)]
pub(super) enum Target<'c> {
    Connection(&'c mut Connection),
    Pool(&'c Pool),
}

impl Target<'_> {
    /// The transaction of the unit of work, for a statement that would otherwise run on any connection.
    pub(super) fn held(&self) -> Option<Held> {
        match self {
            Target::Connection(_) => None,
            Target::Pool(_) => Held::take(),
        }
    }
}

impl Pool {
    /// Builds a pool on these connections; `vitals` limits the time of answers, and commits of events ring
    /// `bell`.
    pub(super) fn new(connections: Connections, vitals: Vitals, bell: Bell) -> Self {
        Self { connections, vitals, shares: None, bell }
    }

    /// Returns the pool with a share of the connections for each organisation.
    pub(super) fn shared(mut self, shares: Shares) -> Self {
        self.shares = Some(shares);
        self
    }

    /// Its connections.
    pub(super) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether it is PostgreSQL, where several transactions can write at the same time.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.connections, Connections::Postgres(..))
    }

    /// The age at which connections to a file are replaced; `None`: never.
    #[cfg(test)]
    pub(super) fn max_lifetime(&self) -> Option<std::time::Duration> {
        match &self.connections {
            Connections::Postgres(pool) => pool.options().get_max_lifetime(),
            Connections::Sqlite(pool) => pool.options().get_max_lifetime(),
        }
    }

    /// The time limits of answers.
    pub(super) fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// Returns a connection when it is the turn of the organisation that the work is done for.
    pub(super) async fn lend(&self) -> Result<Connection, sqlx::Error> {
        let share = match (&self.shares, connection_shares::tenant()) {
            (Some(shares), Some(organisation)) => Some(shares.take(organisation).await?),
            _ => None,
        };
        let vitals = self.vitals.clone();
        Ok(match &self.connections {
            Connections::Postgres(pool) => {
                Connection::Postgres(LentConnection::new(pool.acquire().await?, share), vitals)
            }
            Connections::Sqlite(pool) => {
                Connection::Sqlite(LentConnection::new(pool.acquire().await?, share), vitals)
            }
        })
    }

    /// Begins a transaction that reads one snapshot, however many statements it has.
    pub(super) async fn begin_read(&self) -> Result<Transaction, sqlx::Error> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN", false).await
    }

    /// Begins a write transaction. On SQLite it is the only one from its beginning on. Within a unit of work, the
    /// unit's open transaction is continued.
    pub(super) async fn begin_write(&self) -> Result<Transaction, sqlx::Error> {
        if let Some(transaction) = transaction::resume() {
            return Ok(transaction);
        }
        self.begin("BEGIN", "BEGIN IMMEDIATE", true).await
    }

    async fn begin(
        &self,
        on_postgres: &'static str,
        on_sqlite: &'static str,
        writes: bool,
    ) -> Result<Transaction, sqlx::Error> {
        let begun = async {
            let mut connection = self.lend().await?;
            match &mut connection {
                Connection::Postgres(lent, _) => lent.begin(on_postgres).await?,
                Connection::Sqlite(lent, _) => lent.begin(on_sqlite).await?,
            }
            Ok(connection)
        };
        let connection = Box::pin(self.vitals.answered(begun)).await?;
        Ok(Transaction::new(connection, self.bell.clone(), writes))
    }

    /// Closes every connection, within [`CLOSE_MAX`].
    pub(super) async fn close(&self) {
        let closed = async {
            match &self.connections {
                Connections::Postgres(pool) => pool.close().await,
                Connections::Sqlite(pool) => pool.close().await,
            }
        };
        if tokio::time::timeout(CLOSE_MAX, closed).await.is_err() {
            tracing::warn!("connections to the database were not closed in time; they end with the process");
        }
    }
}

/// How long connections may take to be closed.
const CLOSE_MAX: Duration = Duration::from_secs(5);

impl<'c> From<&'c Pool> for Target<'c> {
    fn from(pool: &'c Pool) -> Self {
        Target::Pool(pool)
    }
}

impl<'c> From<&'c mut Connection> for Target<'c> {
    fn from(connection: &'c mut Connection) -> Self {
        Target::Connection(connection)
    }
}
