//! One statement text on either database.
//!
//! Two concrete pools instead of a driver that knows the least of both: the kind of database is decided once,
//! when it is opened, and a statement says what it says on both. Values are 64-bit integers and texts, as the
//! columns are: ids, words and decimals are texts; instants, counts, money and truth values are integers.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::sqlite::{SqliteArguments, SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Postgres, Row as _, Sqlite};

use crate::store::bell::Bell;
use crate::store::unit::{self, Held};

/// A statement of this program's own text; what callers sent is bound to its parameters.
pub(super) fn sql(text: &'static str) -> Query {
    Query { text: Cow::Borrowed(text), values: Vec::new() }
}

/// A statement and the values of its parameters, in the order `$1`, `$2`, …
#[derive(Debug)]
pub(super) struct Query {
    text: Cow<'static, str>,
    values: Vec<Value>,
}

/// A bound value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
}

/// What a statement did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    rows_affected: u64,
}

/// A row of an answer.
#[derive(Debug)]
pub(super) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

/// The connections that read or those that write.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    connections: Connections,
    /// Rung by what commits events.
    bell: Bell,
}

/// The connections of one kind.
#[derive(Debug, Clone)]
pub(super) enum Connections {
    /// With how long an answer may take: a server that is cut off says nothing for many minutes.
    Postgres(PgPool, Duration),
    Sqlite(SqlitePool),
}

/// A connection within a transaction.
#[derive(Debug)]
pub(super) enum Connection {
    Postgres(sqlx::Transaction<'static, Postgres>, Duration),
    Sqlite(sqlx::Transaction<'static, Sqlite>),
}

impl Target<'_> {
    /// The transaction of the unit of work, where a statement would run on any connection.
    fn held(&self) -> Option<Held> {
        match self {
            Target::Connection(_) => None,
            Target::Pool(_) => Held::take(),
        }
    }
}

/// A transaction; dropped without [`Transaction::commit`] it changes nothing.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: Connection,
    bell: Bell,
    /// How many events become visible with it.
    events: u64,
    committed: Hooks,
}

/// What is done once a transaction is committed.
#[derive(Default)]
struct Hooks(Vec<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooks({})", self.0.len())
    }
}

/// Where a statement runs: on any connection of a pool, or within a transaction.
#[derive(Debug)]
pub(super) enum Target<'c> {
    Connection(&'c mut Connection),
    Pool(&'c Connections),
}

impl Query {
    /// A statement that was put together from literals, with its values.
    pub(super) fn of_literals(text: String, values: Vec<Value>) -> Self {
        Self { text: Cow::Owned(text), values }
    }

    /// Binds the next parameter.
    #[must_use]
    pub(super) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Runs a statement that answers no rows.
    pub(super) fn execute<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Done, sqlx::Error>> + Send + 'c {
        let target = on.into();
        async move {
            let mut held = target.held();
            let target = held.as_mut().and_then(Held::connection).map_or(target, Target::Connection);
            let rows_affected = match target {
                Target::Pool(Connections::Sqlite(pool)) => self.sqlite().execute(pool).await?.rows_affected(),
                Target::Pool(Connections::Postgres(pool, limit)) => {
                    answered(*limit, self.postgres().execute(pool)).await?.rows_affected()
                }
                Target::Connection(Connection::Sqlite(connection)) => {
                    self.sqlite().execute(&mut **connection).await?.rows_affected()
                }
                Target::Connection(Connection::Postgres(connection, limit)) => {
                    answered(*limit, self.postgres().execute(&mut **connection)).await?.rows_affected()
                }
            };
            Ok(Done { rows_affected })
        }
    }

    /// Every row of the answer.
    pub(super) fn fetch_all<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Vec<Row>, sqlx::Error>> + Send + 'c {
        let target = on.into();
        async move {
            let mut held = target.held();
            let target = held.as_mut().and_then(Held::connection).map_or(target, Target::Connection);
            match target {
                Target::Pool(Connections::Sqlite(pool)) => {
                    self.sqlite().fetch_all(pool).await.map(sqlite_rows)
                }
                Target::Pool(Connections::Postgres(pool, limit)) => {
                    answered(*limit, self.postgres().fetch_all(pool)).await.map(postgres_rows)
                }
                Target::Connection(Connection::Sqlite(connection)) => {
                    self.sqlite().fetch_all(&mut **connection).await.map(sqlite_rows)
                }
                Target::Connection(Connection::Postgres(connection, limit)) => {
                    answered(*limit, self.postgres().fetch_all(&mut **connection)).await.map(postgres_rows)
                }
            }
        }
    }

    /// The first row of the answer, when there is one.
    pub(super) fn fetch_optional<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Option<Row>, sqlx::Error>> + Send + 'c {
        let target = on.into();
        async move {
            let mut held = target.held();
            let target = held.as_mut().and_then(Held::connection).map_or(target, Target::Connection);
            Ok(match target {
                Target::Pool(Connections::Sqlite(pool)) => {
                    self.sqlite().fetch_optional(pool).await?.map(Row::Sqlite)
                }
                Target::Pool(Connections::Postgres(pool, limit)) => {
                    answered(*limit, self.postgres().fetch_optional(pool)).await?.map(Row::Postgres)
                }
                Target::Connection(Connection::Sqlite(connection)) => {
                    self.sqlite().fetch_optional(&mut **connection).await?.map(Row::Sqlite)
                }
                Target::Connection(Connection::Postgres(connection, limit)) => {
                    answered(*limit, self.postgres().fetch_optional(&mut **connection))
                        .await?
                        .map(Row::Postgres)
                }
            })
        }
    }

    /// The first row of an answer that always has one.
    pub(super) fn fetch_one<'c>(
        self,
        on: impl Into<Target<'c>>,
    ) -> impl Future<Output = Result<Row, sqlx::Error>> + Send + 'c {
        let row = self.fetch_optional(on);
        async move { row.await?.ok_or(sqlx::Error::RowNotFound) }
    }

    fn sqlite(self) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
        let query = match self.text {
            Cow::Borrowed(text) => sqlx::query(text),
            // Safe: `Statement` makes these of `&'static str`s and parameter numbers alone.
            Cow::Owned(text) => sqlx::query(AssertSqlSafe(text)),
        };
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Integer(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
        })
    }

    fn postgres(self) -> sqlx::query::Query<'static, Postgres, PgArguments> {
        let query = match self.text {
            Cow::Borrowed(text) => sqlx::query(text),
            // Safe: `Statement` makes these of `&'static str`s and parameter numbers alone.
            Cow::Owned(text) => sqlx::query(AssertSqlSafe(text)),
        };
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Integer(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
        })
    }
}

/// What the server answers within `limit`.
async fn answered<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("PostgreSQL has not answered for {limit:?}"),
        ))),
    }
}

fn sqlite_rows(rows: Vec<SqliteRow>) -> Vec<Row> {
    rows.into_iter().map(Row::Sqlite).collect()
}

fn postgres_rows(rows: Vec<PgRow>) -> Vec<Row> {
    rows.into_iter().map(Row::Postgres).collect()
}

impl Done {
    /// How many rows were inserted, changed or deleted.
    pub(super) fn rows_affected(self) -> u64 {
        self.rows_affected
    }
}

impl Row {
    /// The value of a column.
    pub(super) fn try_get<'r, T: Column<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Row::Postgres(row) => T::of_postgres(row, column),
            Row::Sqlite(row) => T::of_sqlite(row, column),
        }
    }
}

/// A type that a column can be read as.
pub(super) trait Column<'r>: Sized {
    fn of_postgres(row: &'r PgRow, column: &str) -> Result<Self, sqlx::Error>;
    fn of_sqlite(row: &'r SqliteRow, column: &str) -> Result<Self, sqlx::Error>;
}

macro_rules! columns {
    ($($kind:ty),*) => {
        $(impl<'r> Column<'r> for $kind {
            fn of_postgres(row: &'r PgRow, column: &str) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }

            fn of_sqlite(row: &'r SqliteRow, column: &str) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }
        })*
    };
}

columns!(i64, Option<i64>, String, Option<String>, &'r str, Option<&'r str>);

impl Pool {
    /// These connections; what commits events through them rings `bell`.
    pub(super) fn new(connections: Connections, bell: Bell) -> Self {
        Self { connections, bell }
    }

    /// Whether it is PostgreSQL, where several transactions write at once.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.connections, Connections::Postgres(..))
    }

    /// A transaction that reads one snapshot, however many statements it has.
    pub(super) async fn begin_read(&self) -> Result<Transaction, sqlx::Error> {
        Ok(self.transaction(match &self.connections {
            Connections::Postgres(pool, limit) => {
                let begun = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
                Connection::Postgres(answered(*limit, begun).await?, *limit)
            }
            Connections::Sqlite(pool) => Connection::Sqlite(pool.begin().await?),
        }))
    }

    /// A transaction that writes. On SQLite it is the only one from its beginning on. Within a unit of work the
    /// one that is open goes on.
    pub(super) async fn begin_write(&self) -> Result<Transaction, sqlx::Error> {
        if let Some(transaction) = unit::resume() {
            return Ok(transaction);
        }
        Ok(self.transaction(match &self.connections {
            Connections::Postgres(pool, limit) => {
                Connection::Postgres(answered(*limit, pool.begin()).await?, *limit)
            }
            Connections::Sqlite(pool) => Connection::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
        }))
    }

    /// Closes every connection.
    pub(super) async fn close(&self) {
        match &self.connections {
            Connections::Postgres(pool, _) => pool.close().await,
            Connections::Sqlite(pool) => pool.close().await,
        }
    }

    fn transaction(&self, connection: Connection) -> Transaction {
        Transaction { connection, bell: self.bell.clone(), events: 0, committed: Hooks::default() }
    }
}

impl Transaction {
    /// Makes everything visible at once; within a unit of work, when the unit is committed.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        let Err(transaction) = unit::keep(self) else { return Ok(()) };
        let Transaction { connection, bell, events, committed } = transaction;
        match connection {
            Connection::Postgres(transaction, limit) => answered(limit, transaction.commit()).await?,
            Connection::Sqlite(transaction) => transaction.commit().await?,
        }
        bell.ring(events);
        for hook in committed.0 {
            hook();
        }
        Ok(())
    }

    /// Has something done that must not happen before what is written here is there for good.
    pub(super) fn when_committed(&mut self, hook: Box<dyn FnOnce() + Send>) {
        self.committed.0.push(hook);
    }

    /// So many events were written: who reads them is woken by the commit.
    pub(super) fn wrote_events(&mut self, count: usize) {
        self.events += count as u64;
    }

    /// Whether no other transaction writes before this one ends.
    pub(super) fn writes_alone(&self) -> bool {
        matches!(self.connection, Connection::Sqlite(_))
    }
}

/// The two sides of the tokens that a record has from its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AiTokens {
    /// Records are stored, with the tokens of conversations that are there.
    Read,
    /// Tokens are written to the record of a conversation, when it is there.
    Written,
}

impl Connection {
    /// Keeps the other side out until the transaction ends, so that one of the two sees what the other stored: a
    /// record and its conversation are often stored in the same instant. On SQLite a transaction that writes is
    /// alone anyway.
    pub(super) async fn hold(&mut self, side: AiTokens) -> Result<(), sqlx::Error> {
        if let Connection::Sqlite(_) = self {
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

/// Any number that no other lock of this program has.
const AI_TOKENS_LOCK: i64 = 0x5EED_0060;

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
        Target::Pool(&pool.connections)
    }
}

impl<'c> From<&'c mut Connection> for Target<'c> {
    fn from(connection: &'c mut Connection) -> Self {
        Target::Connection(connection)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Value::Integer(number)
    }
}

impl From<bool> for Value {
    /// A column of truth values is a BIGINT of 0 and 1.
    fn from(holds: bool) -> Self {
        Value::Integer(Some(i64::from(holds)))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        // PostgreSQL refuses a text with a NUL in it: a record with one would wait in the journal for ever.
        Value::Text(text.map(|text| if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text }))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Some(text).into()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Some(text.to_owned()).into()
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Some(text.clone()).into()
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map(str::to_owned).into()
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        text.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_integers_and_texts() {
        let cases: [(Value, Value); 6] = [
            (true.into(), Value::Integer(Some(1))),
            (false.into(), Value::Integer(Some(0))),
            (None::<i64>.into(), Value::Integer(None)),
            (None::<&str>.into(), Value::Text(None)),
            ("a".into(), Value::Text(Some("a".to_owned()))),
            ("a\0b".into(), Value::Text(Some("a\u{FFFD}b".to_owned()))),
        ];
        for (value, expected) in cases {
            assert_eq!(value, expected);
        }
    }
}
