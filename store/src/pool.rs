//! The database connections, and transactions on them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Postgres, Sqlite};

use crate::bell::Bell;
use crate::lent::Lent;
use crate::sql::sql;
use crate::turns::{self, Turns};
use crate::unit::{self, Held};
use crate::vitals::Vitals;

/// The connections of one purpose: reads for organisations, reads for the engine, writes.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    connections: Connections,
    vitals: Vitals,
    /// The shares of the organisations; `None` where no organisation's work is done.
    turns: Option<Turns>,
    /// Rung by commits of events.
    bell: Bell,
}

/// The connections of one kind.
#[derive(Debug, Clone)]
pub(super) enum Connections {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// A connection in use, within a transaction or not.
#[derive(Debug)]
pub(super) enum Connection {
    Postgres(Lent<Postgres>, Vitals),
    Sqlite(Lent<Sqlite>, Vitals),
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

/// A transaction; without [`Transaction::commit`] it is rolled back on drop.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: Connection,
    bell: Bell,
    /// The number of events that become visible with it.
    events: u64,
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

impl Pool {
    /// Builds a pool on these connections; `vitals` limits the time of answers, and commits of events ring
    /// `bell`.
    pub(super) fn new(connections: Connections, vitals: Vitals, bell: Bell) -> Self {
        Self { connections, vitals, turns: None, bell }
    }

    /// Returns the pool with a share of the connections for each organisation.
    pub(super) fn shared(mut self, turns: Turns) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Its connections.
    pub(super) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether it is PostgreSQL, where several transactions write at once.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.connections, Connections::Postgres(..))
    }

    /// The time limits of answers.
    pub(super) fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// Returns a connection when it is the turn of the organisation that the work is for.
    pub(super) async fn lend(&self) -> Result<Connection, sqlx::Error> {
        let turn = match (&self.turns, turns::tenant()) {
            (Some(turns), Some(organisation)) => Some(turns.take(organisation).await?),
            _ => None,
        };
        let vitals = self.vitals.clone();
        Ok(match &self.connections {
            Connections::Postgres(pool) => {
                Connection::Postgres(Lent::new(pool.acquire().await?, turn), vitals)
            }
            Connections::Sqlite(pool) => Connection::Sqlite(Lent::new(pool.acquire().await?, turn), vitals),
        })
    }

    /// Begins a transaction that reads one snapshot, however many statements it has.
    pub(super) async fn begin_read(&self) -> Result<Transaction, sqlx::Error> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN").await
    }

    /// Begins a transaction that writes. On SQLite it is the only one from its beginning. Within a unit of
    /// work the open one continues.
    pub(super) async fn begin_write(&self) -> Result<Transaction, sqlx::Error> {
        if let Some(transaction) = unit::resume() {
            return Ok(transaction);
        }
        self.begin("BEGIN", "BEGIN IMMEDIATE").await
    }

    async fn begin(
        &self,
        on_postgres: &'static str,
        on_sqlite: &'static str,
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
        Ok(Transaction { connection, bell: self.bell.clone(), events: 0, committed: Hooks::default() })
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

impl Transaction {
    /// Commits; within a unit of work this happens when the unit is committed.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        let Some(transaction) = unit::keep(self) else { return Ok(()) };
        let Transaction { mut connection, bell, events, committed } = transaction;
        let vitals = connection.vitals().clone();
        let commit = async {
            match &mut connection {
                Connection::Postgres(lent, _) => lent.commit().await,
                Connection::Sqlite(lent, _) => lent.commit().await,
            }
        };
        Box::pin(vitals.answered(commit)).await?;
        bell.ring(events);
        for hook in committed.0 {
            hook();
        }
        Ok(())
    }

    /// Calls `hook` after the commit.
    pub(super) fn when_committed(&mut self, hook: Box<dyn FnOnce() + Send>) {
        self.committed.0.push(hook);
    }

    /// Counts written events: the commit wakes their readers.
    pub(super) fn wrote_events(&mut self, count: usize) {
        self.events += count as u64;
    }

    /// Whether no other transaction can write before this one ends.
    pub(super) fn writes_alone(&self) -> bool {
        matches!(self.connection, Connection::Sqlite(..))
    }
}

/// The two writers of the tokens that a record gets from its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AiTokens {
    /// Stores records, with the tokens of stored conversations.
    Read,
    /// Writes tokens to the stored record of a conversation.
    Written,
}

impl Connection {
    /// The time limits of its answers.
    pub(super) fn vitals(&self) -> &Vitals {
        match self {
            Connection::Postgres(_, vitals) | Connection::Sqlite(_, vitals) => vitals,
        }
    }

    /// Excludes the other writer until the transaction ends, so that one of the two sees what the other
    /// stored: a record and its conversation are often stored at the same instant. On SQLite there is only
    /// one writing transaction anyway.
    pub(super) async fn hold(&mut self, side: AiTokens) -> Result<(), sqlx::Error> {
        if let Connection::Sqlite(..) = self {
            return Ok(());
        }
        let lock = match side {
            AiTokens::Read => "SELECT pg_advisory_xact_lock_shared($1)",
            AiTokens::Written => "SELECT pg_advisory_xact_lock($1)",
        };
        sql(lock).bind(AI_TOKENS_LOCK).execute(self).await?;
        Ok(())
    }
}

/// A number that no other lock of this program uses.
const AI_TOKENS_LOCK: i64 = 0x5EED_0060;

/// How long connections may take to be closed.
const CLOSE_MAX: Duration = Duration::from_secs(5);

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
